"""BatchNormalization, InstanceNormalization, GroupNormalization, MeanVarianceNormalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import widened
from hagane.ops.rules import same_shape


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
    groups = x.reshape(x.shape[0], num_groups, -1)
    if stash_type == 1:
        groups = groups.astype(np.float32)
    mean, variance = groups.mean(axis=2, keepdims=True), groups.var(axis=2, keepdims=True)
    y = ((groups - mean) / np.sqrt(variance + epsilon)).reshape(x.shape).astype(x.dtype)
    return (y * _per_channel(scale, x) + _per_channel(bias, x)).astype(x.dtype)


@widened
def _mean_variance_normalization(x: Array, *, axes: Sequence[int] = (0, 2, 3)) -> Array:
    along = tuple(axes)
    mean = x.mean(axis=along, keepdims=True)
    deviation = np.sqrt((x * x).mean(axis=along, keepdims=True) - mean * mean)
    return ((x - mean) / (deviation + x.dtype.type(1e-9))).astype(x.dtype)


OPERATORS = (
    OpDef("BatchNormalization", _infer_batch_normalization, _batch_normalization),
    OpDef("GroupNormalization", _infer_group_normalization, _group_normalization),
    OpDef("InstanceNormalization", _check_channels, _instance_normalization),
    OpDef("MeanVarianceNormalization", same_shape, _mean_variance_normalization),
)
