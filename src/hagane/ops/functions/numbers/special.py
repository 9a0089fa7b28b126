"""Special functions of floats, computed in float64 by series, recurrences and Newton's method.

Formulas are those of the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    exp,
    log,
    mul,
    neg,
    sqrt,
    sub,
    where,
)
from hagane.ops.functions.numbers.pairs import is_negative
from hagane.ops.layout.stopping import stopped
from hagane.symbolic import floordiv

_DOUBLE = ir.DataType.DOUBLE
# Bernoulli numbers B2, B4, …
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
# Lanczos' coefficients for g = 7 (Godfrey, 2001).
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
)  # fmt: skip


def _in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute in float64, and return the element type of the operand."""

    @wraps(function)
    def computed(x: Any, *arguments: Any) -> Any:
        return cast(function(cast(x, _DOUBLE), *arguments), dtype_of(x))

    return computed


def _polynomial(x: Any, coefficients: Any) -> Any:
    """Return a polynomial by Horner's rule; the constant is the first coefficient."""
    found: Any = number_like(float(coefficients[-1]), x)
    for value in coefficients[-2::-1]:
        found = add(mul(found, x), float(value))
    return found


def zeros_of(x: Any) -> Any:
    """Return 0 for each element: the imaginary part of real numbers."""
    return where(op("Equal", x, x), number_like(0, x), number_like(0, x))


def angle_of_reals(x: Any) -> Any:
    """Return 0, or pi for negative numbers; NaN for NaN."""
    found = where(is_negative(x), number_like(math.pi, x), number_like(0, x))
    return where(op("IsNaN", x), x, found)


@_in_double
def sinc(x: Any) -> Any:
    """Return ``sin(pi x) / (pi x)``, 1 at 0."""
    scaled = mul(x, math.pi)
    zero = op("Equal", x, 0.0)
    return where(
        zero, number_like(1, x), div(op("Sin", scaled), where(zero, number_like(1, x), scaled))
    )


# The gamma function.


def _positive_log_gamma(x: Any) -> Any:
    """Return the logarithm of the gamma function from 1/2 on, by Lanczos' series."""
    x = sub(x, 1.0)
    total: Any = number_like(_LANCZOS[0], x)
    for place, value in enumerate(_LANCZOS[1:], 1):
        total = add(total, div(number_like(value, x), add(x, float(place))))
    base = add(x, 7.5)
    half_log = 0.5 * math.log(2 * math.pi)
    return add(sub(mul(add(x, 0.5), log(base)), base), add(log(total), half_log))


@_in_double
def log_gamma(x: Any) -> Any:
    """Return the logarithm of ``|gamma(x)|``; infinite at 0, -1 and so on."""
    low = op("Less", x, 0.5)
    found = _positive_log_gamma(where(low, sub(1.0, x), x))
    turned = sub(log(div(math.pi, op("Abs", op("Sin", mul(x, math.pi))))), found)
    pole = op("And", op("LessOrEqual", x, 0.0), op("Equal", x, op("Floor", x)))
    found = where(pole, number_like(math.inf, x), where(low, turned, found))
    return where(op("IsInf", x), number_like(math.inf, x), found)


def log_multigamma(x: Any, size: int) -> Any:
    """Return the logarithm of the gamma function of matrices of a size (DLMF 35.3)."""
    found: Any = number_like(size * (size - 1) / 4 * math.log(math.pi), x)
    for place in range(size):
        found = add(found, log_gamma(sub(x, place / 2)))
    return found


@_in_double
def digamma(x: Any) -> Any:
    """Return the derivative of the logarithm of the gamma function (DLMF 5.5.4, 5.11.2)."""
    low = op("Less", x, 0.0)
    z = where(low, sub(1.0, x), x)
    total: Any = number_like(0, x)
    for place in range(10):
        total = sub(total, op("Reciprocal", add(z, float(place))))
    z = add(z, 10.0)
    inverse = op("Reciprocal", mul(z, z))
    series = _polynomial(inverse, [0.0, *(b / (2 * k) for k, b in enumerate(_BERNOULLI, 1))])
    found = add(total, sub(sub(log(z), div(0.5, z)), series))
    turned = sub(found, div(math.pi, op("Tan", mul(x, math.pi))))
    found = where(low, turned, found)
    whole = op("And", low, op("Equal", x, op("Floor", x)))
    pole = where(is_negative(x), number_like(math.inf, x), number_like(-math.inf, x))
    return where(whole, number_like(math.nan, x), where(op("Equal", x, 0.0), pole, found))


