"""Normalisation by mean and variance, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.elementary import add, cast, mean_over, mul, sqrt, square, sub

_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def widened(x: Any) -> Any:
    """Return ``x`` in float32 where its element type is too narrow for sums."""
    return cast(x, ir.DataType.FLOAT) if dtype_of(x) in _NARROW else x


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
    """Return the gradient of what was normalised over axes.

    With n = (x - mean) · inverse it is (g - mean(g) - n · mean(g · n)) · inverse
    (Ioffe and Szegedy, 2015, section 3); without centring, mean(g) falls away.

    Args:
        g: The gradient of ``normalized``.
        normalized: The normalised values.
        inverse: What they were multiplied with, which depends on them.
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
