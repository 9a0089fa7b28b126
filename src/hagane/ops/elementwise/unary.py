"""Functions of one number: trigonometry, powers, logarithms, erf, logic on bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op
from hagane.ops.definition import Array, Kernel, OpDef, Unsupported, VjpRule, data_by_reference
from hagane.ops.functions.numbers.elementary import (
    add,
    div,
    exp,
    mul,
    neg,
    sqrt,
    square,
    sub,
    swapped,
)
from hagane.ops.precision import widened
from hagane.ops.rules import same_shape
from hagane.ops.traits import Trait
from hagane.ops.vjp import DISCRETE, elementwise, flat


def _unary(name: str, kernel: Kernel, derivative: VjpRule | Unsupported, **facets: Any) -> OpDef:
    def reference(x: Array) -> Array:
        return np.asarray(kernel(x)).astype(x.dtype, copy=False)

    return OpDef(name, same_shape, reference, vjp=derivative, **facets, traits=Trait.ELEMENTWISE)


@cache
def _erf_table() -> tuple[Array, float]:
    """Return erf on a grid over [0, 6], and the grid's step."""
    count = 6 * 1024
    return np.array([math.erf(6 * i / count) for i in range(count + 1)]), 6 / count


def erf(x: Array) -> Array:
    """Return the error function, to 1e-15.

    The nearest of 6,144 tabulated points is corrected by the Taylor series up to the fourth
    order, whose derivatives are Hermite polynomials times a Gaussian; erf(6) is 1 - 2e-17.
    """
    table, step = _erf_table()
    magnitude = np.minimum(np.abs(x.astype(np.float64)), 6.0)
    index = np.rint(np.nan_to_num(magnitude) / step).astype(np.intp)
    at = index * step
    h = magnitude - at
    gaussian = 2 / math.sqrt(math.pi) * np.exp(-at * at)
    series = h * (1 + h * (-at + h * ((4 * at * at - 2) / 6 + h * (12 * at - 8 * at**3) / 24)))
    return np.copysign(table[index] + gaussian * series, x)


@widened
def _det(x: Array) -> Array:
    return np.asarray(np.linalg.det(x)).astype(x.dtype)


def _infer_det(ctx):  # type: ignore[no-untyped-def]
    shape = ctx.shape(0)
    if len(shape) < 2:
        ctx.fail(f"expected matrices in the last two axes, got {ctx.inputs_text()}")
    ctx.unify(shape[-1], shape[-2], "expected square matrices")
    return [shape[:-2]]


def _is_inf(x: Array, *, detect_negative: int = 1, detect_positive: int = 1) -> Array:
    result = np.isinf(x)
    if not detect_negative:
        result &= ~(x < 0)
    if not detect_positive:
        result &= ~(x > 0)
    return result


def _from_square(sign: int, of_x: int, of_one: int) -> VjpRule:
    """Return the gradient of a function whose derivative is ``sign / sqrt(±x² ± 1)``."""

    def rule(g: Any, x: Any, y: Any) -> Any:
        root = sqrt(add(mul(square(x), of_x), of_one))
        return div(g if sign > 0 else neg(g), root)

    return elementwise(rule)


def _det_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Return det · inverse of the transpose (Jacobi's formula); the matrices have to be regular."""
    (x,), (y,), (g,) = call.inputs, call.outputs, gradients
    inverse = op("Inverse", swapped(x), domain="com.microsoft")
    return [mul(op("Unsqueeze", mul(g, y), [-1, -2]), inverse)]


def _erf_gradient(g: Any, x: Any, y: Any) -> Any:
    return mul(g, mul(exp(neg(square(x))), 2 / math.sqrt(math.pi)))


OPERATORS = (
    _unary(
        "Abs", np.abs, elementwise(lambda g, x, y: mul(g, op("Sign", x))), data=data_by_reference
    ),
    _unary("Acos", np.arccos, _from_square(-1, -1, 1)),
    _unary("Acosh", np.arccosh, _from_square(1, 1, -1)),
    _unary("Asin", np.arcsin, _from_square(1, -1, 1)),
    _unary("Asinh", np.arcsinh, _from_square(1, 1, 1)),
    _unary("Atan", np.arctan, elementwise(lambda g, x, y: div(g, add(square(x), 1)))),
    _unary("Atanh", np.arctanh, elementwise(lambda g, x, y: div(g, sub(1, square(x))))),
    _unary("BitwiseNot", np.bitwise_not, DISCRETE),
    _unary("Cos", np.cos, elementwise(lambda g, x, y: neg(mul(g, op("Sin", x))))),
    _unary("Cosh", np.cosh, elementwise(lambda g, x, y: mul(g, op("Sinh", x)))),
    OpDef("Det", _infer_det, _det, vjp=_det_vjp),
    _unary("Erf", erf, elementwise(_erf_gradient)),
    _unary("Exp", np.exp, elementwise(lambda g, x, y: mul(g, y))),
    OpDef("IsInf", same_shape, _is_inf, vjp=DISCRETE, traits=Trait.ELEMENTWISE),
    OpDef("IsNaN", same_shape, lambda x: np.isnan(x), vjp=DISCRETE, traits=Trait.ELEMENTWISE),
    _unary("Log", np.log, elementwise(lambda g, x, y: div(g, x))),
    _unary("Neg", np.negative, elementwise(lambda g, x, y: neg(g)), data=data_by_reference),
    _unary("Not", np.logical_not, DISCRETE),
    _unary(
        "Reciprocal",
        widened(partial(np.divide, 1)),
        elementwise(lambda g, x, y: neg(mul(g, square(y)))),
    ),
    _unary("Sign", np.sign, flat),
    _unary("Sin", np.sin, elementwise(lambda g, x, y: mul(g, op("Cos", x)))),
    _unary("Sinh", np.sinh, elementwise(lambda g, x, y: mul(g, op("Cosh", x)))),
    _unary("Sqrt", np.sqrt, elementwise(lambda g, x, y: div(g, mul(y, 2)))),
    _unary("Tan", np.tan, elementwise(lambda g, x, y: mul(g, add(square(y), 1)))),
    _unary("Tanh", np.tanh, elementwise(lambda g, x, y: mul(g, sub(1, square(y))))),
)
