"""Functions of pairs of numbers that are no operators themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.division import log_add_exp
from hagane.ops.functions.numbers.elementary import add, cast, div, log, mul, neg, sub, where
from hagane.ops.layout.stopping import stopped


def is_negative(x: Any) -> Any:
    """Return whether the sign of ``x`` is minus, that of -0.0 included; that of NaN is not."""
    if not dtype_of(x).is_floating_point():
        return op("Less", x, 0) if dtype_of(x).is_signed() else op("Less", x, x)
    zero = number_like(0, x)
    under = op("Less", op("Reciprocal", x), zero)
    return op("Or", op("Less", x, zero), op("And", op("Equal", x, zero), under))


def copy_sign(x: Any, y: Any) -> Any:
    """Return ``|x|`` with the sign of ``y``; floats."""
    size = op("Abs", x)
    return where(is_negative(y), neg(size), size)


def step(x: Any, at_zero: Any) -> Any:
    """Return 0 where ``x`` is negative, 1 where it is positive, ``at_zero`` where it is 0."""
    found = where(op("Greater", x, 0), number_like(1, x), number_like(0, x))
    return where(op("Equal", x, 0), at_zero, found)


def heaviside(x: Any, at_zero: Any) -> Any:
    """Return what :func:`step` does; NaN of NaN, as NumPy has it."""
    found = step(x, at_zero)
    return where(op("IsNaN", x), x, found) if dtype_of(x).is_floating_point() else found


def next_after(x: Any, y: Any) -> Any:
    """Return the float32 beside ``x`` on the side of ``y``.

    In float64, ``x`` is moved by more than a half of the distance to the next one and by less than
    one and a half of it, and rounded. That distance is between 2**-24 and 2**-23 of ``x``, and at
    least 2**-149.
    """
    double, single = ir.DataType.DOUBLE, ir.DataType.FLOAT
    largest = np.array(np.finfo(np.float32).max, np.float32)
    wide = cast(op("Min", op("Max", x, -largest), largest), double)
    infinite = op("IsInf", x)
    least = np.array(0.75 * 2.0**-149)
    move = op("Max", mul(op("Abs", wide), np.array(1.0001 * 2.0**-24)), least)
    up = op("Less", x, y)
    moved = cast(where(up, add(wide, move), sub(wide, move)), single)
    moved = where(infinite, cast(wide, single), moved)  # the largest numbers
    found = where(op("Equal", x, y), y, moved)
    return where(op("IsNaN", x), x, where(op("IsNaN", y), y, found))


def largest_number(x: Any, y: Any) -> Any:
    """Return the larger of two floats; the other one where one is NaN."""
    under = op("Less", x, y)  # (Of equal ones, x has the gradient.)
    return where(op("Or", op("IsNaN", x), under), y, x)


def smallest_number(x: Any, y: Any) -> Any:
    """Return the smaller of two floats; the other one where one is NaN."""
    over = op("Greater", x, y)
    return where(op("Or", op("IsNaN", x), over), y, x)


def angle_of(y: Any, x: Any) -> Any:
    """Return the angle of the point (x, y), from -pi to pi; signs of zeros count."""
    zero, half = number_like(0, x), number_like(math.pi / 2, x)
    upright = op("Equal", x, zero)
    slope = div(y, where(upright, number_like(1, x), x))
    narrow = op("Atan", slope)
    turned = copy_sign(number_like(math.pi, x), y)
    back = add(narrow, turned)
    level = op("Equal", y, zero)
    found = where(op("Less", x, zero), back, narrow)
    # On the axes the angle is constant, and its gradient that of a quotient, which is 0 there.
    apart = op("And", upright, op("Not", level))
    across = div(x, where(apart, y, number_like(1, y)))
    found = where(upright, sub(copy_sign(half, y), across), found)
    along = where(upright, stopped(y), slope)
    on_axis = where(is_negative(x), add(turned, along), along)
    endless = op("And", op("IsInf", x), op("IsInf", y))
    quarter = where(op("Less", x, zero), number_like(3 * math.pi / 4, x),
                    number_like(math.pi / 4, x))  # fmt: skip
    return where(endless, copy_sign(quarter, y), where(level, on_axis, found))


def log_add_exp2(x: Any, y: Any) -> Any:
    """Return ``log2(2 ** x + 2 ** y)``."""
    scale = math.log(2)
    return div(log_add_exp(mul(x, scale), mul(y, scale)), scale)


def times_log(x: Any, y: Any, shift: float = 0.0) -> Any:
    """Return ``x log(y + shift)``, 0 where ``x`` is; NaN where ``y`` is."""
    raised = add(y, shift) if shift else y
    endless = op("Or", op("LessOrEqual", raised, number_like(0, y)), op("IsInf", y))
    none = op("And", op("Equal", x, 0), endless)  # elsewhere the gradient by x is the logarithm
    return where(none, number_like(0, x), mul(x, log(raised)))


def are_close(x: Any, y: Any, relative: float, absolute: float, nan: bool) -> Any:
    """Return where ``|x - y| <= absolute + relative |y|``, equal infinities included; floats.

    Args:
        x: Floats.
        y: Of the same element type.
        relative: The tolerance as a share of ``|y|``.
        absolute: The tolerance beside that.
        nan: Whether NaN is close to NaN.
    """
    bound = add(mul(op("Abs", y), relative), absolute)
    near = op("LessOrEqual", op("Abs", sub(x, y)), bound)
    near = op("And", near, op("Not", op("IsInf", y)))
    found = op("Or", op("Equal", x, y), near)
    return op("Or", found, op("And", op("IsNaN", x), op("IsNaN", y))) if nan else found


def scaled_by_two(x: Any, exponent: Any) -> Any:
    """Return ``x`` times 2 to the power of ``exponent``; floats."""
    return mul(x, op("Pow", number_like(2, x), exponent))


def float_parts(x: Any) -> tuple[Any, Any]:
    """Return the fraction and the whole part of floats, both with their sign."""
    whole = mul(op("Sign", x), op("Floor", op("Abs", x)))
    endless = op("IsInf", x)
    part = where(endless, number_like(0, x), sub(x, whole))
    return part, where(endless, x, whole)


def cube_root(x: Any) -> Any:
    """Return the real cube root, a step of Newton's method behind the power."""
    root = op("Pow", op("Abs", x), np.array(1 / 3, dtype_of(x).numpy()))
    square = mul(root, root)
    is_plain = op("And", op("Greater", square, number_like(0, x)), op("Not", op("IsInf", square)))
    error = div(sub(op("Abs", x), mul(square, root)), mul(square, 3.0))
    return mul(op("Sign", x), add(root, stopped(where(is_plain, error, number_like(0, x)))))


def with_numbers(x: Any, nan: float, high: float, low: float) -> Any:
    """Return floats with numbers in place of NaN, infinity and minus infinity."""
    made = where(op("IsInf", x, detect_negative=0), number_like(high, x), x)
    made = where(op("IsInf", x, detect_positive=0), number_like(low, x), made)
    return where(op("IsNaN", x), number_like(nan, x), made)


def rounded(x: Any, decimals: int) -> Any:
    """Return floats rounded to decimals, halves to the even digit."""
    if decimals == 0:
        return op("Round", x)
    scale = number_like(10.0 ** abs(decimals), x)
    if decimals > 0:
        return div(op("Round", mul(x, scale)), scale)
    return mul(op("Round", div(x, scale)), scale)
