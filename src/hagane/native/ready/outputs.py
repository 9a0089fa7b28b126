"""Memory of large results, used again once the caller has let go of them.

Fresh memory costs a page fault every 4 KiB, which for the cache of a decoder takes longer than to
fill it; the C library gives freed memory back to the system and so pays each time.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hagane.ops.definition import Array

# Smaller arrays are allocated as usual.
_LEAST = 64 << 10
# Free memory that is kept, in bytes.
_MOST_KEPT = 64 << 20


class OutputPool:
    """Blocks of memory that were results and are not any more."""

    def __init__(self) -> None:
        self._free: dict[int, list[tuple[Array, int]]] = {}
        self._kept = 0

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Return an array with any content; its memory comes back when nobody looks at it."""
        count = dtype.itemsize
        for dim in shape:
            count *= dim
        if count < _LEAST:
            return np.empty(shape, dtype)
        size = _size_class(count)
        try:
            memory, address = self._free[size].pop()
            self._kept -= size
        except (KeyError, IndexError):
            memory = np.empty(size, np.uint8)
            address = memory.ctypes.data
        if dtype.isbuiltin == 1:
            block = _Block(self, memory, address, tuple(shape), dtype.str)
            array = np.asarray(block)
        else:  # of which the interface of arrays has no name
            block = _Block(self, memory, address, (count,), "|u1")
            array = np.asarray(block).view(dtype).reshape(shape)
        block.given = weakref.ref(array)
        return array

    def take_back(self, memory: Array, address: int) -> None:
        """Keep a block for later, if there is not enough already."""
        if self._kept + memory.nbytes <= _MOST_KEPT:
            self._kept += memory.nbytes
            self._free.setdefault(memory.nbytes, []).append((memory, address))


class _Block:
    """The owner of a pool's array; NumPy holds it as long as any view lives."""

    __slots__ = ("__array_interface__", "_address", "_memory", "_pool", "given")

    def __init__(
        self, pool: OutputPool, memory: Array, address: int, shape: tuple[int, ...], typestr: str
    ):
        self._pool, self._memory, self._address = pool, memory, address
        self.given: weakref.ref[Array] | None = None
        self.__array_interface__ = {
            "shape": shape, "typestr": typestr, "data": (address, False), "version": 3,
        }  # fmt: skip

    def __del__(self) -> None:
        self._pool.take_back(self._memory, self._address)


def is_pooled(array: Array) -> bool:
    """Whether an array came from a pool, and so the caller's own, and no view of it."""
    block = array.base
    if isinstance(block, np.ndarray):
        block = block.base
    return isinstance(block, _Block) and block.given is not None and block.given() is array


def _size_class(count: int) -> int:
    """Return a size of few, so that results that grow a little fit where the last one was."""
    step = max(_LEAST, 1 << (count.bit_length() - 4))
    return -(-count // step) * step
