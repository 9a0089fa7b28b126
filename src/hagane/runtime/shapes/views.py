"""Inputs as single runs have them: of ranks that a file leaves open, in the place of initializers.

A model is built for declared ranks and takes its initializers for constants. Other feeds have a
build of their own, in which these are known or plain inputs, so that they run on kernels too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.errors import InvalidModel
from hagane.graph.types import TensorType

if TYPE_CHECKING:
    import onnx_ir as ir

    from hagane.graph import ModelSource
    from hagane.runtime.values.feeds import Input


@dataclass(frozen=True, slots=True)
class View:
    """What a feed tells of inputs.

    Attributes:
        ranks: Of inputs whose declared types have none.
        fed: Initializers that are fed.
    """

    ranks: tuple[tuple[str, int], ...]
    fed: tuple[str, ...]


def rankless(inputs: Sequence[Input]) -> list[str]:
    """Return the names of inputs that are tensors of any rank."""
    return [
        item.name
        for item in inputs
        if isinstance(item.type, TensorType) and item.type.shape is None
    ]


def view_of(
    open_ranks: Sequence[str], optional: Sequence[str], feed: Mapping[str, Any]
) -> View | None:
    """Return what a feed tells beyond the declarations, or None if that is nothing."""
    fed = tuple(name for name in optional if name in feed)
    ranks = tuple((name, _rank(feed[name])) for name in open_ranks if name in feed)
    return View(ranks, fed) if ranks or fed else None


def _rank(value: Any) -> int:
    shape = getattr(value, "shape", None)
    if shape is None:
        return np.ndim(value)
    return len(shape() if callable(shape) else shape)


def viewed(source: ModelSource, view: View) -> ir.Model:
    """Return a model whose inputs are those of a view."""
    import onnx_ir as ir

    from hagane.graph import load

    model = load(source)
    inputs = {str(value.name): value for value in model.graph.inputs}
    for name in view.fed:
        model.graph.initializers.pop(name)
        inputs[name].const_value = None
    for name, rank in view.ranks:
        inputs[name].shape = ir.Shape([None] * rank)
    return model


@dataclass(frozen=True, slots=True)
class Stamp:
    """A file as it was: a source that is no file does not change."""

    path: str
    state: tuple[int, int] | None

    @classmethod
    def of(cls, source: ModelSource) -> Stamp:
        """Return the stamp of a source."""
        if not isinstance(source, str | os.PathLike):
            return cls("", None)
        found = os.stat(source)
        return cls(os.fspath(source), (found.st_mtime_ns, found.st_size))

    def check(self) -> None:
        """Raise if the file has been changed.

        Raises:
            InvalidModel: It was.
        """
        if self.path and (not os.path.exists(self.path) or Stamp.of(self.path) != self):
            raise InvalidModel(
                f"'{self.path}' was changed after the session was made, and is needed again: "
                "make a new session"
            )
