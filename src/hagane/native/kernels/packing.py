"""Recipes of packed weights: a named function and its arguments, so that both can be kept.

Arrays among the arguments are the weights as they come; packing them again, when they change, runs
the same recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hagane.ops.definition import Array


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """How the content of a weight buffer is made.

    Attributes:
        function: A function of a module, listed in ``rules/packings.py``; returns the content, or
            its pieces in order.
        arguments: Arrays, numbers, texts, and records of these.
    """

    function: Callable[..., Array | Iterable[Array]]
    arguments: tuple[Any, ...]

    def pieces(self) -> Iterator[Array]:
        """Yield the content in pieces, in order."""
        content = self.function(*self.arguments)
        yield from [content] if isinstance(content, np.ndarray) else content


def recipe_of(packing: Packing) -> Hashable | None:
    """Return what equal recipes of the same arrays have in common, as long as these live.

    None if a recipe has no array, or arguments that can't be compared.
    """
    arrays = 0

    def plain(item: Any) -> Any:
        nonlocal arrays
        if isinstance(item, np.ndarray):
            arrays += 1
            place = item.__array_interface__["data"][0]
            return np.ndarray, place, item.dtype.str, item.shape, item.strides
        return tuple(map(plain, item)) if isinstance(item, tuple | list) else item

    recipe = packing.function, plain(packing.arguments)
    try:
        hash(recipe)
    except TypeError:
        return None
    return recipe if arrays else None


def as_is(array: Array) -> Array:
    """Return an array in row-major order."""
    return np.asarray(array, order="C")


def padded_rows(rows: tuple[Array, ...], length: int, dtype: str) -> Array:
    """Return rows of numbers one after the other, each filled up with zeros.

    Args:
        rows: Each of any shape.
        length: Elements of a row.
        dtype: Their element type; numbers are converted.
    """
    kept = np.zeros((len(rows), length), dtype)
    for into, row in zip(kept, rows, strict=True):
        into[: row.size] = row.reshape(-1)
    return kept.reshape(-1)


def zeros(count: int) -> Array:
    """Return zeros of float32."""
    return np.zeros(count, np.float32)
