"""Arithmetic and bit operations on two broadcast tensors, and their sums and means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import widened
from hagane.ops.rules import broadcast, exact
from hagane.ops.traits import Trait
from hagane.symbolic import Expr, floordiv, mod


def _data(rule: Callable[[Any, Any], Any]) -> Callable[[InferContext], Sequence[Array | None]]:
    """Apply ``rule`` to every pair of elements, broadcast."""

    def data(ctx: InferContext) -> Sequence[Array | None]:
        values = [ctx.data(i) for i in range(2)]
        if values[0] is None or values[1] is None:
            return [None]
        left, right = np.broadcast_arrays(exact(values[0]), exact(values[1]))
        result = np.empty(left.shape, dtype=object)
        result.ravel()[:] = [rule(a, b) for a, b in zip(left.ravel(), right.ravel(), strict=True)]
        return [result]

    return data


def _divide_data(ctx: InferContext) -> Sequence[Array | None]:
    whole = ctx.dtype(0).is_integer()

    def rule(left: Any, right: Any) -> Any:
        if whole:
            return floordiv(left, right)
        if isinstance(right, Expr):
            quotient = floordiv(left, right)  # exact or not at all: dimensions are integers
            if quotient * right != left:
                raise ValueError("a ratio of dimensions is no dimension")
            return quotient
        return left * (1 / Fraction(right))

    return _data(rule)(ctx)


def divide(x: Array, y: Array) -> Array:
    """Return ``x / y``; integers round toward zero.

    Raises:
        ZeroDivisionError: An integer is divided by zero.
    """
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    if not np.all(y):
        raise ZeroDivisionError("integer division by zero")
    quotient = np.floor_divide(x, y)
    if x.dtype.kind == "i":
        # floor and truncation differ where the signs do and something remains.
        quotient += ((x % y) != 0) & ((x < 0) != (y < 0))
    return quotient


def _mod(x: Array, y: Array, *, fmod: int = 0) -> Array:
    if x.dtype.kind in "iu" and not np.all(y):
        raise ZeroDivisionError("integer remainder of a division by zero")
    if fmod:
        return widened(np.fmod)(x, y)
    if x.dtype.kind not in "iu":
        return widened(np.mod)(x, y)
    return np.mod(x, y)


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu" and y.dtype.kind in "iu" and not np.any(y < 0):
        return np.power(x, y.astype(x.dtype))
    wide = np.float64 if x.dtype.itemsize >= 4 else np.float32
    return np.power(x.astype(wide), y.astype(wide)).astype(x.dtype)


def _shift(x: Array, y: Array, *, direction: str) -> Array:
    shift = np.left_shift if direction == "LEFT" else np.right_shift
    bits = 8 * x.dtype.itemsize
    inside = (y >= 0) & (y < bits)  # a negative amount counts as one past the width
    amount = np.clip(y, 0, bits - 1).astype(x.dtype)
    if direction == "RIGHT":
        # Past the width only copies of the sign are left: zeros for unsigned numbers.
        if x.dtype.kind == "u":
            return np.where(inside, shift(x, amount), x.dtype.type(0)).astype(x.dtype)
        return np.where(inside, shift(x, amount), shift(x, bits - 1)).astype(x.dtype)
    return np.where(inside, shift(x, amount), x.dtype.type(0)).astype(x.dtype)


def _infer_power(ctx: InferContext) -> Sequence[Any]:
    return [ctx.broadcast(ctx.shape(0), ctx.shape(1))]


def _sum(*xs: Array) -> Array:
    return np.asarray(reduce(np.add, xs))


@widened
def _mean(*xs: Array) -> Array:
    return np.asarray(reduce(np.add, xs) / len(xs)).astype(xs[0].dtype)


def _binary(name: str, function: Any, **facets: Any) -> OpDef:
    return OpDef(name, broadcast, lambda x, y: function(x, y), traits=Trait.ELEMENTWISE, **facets)


OPERATORS = (
    _binary("Add", np.add, data=_data(lambda a, b: a + b)),
    _binary("And", np.logical_and),
    _binary("BitwiseAnd", np.bitwise_and),
    _binary("BitwiseOr", np.bitwise_or),
    _binary("BitwiseXor", np.bitwise_xor),
    OpDef("BitShift", broadcast, _shift, traits=Trait.ELEMENTWISE),
    _binary("Div", divide, data=_divide_data),
    OpDef("Mean", broadcast, _mean, traits=Trait.ELEMENTWISE | Trait.VARIADIC),
    OpDef("Mod", broadcast, _mod, data=_data(mod), traits=Trait.ELEMENTWISE),
    _binary("Mul", np.multiply, data=_data(lambda a, b: a * b)),
    _binary("Or", np.logical_or),
    OpDef("Pow", _infer_power, _power, traits=Trait.ELEMENTWISE),
    _binary("Sub", np.subtract, data=_data(lambda a, b: a - b)),
    OpDef("Sum", broadcast, _sum, traits=Trait.ELEMENTWISE | Trait.VARIADIC),
    _binary("Xor", np.logical_xor),
)