@_in_double
def hurwitz_zeta(q: Any, order: float) -> Any:
    """Return the sum of ``(q + k) ** -order`` over k from 0 on (DLMF 25.11.5), order above 1."""
    count = 20
    total: Any = number_like(0, q)
    for place in range(count):
        total = add(total, op("Pow", add(q, float(place)), number_like(-order, q)))
    end = add(q, float(count))
    total = add(total, div(op("Pow", end, number_like(1 - order, q)), order - 1))
    total = add(total, mul(op("Pow", end, number_like(-order, q)), 0.5))
    factor = order
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        power = op("Pow", end, number_like(-order - 2 * k + 1, q))
        total = add(total, mul(power, bernoulli / math.factorial(2 * k) * factor))
        factor *= (order + 2 * k - 1) * (order + 2 * k)
    return total


def polygamma(x: Any, order: int) -> Any:
    """Return a derivative of the digamma function (DLMF 5.15.1)."""
    if order == 0:
        return digamma(x)
    sign = 1.0 if order % 2 else -1.0
    return mul(hurwitz_zeta(x, float(order + 1)), sign * math.factorial(order))


# The error function.


def _scaled_tail(x: Any) -> Any:
    """Return ``exp(x x) erfc(x)``; by a continued fraction (DLMF 7.9.1) from 2 on."""
    far = op("Greater", x, 2.0)
    high = where(far, x, number_like(2, x))
    fraction = high
    for k in range(60, 0, -1):
        fraction = add(high, div(k / 2, fraction))
    tail = div(1 / math.sqrt(math.pi), fraction)
    low = where(far, number_like(0, x), x)
    near = mul(exp(mul(low, low)), sub(1.0, op("Erf", low)))
    return where(far, tail, near)


@_in_double
def scaled_error_tail(x: Any) -> Any:
    """Return ``exp(x x) erfc(x)``."""
    return _scaled_tail(x)


@_in_double
def error_tail(x: Any) -> Any:
    """Return ``1 - erf(x)``, to full precision where it is small."""
    far = op("Greater", x, 1.0)
    small = mul(_scaled_tail(where(far, x, number_like(1, x))), exp(neg(mul(x, x))))
    return where(far, small, sub(1.0, op("Erf", x)))


@_in_double
def inverse_error(x: Any) -> Any:
    """Return the inverse of the error function: Winitzki's formula (2008), then Halley's steps."""
    inside = op("Less", op("Abs", x), 1.0)
    within = where(inside, x, number_like(0, x))
    size = log(sub(1.0, mul(within, within)))
    half = add(2 / (math.pi * 0.147), div(size, 2.0))
    root = sub(sqrt(sub(mul(half, half), div(size, 0.147))), half)
    found = mul(op("Sign", within), sqrt(op("Max", root, number_like(0, x))))
    for _ in range(4):
        found = stopped(found)  # the last step alone has the gradient
        apart = div(sub(op("Erf", found), within), mul(exp(neg(mul(found, found))),
                                                         2 / math.sqrt(math.pi)))  # fmt: skip
        found = sub(found, div(apart, add(1.0, mul(found, apart))))
    outside = where(op("Greater", x, 0.0), number_like(math.inf, x), number_like(-math.inf, x))
    edge = op("Equal", op("Abs", x), 1.0)
    return where(inside, found, where(edge, outside, number_like(math.nan, x)))


def normal_share(x: Any) -> Any:
    """Return the distribution function of the normal distribution."""
    return mul(error_tail(mul(x, -math.sqrt(0.5))), 0.5)


@_in_double
def normal_place(x: Any) -> Any:
    """Return the inverse of the distribution function of the normal distribution."""
    return mul(inverse_error(sub(mul(x, 2.0), 1.0)), math.sqrt(2))


@_in_double
def log_normal_share(x: Any) -> Any:
    """Return the logarithm of the distribution function of the normal distribution."""
    low = op("Less", x, -1.0)
    under = where(low, x, number_like(-1, x))
    tail = log(mul(_scaled_tail(mul(under, -math.sqrt(0.5))), 0.5))
    near = log(mul(error_tail(mul(where(low, number_like(0, x), x), -math.sqrt(0.5))), 0.5))
    return where(low, sub(tail, mul(mul(x, x), 0.5)), near)


