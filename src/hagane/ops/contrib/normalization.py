"""SkipLayerNormalization and its relatives, EmbedLayerNormalization, GroupNorm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import op, rank_of, shape_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, FLOATS, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.elementwise.activation import sigmoid
from hagane.ops.indexing.gather import checked
from hagane.ops.normalization.layer import layer_norm, rms_norm
from hagane.ops.precision import composed_wide, widened
from hagane.symbolic import Dim


@widened
def _skip_layer_normalization(
    x: Array,
    skip: Array,
    gamma: Array,
    beta: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-12,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    total = x + skip if bias is None else x + skip + bias
    y, mean, inverse = layer_norm(total, gamma, beta, -1, epsilon)
    return (y, mean, inverse, total)[:n_outputs]


@widened
def _skip_rms(
    x: Array,
    skip: Array,
    gamma: Array,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-12,
    n_outputs: int = 1,
) -> tuple[Array | None, ...]:
    total = x + skip if bias is None else x + skip + bias
    y = rms_norm(total, gamma, -1, epsilon)
    inverse = 1 / np.sqrt((total * total).mean(axis=-1, keepdims=True) + epsilon)
    return (y, None, inverse, total)[:n_outputs]


def _infer_skip(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    if not 2 <= len(shape) <= 3:
        ctx.fail(f"expected an input of 2 or 3 axes, got {ctx.inputs_text()}")
    (size,) = ctx.shape(2, rank=1)
    ctx.unify(shape[-1], size, "expected one scale an element of the last axis")
    rows: Sequence[Dim | None] = shape[:-2]
    if len(shape) == 3 and ctx.known_rank(1) == 3:
        rows = [ctx.one_or(1, 0, shape[0])]
    ctx.fit(1, (*rows, *shape[-2:]), shape[-2:])
    for index in range(3, ctx.n_inputs):
        ctx.fit(index, (size,))
    reduced = TensorType(ir.DataType.FLOAT, (*shape[:-1], 1))
    return [shape, reduced, reduced, shape][: ctx.n_outputs]


@widened
def _simplified(
    x: Array,
    scale: Array,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    axes = tuple(range(axis % x.ndim, x.ndim))
    inverse = 1 / np.sqrt((x * x).mean(axis=axes, keepdims=True) + epsilon)
    return (rms_norm(x, scale, axis, epsilon), inverse.astype(np.float32))[:n_outputs]


def _infer_simplified(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    axis = ctx.axis(ctx.attr("axis"), len(shape))
    if (rank := ctx.known_rank(1)) is not None:
        whole = ctx.broadcast(shape, ctx.shape(1))
        if rank > len(shape) or any(map(ctx.differ, whole, shape)):
            ctx.fail(f"expected 'scale' to broadcast to the input, got {ctx.inputs_text()}")
    reduced = TensorType(ir.DataType.FLOAT, (*shape[:axis], *(1 for _ in shape[axis:])))
    return [TensorType(ctx.dtype(1), shape), reduced][: ctx.n_outputs]


def embed_layer_normalization(
    input_ids: Array,
    segment_ids: Array | None,
    words: Array,
    positions: Array,
    segments: Array | None,
    gamma: Array,
    beta: Array,
    mask: Array | None = None,
    position_ids: Array | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    """Return normalised sums of embeddings, the count of each mask and the sums."""
    if position_ids is None:
        position_ids = np.arange(input_ids.shape[1])[None]
    total = words[checked(input_ids, len(words), 0)]
    total = total + positions[checked(position_ids, len(positions), 0)]
    if segments is not None:
        ids = np.zeros(1, np.int32) if segment_ids is None else segment_ids
        total = total + segments[checked(ids, len(segments), 0)]
    y = layer_norm(total, gamma, beta, -1, epsilon)[0]
    count = np.zeros(len(input_ids)) if mask is None else mask.sum(axis=1)
    return (y, count.astype(np.int32), total)[:n_outputs]


def infer_embed(ctx: InferContext) -> Sequence[Any]:
    """Return the types of ``embed_layer_normalization``."""
    batch, length = ctx.shape(0, rank=2)
    hidden = ctx.shape(2, rank=2)[1]
    for index, shape in ((1, (batch, length)), (3, (None, hidden)), (4, (None, hidden)),
                         (5, (hidden,)), (6, (hidden,)), (7, (batch, length))):  # fmt: skip
        ctx.fit(index, shape)
    if ctx.has(1) and not ctx.has(4):
        ctx.fail("expected 'segment_embedding' beside 'segment_ids'")
    dtype = ctx.dtype(2)
    return [
        TensorType(dtype, (batch, length, hidden)),
        TensorType(ir.DataType.INT32, (batch,)),
        TensorType(dtype, (batch, length, hidden)),
    ][: ctx.n_outputs]


@widened
def _group_norm(
    x: Array,
    gamma: Array,
    beta: Array,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
) -> Array:
    nchw = np.moveaxis(x, -1, 1) if channels_last else x
    parts = nchw.reshape(nchw.shape[0], groups, -1)
    mean, variance = parts.mean(axis=2, keepdims=True), parts.var(axis=2, keepdims=True)
    y = ((parts - mean) / np.sqrt(variance + epsilon)).reshape(nchw.shape)
    per_channel = (-1, *(1,) * (nchw.ndim - 2))
    y = y * gamma.reshape(per_channel) + beta.reshape(per_channel)
    if activation:
        y = y * sigmoid(y)
    return np.moveaxis(y, 1, -1) if channels_last else y


def _inverse_deviation(x: Any, axes: Sequence[int], epsilon: float) -> Any:
    """Return ``1 / √(mean(x²) + ε)`` over axes that stay, with length one."""
    squares = op("ReduceMean", op("Mul", x, x), list(axes))
    return op("Reciprocal", op("Sqrt", op("Add", squares, epsilon)))


def _total(x: Any, skip: Any, bias: Any) -> Any:
    total = op("Add", x, skip)
    return total if bias is None else op("Add", total, bias)


@composed_wide
def _composed_skip(
    x: Any,
    skip: Any,
    gamma: Any,
    beta: Any = None,
    bias: Any = None,
    *,
    epsilon: float = 1e-12,
    n_outputs: int = 1,
) -> tuple[Any, ...]:
    total = _total(x, skip, bias)
    y = op("LayerNormalization", total, gamma, beta, axis=-1, epsilon=epsilon)
    if n_outputs == 1:
        return (y,)
    mean = op("ReduceMean", total, [-1])
    inverse = _inverse_deviation(op("Sub", total, mean), [-1], epsilon)
    return (y, mean, inverse, total)[:n_outputs]


@composed_wide
def _composed_skip_rms(
    x: Any,
    skip: Any,
    gamma: Any,
    bias: Any = None,
    *,
    epsilon: float = 1e-12,
    n_outputs: int = 1,
) -> tuple[Any, ...]:
    total = _total(x, skip, bias)
    y = op("RMSNormalization", total, gamma, axis=-1, epsilon=epsilon)
    inverse = _inverse_deviation(total, [-1], epsilon) if n_outputs > 2 else None
    return (y, None, inverse, total)[:n_outputs]


@composed_wide
def _composed_simplified(
    x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5, n_outputs: int = 1
) -> tuple[Any, ...]:
    y = op("RMSNormalization", x, scale, axis=axis, epsilon=epsilon)
    rank = rank_of(x)
    return (y, _inverse_deviation(x, range(axis % rank, rank), epsilon))[:n_outputs]


@composed_wide
def composed_embed(
    input_ids: Any,
    segment_ids: Any,
    words: Any,
    positions: Any,
    segments: Any,
    gamma: Any,
    beta: Any,
    mask: Any = None,
    position_ids: Any = None,
    *,
    epsilon: float = 1e-12,
    n_outputs: int = 1,
) -> tuple[Any, ...]:
    """``embed_layer_normalization`` over the builder."""
    batch, length = shape_of(input_ids)
    if position_ids is None:
        rows = op("Slice", positions, [0], [length], [0])
    else:
        rows = op("Gather", positions, position_ids)
    total = op("Add", op("Gather", words, input_ids), rows)
    if segments is not None:
        ids = np.zeros(1, np.int64) if segment_ids is None else segment_ids
        total = op("Add", total, op("Gather", segments, ids))
    y = op("LayerNormalization", total, gamma, beta, axis=-1, epsilon=epsilon)
    if mask is None:
        count = op("Expand", np.zeros(1, np.int32), [batch])
    else:
        # (Floats hold these counts, and have kernels that sum them.)
        counts = op("ReduceSum", op("Cast", mask, to=ir.DataType.FLOAT), [1], keepdims=0)
        count = op("Cast", counts, to=ir.DataType.INT32)
    return (y, count, total)[:n_outputs]


@composed_wide
def _composed_group_norm(
    x: Any,
    gamma: Any,
    beta: Any,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
) -> Any:
    rank = rank_of(x)
    nchw = op("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)]) if channels_last else x
    y = op("GroupNormalization", nchw, gamma, beta, num_groups=groups, epsilon=epsilon)
    if activation:
        y = op("Mul", y, op("Sigmoid", y))
    return op("Transpose", y, perm=[0, *range(2, rank), 1]) if channels_last else y


OPERATORS = (
    OpDef(
        "EmbedLayerNormalization",
        infer_embed,
        embed_layer_normalization,
        domain=DOMAIN,
        compose=composed_embed,
    ),
    OpDef(
        "GroupNorm",
        lambda ctx: [ctx.shape(0)],
        _group_norm,
        domain=DOMAIN,
        compose=_composed_group_norm,
    ),
    # ONNX Runtime keeps this one in ONNX's own domain.
    OpDef(
        "SimplifiedLayerNormalization", _infer_simplified, _simplified, compose=_composed_simplified
    ),
    OpDef(
        "SkipLayerNormalization",
        _infer_skip,
        _skip_layer_normalization,
        domain=DOMAIN,
        compose=_composed_skip,
    ),
    OpDef(
        "SkipSimplifiedLayerNormalization",
        _infer_skip,
        _skip_rms,
        domain=DOMAIN,
        compose=_composed_skip_rms,
    ),
)

SCHEMAS = {
    (DOMAIN, "EmbedLayerNormalization"): declare(
        "input_ids:I, segment_ids:I?, word_embedding:T, position_embedding:T, "
        "segment_embedding:T?, gamma:T, beta:T, mask:I?, position_ids:I? "
        "-> output:T, mask_index:I?, embedding_sum:T?",
        {"epsilon": 1e-12, "mask_index_type": 0},
        T=FLOATS,
        I="int32",
    ),
    (DOMAIN, "GroupNorm"): declare(
        "X:T, gamma:M, beta:M -> Y:T",
        {"activation": 0, "channels_last": 1, "epsilon": 1e-5, "groups": 1},
        required=("activation", "groups"),
        T=FLOATS,
        M=FLOATS,
    ),
    ("", "SimplifiedLayerNormalization"): declare(
        "X:T, scale:V -> Y:V, inv_std_var:U?",
        {"axis": -1, "epsilon": 1e-5, "stash_type": 1},
        T=FLOATS,
        V=FLOATS,
        U="float",
    ),
    (DOMAIN, "SkipLayerNormalization"): declare(
        "input:T, skip:T, gamma:T, beta:T?, bias:T? "
        "-> output:T, mean:U?, inv_std_var:U?, input_skip_bias_sum:T?",
        {"epsilon": 1e-12},
        T=FLOATS,
        U="float",
    ),
    (DOMAIN, "SkipSimplifiedLayerNormalization"): declare(
        "input:T, skip:T, gamma:T, bias:T? "
        "-> output:T, mean:U?, inv_std_var:U?, input_skip_bias_sum:T?",
        {"epsilon": 1e-12},
        T=FLOATS,
        U="float",
    ),
}
