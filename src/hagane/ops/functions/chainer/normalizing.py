"""Chainer's normalisations, over any axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    mul,
    square,
    squeeze,
    sub,
    unsqueeze,
)
from hagane.ops.functions.sums.normalizing import inverse_deviation
from hagane.ops.functions.tensors.parts import part
from hagane.ops.functions.tensors.shapes import size_as_number


def moments(x: Any, axes: Sequence[int]) -> tuple[Any, Any]:
    """Return mean and variance over axes, which stay with size 1."""
    mean = op("ReduceMean", x, list(axes), keepdims=1)
    return mean, op("ReduceMean", square(sub(x, mean)), list(axes), keepdims=1)


def unbiased_moments(x: Any, axes: Sequence[int], dtype: ir.DataType) -> tuple[Any, Any]:
    """Return mean and variance over axes, the latter over one element less, in an element type."""
    wide = cast(x, dtype)
    mean, variance = moments(wide, axes)
    count: Any = 1.0
    for axis in axes:
        count = mul(count, size_as_number(wide, axis, wide))
    least = number_like(1, wide)
    variance = mul(variance, div(count, op("Max", sub(count, least), least)))
    return squeeze(mean, axes), squeeze(variance, axes)


def batch_normalization(x: Any, gamma: Any, beta: Any, axes: Sequence[int], epsilon: float) -> Any:
    """Return ``x`` less its mean over axes, over its deviation (Ioffe and Szegedy, 2015).

    Args:
        x: A tensor.
        gamma: The scale, of the sizes of the other axes.
        beta: The summands, of the same sizes.
        axes: The axes that are averaged over.
        epsilon: Is added to the variance.
    """
    wide = _widened(x)
    mean, variance = moments(wide, axes)
    return _scaled(x, wide, mean, variance, gamma, beta, axes, epsilon)


def fixed_batch_normalization(
    x: Any, gamma: Any, beta: Any, mean: Any, variance: Any, axes: Sequence[int], epsilon: float
) -> Any:
    """Return ``x`` less a given mean, over the root of a given variance, of the other axes."""
    rank = rank_of(x)
    if list(axes) == [axis for axis in range(rank) if axis != 1]:
        dtype = dtype_of(mean)
        given = (cast(one, dtype) for one in (gamma, beta))
        y = op("BatchNormalization", x, *given, mean, variance, epsilon=float(epsilon))
        return cast(y, dtype_of(x))
    wide = _widened(x)
    centre, spread = (unsqueeze(cast(one, dtype_of(wide)), list(axes)) for one in (mean, variance))
    return _scaled(x, wide, centre, spread, gamma, beta, axes, epsilon)


def _widened(x: Any) -> Any:
    """Return float16 as float32, in which moments are taken."""
    return cast(x, ir.DataType.FLOAT) if dtype_of(x) == ir.DataType.FLOAT16 else x


def _scaled(
    x: Any, wide: Any, mean: Any, variance: Any, gamma: Any, beta: Any, axes: Sequence[int],
    epsilon: float,
) -> Any:  # fmt: skip
    dtype = dtype_of(wide)
    scale, shift = (unsqueeze(cast(one, dtype), list(axes)) for one in (gamma, beta))
    found = mul(sub(wide, mean), mul(inverse_deviation(variance, epsilon), scale))
    return cast(add(found, shift), dtype_of(x))


def local_response_normalization(x: Any, n: int, k: float, alpha: float, beta: float) -> Any:
    """Return elements over a power of the squares of neighbouring channels (Krizhevsky, 2012).

    Args:
        x: (batch, channels, ...).
        n: How many channels count: ``n // 2`` on both sides.
        k: Is added to the sum of squares times ``alpha``.
        alpha: The weight of the squares.
        beta: The power.
    """
    rank, channels, half = rank_of(x), shape_of(x)[1], n // 2
    amounts = [0] * (2 * rank)
    amounts[1] = amounts[rank + 1] = half
    wide = op("Pad", square(x), amounts)
    near = [part(wide, 1, place, channels) for place in range(2 * half + 1)]
    squares = op("Sum", *near) if len(near) > 1 else near[0]
    unit = add(number_like(k, x), mul(squares, alpha))
    return div(x, op("Pow", unit, number_like(beta, x)))
