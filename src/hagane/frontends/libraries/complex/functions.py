"""Elementary functions of complex numbers as pairs of real tensors.

Branch cuts are those of C99 and NumPy. Source of the inverse functions: W. Kahan, "Branch cuts for
complex elementary functions", The State of the Art in Numerical Analysis, 1987.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hagane.ops.builder import op
from hagane.ops.functions.numbers.activations import expm1, log1p
from hagane.ops.functions.numbers.division import hypotenuse
from hagane.ops.functions.numbers.elementary import add, div, exp, log, mul, neg, sqrt, sub, where
from hagane.ops.functions.numbers.pairs import angle_of, copy_sign
from hagane.ops.functions.sums import spectra
from hagane.ops.functions.sums.spectra import Pair
from hagane.ops.functions.tensors.shapes import filled_like, zeros_like


def zeros(x: Any) -> Any:
    """Return zeros of the shape of a part, which may be a number."""
    return zeros_like(x) if hasattr(x, "dtype") else 0.0


def imaginary(x: Pair) -> Any:
    """Return the imaginary part, zeros where there is none."""
    return zeros(x[0]) if x[1] is None else x[1]


def magnitude(x: Pair) -> Any:
    """Return the distance from zero."""
    return op("Abs", x[0]) if x[1] is None else hypotenuse(x[0], x[1])


def _angle(x: Pair, deg: Pair = (False, None)) -> Any:
    found = angle_of(imaginary(x), x[0])
    return mul(found, 180 / math.pi) if deg[0] else found


def _exponential(x: Pair) -> Pair:
    size = exp(x[0])
    return mul(size, op("Cos", imaginary(x))), mul(size, op("Sin", imaginary(x)))


def _exponential_less_one(x: Pair) -> Pair:
    real, turn = x[0], imaginary(x)
    half = op("Sin", mul(turn, 0.5))
    less = sub(mul(expm1(real), op("Cos", turn)), mul(mul(half, half), 2))
    return less, mul(exp(real), op("Sin", turn))


def _logarithm(x: Pair) -> Pair:
    return log(magnitude(x)), _angle(x)


def _logarithm_of_one_more(x: Pair) -> Pair:
    return _logarithm((add(x[0], 1), imaginary(x)))


def _scaled_logarithm(base: float) -> Callable[[Pair], Pair]:
    def rule(x: Pair) -> Pair:
        found, angle = _logarithm(x)
        return mul(found, 1 / math.log(base)), mul(angle, 1 / math.log(base))

    return rule


def _power(x: Pair, exponent: Pair) -> Pair:
    count = exponent[0]
    if exponent[1] is not None or (not isinstance(x[0], int | float) and x[1] is None):
        return _general_power(x, exponent)
    if not isinstance(count, int) or not 0 < abs(count) <= 64:
        size, angle = op("Pow", magnitude(x), count), mul(_angle(x), count)
        return mul(size, op("Cos", angle)), mul(size, op("Sin", angle))
    found, left = None, abs(count)
    while left:  # by squares
        if left % 2:
            found = x if found is None else spectra.product(found, x)
        left //= 2
        x = spectra.product(x, x) if left else x
    assert found is not None
    return spectra.quotient((1.0, None), found) if count < 0 else found


def _general_power(x: Pair, exponent: Pair) -> Pair:
    """Return a power by the logarithm; that of 0 is 0, 1 or not a number."""
    like = next(y for y in (*x, *exponent) if hasattr(y, "dtype"))
    x, exponent = (
        tuple(y if hasattr(y, "dtype") else filled_like(like, y or 0) for y in pair)
        for pair in (x, exponent)
    )
    is_zero = op("And", op("Equal", x[0], 0), op("Equal", x[1], 0))
    is_none = op("And", op("Equal", exponent[0], 0), op("Equal", exponent[1], 0))
    base = where(is_zero, 1.0, x[0]), x[1]
    real, turn = _exponential(spectra.product(exponent, _logarithm(base)))
    zero, unknown = filled_like(like, 0), filled_like(like, math.nan)
    bad = where(op("Or", is_none, op("Greater", exponent[0], 0)), zero, unknown)
    return (
        where(is_zero, where(is_none, 1.0, bad), real),
        where(is_zero, bad, where(is_none, 0.0, turn)),
    )


def _root(x: Pair) -> Pair:
    real, turn = x[0], imaginary(x)
    half = sqrt(mul(add(magnitude(x), op("Abs", real)), 0.5))
    other = where(op("Equal", half, 0), half, div(op("Abs", turn), mul(half, 2)))
    is_right = op("GreaterOrEqual", real, 0)
    return where(is_right, half, other), copy_sign(where(is_right, other, half), turn)


def _sign(x: Pair) -> Pair:
    size = magnitude(x)
    scale = where(op("Equal", size, 0), 1.0, size)
    real, turn = (where(op("IsInf", size), _infinite(y), y) for y in (x[0], imaginary(x)))
    scale = where(op("IsInf", size), magnitude((real, turn)), scale)
    only = op("LessOrEqual", scale, 1)  # of two infinite parts neither is
    return tuple(where(op("And", op("IsInf", size), op("Not", only)), math.nan, div(y, scale))
                 for y in (real, turn))  # fmt: skip


def _infinite(x: Any) -> Any:
    """Return the sign of a part that is infinite, 0 for others."""
    return where(op("IsInf", x), op("Sign", x), zeros(x))


# Trigonometric functions. The hyperbolic ones are those of the number turned by a quarter.


def _turned(x: Pair) -> Pair:
    return neg(imaginary(x)), x[0]


def _of_turned(rule: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """Return ``-i f(i z)``: the hyperbolic sine, tangent, and their inverses, from f."""

    def turned(x: Pair) -> Pair:
        real, turn = rule(_turned(x))
        return turn, neg(real)

    return turned


def _sine(x: Pair) -> Pair:
    real, turn = x[0], imaginary(x)
    return mul(op("Sin", real), op("Cosh", turn)), mul(op("Cos", real), op("Sinh", turn))


def _cosine(x: Pair) -> Pair:
    real, turn = x[0], imaginary(x)
    return mul(op("Cos", real), op("Cosh", turn)), neg(mul(op("Sin", real), op("Sinh", turn)))


def _tangent(x: Pair) -> Pair:
    """Return the tangent by those of the parts, none of which overflows."""
    slope, turn = op("Tan", x[0]), imaginary(x)
    steep, wide = op("Tanh", turn), op("Cosh", turn)
    size = add(1.0, mul(mul(slope, slope), mul(steep, steep)))
    real = div(div(div(slope, wide), wide), size)
    return real, div(mul(steep, add(1.0, mul(slope, slope))), size)


def _around_one(x: Pair) -> tuple[Pair, Pair]:
    """Return the square roots of 1 + z and 1 - z."""
    turn = imaginary(x)
    return _root((add(x[0], 1), turn)), _root((sub(1.0, x[0]), neg(turn)))


def _arc_sine(x: Pair) -> Pair:
    more, less = _around_one(x)
    real = angle_of(x[0], sub(mul(more[0], less[0]), mul(more[1], less[1])))
    return real, op("Asinh", sub(mul(less[0], more[1]), mul(less[1], more[0])))


def _arc_cosine(x: Pair) -> Pair:
    more, less = _around_one(x)
    real = mul(angle_of(less[0], more[0]), 2)
    return real, op("Asinh", sub(mul(more[0], less[1]), mul(more[1], less[0])))


def _arc_hyperbolic_cosine(x: Pair) -> Pair:
    turn = imaginary(x)
    less, more = _root((sub(x[0], 1), turn)), _root((add(x[0], 1), turn))
    real = op("Asinh", add(mul(less[0], more[0]), mul(less[1], more[1])))
    return real, mul(angle_of(less[1], more[0]), 2)


def _arc_hyperbolic_tangent(x: Pair) -> Pair:
    """Return the inverse of the hyperbolic tangent, an odd function, from the right half."""
    turn = imaginary(x)
    real, size = op("Abs", x[0]), mul(turn, turn)
    less = sub(1.0, real)
    found = mul(log1p(div(mul(real, 4), add(mul(less, less), size))), 0.25)
    across = sub(mul(less, add(1.0, real)), size)
    side = copy_sign(filled_like(real, 1), x[0])
    angle = mul(angle_of(mul(mul(turn, side), 2), across), 0.5)
    return mul(found, side), mul(angle, side)


RULES: dict[str, Callable[..., Any]] = {
    "angle": _angle,
    "exp": _exponential, "expm1": _exponential_less_one,
    "log": _logarithm, "log1p": _logarithm_of_one_more,
    "log2": _scaled_logarithm(2), "log10": _scaled_logarithm(10),
    **dict.fromkeys(("pow", "power", "float_power"), _power),
    "sqrt": _root, **dict.fromkeys(("sign", "sgn"), _sign),
    "sin": _sine, "cos": _cosine, "tan": _tangent,
    "sinh": _of_turned(_sine), "cosh": lambda x: _cosine(_turned(x)), "tanh": _of_turned(_tangent),
    **dict.fromkeys(("arcsin", "asin"), _arc_sine),
    **dict.fromkeys(("arccos", "acos"), _arc_cosine),
    **dict.fromkeys(("arctan", "atan"), _of_turned(_arc_hyperbolic_tangent)),
    **dict.fromkeys(("arcsinh", "asinh"), _of_turned(_arc_sine)),
    **dict.fromkeys(("arccosh", "acosh"), _arc_hyperbolic_cosine),
    **dict.fromkeys(("arctanh", "atanh"), _arc_hyperbolic_tangent),
}  # fmt: skip

__all__ = ["RULES", "imaginary", "magnitude", "zeros"]
