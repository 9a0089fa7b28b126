"""Normalisation by mean and variance, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import dtype_of, op, rank_of
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    in_float32,
    mean_over,
    mul,
    sqrt,
    square,
    squeeze,
    sub,
    widened,
)
from hagane.ops.functions.tensors.shapes import reshape_like, size_as_number


def moments(x: Any, axes: Sequence[int]) -> tuple[Any, Any]:
    """Return mean and variance over axes, which stay with size 1."""
    mean = mean_over(x, axes)
    return mean, mean_over(square(sub(x, mean)), axes)


def inverse_deviation(variance: Any, epsilon: float) -> Any:
    """Return 1 / sqrt(variance + epsilon)."""
    return op("Reciprocal", sqrt(add(variance, epsilon)))


def normalized_gradient(
    g: Any, normalized: Any, inverse: Any, axes: Sequence[int], *, centred: bool = True
) -> Any:
    """Return the gradient of a value normalised over axes.

    With n = (x - mean) · inverse it is (g - mean(g) - n · mean(g · n)) · inverse
    (Ioffe and Szegedy, 2015, section 3); without centring, mean(g) falls away.

    Args:
        g: The gradient of ``normalized``.
        normalized: The normalised values.
        inverse: Their factors, which depend on them.
        axes: The axes.
        centred: Whether the mean was subtracted.
    """
    rest = sub(g, mul(normalized, mean_over(mul(g, normalized), axes)))
    if centred:
        rest = sub(rest, mean_over(g, axes))
    return mul(rest, inverse)


def per_channel(value: Any, rank: int) -> Any:
    """Return one number a channel, ready to broadcast against (batch, channels, *spatial)."""
    if rank <= 2:
        return value
    return op("Unsqueeze", value, list(range(1, rank - 1)))


def scaled_by(x: Any, weight: Any, bias: Any) -> Any:
    """Return ``x * weight + bias``; either may be None."""
    if weight is not None:
        x = mul(x, weight)
    return x if bias is None else add(x, bias)


@in_float32
def layer_norm(x: Any, count: int, weight: Any, bias: Any, epsilon: float) -> Any:
    """Return ``x`` normalised over its last axes (Ba et al., 2016, equation 4).

    Args:
        x: (..., *normalised).
        count: How many axes are normalised.
        weight: The scale, of the normalised axes; None for 1.
        bias: The summand, of the same shape; None for 0.
        epsilon: Is added to the variance.
    """
    rank = rank_of(x)
    axes = list(range(rank - count, rank))
    if weight is not None:
        given = (weight,) if bias is None else (weight, bias)
        return op("LayerNormalization", x, *given, axis=-count, epsilon=epsilon)
    mean, variance = moments(x, axes)
    return scaled_by(mul(sub(x, mean), inverse_deviation(variance, epsilon)), None, bias)


@in_float32
def rms_norm(x: Any, count: int, weight: Any, epsilon: float) -> Any:
    """Return ``x`` over its root mean square along the last axes (Zhang and Sennrich, 2019)."""
    rank = rank_of(x)
    squares = mean_over(square(x), list(range(rank - count, rank)))
    return scaled_by(mul(x, inverse_deviation(squares, epsilon)), weight, None)


@in_float32
def batch_norm(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    """Return ``x`` normalised a channel (Ioffe and Szegedy, 2015, algorithms 1 and 2).

    Args:
        x: (batch, channels, *spatial).
        mean: One number a channel; that of ``x`` if None.
        variance: Likewise.
        weight: The scale of each channel; None for 1.
        bias: The summand of each channel; None for 0.
        epsilon: Is added to the variance.
    """
    rank = rank_of(x)
    own = [axis for axis in range(rank) if axis != 1]
    given = (mean, variance, weight, bias)
    if all(item is not None for item in given):
        return op("BatchNormalization", x, weight, bias, mean, variance, epsilon=epsilon)
    if mean is None:
        mean, variance = moments(x, own)
    else:
        mean, variance = per_channel(mean, rank), per_channel(variance, rank)
    return _normalized(x, mean, variance, weight, bias, epsilon)


def batch_moments(x: Any, *, samples: bool = False) -> tuple[Any, Any]:
    """Return the mean of each channel, and its variance over a count of one element less.

    Args:
        x: (batch, channels, *spatial).
        samples: Whether each sample has moments of its own, whose means over the batch are
            returned.
    """
    x = widened(x)
    own = [axis for axis in range(2 if samples else 0, rank_of(x)) if axis != 1]
    mean, spread = moments(x, own)
    count: Any = np.array(1.0, dtype_of(x).numpy())
    for axis in own:
        count = mul(count, size_as_number(x, axis, x))
    spread = mul(spread, div(count, sub(count, np.array(1.0, dtype_of(x).numpy()))))
    if samples:
        mean, spread, own = mean_over(mean, [0]), mean_over(spread, [0]), [0, *own]
    return squeeze(mean, own), squeeze(spread, own)


def moved(old: Any, new: Any, share: Any) -> Any:
    """Return a running value after ``new``, which has a share of it: a number, or a scalar."""
    if not isinstance(share, int | float):
        share = cast(share, dtype_of(old))
    return add(mul(old, sub(1, share)), mul(cast(new, dtype_of(old)), share))


@in_float32
def instance_norm(x: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    """Return each channel of each sample normalised (Ulyanov et al., 2016, equation 3)."""
    mean, variance = moments(x, list(range(2, rank_of(x))))
    return _normalized(x, mean, variance, weight, bias, epsilon)


def _normalized(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    found = mul(sub(x, mean), inverse_deviation(variance, epsilon))
    rank = rank_of(x)
    parts = [None if part is None else per_channel(part, rank) for part in (weight, bias)]
    return scaled_by(found, *parts)


@in_float32
def group_norm(x: Any, groups: int, weight: Any, bias: Any, epsilon: float) -> Any:
    """Return ``x`` normalised over groups of channels (Wu and He, 2018, equation 7).

    Args:
        x: (batch, channels, *spatial).
        groups: Into how many groups the channels are split.
        weight: The scale of each channel; None for 1.
        bias: The summand of each channel; None for 0.
        epsilon: Is added to the variance.
    """
    rows = op("Reshape", x, [0, groups, -1])
    mean, variance = moments(rows, [2])
    found = mul(sub(rows, mean), inverse_deviation(variance, epsilon))
    rank = rank_of(x)
    parts = [None if part is None else per_channel(part, rank) for part in (weight, bias)]
    return scaled_by(reshape_like(found, x), *parts)
