"""Weights watched for changes of their content from run to run.

PyTorch counts the changes of a tensor, but not those through its ``data``: ``p.data.add_(1)``. So
tensors of a page or less are compared whole, and of larger ones some elements, spread over them:
updates change nearly all, and to compare them whole would take as long as many a product. Arrays of
NumPy, whose changes nobody counts, are compared whole.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import starmap
from typing import Any

import numpy as np

_WHOLE = 4096  # bytes up to which a tensor is compared whole
_SAMPLES = 16  # elements of a larger one

_START = 4096  # the first page of memory is never in use

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class WatchedArray:
    """Counts the changes of an array of NumPy, bit by bit.

    Args:
        array: The array, which keeps its memory and shape.
    """

    def __init__(self, array: Any):
        self._array = array
        self._count = 0
        self._whole = bool(array.flags.c_contiguous)
        self._keep()

    def _keep(self) -> None:
        self._copy = self._array.copy(order="C")
        self._places = self._array.ctypes.data, self._copy.ctypes.data, self._copy.nbytes

    def mark(self) -> int:
        """Return how often the content was found to be another one."""
        if self._whole:
            same = not _memcmp(*self._places)
        else:
            same = self._array.tobytes() == self._copy.tobytes()
        if not same:
            self._count += 1
            self._keep()
        return self._count


class WatchedTensors:
    """Marks that change with the content of tensors of PyTorch.

    Args:
        tensors: The tensors, on the CPU.
    """

    def __init__(self, tensors: Sequence[Any]):
        self._tensors = list(tensors)
        self._counts = [0] * len(self._tensors)
        self._places: list[int] = []
        self._look([t.data_ptr() for t in self._tensors])

    def marks(self) -> list[object]:
        """Return a mark for each tensor."""
        places = [t.data_ptr() for t in self._tensors]
        if places != self._places:  # memory that may be gone is not read
            self._look(places)
        elif self._differs():
            for i, copy in self._copies.items():
                self._counts[i] += _content(self._tensors[i]) != copy
            now = _MEMORY[self._sampled]
            for i, part in self._parts.items():
                self._counts[i] += not np.array_equal(now[part], self._samples[part])
            self._look(places)
        return [*zip((t._version for t in self._tensors), places, self._counts, strict=True)]

    def _differs(self) -> bool:
        if any(starmap(_memcmp, self._whole)):
            return True
        return bool(self._parts) and not np.array_equal(_MEMORY[self._sampled], self._samples)

    def _look(self, places: list[int]) -> None:
        """Keep copies of small tensors, and samples of large ones."""
        self._places = places
        self._copies: dict[int, bytes] = {}
        self._whole: list[tuple[int, int, int]] = []
        self._parts: dict[int, slice] = {}
        addresses, count = [np.zeros(0, np.int64)], 0
        for i, tensor in enumerate(self._tensors):
            size, width = tensor.numel(), tensor.element_size()
            if size * width <= _WHOLE and tensor.is_contiguous():
                self._copies[i] = _content(tensor)
                copy = ctypes.cast(ctypes.c_char_p(self._copies[i]), ctypes.c_void_p).value or 0
                self._whole.append((places[i], copy, size * width))
                continue
            at = np.linspace(0, size - 1, min(size, _SAMPLES)).astype(np.int64)
            index = np.unravel_index(at, tuple(tensor.shape))
            steps = sum(a * step for a, step in zip(index, tensor.stride(), strict=True))
            addresses.append((places[i] + steps * width + np.arange(width)[:, None]).ravel())
            self._parts[i] = slice(count, count := count + addresses[-1].size)
        self._sampled = np.concatenate(addresses) - _START
        self._samples = _MEMORY[self._sampled]


def _content(tensor: Any) -> bytes:
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


class _Memory:
    """The memory of this process as an array of bytes, to be read at many places in one call."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"data": (_START, True), "shape": (1 << 47,), "typestr": "|u1", "version": 3}


_MEMORY = np.asarray(_Memory())

__all__ = ["WatchedArray", "WatchedTensors"]
