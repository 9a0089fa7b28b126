"""Every error that hagane raises on purpose.

The tree (each leaf also inherits the closest built-in exception, so that code written for other
libraries keeps catching it)::

    HaganeError
    ├── ModelError                    the model itself cannot be used
    │   ├── NoSuchFile                (FileNotFoundError)     there is no such file
    │   ├── InvalidModel              (ValueError)            the bytes are not a readable model
    │   │   └── ExternalDataError                             weights outside the file are unusable
    │   ├── InvalidGraph              (ValueError)            readable, yet not a well-formed graph
    │   │   └── TypeInferenceError    (TypeError)             types or shapes of a node don't fit
    │   └── UnsupportedModel          (NotImplementedError)   operators or opsets hagane lacks
    ├── CaptureError                  (NotImplementedError)   a program that cannot become a graph
    ├── InvalidArgument               (ValueError)            a caller passed something unusable
    │   ├── InvalidFeed                                       an input of ``run`` does not fit
    │   ├── OutOfRange            (IndexError)            a label or an index beyond those there are
    │   ├── WrongLength           (AssertionError)        not as many numbers as there are axes
    │   └── NoDevice              (RuntimeError)          a device that is not there
    ├── NotDifferentiable             (NotImplementedError)   an operator on the way has no gradient
    ├── KernelError                   (RuntimeError)          a node failed while it ran
    │   ├── InvalidContent            (ValueError)            its kernel refused its operands
    │   └── OutOfMemory               (MemoryError)           no room for the values of a model
    ├── NotOffered                    (NotImplementedError)   a name that hagane lacks on purpose
    ├── MissingExtra                  (ImportError)           an optional dependency is absent
    └── NoCompiler                    (OSError)               no compiler, or no room for its output
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class HaganeError(Exception):
    """Base of all errors that hagane raises on purpose."""


class ModelError(HaganeError):
    """A model that cannot be used."""


class NoSuchFile(ModelError, FileNotFoundError):
    """A model file, or a file that a model names, does not exist."""


class InvalidModel(ModelError, ValueError):
    """Bytes that are not a readable model: truncated, corrupted or of another format."""


class ExternalDataError(InvalidModel):
    """Weights kept beside the model that are missing, too short or outside its folder."""


class InvalidGraph(ModelError, ValueError):
    """A readable model whose graph is malformed: cycles, undefined or repeated names."""


class TypeInferenceError(InvalidGraph, TypeError):
    """A node whose input types or shapes its operator does not take."""


class UnsupportedModel(ModelError, NotImplementedError):
    """A model that needs operators or opsets which hagane lacks; all of them are listed."""

    def __init__(self, problems: Sequence[str]):
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(f"the model needs what hagane does not have:\n{lines}")


class CaptureError(HaganeError, NotImplementedError):
    """A program of which some parts cannot become a graph; all of them are listed.

    Args:
        problems: They in words.
        containers: The lists and dicts that the program changes, by names, if it can become a graph
            where these are arguments.
    """

    def __init__(self, problems: Sequence[str], containers: Mapping[str, Any] | None = None):
        self.problems = tuple(problems)
        self.containers = containers or {}
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(f"the program cannot become a graph:\n{lines}")


class InvalidArgument(HaganeError, ValueError):
    """An argument of the public interface that cannot be used."""


class InvalidFeed(InvalidArgument):
    """An input given to ``run`` that does not fit the model."""


class OutOfRange(InvalidArgument, IndexError):
    """A label, an identifier or an index that is not among those there are."""


class NoDevice(InvalidArgument, RuntimeError):
    """A device that this machine, or hagane, does not have."""


class WrongLength(InvalidArgument, AssertionError):
    """A sequence that has not as many numbers as there are axes; Chainer asserts that."""


class NotDifferentiable(HaganeError, NotImplementedError):
    """A gradient that would have to pass an operator which has none."""


class KernelError(HaganeError, RuntimeError):
    """A node that failed while it ran."""


class InvalidContent(KernelError, ValueError):
    """A node whose kernel refused the content of its operands."""


class OutOfMemory(KernelError, MemoryError):
    """Values of a model that could not be allocated."""


class NotOffered(HaganeError, NotImplementedError):
    """A name of another library's interface that hagane does not offer; it says why."""


class MissingExtra(HaganeError, ImportError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, feature: str, extra: str):
        super().__init__(
            f"{feature} needs the extra '{extra}', which is not installed: "
            f"pip install 'hagane[{extra}]'"
        )
        self.extra = extra


class NoCompiler(HaganeError, OSError):
    """There is no C compiler, it fails, or there is no room for its output."""
