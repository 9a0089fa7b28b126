"""LayerNormalization and RMSNormalization."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import Call, dtype_of, rank_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import add, cast, mean_over, mul, square, sub, widened
from hagane.ops.functions.sums.normalizing import (
    inverse_deviation,
    moments,
    normalized_gradient,
)
from hagane.ops.functions.tensors.shapes import unbroadcast
from hagane.ops.vjp import through


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


def _folded(x: Any, axis: int) -> list[int]:
    return list(range(axis % rank_of(x), rank_of(x)))


def _composed_layer(
    x: Any,
    scale: Any,
    bias: Any = None,
    *,
    axis: int,
    epsilon: float,
    stash_type: int,
    n_outputs: int,
) -> Any:
    axes, stash = _folded(x, axis), ir.DataType(stash_type)
    data = widened(x)
    mean, variance = moments(data, axes)
    inverse = inverse_deviation(variance, epsilon)
    y = mul(cast(mul(sub(data, mean), inverse), dtype_of(x)), scale)
    y = y if bias is None else add(y, bias)
    return (y, cast(mean, stash), cast(inverse, stash))[:n_outputs]


_layer_through = through(_composed_layer)


def _layer_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    x, scale, *bias = call.inputs
    g = gradients[0]
    if g is None or any(other is not None for other in gradients[1:]):
        return _layer_through(call, gradients)
    axes, data = _folded(x, call.attr("axis")), widened(x)
    mean, variance = moments(data, axes)
    inverse = inverse_deviation(variance, call.attr("epsilon"))
    normalized = mul(sub(data, mean), inverse)

    def of_data() -> Any:
        weighted = widened(mul(g, scale))
        return cast(normalized_gradient(weighted, normalized, inverse, axes), dtype_of(x))

    return [
        of_data,
        lambda: unbroadcast(mul(widened(g), normalized), scale),
        *(None if b is None else partial(unbroadcast, g, b) for b in bias),
    ]


def _rms_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x, scale), (g,) = call.inputs, gradients
    axes, data = _folded(x, call.attr("axis")), widened(x)
    inverse = inverse_deviation(mean_over(square(data), axes), call.attr("epsilon"))
    normalized = mul(data, inverse)

    def of_data() -> Any:
        weighted = widened(mul(g, scale))
        found = normalized_gradient(weighted, normalized, inverse, axes, centred=False)
        return cast(found, dtype_of(x))

    return [of_data, lambda: unbroadcast(mul(widened(g), normalized), scale)]


OPERATORS = (
    OpDef(
        "LayerNormalization",
        _infer_layer_normalization,
        _layer_normalization,
        compose=_composed_layer,
        vjp=_layer_vjp,
    ),
    OpDef("RMSNormalization", _infer_layer_normalization, _rms_normalization, vjp=_rms_vjp),
)
