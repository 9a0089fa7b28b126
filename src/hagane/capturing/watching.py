"""Weights watched for changes of their content from run to run.

Arrays of NumPy, whose changes nobody counts, are compared whole; of tensors of PyTorch, versions
and some of the content (``frontends/capture/interface/unchanged.py``). Optimizers may write a few
rows of a large parameter by its ``data``, which neither shows: where gradients of a parameter came
since, its whole content counts, by a sum.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.capturing.variables import is_variable
from hagane.frontends.capture.interface.unchanged import WHOLE, kept_tensors

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
        self._large = {i: x for i, x in enumerate(tensors) if _is_large_parameter(x)}
        self._gradients = {i: _gradient(x) for i, x in self._large.items()}
        self._sums: dict[int, int] = {}  # of those whose gradients came before
        self._expects = False

    def marks(self) -> tuple[int, ...]:
        """Return for each tensor how often it was found to be another one."""
        place = self._kept.other(0)
        if place >= 0:
            counts = list(self._counts)
            while place >= 0:
                counts[place] += 1
                self._kept.keep(place)
                if place in self._sums:
                    self._sums[place] = _sum(self._large[place])
                place = self._kept.other(place + 1)
            self._counts = tuple(counts)
        expects, self._expects = self._expects, False
        for place, tensor in self._large.items():
            if expects:
                self._compare(place, tensor)
            if tensor.grad is not None or self._gradients[place] is not None:
                self._look(place, tensor)
        return self._counts

    def expect_updates(self) -> None:
        """Note that gradients are computed, after which parameters may be updated."""
        if not self._expects:
            if self._large.keys() - self._sums.keys():
                self.marks()
            for place in self._large.keys() - self._sums.keys():
                self._sums[place] = _sum(self._large[place])
            self._expects = True

    def _look(self, place: int, tensor: Any) -> None:
        """Compare the content of a tensor if it has other gradients than it had."""
        now, then = tensor.grad, self._gradients[place]
        if then is not None and now is then[0]() and now is not None and now._version == then[1]:
            return
        self._gradients[place] = _gradient(tensor)
        self._compare(place, tensor)

    def _compare(self, place: int, tensor: Any) -> None:
        found = _sum(tensor)
        if self._sums.get(place) != found:  # without a sum of before, too
            self._counts = (*self._counts[:place], self._counts[place] + 1,
                            *self._counts[place + 1 :])  # fmt: skip
        self._sums[place] = found


def _is_large_parameter(tensor: Any) -> bool:
    """Whether the content of a tensor is sampled, and optimizers write it."""
    is_parameter = isinstance(tensor, sys.modules["torch"].nn.Parameter)
    large = is_parameter and tensor.numel() * tensor.element_size() > WHOLE
    return bool(large and not tensor.is_inference())


def _gradient(tensor: Any) -> tuple[Any, int] | None:
    """Return the gradient that a parameter has, not to be kept alive, and its version."""
    found = tensor.grad
    return None if found is None else (weakref.ref(found), found._version)


def _sum(tensor: Any) -> int:
    """Return a number that other content of a tensor has another one of, nearly surely."""
    torch = sys.modules["torch"]
    plain = tensor.detach().contiguous().view(-1)
    whole = plain.view(torch.uint8).numpy()
    words = whole[: whole.size // 8 * 8].view(np.uint64)
    sums = (int(part.sum(dtype=np.uint64)) for part in (words, words[::2]))
    return hash((*sums, whole[words.nbytes :].tobytes()))


__all__ = ["WatchedArray", "WatchedTensors"]
