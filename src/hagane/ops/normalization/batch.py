"""BatchNormalization, InstanceNormalization, GroupNormalization, MeanVarianceNormalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import Call, dtype_of, op, rank_of, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    mean_over,
    mul,
    sqrt,
    square,
    sub,
    sum_over,
)
from hagane.ops.functions.numbers.elementary import widened as wide
from hagane.ops.functions.sums.normalizing import (
    inverse_deviation,
    moments,
    normalized_gradient,
    per_channel,
)
from hagane.ops.functions.tensors.shapes import reshape_like
from hagane.ops.precision import widened
from hagane.ops.rules import same_shape
from hagane.ops.vjp import through
from hagane.symbolic import Dim, floordiv


def _per_channel(value: Array, x: Array) -> Array:
    return value.reshape(1, -1, *(1,) * (x.ndim - 2))


@widened
def _batch_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    n_outputs: int = 1,
) -> Any:
    if not training_mode:
        return _normalise(x, scale, bias, mean, variance, epsilon)
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    batch_mean, batch_variance = x.mean(axis=axes), x.var(axis=axes)
    y = _normalise(x, scale, bias, batch_mean, batch_variance, epsilon)
    running = (
        (mean * momentum + batch_mean * (1 - momentum)).astype(mean.dtype),
        (variance * momentum + batch_variance * (1 - momentum)).astype(variance.dtype),
    )
    return (y, *running)[:n_outputs]


def _normalise(
    x: Array, scale: Array, bias: Array, mean: Array, variance: Array, epsilon: float
) -> Array:
    factor = scale / np.sqrt(variance + variance.dtype.type(epsilon))
    shift = bias - mean * factor
    return (x * _per_channel(factor, x) + _per_channel(shift, x)).astype(x.dtype)


def _infer_batch_normalization(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    channels: Any = shape[1] if len(shape) > 1 else 1
    for i in range(1, 5):
        if ctx.known_rank(i) is not None:
            (size,) = ctx.shape(i, rank=1)
            channels = ctx.unify(channels, size, f"expected one '{ctx.name(i)}' a channel")
    return [shape, (channels,), (channels,)][: ctx.n_outputs]


def _check_channels(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    if len(shape) < 2:
        ctx.fail(f"expected (batch, channels, *spatial), got {ctx.inputs_text()}")
    for i in (1, 2):
        if ctx.known_rank(i) is not None:
            ctx.unify(shape[1], ctx.shape(i, rank=1)[0], f"expected one '{ctx.name(i)}' a channel")
    return [shape]


def _infer_group_normalization(ctx: InferContext) -> Sequence[Any]:
    channels, groups = ctx.shape(0)[1:2], ctx.attr("num_groups")
    if channels and isinstance(channels[0], int) and channels[0] % groups:
        ctx.fail(
            f"expected num_groups to divide the {channels[0]} channels, got {groups}; "
            f"{ctx.inputs_text()}"
        )
    return _check_channels(ctx)


@widened
def _instance_normalization(x: Array, scale: Array, bias: Array, *, epsilon: float = 1e-5) -> Array:
    axes = tuple(range(2, x.ndim))
    mean, variance = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    y = (x - mean) / np.sqrt(variance + epsilon)
    return (y * _per_channel(scale, x) + _per_channel(bias, x)).astype(x.dtype)


@widened
def _group_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Array:
    size = math.prod(x.shape[1:]) // num_groups  # (-1 would be any number for no images)
    groups = x.reshape(x.shape[0], num_groups, size)
    if stash_type == 1:
        groups = groups.astype(np.float32)
    mean, variance = groups.mean(axis=2, keepdims=True), groups.var(axis=2, keepdims=True)
    y = ((groups - mean) / np.sqrt(variance + epsilon)).reshape(x.shape).astype(x.dtype)
    return (y * _per_channel(scale, x) + _per_channel(bias, x)).astype(x.dtype)


@widened
def _mean_variance_normalization(x: Array, *, axes: Sequence[int] = (0, 2, 3)) -> Array:
    along = tuple(axes)
    centred = x - x.mean(axis=along, keepdims=True)
    deviation = np.sqrt(np.square(centred).mean(axis=along, keepdims=True))
    return (centred / (deviation + x.dtype.type(1e-9))).astype(x.dtype)


def _other_axes(x: Any) -> list[int]:
    return [axis for axis in range(rank_of(x)) if axis != 1]


def composed_batch_normalization(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    *,
    epsilon: float,
    momentum: float,
    training_mode: int,
    n_outputs: int,
) -> Any:
    """Return the operator's outputs, over the builder."""
    rank, running = rank_of(x), ()
    if training_mode:
        axes = _other_axes(x)
        of_batch = [op("Squeeze", part, axes) for part in moments(wide(x), axes)]
        pairs = zip((mean, variance), of_batch, strict=True)
        running = tuple(
            cast(
                add(mul(cast(old, dtype_of(new)), momentum), mul(new, 1 - momentum)), dtype_of(old)
            )
            for old, new in pairs
        )
        mean, variance = of_batch
    centred = sub(wide(x), cast(per_channel(mean, rank), dtype_of(wide(x))))
    factor = mul(wide(scale), inverse_deviation(cast(variance, dtype_of(wide(scale))), epsilon))
    y = mul(centred, cast(per_channel(factor, rank), dtype_of(centred)))
    y = add(y, cast(per_channel(bias, rank), dtype_of(y)))
    return (cast(y, dtype_of(x)), *running)[:n_outputs]


