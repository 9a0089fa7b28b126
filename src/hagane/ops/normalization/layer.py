"""LayerNormalization and RMSNormalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef


def layer_norm(
    x: Array, scale: Array, bias: Array | None, axis: int, epsilon: float, stash: Any = np.float32
) -> tuple[Array, Array, Array]:
    """Return (y, mean, 1 / deviation) over the axes from ``axis`` on (Ba et al., 2016)."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    wide = x.astype(stash) if x.dtype.itemsize < 4 or stash == np.float64 else x
    mean = wide.mean(axis=axes, keepdims=True)
    centred = wide - mean
    inverse = 1 / np.sqrt((centred * centred).mean(axis=axes, keepdims=True) + epsilon)
    y = (centred * inverse).astype(x.dtype) * scale
    if bias is not None:
        y = y + bias
    return y.astype(x.dtype), mean.astype(stash), inverse.astype(stash)


def _layer_normalization(
    x: Array,
    scale: Array,
    bias: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    stash = ir.DataType(stash_type).numpy()
    return layer_norm(x, scale, bias, axis, epsilon, stash)[:n_outputs]


def _infer_layer_normalization(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    axis = ctx.axis(ctx.attr("axis"), len(shape))
    for i in range(1, ctx.n_inputs):
        if ctx.has(i) and ctx.known_rank(i) is not None:
            broadcast_to(ctx, i, shape)
    reduced = (*shape[:axis], *(1 for _ in shape[axis:]))
    stash = ir.DataType(ctx.attr("stash_type", 1))
    return [shape, TensorType(stash, reduced), TensorType(stash, reduced)][: ctx.n_outputs]


def broadcast_to(ctx: InferContext, index: int, shape: Sequence[Any]) -> None:
    """Fail unless input ``index`` broadcasts to ``shape`` without widening it."""
    own = ctx.shape(index)
    if len(own) > len(shape):
        ctx.fail(f"expected '{ctx.name(index)}' to broadcast to the input, got {ctx.inputs_text()}")
    for dim, size in zip(own[::-1], shape[::-1], strict=False):
        if dim != 1:
            ctx.unify(dim, size, f"expected '{ctx.name(index)}' to broadcast to the input")


def rms_norm(x: Array, scale: Array, axis: int, epsilon: float, stash: Any = np.float32) -> Array:
    """Return x / sqrt(mean(x²) + ε) · scale (Zhang and Sennrich, 2019)."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    wide = x.astype(stash) if x.dtype.itemsize < 4 else x
    inverse = 1 / np.sqrt((wide * wide).mean(axis=axes, keepdims=True) + epsilon)
    return ((wide * inverse).astype(x.dtype) * scale).astype(scale.dtype)


def _rms_normalization(
    x: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Array:
    return rms_norm(x, scale, axis, epsilon, ir.DataType(stash_type).numpy())


OPERATORS = (
    OpDef("LayerNormalization", _infer_layer_normalization, _layer_normalization),
    OpDef("RMSNormalization", _infer_layer_normalization, _rms_normalization),
)
