"""Arithmetic and bit operations on two broadcast tensors, and their sums and means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial, reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import Call, content_of, dtype_of, op
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import cast, div, log, mul, neg, sub, where
from hagane.ops.functions.tensors.shapes import unbroadcast
from hagane.ops.precision import widened
from hagane.ops.rules import broadcast, exact, ratio_of_sizes
from hagane.ops.traits import Trait
from hagane.ops.vjp import DISCRETE, broadcasting
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
        if isinstance(left, Expr):
            return left * ratio_of_sizes(Fraction(right), _name_of(ctx), divides=True)
        return left * (1 / Fraction(right))

    return _data(rule)(ctx)


def _multiply_data(ctx: InferContext) -> Sequence[Array | None]:
    whole = ctx.dtype(0).is_integer()

    def rule(left: Any, right: Any) -> Any:
        if whole or isinstance(left, Expr) == isinstance(right, Expr):
            return left * right
        size, factor = (left, right) if isinstance(left, Expr) else (right, left)
        return size * ratio_of_sizes(Fraction(factor), _name_of(ctx))

    return _data(rule)(ctx)


def _name_of(ctx: InferContext) -> str:
    return "float64" if ctx.dtype(0) == ir.DataType.DOUBLE else "float32"


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
    if x.dtype.kind in "iu" and y.dtype.kind in "iu":
        return _whole_power(x, y)
    wide = np.float64 if x.dtype.itemsize >= 4 else np.float32
    return np.power(x.astype(wide), y.astype(wide)).astype(x.dtype)


def _whole_power(x: Array, y: Array) -> Array:
    """Return powers of whole numbers, which wrap; those to negative exponents are cut."""
    whole = np.power(x.astype(np.int64).view(np.uint64), np.maximum(y, 0).astype(np.uint64))
    sign = np.where(y % 2 == 0, 1, x)  # of one and of minus one
    infinite = np.iinfo(np.int64 if x.dtype.itemsize == 8 else np.int32).min
    cut = np.where(x == 0, infinite, np.where(np.abs(x) == 1, sign, 0))
    return np.where(y < 0, cut.astype(np.uint64), whole).astype(x.dtype)


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


def _whole_quotient(x: Any, y: Any, remainder: Any) -> Any:
    # Rounded, so that it counts as the constant that it is almost everywhere.
    return op("Round", div(sub(x, remainder), y))


def _mod_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x, y), (g,) = call.inputs, gradients
    return [
        lambda: unbroadcast(g, x),
        lambda: unbroadcast(neg(mul(g, _whole_quotient(x, y, call.outputs[0]))), y),
    ]


def _power_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x, p), (y,), (g,) = call.inputs, call.outputs, gradients

    def of_base() -> Any:
        exponent = cast(p, dtype_of(x))
        known = content_of(p)
        if known is not None and known.size == 1:
            return unbroadcast(_power_rule(g, x, exponent, float(known.ravel()[0])), x)
        # x ** (p - 1) is infinite at 0 where p = 0, although 1 does not depend on x.
        fixed = op("Equal", exponent, 0)
        lower = op("Pow", x, where(fixed, 1, sub(exponent, 1)))
        return unbroadcast(mul(g, exponent, lower), x)

    def of_exponent() -> Any:
        # Where x = 0 the power stays 0 nearby, although its logarithm is infinite.
        slope = where(op("Equal", x, 0), 0, log(where(op("Equal", x, 0), 1, x)))
        return unbroadcast(mul(g, y, slope), p)

    return [of_base, of_exponent]


def _power_rule(g: Any, x: Any, exponent: Any, known: float) -> Any:
    """Return the gradient of a base whose exponent is one known number."""
    if known == 0:
        return mul(g, 0)
    if known == 1:
        return g
    if known == 2:
        return mul(g, x, 2)
    return mul(g, exponent, op("Pow", x, sub(exponent, 1)))


def _sum_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (g,) = gradients
    return [partial(unbroadcast, g, x) for x in call.inputs]


def _mean_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    share = div(gradients[0], len(call.inputs))
    return [partial(unbroadcast, share, x) for x in call.inputs]


OPERATORS = (
    _binary("Add", np.add, data=_data(lambda a, b: a + b), vjp=_sum_vjp),
    _binary("And", np.logical_and, vjp=DISCRETE),
    _binary("BitwiseAnd", np.bitwise_and, vjp=DISCRETE),
    _binary("BitwiseOr", np.bitwise_or, vjp=DISCRETE),
    _binary("BitwiseXor", np.bitwise_xor, vjp=DISCRETE),
    OpDef("BitShift", broadcast, _shift, vjp=DISCRETE, traits=Trait.ELEMENTWISE),
    _binary(
        "Div",
        divide,
        data=_divide_data,
        vjp=broadcasting(
            lambda g, call: div(g, call.inputs[1]),
            lambda g, call: neg(mul(g, div(call.outputs[0], call.inputs[1]))),
        ),
    ),
    OpDef("Mean", broadcast, _mean, vjp=_mean_vjp, traits=Trait.ELEMENTWISE | Trait.VARIADIC),
    OpDef("Mod", broadcast, _mod, data=_data(mod), vjp=_mod_vjp, traits=Trait.ELEMENTWISE),
    _binary(
        "Mul",
        np.multiply,
        data=_multiply_data,
        vjp=broadcasting(
            lambda g, call: mul(g, call.inputs[1]), lambda g, call: mul(g, call.inputs[0])
        ),
    ),
    _binary("Or", np.logical_or, vjp=DISCRETE),
    OpDef("Pow", _infer_power, _power, vjp=_power_vjp, traits=Trait.ELEMENTWISE),
    _binary(
        "Sub",
        np.subtract,
        data=_data(lambda a, b: a - b),
        vjp=broadcasting(lambda g, call: g, lambda g, call: neg(g)),
    ),
    OpDef("Sum", broadcast, _sum, vjp=_sum_vjp, traits=Trait.ELEMENTWISE | Trait.VARIADIC),
    _binary("Xor", np.logical_xor, vjp=DISCRETE),
)
