"""QAttention, QEmbedLayerNormalization: operators whose weights are bytes with scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.graph.types import TensorType
from hagane.ops.builder import op, rank_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.attention.packed import attend_projected, composed_projected, infer_packed
from hagane.ops.contrib.declare import DOMAIN, FLOAT, INTS, declare
from hagane.ops.contrib.dynamic import composed_to_float, matmul_integer_to_float
from hagane.ops.contrib.normalization import composed_embed, embed_layer_normalization, infer_embed
from hagane.ops.contrib.qlinear_composed import single
from hagane.ops.definition import Array, OpDef
from hagane.ops.linear.matmul import fit_columns
from hagane.ops.vjp import ROUNDED


def _attention(
    x: Array,
    weights: Array,
    bias: Array,
    x_scale: Array,
    w_scale: Array,
    mask_index: Array | None = None,
    x_zero: Array | None = None,
    w_zero: Array | None = None,
    past: Array | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float | None = None,
    unidirectional: int = 0,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    projected = matmul_integer_to_float(x, weights, x_scale, w_scale, x_zero, w_zero, bias)
    return attend_projected(
        projected, mask_index, past, mask_filter_value=mask_filter_value, num_heads=num_heads,
        scale=scale, unidirectional=unidirectional, n_outputs=n_outputs,
    )  # fmt: skip


def _infer_attention(ctx: InferContext) -> Sequence[Any]:
    for name in ("do_rotary", "past_present_share_buffer"):
        if ctx.attr(name):
            ctx.fail(f"'{name}' is not supported here; unset it, or use GroupQueryAttention")
    for index in (4, 7):
        fit_columns(ctx, index, ctx.shape(1, rank=2)[1])
    shapes = infer_packed(ctx, bias=2, mask=5, past=8)
    return [TensorType(ctx.dtype(3), shape) for shape in shapes[: ctx.n_outputs]]


def _composed_attention(
    x: Any,
    weights: Any,
    bias: Any,
    x_scale: Any,
    w_scale: Any,
    mask_index: Any = None,
    x_zero: Any = None,
    w_zero: Any = None,
    past: Any = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float | None = None,
    unidirectional: int = 0,
    n_outputs: int = 1,
) -> Any:
    columns = size_of(weights, 1)
    sizes = [columns // 3] * 3 if isinstance(columns, int) else []
    if mask_index is not None and rank_of(mask_index) not in (1, 2, 3):
        return None
    projected = composed_to_float(x, weights, x_scale, w_scale, x_zero, w_zero, bias)
    if projected is None:
        return None
    return composed_projected(
        projected, mask_index, past, mask_filter_value=mask_filter_value, num_heads=num_heads,
        scale=scale, sizes=sizes, unidirectional=unidirectional, n_outputs=n_outputs,
    )  # fmt: skip


def _floats(whole: Array | None, scale: Array | None, zero: Array | None) -> Array | None:
    if whole is None or scale is None:
        return None
    less = np.float32(0) if zero is None else zero.astype(np.float32)
    found: Array = (whole.astype(np.float32) - less) * scale.astype(np.float32)
    return found


def _embed(
    input_ids: Array,
    segment_ids: Array | None,
    words: Array,
    positions: Array,
    segments: Array | None,
    gamma: Array,
    beta: Array,
    mask: Array | None,
    *parameters: Array | None,
    epsilon: float = 1e-12,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    tables = (words, positions, segments, gamma, beta)
    plain: list[Any] = list(map(_floats, tables, parameters[:5], parameters[5:]))
    word, position, segment, scale, shift = plain
    found: tuple[Array, ...] = embed_layer_normalization(
        input_ids, segment_ids, word, position, segment, scale, shift, mask,
        epsilon=epsilon, n_outputs=n_outputs,
    )  # fmt: skip
    return found


def _infer_embed(ctx: InferContext) -> Sequence[Any]:
    first, *rest = infer_embed(ctx)
    return [TensorType(ctx.dtype(8), first.shape), *rest]


def _composed_embed(
    input_ids: Any,
    segment_ids: Any,
    words: Any,
    positions: Any,
    segments: Any,
    gamma: Any,
    beta: Any,
    mask: Any,
    *parameters: Any,
    epsilon: float = 1e-12,
    n_outputs: int = 1,
) -> Any:
    tables = (words, positions, segments, gamma, beta)
    plain = (
        None if table is None else op("DequantizeLinear", table, single(scale), single(zero))
        for table, scale, zero in zip(tables, parameters[:5], parameters[5:], strict=True)
    )
    return composed_embed(
        input_ids, segment_ids, *plain, mask, epsilon=epsilon, n_outputs=n_outputs
    )


OPERATORS = (
    OpDef(
        "QAttention",
        _infer_attention,
        _attention,
        domain=DOMAIN,
        compose=_composed_attention,
        vjp=ROUNDED,
    ),
    OpDef(
        "QEmbedLayerNormalization",
        _infer_embed,
        _embed,
        domain=DOMAIN,
        compose=_composed_embed,
        vjp=ROUNDED,
    ),
)

SCHEMAS = {
    (DOMAIN, "QAttention"): declare(
        "input:T1, weight:T2, bias:T3, input_scale:T3, weight_scale:T3, mask_index:T4?, "
        "input_zero_point:T1?, weight_zero_point:T2?, past:T3? -> output:T3, present:T3?",
        {
            "do_rotary": 0,
            "mask_filter_value": -10000.0,
            "num_heads": 1,
            "past_present_share_buffer": 0,
            "scale": FLOAT,
            "unidirectional": 0,
        },
        required=("num_heads",),
        T1=INTS,
        T2=INTS,
        T3="float float16",
        T4="int32",
    ),
    (DOMAIN, "QEmbedLayerNormalization"): declare(
        "input_ids:I, segment_ids:I?, word_embedding_quant:T2, position_embedding_quant:T2, "
        "segment_embedding:T2?, gamma_quant:T2, beta_quant:T2, mask:I?, word_embedding_scale:T, "
        "position_embedding_scale:T, segment_embedding_scale:T?, gamma_scale:T, beta_scale:T, "
        "word_embedding_zero_point:T2, position_embedding_zero_point:T2, "
        "segment_embedding_zero_point:T2?, gamma_zero_point:T2, beta_zero_point:T2 "
        "-> layernorm_out:T, mask_index_out:I",
        {"epsilon": 1e-12},
        I="int32",
        T="float",
        T2=INTS,
    ),
}