def entropy_part(x: Any) -> Any:
    """Return ``-x log(x)``; 0 at 0, minus infinity below."""
    some = op("Greater", x, 0)
    found = neg(mul(x, log(where(some, x, number_like(1, x)))))
    below = where(op("Less", x, 0), number_like(-math.inf, x), number_like(0, x))
    return where(op("IsNaN", x), x, where(some, found, below))


# Bessel's functions.

_TERMS = 40


def _series(x: Any, order: int, sign: int) -> Any:
    """Return the series of Bessel's function up to the power ``(x / 2) ** order`` (DLMF 10.2.2)."""
    factors = [sign**k / (math.factorial(k) * math.factorial(k + order)) for k in range(_TERMS)]
    found = _polynomial(mul(mul(x, x), 0.25), factors)
    return mul(found, mul(x, 0.5)) if order else found


def _scaled_asymptotic(x: Any, order: int) -> Any:
    """Return ``exp(-x)`` times the modified function for large numbers (DLMF 10.40.1)."""
    coefficients, term = [1.0], 1.0
    for k in range(1, 12):
        term *= -(4 * order**2 - (2 * k - 1) ** 2) / (k * 8)
        coefficients.append(term)
    series = _polynomial(op("Reciprocal", x), coefficients)
    return div(series, sqrt(mul(x, 2 * math.pi)))


def _modified(x: Any, order: int, *, scaled: bool) -> Any:
    size = op("Abs", x)
    near = op("Less", size, 15.0)
    small = _series(where(near, size, number_like(0, x)), order, 1)
    large = _scaled_asymptotic(where(near, number_like(15, x), size), order)
    if scaled:
        small = mul(small, exp(neg(where(near, size, number_like(0, x)))))
    else:
        large = mul(large, exp(size))
    found = where(near, small, large)
    return mul(op("Sign", x), found) if order else found


@_in_double
def bessel_i0(x: Any) -> Any:
    """Return Bessel's modified function of order 0."""
    return _modified(x, 0, scaled=False)


@_in_double
def bessel_i0e(x: Any) -> Any:
    """Return ``exp(-|x|)`` times Bessel's modified function of order 0."""
    return _modified(x, 0, scaled=True)


@_in_double
def bessel_i1(x: Any) -> Any:
    """Return Bessel's modified function of order 1."""
    return _modified(x, 1, scaled=False)


@_in_double
def bessel_i1e(x: Any) -> Any:
    """Return ``exp(-|x|)`` times Bessel's modified function of order 1."""
    return _modified(x, 1, scaled=True)


# Windows.


def cosine_window(
    count: Any, divisor: Any, coefficients: tuple[float, ...], dtype: ir.DataType
) -> Any:
    """Return a sum of cosines over a window of ``count`` points.

    Args:
        count: How many points.
        divisor: How many there are in a period.
        coefficients: Of ``cos(2 pi k n / divisor)``, by k.
        dtype: Floats.
    """
    place = cast(op("Range", 0, count, 1), _DOUBLE)
    place = div(mul(place, 2 * math.pi), op("Cast", divisor, to=_DOUBLE))
    found: Any = np.array(coefficients[0])
    for k, value in enumerate(coefficients[1:], 1):
        found = add(found, mul(op("Cos", mul(place, float(k))), value))
    return cast(found, dtype)


def frequencies(length: Any, half: bool, spacing: float, dtype: ir.DataType) -> Any:
    """Return the frequencies of a Fourier transform, negative ones after the positive.

    Args:
        length: How many samples the transform has.
        half: Whether to return those of a transform of real numbers alone, none negative.
        spacing: The distance of samples.
        dtype: Floats.
    """
    place = op("Range", 0, floordiv(length, 2) + 1 if half else length, 1)
    if not half:
        positive = op("Less", op("Mul", place, 2), length)
        place = where(positive, place, op("Sub", place, length))
    divisor = mul(op("Cast", length, to=_DOUBLE), spacing)
    return cast(div(cast(place, _DOUBLE), divisor), dtype)


def triangular_window(count: int) -> Any:
    """Return a window of ``count`` points that rises to 1 and falls again; float64."""
    place = cast(op("Range", 0, count, 1), _DOUBLE)
    half = (count - 1) / 2 or 1.0
    return sub(1.0, op("Abs", sub(div(place, half), 1.0)))