_batch_through = through(composed_batch_normalization)


def _batch_normalization_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    g = gradients[0]
    x, scale, bias, _, _ = call.inputs
    same = len({dtype_of(value) for value in call.inputs}) == 1
    plain = g is not None and all(other is None for other in gradients[1:])
    if not (call.attr("training_mode") and plain and same):
        return _batch_through(call, gradients)
    axes, rank = _other_axes(x), rank_of(x)
    data, g = wide(x), wide(g)
    mean, variance = moments(data, axes)
    inverse = inverse_deviation(variance, call.attr("epsilon"))
    normalized = mul(sub(data, mean), inverse)
    weighted = mul(g, wide(per_channel(scale, rank)))
    return [
        lambda: cast(normalized_gradient(weighted, normalized, inverse, axes), dtype_of(x)),
        lambda: cast(sum_over(mul(g, normalized), axes, keepdims=False), dtype_of(scale)),
        lambda: cast(sum_over(g, axes, keepdims=False), dtype_of(bias)),
        None,
        None,
    ]


def _normalized_per_channel(x: Any, scale: Any, bias: Any, normalized: Any) -> Any:
    rank = rank_of(x)
    y = mul(cast(normalized, dtype_of(x)), per_channel(scale, rank))
    return add(y, per_channel(bias, rank))


def _composed_instance(x: Any, scale: Any, bias: Any, *, epsilon: float) -> Any:
    return _composed_group(x, scale, bias, num_groups=shape_of(x)[1], epsilon=epsilon)


def _composed_group(x: Any, scale: Any, bias: Any, *, num_groups: Dim, epsilon: float) -> Any:
    batch, *sizes = shape_of(x)
    length = floordiv(math.prod(sizes), num_groups)
    groups = op("Reshape", wide(x), [batch, num_groups, length], allowzero=1)
    one = np.ones(1, dtype_of(groups).numpy())
    normalized = reshape_like(op("LayerNormalization", groups, one, epsilon=epsilon), x)
    return _normalized_per_channel(x, scale, bias, normalized)


def _composed_mean_variance(x: Any, *, axes: Sequence[int]) -> Any:
    centred = sub(wide(x), mean_over(wide(x), axes))
    deviation = sqrt(mean_over(square(centred), axes))
    return cast(div(centred, add(deviation, 1e-9)), dtype_of(x))


OPERATORS = (
    OpDef(
        "BatchNormalization",
        _infer_batch_normalization,
        _batch_normalization,
        compose=composed_batch_normalization,
        vjp=_batch_normalization_vjp,
    ),
    OpDef(
        "GroupNormalization",
        _infer_group_normalization,
        _group_normalization,
        compose=_composed_group,
        vjp=through(_composed_group),
    ),
    OpDef(
        "InstanceNormalization",
        _check_channels,
        _instance_normalization,
        compose=_composed_instance,
        vjp=through(_composed_instance),
    ),
    OpDef(
        "MeanVarianceNormalization",
        same_shape,
        _mean_variance_normalization,
        compose=_composed_mean_variance,
        vjp=through(_composed_mean_variance),
    ),
)
