"""Functions that can be inverted, with the logarithm of their slope, as PyTorch's transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes

from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.activations import expm1, log1p
from hagane.ops.functions.numbers.densities import number_like, soft_plus
from hagane.ops.functions.numbers.elementary import add, div, exp, log, mul, neg, sub


@dataclass(frozen=True, slots=True)
class Bijection:
    """A function of elements, which may have parameters that broadcast with them.

    Attributes:
        forward: y of x and the parameters.
        inverse: x of y and the parameters.
        slope: The logarithm of the size of dy/dx at x and y; None where PyTorch has none.
    """

    forward: Callable[..., Any]
    inverse: Callable[..., Any]
    slope: Callable[..., Any] | None


def _within(y: Any) -> Any:
    """Return numbers between 0 and 1, apart from both by the least that their type can tell."""
    limits = ml_dtypes.finfo(dtype_of(y).numpy())
    return op("Clip", y, number_like(float(limits.tiny), y), number_like(1 - float(limits.eps), y))


def _logit(y: Any) -> Any:
    y = _within(y)
    return sub(log(y), log1p(neg(y)))


def _tanh_slope(x: Any, y: Any) -> Any:
    return mul(sub(sub(math.log(2), x), soft_plus(mul(x, -2))), 2)


BIJECTIONS: dict[str, Bijection] = {
    "AbsTransform": Bijection(lambda x: op("Abs", x), lambda y: y, None),
    "AffineTransform": Bijection(
        lambda x, loc, scale: add(loc, mul(scale, x)),
        lambda y, loc, scale: div(sub(y, loc), scale),
        lambda x, y, loc, scale: log(op("Abs", scale)),
    ),
    "ExpTransform": Bijection(exp, log, lambda x, y: x),
    "PowerTransform": Bijection(
        lambda x, exponent: op("Pow", x, exponent),
        lambda y, exponent: op("Pow", y, op("Reciprocal", exponent)),
        lambda x, y, exponent: log(op("Abs", div(mul(exponent, y), x))),
    ),
    "SigmoidTransform": Bijection(
        lambda x: _within(op("Sigmoid", x)), _logit,
        lambda x, y: neg(add(soft_plus(neg(x)), soft_plus(x))),
    ),
    "SoftplusTransform": Bijection(
        soft_plus, lambda y: add(log(neg(expm1(neg(y)))), y), lambda x, y: neg(soft_plus(neg(x))),
    ),
    "TanhTransform": Bijection(lambda x: op("Tanh", x), lambda y: op("Atanh", y), _tanh_slope),
}  # fmt: skip


__all__ = ["BIJECTIONS", "Bijection"]
