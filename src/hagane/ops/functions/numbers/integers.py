"""Functions of integers: shifts, divisors, bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, loop, op
from hagane.ops.functions.numbers.division import floor_quotient
from hagane.ops.functions.numbers.elementary import add, cast, div, mul, where

_INT64 = ir.DataType.INT64


def _like(value: int, x: Any) -> Any:
    return np.array(value, dtype_of(x).numpy())


def shift_left(x: Any, count: Any) -> Any:
    """Return ``x`` times 2 to the power of ``count``, cut to its bits; 0 beyond them."""
    bits = int(dtype_of(x).itemsize) * 8
    if not dtype_of(x).is_signed():
        moved = op("BitShift", x, op("Min", count, _like(bits - 1, x)), direction="LEFT")
        return where(op("Less", count, _like(bits, x)), moved, _like(0, x))
    wide, places = cast(x, _INT64), cast(count, _INT64)
    moved = mul(wide, op("Pow", np.array(2), op("Min", places, 62)))
    moved = where(op("Equal", places, 63), mul(moved, 2), moved)
    return cast(where(op("Less", places, bits), moved, np.array(0)), dtype_of(x))


def shift_right(x: Any, count: Any) -> Any:
    """Return ``x`` over 2 to the power of ``count``, rounded down."""
    bits = int(dtype_of(x).itemsize) * 8
    if not dtype_of(x).is_signed():
        moved = op("BitShift", x, op("Min", count, _like(bits - 1, x)), direction="RIGHT")
        return where(op("Less", count, _like(bits, x)), moved, _like(0, x))
    wide, places = cast(x, _INT64), cast(count, _INT64)
    moved = floor_quotient(wide, op("Pow", np.array(2), op("Min", places, 62)))
    sign = where(op("Less", wide, 0), np.array(-1), np.array(0))
    return cast(where(op("Less", places, 63), moved, sign), dtype_of(x))


def greatest_divisor(x: Any, y: Any) -> Any:
    """Return the greatest common divisor of pairs of integers, by Euclid's algorithm."""
    dtype = dtype_of(x)
    a, b = (op("Abs", cast(value, _INT64)) for value in (x, y))
    left, right = add(a, mul(b, 0)), add(b, mul(a, 0))  # of the shape of both

    def rest(number: Any, going: Any, a: Any, b: Any) -> list[Any]:
        del number, going
        some = op("Greater", b, 0)
        after = where(some, op("Mod", a, where(some, b, np.array(1))), np.array(0))
        first = where(some, b, a)
        left_over = op("ReduceSum", cast(op("Greater", after, 0), _INT64), keepdims=0)
        return [op("Greater", left_over, 0), first, after]

    # The first round brings the larger one to the front; the last one leaves remainders of 0.
    first, second = loop(np.array(100), np.array(True), [left, right], rest)
    return cast(where(op("Greater", second, 0), second, first), dtype)


def least_multiple(x: Any, y: Any) -> Any:
    """Return the least common multiple of pairs of integers."""
    divisor = greatest_divisor(x, y)
    one = _like(1, divisor)
    none = op("Equal", divisor, _like(0, divisor))
    return op("Abs", mul(div(x, where(none, one, divisor)), y))


def count_bits(x: Any) -> Any:
    """Return how many bits of ``|x|`` are set; uint8."""
    size = cast(x, ir.DataType.UINT64)
    if dtype_of(x).is_signed():
        size = cast(op("Abs", cast(x, _INT64)), ir.DataType.UINT64)
    places = np.arange(dtype_of(x).itemsize * 8, dtype=np.uint64)
    each = op("BitShift", op("Unsqueeze", size, [-1]), places, direction="RIGHT")
    ones = op("BitwiseAnd", each, np.array(1, np.uint64))
    return cast(op("ReduceSum", cast(ones, _INT64), [-1], keepdims=0), ir.DataType.UINT8)
