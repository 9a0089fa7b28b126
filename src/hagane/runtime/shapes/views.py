"""Inputs as feeds have them: of open ranks, in the place of initializers, sizes apart.

A model is built for declared ranks, takes its initializers for constants and one name of a size for
one size. Feeds that are otherwise have a build of their own, so that they run on kernels too.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.errors import InvalidModel
from hagane.graph.types import TensorType
from hagane.symbolic import Expr, symbol

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
        apart: Whether one name stands for several sizes, so that names tell nothing.
    """

    ranks: tuple[tuple[str, int], ...]
    fed: tuple[str, ...]
    apart: bool


def rankless(inputs: Sequence[Input]) -> list[str]:
    """Return the names of inputs that are tensors of any rank."""
    return [
        item.name
        for item in inputs
        if isinstance(item.type, TensorType) and item.type.shape is None
    ]


def repeated(inputs: Sequence[Input]) -> list[tuple[str, int, str]]:
    """Return the input, axis and name of sizes whose name several have."""
    found = [
        (item.name, axis, str(dim))
        for item in inputs
        if isinstance(item.type, TensorType)
        for axis, dim in enumerate(item.type.shape or ())
        if isinstance(dim, Expr) and dim == symbol(str(dim))
    ]
    counts = Counter(name for _, _, name in found)
    return [each for each in found if counts[each[2]] > 1]


def _differ(shared: Sequence[tuple[str, int, str]], feed: Mapping[str, Any]) -> bool:
    """Whether a name that inputs share stands for several sizes of a feed."""
    sizes: dict[str, int] = {}
    for name, axis, size in shared:
        shape = getattr(feed.get(name), "shape", None)
        given = shape[axis] if isinstance(shape, tuple) and axis < len(shape) else None
        if given is not None and sizes.setdefault(size, given) != given:
            return True
    return False


def view_of(
    open_ranks: Sequence[str],
    optional: Sequence[str],
    shared: Sequence[tuple[str, int, str]],
    feed: Mapping[str, Any],
) -> View | None:
    """Return what a feed tells beyond the declarations, or None if that is nothing.

    Args:
        open_ranks: Inputs of any rank.
        optional: Initializers that may be fed.
        shared: Names of sizes that several axes of inputs have.
        feed: Values by name.
    """
    fed = tuple(name for name in optional if feed.get(name) is not None)
    ranks = tuple((name, _rank(feed[name])) for name in open_ranks if feed.get(name) is not None)
    apart = _differ(shared, feed)
    return View(ranks, fed, apart) if ranks or fed or apart else None


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
    for value in inputs.values() if view.apart else ():
        if value.shape is not None and value.name not in model.graph.initializers:
            sizes = [dim if isinstance(dim, int) else None for dim in value.shape]
            value.shape = ir.Shape(sizes)
    return model


def is_small(source: ModelSource) -> bool:
    """Whether a model in memory takes at most 16 MB there."""
    size = len(source) if isinstance(source, bytes) else getattr(source, "ByteSize", int)()
    return size <= 2**24


@dataclass(frozen=True, slots=True)
class Stamp:
    """A model's files as they were, none of a model in memory.

    Attributes:
        path: The model's file.
        states: When each file was written to, and its size.
    """

    path: str
    states: tuple[tuple[str, int, int], ...]

    @classmethod
    def of(cls, source: ModelSource, beside: Sequence[str] = ()) -> Stamp:
        """Return the stamp of a source.

        Args:
            source: The source.
            beside: Files with weights in the model's folder.
        """
        if not isinstance(source, str | os.PathLike):
            return cls("", ())
        path = os.path.abspath(source)
        paths = [path, *(os.path.join(os.path.dirname(path), name) for name in beside)]
        return cls(path, tuple(map(_state, paths)))

    def check(self) -> None:
        """Raise if a file has been changed.

        Raises:
            InvalidModel: One was.
        """
        for state in self.states:
            if _state(state[0]) != state:
                raise InvalidModel(
                    f"'{state[0]}' was changed after the session was made, and is needed again: "
                    "make a new session"
                )


def _state(path: str) -> tuple[str, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return path, 0, -1
    return path, found.st_mtime_ns, found.st_size
