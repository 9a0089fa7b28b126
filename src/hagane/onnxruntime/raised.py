"""hagane's errors under ONNX Runtime's names.

Code that catches ``onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument`` catches what
hagane raises in its place, and code that catches hagane's errors still does: each error raised
through ``hagane.onnxruntime`` is of both classes. ONNX Runtime raises ``Fail``, ``InvalidGraph`` or
``InvalidArgument`` for a malformed graph, and ``Fail``, ``InvalidArgument`` or ``RuntimeException``
for a node that failed, by the place in its code that notices first; hagane's error is all three.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hagane import errors
from hagane.onnxruntime import errors as theirs
from hagane.onnxruntime.messages import coded


class NoSuchFile(errors.NoSuchFile, theirs.NoSuchFile):
    """There is no such file."""


class InvalidModel(errors.InvalidModel, theirs.InvalidProtobuf, theirs.InvalidArgument):
    """Bytes that are no model."""


class ExternalDataError(errors.ExternalDataError, theirs.Fail):
    """Weights beside the model that cannot be used."""


class InvalidGraph(errors.InvalidGraph, theirs.InvalidGraph, theirs.Fail, theirs.InvalidArgument):
    """A malformed graph."""


class TypeInferenceError(errors.TypeInferenceError, theirs.InvalidGraph, theirs.Fail):
    """A node whose inputs do not fit."""


class UnsupportedModel(
    errors.UnsupportedModel, theirs.NotImplemented, theirs.InvalidGraph, theirs.Fail
):
    """A model with needs that hagane lacks."""


class InvalidArgument(errors.InvalidArgument, theirs.InvalidArgument):
    """An argument that cannot be used."""


class InvalidFeed(errors.InvalidFeed, theirs.InvalidArgument, theirs.Fail):
    """An input that does not fit."""


class KernelError(errors.KernelError, theirs.Fail, theirs.InvalidArgument, theirs.RuntimeException):
    """A node that failed."""


class InvalidContent(
    errors.InvalidContent, theirs.Fail, theirs.InvalidArgument, theirs.RuntimeException
):
    """A node that refused the content of its operands."""


class OutOfMemory(errors.OutOfMemory, theirs.Fail, theirs.RuntimeException):
    """Values for which there is no room."""


class NotOffered(errors.NotOffered, theirs.NotImplemented, theirs.Fail):
    """A name that hagane does not offer."""


class BoundError(errors.InvalidArgument, RuntimeError):
    """A value or a binding that does not fit: ONNX Runtime raises ``RuntimeError`` there."""


class OddFeed(errors.InvalidFeed, RuntimeError):
    """Something in the place of an array that ONNX Runtime's interface cannot make one of."""


_CLASSES: dict[type[errors.HaganeError], type[errors.HaganeError]] = {
    errors.NoSuchFile: NoSuchFile,
    errors.InvalidModel: InvalidModel,
    errors.ExternalDataError: ExternalDataError,
    errors.InvalidGraph: InvalidGraph,
    errors.TypeInferenceError: TypeInferenceError,
    errors.UnsupportedModel: UnsupportedModel,
    errors.InvalidArgument: InvalidArgument,
    errors.InvalidFeed: InvalidFeed,
    errors.KernelError: KernelError,
    errors.InvalidContent: InvalidContent,
    errors.OutOfMemory: OutOfMemory,
    errors.NotOffered: NotOffered,
}


def renamed(error: errors.HaganeError, wording: str | None = None) -> errors.HaganeError:
    """Return ``error`` itself, which from now on is of ONNX Runtime's class too.

    Args:
        error: Of hagane's; its text gets ONNX Runtime's code of its class, or its wording in front.
        wording: ONNX Runtime's sentence, with the code.
    """
    found = _CLASSES.get(type(error))
    if found is not None:
        error.args = (coded(error) if wording is None else f"{wording}\n{error}",)
        error.__class__ = found
    return error


@contextmanager
def as_theirs() -> Iterator[None]:
    """Give errors that pass ONNX Runtime's classes beside their own."""
    try:
        yield
    except errors.HaganeError as error:
        renamed(error)
        raise


@contextmanager
def as_bound() -> Iterator[None]:
    """Give errors about values and bindings the class that ONNX Runtime gives them."""
    try:
        yield
    except BoundError:
        raise
    except (errors.InvalidArgument, errors.KernelError) as error:
        raise BoundError(str(error)).with_traceback(error.__traceback__) from None


def offered_not(name: str, reason: str) -> errors.HaganeError:
    """Return the error for a name of ONNX Runtime's that hagane does not offer."""
    return NotOffered(f"onnxruntime.{name} is not offered by hagane: {reason}")
