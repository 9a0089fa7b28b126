"""Quotients that are rounded, their remainders, and other functions of pairs of numbers."""

from __future__ import annotations

from typing import Any

from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.activations import truncated
from hagane.ops.functions.numbers.elementary import add, div, exp, log, mul, neg, sqrt, square, sub


def floor_quotient(x: Any, y: Any) -> Any:
    """Return ``x / y`` rounded down."""
    if dtype_of(x).is_floating_point():
        return op("Floor", div(x, y))
    return div(sub(x, op("Mod", x, y)), y)


def whole_quotient(x: Any, y: Any) -> Any:
    """Return ``x / y`` rounded toward zero."""
    return truncated(div(x, y)) if dtype_of(x).is_floating_point() else div(x, y)


def floor_remainder(x: Any, y: Any) -> Any:
    """Return ``x - y floor(x / y)``, which has the sign of ``y``."""
    if dtype_of(x).is_floating_point():
        return sub(x, mul(y, floor_quotient(x, y)))
    return op("Mod", x, y)


def hypotenuse(x: Any, y: Any) -> Any:
    """Return ``sqrt(x x + y y)``."""
    return sqrt(add(square(x), square(y)))


def log_add_exp(x: Any, y: Any) -> Any:
    """Return ``log(exp(x) + exp(y))``."""
    apart = exp(neg(op("Abs", sub(x, y))))
    return add(op("Max", x, y), log(add(apart, 1)))
