"""Memory of large results, used again once the caller has let go of them.

Fresh memory costs a page fault every 4 KiB, which for the cache of a decoder takes longer than to
fill it; the C library gives freed memory back to the system and so pays each time.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hagane.ops.definition import Array

# Smaller arrays are allocated as usual.
_LEAST = 64 << 10
# Free memory that is kept, in bytes.
_MOST_KEPT = 64 << 20
# A result may leave so much of a block unused, in multiples of its own size.
_ROOM = 4


class OutputPool:
    """Blocks of memory that were results and are not any more."""

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}
        self._kept = 0

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Return an array with any content; its memory comes back when nobody looks at it."""
        count = dtype.itemsize
        for dim in shape:
            count *= dim
        if count < _LEAST:
            return np.empty(shape, dtype)
        memory = self._found(size := _size_class(count))
        if memory is None:
            self._let_go(size)
            memory = _Memory(size, np.uint8)
        block = memory.view(_Block)
        block.pool, block.memory = self, memory
        array: Array = np.ndarray(shape, dtype, block)
        block.given = weakref.ref(array)
        return array

    def _found(self, size: int) -> Array | None:
        """Return the smallest free block in which so many bytes leave no more than ``_ROOM`` times unused."""
        for each in sorted(self._free):
            if size <= each <= _ROOM * size:
                with suppress(IndexError):
                    memory = self._free[each].pop()
                    self._kept -= each
                    return memory
        return None

    def _let_go(self, size: int) -> None:
        """Give smaller blocks back to the system, for as many bytes: a new one takes their place.

        Results of many sizes, one after the other, would else leave a block of each.
        """
        left = size
        for each in sorted(self._free, reverse=True):
            if each < size:
                with suppress(IndexError):
                    while left > 0:
                        self._free[each].pop()
                        self._kept -= each
                        left -= each

    def take_back(self, memory: Array) -> None:
        """Keep a block for later, if there is not enough already."""
        if self._kept + memory.nbytes <= _MOST_KEPT:
            self._kept += memory.nbytes
            self._free.setdefault(memory.nbytes, []).append(memory)


# NumPy passes over the base of a base that is of the view's own class.
class _Memory(np.ndarray[Any, Any]):
    """Memory of a pool."""


class _Block(np.ndarray[Any, Any]):
    """The owner of a pool's array; NumPy holds it as long as any view lives."""

    __slots__ = ("given", "memory", "pool")
    if TYPE_CHECKING:
        given: weakref.ref[Array]
        memory: Array
        pool: OutputPool

    def __del__(self) -> None:
        with suppress(AttributeError):  # views of a block have no memory of their own
            self.pool.take_back(self.memory)


def is_pooled(array: Array) -> bool:
    """Whether an array came from a pool, and so the caller's own, and no view of it."""
    block = array.base
    given = getattr(block, "given", None) if isinstance(block, _Block) else None
    return given is not None and given() is array


def _size_class(count: int) -> int:
    """Return a size of few, so that results that grow a little fit where the last one was."""
    step = max(_LEAST, 1 << (count.bit_length() - 4))
    return -(-count // step) * step
