"""LayerNormTraining, LayerNormTrainingGradient: rows normalised in steps of training.

Operators of hagane's own: all gradients of a row's normalisation follow from one pass over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import Call, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import add, mul, sub
from hagane.ops.functions.sums.normalizing import (
    inverse_deviation,
    moments,
    normalized_gradient,
)
from hagane.ops.own_schemas import DOMAIN, float_schema
from hagane.ops.precision import composed_wide, widened
from hagane.ops.vjp import through

ROWS, ROWS_GRADIENT = "LayerNormTraining", "LayerNormTrainingGradient"


def _normalized(x: Array, axis: int, epsilon: float) -> tuple[Array, Array, tuple[int, ...]]:
    """Return rows over their deviation, its inverse, and the axes of a row."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    inverse = 1 / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)
    return (x - x.mean(axis=axes, keepdims=True)) * inverse, inverse, axes


@widened
def _training(
    x: Array, scale: Array, bias: Array | None = None, *, axis: int, epsilon: float
) -> Array:
    y = _normalized(x, axis, epsilon)[0] * scale
    return y if bias is None else y + bias


@widened
def _gradient(x: Array, scale: Array, g: Array, *, axis: int, epsilon: float) -> tuple[Array, ...]:
    normalized, inverse, axes = _normalized(x, axis, epsilon)
    outer = tuple(range(axes[0]))
    weighted = g * scale
    rest = weighted - weighted.mean(axis=axes, keepdims=True)
    rest -= normalized * (weighted * normalized).mean(axis=axes, keepdims=True)
    return rest * inverse, (g * normalized).sum(axis=outer), g.sum(axis=outer)


def _infer_training(ctx: InferContext) -> Sequence[Any]:
    _row(ctx, range(1, ctx.n_inputs))
    return [ctx.shape(0)]


def _infer_gradient(ctx: InferContext) -> Sequence[Any]:
    row, x = _row(ctx, (1,)), ctx.shape(0)
    shape = [ctx.unify(a, b, "expected a gradient of the data's shape")
             for a, b in zip(x, ctx.shape(2, rank=len(x)), strict=True)]  # fmt: skip
    return [tuple(shape), row, row][: ctx.n_outputs]


def _row(ctx: InferContext, parameters: Sequence[int]) -> tuple[Any, ...]:
    """Return the shape of a row, which parameters have to have."""
    x = ctx.shape(0)
    row = list(x[ctx.axis(ctx.attr("axis"), len(x)) :])
    for index in parameters:
        if ctx.has(index):
            text = f"expected '{ctx.name(index)}' to have the shape of a row"
            sizes = ctx.shape(index, rank=len(row))
            row = [ctx.unify(a, b, text) for a, b in zip(row, sizes, strict=True)]
    return tuple(row)


def _axes(x: Any, axis: int) -> tuple[list[int], list[int]]:
    """Return the axes of a row, and those in front of it."""
    first, rank = axis % rank_of(x), rank_of(x)
    return list(range(first, rank)), list(range(first))


@composed_wide
def _composed_training(x: Any, scale: Any, bias: Any = None, *, axis: int, epsilon: float) -> Any:
    mean, variance = moments(x, _axes(x, axis)[0])
    y = mul(mul(sub(x, mean), inverse_deviation(variance, epsilon)), scale)
    return y if bias is None else add(y, bias)


@composed_wide
def _composed_gradient(x: Any, scale: Any, g: Any, *, axis: int, epsilon: float) -> tuple[Any, ...]:
    axes, outer = _axes(x, axis)
    mean, variance = moments(x, axes)
    inverse = inverse_deviation(variance, epsilon)
    normalized = mul(sub(x, mean), inverse)
    of_scale, of_bias = mul(g, normalized), g
    if outer:
        of_scale, of_bias = (
            op("ReduceSum", value, outer, keepdims=0) for value in (of_scale, of_bias)
        )
    return normalized_gradient(mul(g, scale), normalized, inverse, axes), of_scale, of_bias


def _training_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    x, scale, *bias = call.inputs
    of_data, of_scale, of_bias = op(
        ROWS_GRADIENT, x, scale, gradients[0],
        axis=call.attr("axis"), epsilon=call.attr("epsilon"), domain=DOMAIN, outputs=3,
    )  # fmt: skip
    return [of_data, of_scale, *(None if b is None else of_bias for b in bias)]


_ATTRIBUTES = {"axis": ir.AttributeType.INT, "epsilon": ir.AttributeType.FLOAT}
OPERATORS = (
    OpDef(
        ROWS, _infer_training, _training, domain=DOMAIN, vjp=_training_vjp,
        compose=_composed_training,
    ),
    OpDef(
        ROWS_GRADIENT, _infer_gradient, _gradient, domain=DOMAIN, vjp=through(_composed_gradient),
        compose=_composed_gradient,
    ),
)  # fmt: skip
SCHEMAS = {
    (DOMAIN, ROWS): float_schema("X Scale B", "Y", _ATTRIBUTES, optional=1),
    (DOMAIN, ROWS_GRADIENT): float_schema("X Scale GY", "GX GScale GB", _ATTRIBUTES),
}
