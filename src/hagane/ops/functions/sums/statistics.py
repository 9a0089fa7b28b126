"""Reductions that are no operators themselves: variance, norms, counts, positions of extremes.

Axes are counted from the front; a tensor without axes has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    in_float32,
    mask_like,
    mean_over,
    mul,
    sqrt,
    square,
    squeeze,
    sub,
    sum_over,
    unsqueeze,
    where,
)
from hagane.ops.functions.tensors.shapes import size_as_number


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


@in_float32
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
    return _root(variance(x, axes, keepdims, correction))


def _root(x: Any, order: float = 2.0) -> Any:
    """Return a root of ``x``, floats from 0 on; the gradient at 0 is 0, not infinite."""
    zero = number_like(0, x)
    none = op("Equal", x, zero)
    some = where(none, number_like(1, x), x)
    root = sqrt(some) if order == 2 else op("Pow", some, _exponent(1 / order, x))
    return where(none, zero, root)


def _exponent(value: float, x: Any) -> Any:
    """Return an exponent as exact as the elements of ``x`` are."""
    return number_like(value, x) if dtype_of(x) == ir.DataType.DOUBLE else value


def without_nan(x: Any) -> Any:
    """Return ``x`` with 0 for NaN."""
    return where(op("IsNaN", x), np.array(0, dtype_of(x).numpy()), x)


def mean_of_numbers(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return the mean of the elements that are not NaN."""
    there = mask_like(op("Not", op("IsNaN", x)), x)
    total = sum_over(without_nan(x), axes, keepdims=keepdims)
    return div(total, sum_over(there, axes, keepdims=keepdims))


@in_float32
def variance_of_numbers(x: Any, axes: Sequence[int], keepdims: bool, correction: float) -> Any:
    """Return the variance of the elements that are not NaN."""
    there = mask_like(op("Not", op("IsNaN", x)), x)
    middle = mean_of_numbers(x, axes, True)
    apart = mul(square(sub(without_nan(x), middle)), there)
    count = sub(sum_over(there, axes, keepdims=keepdims), float(correction))
    found = div(sum_over(apart, axes, keepdims=keepdims), count)
    none = op("LessOrEqual", count, np.array(0, dtype_of(x).numpy()))
    return where(none, np.array(math.nan, dtype_of(x).numpy()), found)


def deviation_of_numbers(x: Any, axes: Sequence[int], keepdims: bool, correction: float) -> Any:
    """Return the square root of that variance."""
    return _root(variance_of_numbers(x, axes, keepdims, correction))


def extreme(operator: str, x: Any, axes: Sequence[int], keepdims: bool, *, skip: bool) -> Any:
    """Return the largest or smallest element of any type.

    Args:
        operator: ``ReduceMax`` or ``ReduceMin``.
        x: A tensor.
        axes: Over which it is taken; none leave ``x``.
        keepdims: Whether they stay with size 1.
        skip: Whether NaN are left out, except where there is nothing else.
    """
    if not axes:
        return x
    dtype, keep, places = dtype_of(x), int(keepdims), list(axes)
    if not skip:
        found = op(operator, _byte_of(x), places, keepdims=keep)
        return cast(found, dtype)
    none = op("IsNaN", x)
    fill = -math.inf if operator == "ReduceMax" else math.inf
    found = op(operator, where(none, np.array(fill, dtype.numpy()), x), places, keepdims=keep)
    alone = op("ReduceMin", cast(none, ir.DataType.INT32), places, keepdims=keep)
    return where(cast(alone, ir.DataType.BOOL), np.array(math.nan, dtype.numpy()), found)


def _byte_of(x: Any) -> Any:
    """Return truth values and small integers as int32, other values as they are."""
    dtype = dtype_of(x)
    small = dtype == ir.DataType.BOOL or (dtype.is_integer() and dtype.itemsize < 4)
    return cast(x, ir.DataType.INT32) if small else x


