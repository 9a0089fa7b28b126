"""Quotients that are rounded, their remainders, and other functions of pairs of numbers."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of
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
from hagane.ops.layout.stopping import stopped


def floor_quotient(x: Any, y: Any) -> Any:
    """Return ``x / y`` rounded down, as Python has it: ``1 // 0.1`` is 9, as 0.1 is above a tenth.

    Floats follow CPython's ``float_floor_div``: the difference to the exact remainder is divided.
    """
    dtype = dtype_of(x)
    if not dtype.is_floating_point():
        return _whole_floor(x, y) if dtype.is_signed() else div(x, y)
    rest = op("Mod", x, y, fmod=1)
    found = div(sub(x, rest), y)
    found = sub(found, op("Cast", _is_below(rest, y), to=int(dtype_of(x))))
    down = op("Floor", found)
    up = op("Cast", op("Greater", sub(found, down), 0.5), to=int(dtype_of(x)))
    whole = div(x, y)
    found = where(op("Equal", found, 0.0), mul(whole, 0.0), add(down, up))  # zero with a sign
    return where(op("Equal", y, 0.0), whole, found)


def _whole_floor(x: Any, y: Any) -> Any:
    rest = op("Mod", x, y)
    if rank_of(x) == rank_of(y) == 0 and dtype_of(x) == ir.DataType.INT64:
        return div(sub(x, rest), y)  # the form in which types follow the arithmetic of sizes
    # The difference to the remainder may lie outside of the type: -128 - 5 in eight bits.
    return sub(div(x, y), cast(_is_below_zero(x, y, rest), dtype_of(x)))


def _is_below_zero(x: Any, y: Any, rest: Any) -> Any:
    """Whether a quotient of integers lies below zero, and has digits behind the point."""
    none = number_like(0, x)
    apart = op("Xor", op("Less", x, none), op("Less", y, none))
    return op("And", apart, op("Not", op("Equal", rest, none)))


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
    """Return ``sqrt(x x + y y)``, of floats whose squares overflow too."""
    most = stopped(op("Max", op("Abs", x), op("Abs", y)))  # both squares are of numbers up to 1
    plain = op("Or", op("Equal", most, number_like(0, most)), op("IsInf", most))
    scale = where(plain, number_like(1, most), most)
    return mul(sqrt(add(square(div(x, scale)), square(div(y, scale)))), scale)


def log_add_exp(x: Any, y: Any) -> Any:
    """Return ``log(exp(x) + exp(y))``."""
    same = op("Equal", x, y)  # infinities too, whose difference is NaN
    apart = exp(neg(op("Abs", where(same, number_like(0, x), sub(x, y)))))
    return add(op("Max", x, y), log(add(apart, 1)))
