"""Distances and angles between vectors, and their cross product."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.functions.numbers.elementary import add, div, mul, sub, sum_over, unsqueeze
from hagane.ops.functions.sums.statistics import norm
from hagane.ops.layout.stopping import stopped


def distances_of_all(x: Any, y: Any, order: float) -> Any:
    """Return the distances between all rows of two matrices.

    Args:
        x: (..., rows, size), floats.
        y: (..., other rows, size).
        order: p of the p-norm; 0 counts the places that differ, infinity takes the largest.

    Returns:
        (..., rows, other rows).
    """
    rank = len(shape_of(x))
    left, right = unsqueeze(x, [rank - 1]), unsqueeze(y, [len(shape_of(y)) - 2])
    apart = sub(left, right)
    return norm(apart, [len(shape_of(apart)) - 1], False, order)


def distance(x: Any, y: Any, order: float, eps: float, keepdims: bool) -> Any:
    """Return the p-norm of ``x - y + eps`` along the last axis (as PyTorch has it)."""
    apart = add(sub(x, y), np.array(eps, dtype_of(x).numpy()))
    return norm(apart, [len(shape_of(apart)) - 1], keepdims, order)


def cosine(x: Any, y: Any, axis: int, least: float) -> Any:
    """Return the cosine of the angle between vectors along an axis.

    Args:
        x: Floats.
        y: Of a shape that broadcasts with that of ``x``.
        axis: The axis of the vectors, of the broadcast shape.
        least: The least length that a vector counts as; gradients go through those of shorter ones
            too, as in PyTorch.
    """
    wide = op("Expand", x, list(shape_of(y))), op("Expand", y, list(shape_of(x)))

    def directed(vectors: Any) -> Any:
        length = norm(vectors, [axis], True, 2)
        enough = op("Max", length, np.array(least, dtype_of(x).numpy()))
        return div(vectors, add(length, stopped(sub(enough, length))))

    return sum_over(mul(*map(directed, wide)), [axis], keepdims=False)


def cross(x: Any, y: Any, axis: int) -> Any:
    """Return the cross product of vectors of three along an axis."""
    one, two = np.array([1, 2, 0], np.int64), np.array([2, 0, 1], np.int64)
    x1, x2, y1, y2 = (op("Gather", v, places, axis=axis) for v in (x, y) for places in (one, two))
    return sub(mul(x1, y2), mul(x2, y1))


__all__ = ["cosine", "cross", "distance", "distances_of_all"]
