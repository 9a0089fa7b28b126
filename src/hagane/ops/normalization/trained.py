"""BatchNormTraining, BatchNormTrainingGradient: normalisation by the statistics of the batch.

Operators of hagane's own, for steps of training: ONNX has none that hands out the variance that the
way back reads.
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
    per_channel,
)
from hagane.ops.own_schemas import DOMAIN, float_schema
from hagane.ops.precision import composed_wide, widened
from hagane.ops.vjp import through

TRAINING, GRADIENT = "BatchNormTraining", "BatchNormTrainingGradient"


def _others(rank: int) -> tuple[int, ...]:
    return tuple(axis for axis in range(rank) if axis != 1)


def _channels(value: Array, rank: int) -> Array:
    return value.reshape(-1, *(1,) * (rank - 2))


@widened
def _training(x: Array, scale: Array, bias: Array, *, epsilon: float) -> tuple[Array, ...]:
    axes = _others(x.ndim)
    mean, variance = x.mean(axis=axes), x.var(axis=axes)
    factor = scale / np.sqrt(variance + epsilon)
    y = (x - _channels(mean, x.ndim)) * _channels(factor, x.ndim) + _channels(bias, x.ndim)
    return y, mean, variance


@widened
def _gradient(
    x: Array, scale: Array, mean: Array, variance: Array, g: Array, *, epsilon: float
) -> tuple[Array, ...]:
    rank, axes = x.ndim, _others(x.ndim)
    inverse = 1 / np.sqrt(variance + epsilon)
    normalized = (x - _channels(mean, rank)) * _channels(inverse, rank)
    of_bias, of_scale = g.sum(axis=axes), (g * normalized).sum(axis=axes)
    count = max(1, x.size // max(1, x.shape[1]))
    rest = g - _channels(of_bias / count, rank) - normalized * _channels(of_scale / count, rank)
    return rest * _channels(scale * inverse, rank), of_scale, of_bias


def _infer_training(ctx: InferContext) -> Sequence[Any]:
    x, channels = _image(ctx), _per_channel(ctx, (1, 2))
    return [x, channels, channels][: ctx.n_outputs]


def _infer_gradient(ctx: InferContext) -> Sequence[Any]:
    x, channels = _image(ctx), _per_channel(ctx, (1, 2, 3))
    g = ctx.shape(4, rank=len(x))
    shape = [ctx.unify(a, b, "expected a gradient of the data's shape")
             for a, b in zip(x, g, strict=True)]  # fmt: skip
    return [tuple(shape), channels, channels][: ctx.n_outputs]


def _image(ctx: InferContext) -> Any:
    x = ctx.shape(0)
    if len(x) < 2:
        ctx.fail(f"expected data of (batch, channels, …), got {ctx.inputs_text()}")
    return x


def _per_channel(ctx: InferContext, indices: Sequence[int]) -> Any:
    channels = ctx.shape(0)[1]
    for index in indices:
        (size,) = ctx.shape(index, rank=1)
        channels = ctx.unify(
            channels, size, f"expected one number a channel in '{ctx.name(index)}'"
        )
    return (channels,)


@composed_wide
def _composed_training(x: Any, scale: Any, bias: Any, *, epsilon: float) -> tuple[Any, ...]:
    rank = rank_of(x)
    axes = list(_others(rank))
    mean, variance = moments(x, axes)
    normalized = mul(sub(x, mean), inverse_deviation(variance, epsilon))
    y = add(mul(normalized, per_channel(scale, rank)), per_channel(bias, rank))
    return y, op("Squeeze", mean, axes), op("Squeeze", variance, axes)


@composed_wide
def _composed_gradient(
    x: Any, scale: Any, mean: Any, variance: Any, g: Any, *, epsilon: float
) -> tuple[Any, ...]:
    rank = rank_of(x)
    axes = list(_others(rank))
    inverse = per_channel(inverse_deviation(variance, epsilon), rank)
    normalized = mul(sub(x, per_channel(mean, rank)), inverse)
    weighted = mul(g, per_channel(scale, rank))
    return (
        normalized_gradient(weighted, normalized, inverse, axes),
        op("ReduceSum", mul(g, normalized), axes, keepdims=0),
        op("ReduceSum", g, axes, keepdims=0),
    )


def _training_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    g, *of_moments = gradients
    if g is None or any(other is not None for other in of_moments):
        return through(_composed_training)(call, gradients)
    (x, scale, _), (_, mean, variance) = call.inputs, call.outputs
    return list(
        op(
            GRADIENT, x, scale, mean, variance, g,
            epsilon=call.attr("epsilon"), domain=DOMAIN, outputs=3,
        )
    )  # fmt: skip


_EPSILON = {"epsilon": ir.AttributeType.FLOAT}
OPERATORS = (
    OpDef(
        TRAINING, _infer_training, _training, domain=DOMAIN, vjp=_training_vjp,
        compose=_composed_training,
    ),
    OpDef(
        GRADIENT, _infer_gradient, _gradient, domain=DOMAIN, vjp=through(_composed_gradient),
        compose=_composed_gradient,
    ),
)  # fmt: skip
SCHEMAS = {
    (DOMAIN, TRAINING): float_schema("X Scale B", "Y Mean Variance", _EPSILON),
    (DOMAIN, GRADIENT): float_schema("X Scale Mean Variance GY", "GX GScale GB", _EPSILON),
}
