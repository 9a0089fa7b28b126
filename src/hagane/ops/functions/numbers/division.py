"""Quotients that are rounded, their remainders, and other functions of pairs of numbers."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.activations import number_like, truncated
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    exp,
    log,
    mul,
    neg,
    sqrt,
    square,
    sub,
    where,
)


def floor_quotient(x: Any, y: Any) -> Any:
    """Return ``x / y`` rounded down, as Python has it: ``1 // 0.1`` is 9, as 0.1 is above a tenth.

    Floats follow CPython's ``float_floor_div``: the difference to the exact remainder is divided.
    """
    if not dtype_of(x).is_floating_point():
        return div(sub(x, op("Mod", x, y)), y)
    rest = op("Mod", x, y, fmod=1)
    found = div(sub(x, rest), y)
    found = sub(found, op("Cast", _is_below(rest, y), to=int(dtype_of(x))))
    down = op("Floor", found)
    up = op("Cast", op("Greater", sub(found, down), 0.5), to=int(dtype_of(x)))
    whole = div(x, y)
    found = where(op("Equal", found, 0.0), mul(whole, 0.0), add(down, up))  # zero with a sign
    return where(op("Equal", y, 0.0), whole, found)


def whole_quotient(x: Any, y: Any) -> Any:
    """Return ``x / y`` rounded toward zero."""
    return truncated(div(x, y)) if dtype_of(x).is_floating_point() else div(x, y)


def floor_remainder(x: Any, y: Any) -> Any:
    """Return ``x - y floor(x / y)``, which has the sign of ``y``; zero has that of ``x``.

    Floats are exact, as in CPython's ``float_rem``.
    """
    if not dtype_of(x).is_floating_point():
        return op("Mod", x, y)
    rest = op("Mod", x, y, fmod=1)
    return where(_is_below(rest, y), add(rest, y), rest)


def signed_remainder(x: Any, y: Any) -> Any:
    """Return :func:`floor_remainder`, zero with the sign of ``y``, as Python and NumPy have it."""
    found = floor_remainder(x, y)
    if not dtype_of(x).is_floating_point():
        return found
    zero = op("Abs", found)
    return where(op("Equal", found, 0.0), where(op("Less", y, 0.0), neg(zero), zero), found)


def _is_below(rest: Any, y: Any) -> Any:
    """Whether a remainder that is not zero has another sign than the divisor."""
    apart = op("Xor", op("Less", rest, 0.0), op("Less", y, 0.0))
    return op("And", apart, op("Not", op("Equal", rest, 0.0)))


def whole_power(x: Any, y: Any) -> Any:
    """Return ``x ** y`` of integers, modulo the number of their values.

    Of negative powers the whole part is left: 0, but for 1 and -1.
    """
    dtype = dtype_of(x)
    wide = dtype if dtype == ir.DataType.INT32 else ir.DataType.INT64
    x, y = cast(x, wide), cast(y, wide)
    sign = sub(number_like(1, y), op("Mul", op("Mod", y, number_like(2, y)), number_like(2, y)))
    one, none = number_like(1, x), number_like(0, x)
    inverse = where(op("Equal", x, one), one, where(op("Equal", x, op("Neg", one)), sign, none))
    found = where(op("Less", y, none), inverse, op("Pow", x, op("Max", y, none)))
    return cast(found, dtype)


def hypotenuse(x: Any, y: Any) -> Any:
    """Return ``sqrt(x x + y y)``."""
    return sqrt(add(square(x), square(y)))


def log_add_exp(x: Any, y: Any) -> Any:
    """Return ``log(exp(x) + exp(y))``."""
    apart = exp(neg(op("Abs", sub(x, y))))
    return add(op("Max", x, y), log(add(apart, 1)))
