"""Activations that are no operators themselves."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of
from hagane.ops.functions.numbers.elementary import add, div, exp, log, mul, neg, sub, where
from hagane.ops.layout.stopping import stopped


def number_like(value: float, x: Any) -> Any:
    """Return a number as an array without axes, in the element type of ``x``."""
    return np.array(value, dtype_of(x).numpy())


def glu(x: Any, axis: int) -> Any:
    """Return one half of an axis times the sigmoid of the other (Dauphin et al., 2017)."""
    first, second = op("Split", x, axis=axis, num_outputs=2, outputs=2)
    return mul(first, op("Sigmoid", second))


def silu(x: Any) -> Any:
    """Return ``x sigmoid(x)``."""
    return mul(x, op("Sigmoid", x))


def log_sigmoid(x: Any) -> Any:
    """Return ``log(sigmoid(x))``, which is -softplus(-x)."""
    low = op("Min", x, number_like(0, x))
    return sub(low, log(add(exp(neg(op("Abs", x))), 1)))


def softplus(x: Any, beta: float, threshold: float) -> Any:
    """Return ``log(1 + exp(beta x)) / beta``; x itself where ``beta x`` exceeds the threshold."""
    scaled = mul(x, beta)
    return where(op("Greater", scaled, threshold), x, div(op("Softplus", scaled), beta))


def clip(x: Any, low: Any, high: Any) -> Any:
    """Return ``x`` between bounds; either may be None, both may be tensors that broadcast."""
    if low is not None:
        x = op("Max", x, number_like(low, x) if isinstance(low, int | float) else low)
    if high is not None:
        x = op("Min", x, number_like(high, x) if isinstance(high, int | float) else high)
    return x


def at_least(x: Any, low: Any) -> Any:
    """Return ``x``, or a bound where that is more; where they are equal the gradient is that of x.

    Args:
        x: Numbers.
        low: A number, or a tensor that broadcasts to ``x``; NaN counts as more.
    """
    if isinstance(low, int | float) or rank_of(low) == 0:
        return op("Clip", x, number_like(low, x) if isinstance(low, int | float) else low)
    return _bounded("Less", x, low)


def at_most(x: Any, high: Any) -> Any:
    """Return ``x``, or a bound where that is less; like :func:`at_least`."""
    if isinstance(high, int | float) or rank_of(high) == 0:
        return op("Clip", x, None, number_like(high, x) if isinstance(high, int | float) else high)
    return _bounded("Greater", x, high)


def _bounded(beyond: str, x: Any, bound: Any) -> Any:
    outside = op(beyond, x, bound)
    if dtype_of(x).is_floating_point():
        outside = op("Or", outside, op("IsNaN", bound))
    return where(outside, bound, x)


def between(x: Any, low: float, high: float) -> Any:
    """Return ``x`` between bounds, on which there is no gradient, as hard activations have it."""
    low, high = number_like(low, x), number_like(high, x)
    under, over = op("LessOrEqual", x, low), op("GreaterOrEqual", x, high)
    return where(over, high, where(under, low, x))


def hard_sigmoid(x: Any) -> Any:
    """Return ``x / 6 + 1 / 2`` between 0 and 1."""
    return op("HardSigmoid", x, alpha=1 / 6, beta=0.5)


def gelu(x: Any, approximate: str) -> Any:
    """Return ``x`` times the normal distribution function of it (Hendrycks and Gimpel, 2016)."""
    return op("Gelu", x, approximate=approximate)


def celu(x: Any, alpha: float) -> Any:
    """Return ``max(0, x) + min(0, alpha (exp(x / alpha) - 1))`` (Barron, 2017)."""
    if dtype_of(x) != ir.DataType.DOUBLE:
        return op("Celu", x, alpha=alpha)
    scale = number_like(alpha, x)  # the operator is one of float32
    return mul(op("Elu", div(x, scale), alpha=1.0), scale)


def selu(x: Any) -> Any:
    """Return the scaled exponential linear unit (Klambauer et al., 2017), exact in float64."""
    return op("Selu", x, alpha=1.6732632423543772, gamma=1.0507009873554805)


def hard_shrink(x: Any, bound: float) -> Any:
    """Return ``x`` where it lies outside of [-bound, bound], else 0."""
    inside = op("LessOrEqual", op("Abs", x), bound)
    return where(inside, number_like(0, x), x)


def soft_shrink(x: Any, bound: float) -> Any:
    """Return ``x`` moved toward 0 by ``bound``, 0 where it would pass it."""
    return op("Shrink", x, lambd=float(bound), bias=float(bound))


def threshold(x: Any, bound: float, value: float) -> Any:
    """Return ``x`` where it exceeds the bound, else a value."""
    return where(op("LessOrEqual", x, bound), number_like(value, x), x)  # (NaN stays)


def tanh_shrink(x: Any) -> Any:
    """Return ``x - tanh(x)``."""
    return sub(x, op("Tanh", x))


def expm1(x: Any) -> Any:
    """Return ``exp(x) - 1``, as tanh(x / 2) (exp(x) + 1), which is exact near 0."""
    return mul(op("Tanh", div(x, 2.0)), add(exp(x), 1.0))


def rsqrt(x: Any) -> Any:
    """Return ``1 / sqrt(x)``."""
    return op("Reciprocal", op("Sqrt", x))


def logarithm(x: Any, base: float) -> Any:
    """Return the logarithm to a base: a whole number where it is one but for rounding."""
    found = div(log(x), math.log(base))
    whole = op("Round", found)
    apart = sub(whole, found)
    error = 2.0 * float(ml_dtypes.finfo(dtype_of(found).numpy()).eps)
    is_near = op("LessOrEqual", op("Abs", apart), mul(op("Abs", whole), error))
    return add(found, stopped(where(is_near, apart, number_like(0, found))))


def truncated(x: Any) -> Any:
    """Return ``x`` rounded toward zero."""
    return where(op("Less", x, number_like(0, x)), op("Ceil", x), op("Floor", x))


def signs(x: Any) -> Any:
    """Return -1, 0 or 1; 0 of what is no number, as PyTorch has it."""
    found = op("Sign", x)
    if not dtype_of(x).is_floating_point():
        return found
    return where(op("IsNaN", x), number_like(0, x), found)


def log1p(x: Any) -> Any:
    """Return ``log(1 + x)``, to full precision near 0 (Higham, 2002, theorem 1.9)."""
    raised, one = add(x, 1.0), number_like(1, x)
    added = sub(raised, 1.0)
    near, exact = op("Equal", raised, one), op("Equal", added, x)  # infinities are exact
    ratio = div(where(exact, one, x), where(op("Or", near, exact), one, added))
    return where(near, x, mul(log(raised), ratio))


def exp2(x: Any) -> Any:
    """Return 2 to the power of ``x``."""
    return op("Pow", number_like(2, x), x)


def logit(x: Any) -> Any:
    """Return ``log(x / (1 - x))``."""
    return log(div(x, sub(1.0, x)))


def prelu(x: Any, slope: Any) -> Any:
    """Return ``max(0, x) + slope min(0, x)`` (He et al., 2015); the slope broadcasts."""
    return where(op("Less", x, number_like(0, x)), mul(slope, x), x)
