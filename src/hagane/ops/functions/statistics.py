"""Reductions that are no operators themselves: variance, norms, counts, positions of extremes.

Axes are counted from the front; a tensor without axes has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.functions.elementary import (
    cast,
    div,
    mask_like,
    mean_over,
    mul,
    sqrt,
    square,
    sub,
    sum_over,
    where,
)
from hagane.ops.functions.sampling import size_as_number


def _count_along(x: Any, axes: Sequence[int]) -> Any:
    """Return how many elements each result is made of, in the element type of ``x``."""
    total: Any = 1.0
    for axis in axes:
        size = size_as_number(x, axis, x)
        total = (
            total * size
            if isinstance(size, float | int) and isinstance(total, float)
            else mul(total, size)
        )
    return total


def variance(x: Any, axes: Sequence[int], keepdims: bool, correction: float) -> Any:
    """Return the sum of squared distances from the mean over the count minus a correction."""
    spread = square(sub(x, mean_over(x, axes)))
    total = sum_over(spread, axes, keepdims=keepdims)
    count = _count_along(x, axes)
    if isinstance(count, float):
        left = np.array(max(count - correction, 0), dtype_of(x).numpy())
        return div(total, left)
    return div(total, op("Max", sub(count, float(correction)), np.array(0, dtype_of(x).numpy())))


def deviation(x: Any, axes: Sequence[int], keepdims: bool, correction: float) -> Any:
    """Return the square root of the variance."""
    return sqrt(variance(x, axes, keepdims, correction))


def without_nan(x: Any) -> Any:
    """Return ``x`` with 0 for NaN."""
    return where(op("IsNaN", x), np.array(0, dtype_of(x).numpy()), x)


def mean_of_numbers(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return the mean of the elements that are not NaN."""
    there = mask_like(op("Not", op("IsNaN", x)), x)
    total = sum_over(without_nan(x), axes, keepdims=keepdims)
    return div(total, sum_over(there, axes, keepdims=keepdims))


def norm(x: Any, axes: Sequence[int], keepdims: bool, order: float) -> Any:
    """Return the p-norm of vectors along axes: the order may be 0 and infinite.

    Args:
        x: Floats.
        axes: Along which the vectors lie; several are one.
        keepdims: Whether the axes stay with size 1.
        order: p.
    """
    keep, places = int(keepdims), list(axes)
    size = op("Abs", x)
    if order == math.inf:
        return op("ReduceMax", size, places, keepdims=keep)
    if order == -math.inf:
        return op("ReduceMin", size, places, keepdims=keep)
    if order == 0:
        there = mask_like(op("Greater", size, 0), x)
        return op("ReduceSum", there, places, keepdims=keep)
    if order == 1:
        return op("ReduceL1", x, places, keepdims=keep)
    if order == 2:
        return op("ReduceL2", x, places, keepdims=keep)
    total = op("ReduceSum", op("Pow", size, float(order)), places, keepdims=keep)
    return op("Pow", total, 1 / order)


def normalized(x: Any, axes: Sequence[int], order: float, least: float) -> Any:
    """Return ``x`` over its norm along axes, which counts as ``least`` where it is less."""
    return div(x, op("Max", norm(x, axes, True, order), np.array(least, dtype_of(x).numpy())))


def _truths(x: Any) -> Any:
    """Return 1 for what is not zero, and 0; int32."""
    return cast(cast(x, ir.DataType.BOOL), ir.DataType.INT32)


def any_true(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return whether some element is not zero."""
    found = _truths(x)
    if axes:
        found = op("ReduceMax", found, list(axes), keepdims=int(keepdims))
    return cast(found, ir.DataType.BOOL)


def all_true(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return whether no element is zero."""
    found = _truths(x)
    if axes:
        found = op("ReduceMin", found, list(axes), keepdims=int(keepdims))
    return cast(found, ir.DataType.BOOL)


def count(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return how many elements are not zero, int64."""
    found = cast(cast(x, ir.DataType.BOOL), ir.DataType.INT64)
    return sum_over(found, axes, keepdims=keepdims)


def position(x: Any, axes: Sequence[int], keepdims: bool, name: str) -> Any:
    """Return where the largest or smallest element is, the first of equal ones; int64.

    Args:
        x: Numbers or truth values.
        axes: The axis; several stand for all axes, whose elements are counted in order.
        keepdims: Whether they stay with size 1.
        name: ``max`` or ``min``.
    """
    rank = len(shape_of(x))
    if dtype_of(x) == ir.DataType.BOOL:
        x = cast(x, ir.DataType.INT32)
    operator = "ArgMax" if name == "max" else "ArgMin"
    if len(axes) == 1:
        return op(operator, x, axis=axes[0], keepdims=int(keepdims))
    found = op(operator, op("Reshape", x, [-1]), axis=0, keepdims=0)
    return op("Reshape", found, [1] * rank) if keepdims else found
