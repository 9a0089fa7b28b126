"""Weights watched for changes of their content from run to run.

Arrays of NumPy, whose changes nobody counts, are compared whole; of tensors of PyTorch, versions
and some of the content (``frontends/capture/interface/unchanged.py``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.capturing.variables import is_variable
from hagane.frontends.capture.interface.unchanged import kept_tensors

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class WatchedArray:
    """Counts the changes of an array of NumPy, or of the one that a variable has, bit by bit.

    Args:
        found: The array, which keeps its memory and shape, or the variable.
    """

    def __init__(self, found: Any):
        self._variable = found if is_variable(found) else None
        self._array = found if self._variable is None else self._variable.array
        self._count = 0
        self._keep()

    def _keep(self) -> None:
        array = np.asarray(self._array)  # variables may hold scalars
        self._whole = bool(array.flags.c_contiguous)
        self._copy = array.copy(order="C")
        self._places = array.ctypes.data, self._copy.ctypes.data, self._copy.nbytes

    def mark(self) -> int:
        """Return how often the content was found to be another one."""
        if self._variable is not None and self._variable.array is not self._array:
            self._array, same = self._variable.array, False
        elif self._whole:
            same = not _memcmp(*self._places)
        else:
            same = self._array.tobytes() == self._copy.tobytes()
        if not same:
            self._count += 1
            self._keep()
        return self._count


class WatchedTensors:
    """Counts the changes of tensors of PyTorch.

    Args:
        tensors: The tensors, on the CPU.
    """

    def __init__(self, tensors: Sequence[Any]):
        self._kept = kept_tensors(tensors, content=True)
        self._counts = (0,) * len(tensors)

    def marks(self) -> tuple[int, ...]:
        """Return for each tensor how often it was found to be another one."""
        place = self._kept.other(0)
        if place >= 0:
            counts = list(self._counts)
            while place >= 0:
                counts[place] += 1
                self._kept.keep(place)
                place = self._kept.other(place + 1)
            self._counts = tuple(counts)
        return self._counts


__all__ = ["WatchedArray", "WatchedTensors"]