def spread(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return the largest minus the smallest element."""
    high, low = (extreme(n, x, axes, keepdims, skip=False) for n in ("ReduceMax", "ReduceMin"))
    return sub(high, low)


def running(name: str, x: Any, axis: int, *, skip: bool, first: bool = False) -> Any:
    """Return sums or products of all elements up to each one along an axis.

    Args:
        name: ``cumsum`` or ``cumprod``.
        x: Numbers.
        axis: The axis.
        skip: Whether NaN count as the neutral element.
        first: Whether the neutral element comes before all.
    """
    dtype = dtype_of(x)
    neutral = np.array(name == "cumprod", dtype.numpy())
    if skip and dtype.is_floating_point():
        x = where(op("IsNaN", x), neutral, x)
    if dtype.is_integer() and dtype.itemsize < 4:
        wide = cast(x, ir.DataType.INT64)
        return cast(running(name, wide, axis, skip=False, first=first), dtype)
    found = op("CumProd" if name == "cumprod" else "CumSum", x, np.array(axis))
    if not first:
        return found
    pads = [0] * (2 * len(shape_of(x)))
    pads[axis] = 1
    return op("Pad", found, pads, neutral)


def total(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return the sum of integers of any size, or of floats, in their element type."""
    dtype = dtype_of(x)
    if dtype.is_integer() and dtype.itemsize < 4:
        return cast(total(cast(x, ir.DataType.INT64), axes, keepdims), dtype)
    return sum_over(x, axes, keepdims=keepdims)


def product_of(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return the product of integers of any size, or of floats, in their element type."""
    dtype = dtype_of(x)
    if dtype.is_integer() and dtype.itemsize < 4:
        return cast(product_of(cast(x, ir.DataType.INT64), axes, keepdims), dtype)
    return op("ReduceProd", x, list(axes), keepdims=int(keepdims)) if axes else x


@in_float32
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
    if not axes:  # (of a reduction, these would be all)
        return mask_like(op("Greater", size, 0), x) if order == 0 else size
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
    if order < 1:  # the slope at zero has no end: none goes there, as in PyTorch
        zero, one, at_zero = (
            np.array(v, dtype_of(x).numpy()) for v in (0, 1, 0 if order > 0 else math.inf)
        )
        none = op("Equal", size, zero)
        powers = op("Pow", op("Where", none, one, size), _exponent(order, x))
        powers = op("Where", none, at_zero, powers)
    else:
        powers = op("Pow", size, _exponent(order, x))
    total = op("ReduceSum", powers, places, keepdims=keep)
    return _root(total, order) if order > 0 else op("Pow", total, _exponent(1 / order, x))


def normalized(x: Any, axes: Sequence[int], order: float, least: float) -> Any:
    """Return ``x`` over its norm along axes, which counts as ``least`` where it is less."""
    return div(x, op("Max", norm(x, axes, True, order), np.array(least, dtype_of(x).numpy())))


def _truths(x: Any) -> Any:
    """Return 1 where not zero, else 0; int32."""
    return cast(cast(x, ir.DataType.BOOL), ir.DataType.INT32)


def any_true(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return whether some element is not zero."""
    found = _truths(x)
    if axes:
        found = op("ReduceMax", found, list(axes), keepdims=int(keepdims))
    return op("Greater", found, np.array(0, np.int32))  # the largest of none is below zero


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


def at_position(found: Any, x: Any, places: Any, axis: int, keepdims: bool) -> Any:
    """Return extremes along an axis whose gradients go to one element each, not to all equal ones.

    Args:
        found: The extremes.
        x: Floats.
        places: Where they are.
        axis: The axis.
        keepdims: Whether the axis is there with size 1.
    """
    at = places if keepdims else unsqueeze(places, [axis])
    taken = op("GatherElements", x, at, axis=axis)
    taken = taken if keepdims else squeeze(taken, [axis])
    return where(op("Equal", taken, found), taken, found)  # (NaN has no place)


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


def covariance(x: Any, correction: float, counts: Any = None, weights: Any = None) -> Any:
    """Return how rows vary together: sums of products of distances from means, over the count.

    Args:
        x: (rows, count) or (count,), floats.
        correction: The amount that the count is less by.
        counts: How often each column counts, (count,) integers; once if None.
        weights: The importance of each column, (count,) floats; the same if None.

    Returns:
        (rows, rows) or ().
    """
    if len(shape_of(x)) == 1:
        found = covariance(op("Unsqueeze", x, [0]), correction, counts, weights)
        return op("Squeeze", found, [0, 1])
    if counts is None and weights is None:
        apart = sub(x, mean_over(x, [1]))
        total = op("MatMul", apart, op("Transpose", apart, perm=[1, 0]))
        size = size_as_number(x, 1, x)
        if isinstance(size, float):
            return div(total, max(size - correction, 0.0))
        return div(total, op("Max", sub(size, float(correction)), np.array(0, dtype_of(x).numpy())))
    given = [cast(part, dtype_of(x)) for part in (counts, weights) if part is not None]
    each = mul(*given) if len(given) > 1 else given[0]
    count = sum_over(each, [0], keepdims=False)
    apart = sub(x, div(sum_over(mul(x, each), [1], keepdims=True), count))
    less: Any = np.array(correction, dtype_of(x).numpy())
    if weights is not None:
        less = mul(less, div(sum_over(mul(each, given[-1]), [0], keepdims=False), count))
    total = op("MatMul", mul(apart, each), op("Transpose", apart, perm=[1, 0]))
    return div(total, op("Max", sub(count, less), np.array(0, dtype_of(x).numpy())))


def correlation(x: Any, correction: float = 1.0) -> Any:
    """Return covariances over the deviations of both rows, from -1 to 1."""
    found = covariance(x, correction)
    if not shape_of(found):
        return div(found, found)
    own = op("ReduceL2", sub(x, mean_over(x, [1])), [1], keepdims=1)
    own = div(own, op("Sqrt", _number_as(sub(size_as_number(x, 1, x), float(correction)), x)))
    found = div(div(found, own), op("Transpose", own, perm=[1, 0]))
    return op("Max", op("Min", found, _number_as(1.0, x)), _number_as(-1.0, x))


def _number_as(value: Any, x: Any) -> Any:
    return np.array(value, dtype_of(x).numpy()) if isinstance(value, int | float) else value


def limited(x: Any, order: float, axis: int, most: float) -> Any:
    """Return ``x`` with the parts along an axis scaled down to a norm."""
    others = [place for place in range(rank_of(x)) if place != axis]
    length = norm(x, others, True, order)
    scale = div(most, add(length, number_like(1e-7, x)))
    return mul(x, where(op("Greater", length, number_like(most, x)), scale, number_like(1, x)))
