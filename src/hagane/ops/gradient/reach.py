"""Whether a gradient reaches a value in a run.

A value that only a branch reads, or only the iterations of a loop, has a gradient of zeros where
the run takes the other branch or makes no iteration. Optimizers that leave out parameters without a
gradient have to tell that from a gradient that is zero.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from hagane.graph.types import TensorType
from hagane.ops.builder import op, type_of


class Reach:
    """Truth values of gradients: whether one comes in a run. One that is not noted always does.

    Args:
        sizes: Names of sizes that are 1 or more in every run: those of inputs.
    """

    def __init__(self, sizes: Collection[str] = ()) -> None:
        self._sizes = sizes
        self._noted: dict[int, tuple[Any, Any]] = {}  # with the gradient, which keeps its identity

    def comes(self, gradient: Any) -> Any:
        """Return whether a gradient comes: a truth value of the run, or True or False."""
        if gradient is None:
            return False
        return self._noted.get(id(gradient), (gradient, True))[1]

    def any_of(self, gradients: Iterable[Any]) -> Any:
        """Return whether one of several comes."""
        found: Any = False
        for gradient in gradients:
            found = either(found, self.comes(gradient))
        return found

    def note(self, gradient: Any, comes: Any) -> None:
        """Keep whether a gradient comes, unless that is known."""
        if comes is not True and id(gradient) not in self._noted:
            self._noted[id(gradient)] = gradient, comes

    def is_positive(self, stack: Any) -> bool:
        """Whether a stack of what iterations made has one in every run, as its type tells."""
        found = type_of(stack)
        if not isinstance(found, TensorType) or not found.shape:
            return False
        size = found.shape[0]
        return size > 0 if isinstance(size, int) else str(size) in self._sizes


_active: ContextVar[Reach | None] = ContextVar("reach", default=None)


def watched() -> Reach | None:
    """Return the record of the gradients that are being computed, if there is one."""
    return _active.get()


@contextmanager
def watching(sizes: Collection[str]) -> Iterator[Reach]:
    """Note whether gradients come that are computed inside.

    Args:
        sizes: Names of sizes that are 1 or more in every run.
    """
    token = _active.set(found := Reach(sizes))
    try:
        yield found
    finally:
        _active.reset(token)


def either(x: Any, y: Any) -> Any:
    """Return whether one of two truth values holds."""
    if x is True or y is True:
        return True
    if x is False or y is False:
        return y if x is False else x
    return op("Or", x, y)


def both(x: Any, y: Any) -> Any:
    """Return whether two truth values hold."""
    if x is False or y is False:
        return False
    if x is True or y is True:
        return y if x is True else x
    return op("And", x, y)


def as_value(x: Any) -> Any:
    """Return a truth value of the run."""
    return np.array(x) if isinstance(x, bool) else x
