"""Functions of float64 that ONNX Runtime lacks, over operators that it has; exact to rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import op
from hagane.ops.functions.numbers.activations import expm1, log1p
from hagane.ops.functions.numbers.elementary import add, div, mul, sub, where

_ONE = np.ones((), np.float64)
_ROOT_OF_3 = math.sqrt(3)
# The coefficients of erfc(x) exp(x²) (x + 2.5) in (x - 2.5) / (x + 2.5), the highest first: a
# polynomial fitted by Chebyshev's nodes between 1 and 6.5, where it is within 2e-17.
_TAIL = (
    -1.6291793635380758e-06, -2.291183619380344e-06, 6.647653699956905e-06, 1.8226359803561404e-05,
    -1.951408428674226e-05, -0.00011260139007939832, 5.830607253274745e-05, 0.000702693375898461,
    -0.00043920817541816015, -0.004818785504265556, 0.008393044299986432, 0.028361550131478844,
    -0.17125114524601792, 0.4539141166481016, -0.8046518494391489, 1.054031820305718,
)  # fmt: skip
_MIDDLE, _END = 2.5, 6.5  # erf is 1 beyond


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    found = mul(x, coefficients[0])
    for number in coefficients[1:-1]:
        found = mul(add(found, number), x)
    return add(found, coefficients[-1])


def tan(x: Any) -> Any:
    """Return the tangent."""
    return div(op("Sin", x), op("Cos", x))


def sinh(x: Any) -> Any:
    """Return the hyperbolic sine, exact near 0 too."""
    return mul(sub(expm1(x), expm1(op("Neg", x))), 0.5)


def cosh(x: Any) -> Any:
    """Return the hyperbolic cosine."""
    return mul(add(op("Exp", x), op("Exp", op("Neg", x))), 0.5)


def asinh(x: Any) -> Any:
    """Return the inverse hyperbolic sine: sign(x) log1p(|x| + x² / (1 + √(x² + 1)))."""
    size, square = op("Abs", x), mul(x, x)
    part = div(square, add(op("Sqrt", add(square, 1.0)), 1.0))
    return mul(op("Sign", x), log1p(add(size, part)))


def acosh(x: Any) -> Any:
    """Return the inverse hyperbolic cosine, of x = 1 + t: log1p(t + √(2t + t²))."""
    past = sub(x, 1.0)
    return log1p(add(past, op("Sqrt", mul(past, add(past, 2.0)))))


def atanh(x: Any) -> Any:
    """Return the inverse hyperbolic tangent."""
    return mul(sub(log1p(x), log1p(op("Neg", x))), 0.5)


def atan(x: Any) -> Any:
    """Return the angle of a tangent.

    1 / x takes the place of a number above 1, and (√3 x - 1) / (√3 + x), whose angle is less by
    π / 6, that of one above 2 - √3; what is left has a short series.
    """
    size = op("Abs", x)
    inverted = op("Greater", size, _ONE)
    part = where(inverted, op("Reciprocal", op("Max", size, _ONE)), size)
    turned = op("Greater", part, np.array(2 - _ROOT_OF_3))
    part = where(turned, div(sub(mul(part, _ROOT_OF_3), 1.0), add(part, _ROOT_OF_3)), part)
    series = [(-1.0) ** n / (2 * n + 1) for n in range(14, 0, -1)]
    square = mul(part, part)
    found = add(part, mul(part, mul(square, _polynomial(square, series))))
    found = where(turned, add(found, math.pi / 6), found)
    found = where(inverted, sub(np.array(math.pi / 2), found), found)
    return mul(op("Sign", x), found)


def asin(x: Any) -> Any:
    """Return the angle of a sine."""
    rest = op("Sqrt", mul(sub(_ONE, x), add(x, 1.0)))
    return mul(atan(div(x, add(rest, 1.0))), 2.0)


def acos(x: Any) -> Any:
    """Return the angle of a cosine."""
    return mul(atan(op("Sqrt", div(sub(_ONE, x), add(x, 1.0)))), 2.0)


def softplus(x: Any) -> Any:
    """Return log(1 + exp(x))."""
    return add(op("Relu", x), log1p(op("Exp", op("Neg", op("Abs", x)))))


def softsign(x: Any) -> Any:
    """Return x / (1 + |x|)."""
    return div(x, add(op("Abs", x), 1.0))


def elu(x: Any, alpha: float = 1.0) -> Any:
    """Return x, or alpha (exp(x) - 1) below 0."""
    zero = np.zeros((), np.float64)
    return where(op("Greater", x, zero), x, mul(expm1(op("Min", x, zero)), alpha))


def erf(x: Any) -> Any:
    """Return the error function: a series up to 1, 1 - erfc(x) beyond."""
    size = op("Abs", x)
    near = op("Min", size, _ONE)
    square = mul(near, near)
    series = [(-1.0) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(19, -1, -1)]
    inner = mul(mul(near, _polynomial(square, series)), 2 / math.sqrt(math.pi))
    far = op("Min", op("Max", size, _ONE), np.array(_END))
    place = div(sub(far, _MIDDLE), add(far, _MIDDLE))
    tail = div(_polynomial(place, _TAIL), add(far, _MIDDLE))
    outer = sub(_ONE, mul(tail, op("Exp", op("Neg", mul(far, far)))))
    found = mul(op("Sign", x), where(op("Greater", size, _ONE), outer, inner))
    return where(op("IsNaN", x), x, found)


def gelu(x: Any, approximate: str = "none") -> Any:
    """Return x times the normal distribution's cumulative probability, or its approximation."""
    if approximate == "tanh":
        bent = mul(add(mul(mul(mul(x, x), x), 0.044715), x), math.sqrt(2 / math.pi))
        return mul(mul(x, 0.5), add(op("Tanh", bent), 1.0))
    return mul(mul(x, 0.5), add(erf(div(x, math.sqrt(2))), 1.0))


def mish(x: Any) -> Any:
    """Return x tanh(softplus(x))."""
    return mul(x, op("Tanh", softplus(x)))
