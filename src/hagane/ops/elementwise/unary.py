"""Functions of one number: trigonometry, powers, logarithms, erf, logic on bits."""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np

from hagane.ops.definition import Array, Kernel, OpDef, data_by_reference
from hagane.ops.precision import widened
from hagane.ops.rules import same_shape
from hagane.ops.traits import Trait


def _unary(name: str, kernel: Kernel, **facets: object) -> OpDef:
    def reference(x: Array) -> Array:
        return np.asarray(kernel(x)).astype(x.dtype, copy=False)

    return OpDef(name, same_shape, reference, traits=Trait.ELEMENTWISE, **facets)  # type: ignore[arg-type]


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


OPERATORS = (
    _unary("Abs", np.abs, data=data_by_reference),
    _unary("Acos", np.arccos),
    _unary("Acosh", np.arccosh),
    _unary("Asin", np.arcsin),
    _unary("Asinh", np.arcsinh),
    _unary("Atan", np.arctan),
    _unary("Atanh", np.arctanh),
    _unary("BitwiseNot", np.bitwise_not),
    _unary("Cos", np.cos),
    _unary("Cosh", np.cosh),
    OpDef("Det", _infer_det, _det),
    _unary("Erf", erf),
    _unary("Exp", np.exp),
    OpDef("IsInf", same_shape, _is_inf, traits=Trait.ELEMENTWISE),
    OpDef("IsNaN", same_shape, lambda x: np.isnan(x), traits=Trait.ELEMENTWISE),
    _unary("Log", np.log),
    _unary("Neg", np.negative, data=data_by_reference),
    _unary("Not", np.logical_not),
    _unary("Reciprocal", widened(partial(np.divide, 1))),
    _unary("Sign", np.sign),
    _unary("Sin", np.sin),
    _unary("Sinh", np.sinh),
    _unary("Sqrt", np.sqrt),
    _unary("Tan", np.tan),
    _unary("Tanh", np.tanh),
)
