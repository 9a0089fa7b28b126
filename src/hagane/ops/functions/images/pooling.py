"""Pooling into a given number of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import dtype_of, op, rank_of, size_of
from hagane.ops.functions.numbers.elementary import mean_over
from hagane.symbolic import Dim


def adaptive_means(x: Any, sizes: Sequence[Dim]) -> Any:
    """Return means over windows that share out the last axes evenly, as PyTorch shares them.

    Window ``i`` of ``n`` along an axis of size ``s`` goes from ``floor(i s / n)`` up to
    ``ceil((i + 1) s / n)``. Windows are rectangles, so the axes are taken one after the other.

    Args:
        x: A tensor of floating-point numbers.
        sizes: How many windows there are along each of the last axes: 1, the size of the axis, or
            a number where that size is known.
    """
    rank = rank_of(x)
    for axis, windows in enumerate(sizes, rank - len(sizes)):
        size = size_of(x, axis)
        if windows == 1:
            x = mean_over(x, [axis])
        elif windows != size:
            assert isinstance(size, int)
            assert isinstance(windows, int)
            share = op("MatMul", _swapped(x, axis, rank), _shares(size, windows, x))
            x = _swapped(share, axis, rank)
    return x


def _swapped(x: Any, axis: int, rank: int) -> Any:
    """Return ``x`` with an axis and the last one in each other's place."""
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return x if axis == rank - 1 else op("Transpose", x, perm=order)


def _shares(size: int, windows: int, x: Any) -> Any:
    """Return the weight of each element of an axis in each window: (size, windows)."""
    made = np.zeros((size, windows), dtype_of(x).numpy())
    for i in range(windows):
        first, end = i * size // windows, -(-(i + 1) * size // windows)
        made[first:end, i] = 1 / (end - first)
    return made
