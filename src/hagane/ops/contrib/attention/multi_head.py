"""MultiHeadAttention: queries, keys and values come projected, apart or packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op, rank_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.attention.caches import (
    appended,
    composed_appended,
    composed_of_beams,
    filled_to,
    fit_beams,
    of_beams,
)
from hagane.ops.contrib.attention.composed import (
    attended,
    bias_of,
    composed_scores,
    join_heads,
    split_heads,
)
from hagane.ops.contrib.attention.heads import (
    causal_mask,
    fit_bias,
    fit_mask,
    heads_of,
    joined,
    padding_mask,
    scored,
    sum_of,
)
from hagane.ops.contrib.declare import DOMAIN, FLOAT, FLOATS, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.normalization.softmax import softmax
from hagane.ops.precision import composed_wide, widened
from hagane.symbolic import Dim, floordiv


@widened
def _multi_head_attention(
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    bias: Array | None = None,
    key_padding_mask: Array | None = None,
    attention_bias: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    past_sequence_length: Array | None = None,
    cache_indirection: Array | None = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float | None = None,
    unidirectional: int = 0,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    q, k, v = _separate(query, key, value, bias, num_heads)
    past = 0 if past_key is None else past_key.shape[2]
    present: tuple[Array, ...] = ()
    if past_key is not None and past_value is not None and past_sequence_length is not None:
        past, total = int(past_sequence_length.ravel()[0]), k.shape[2]
        total += past
        present = appended(past_key, k, past), appended(past_value, v, past)
        k, v = (x[:, :, :total] for x in present)
        if cache_indirection is not None:
            k, v = (of_beams(x, cache_indirection, past) for x in (k, v))
    elif past_key is not None and past_value is not None:
        k, v = np.concatenate([past_key, k], axis=2), np.concatenate([past_value, v], axis=2)
    length, total = q.shape[2], k.shape[2]
    mask = causal_mask(length, total, q.dtype, past) if unidirectional else None
    if key_padding_mask is not None:
        padding = padding_mask(key_padding_mask, len(q), total, q.dtype, mask_filter_value)
        mask = sum_of(mask, padding)
    scores = scored(q, k, sum_of(mask, attention_bias), scale)
    y = joined(np.matmul(softmax(scores).astype(v.dtype), v))
    return (y, *(present or (k, v)), scores)[:n_outputs]


def _separate(
    query: Array, key: Array | None, value: Array | None, bias: Array | None, heads: int
) -> tuple[Array, Array, Array]:
    """Return q, k and v, (batch, heads, length, size), from any of the packed forms."""
    if query.ndim == 5:  # (batch, length, heads, 3, size)
        q, k, v = (query[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
        return q, k, v
    hidden = query.shape[2]
    parts = (None, None, None) if bias is None else np.split(bias, [hidden, 2 * hidden])
    q = heads_of(query if parts[0] is None else query + parts[0], heads)
    if key is None:
        raise ValueError("expected 'key', or a query that packs all three")
    if key.ndim == 5:  # (batch, length, heads, 2, size)
        k, v = (key[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2))
        return q, k, v
    if key.ndim == 4:  # already split into heads
        assert value is not None
        return q, key, value
    assert value is not None
    k = heads_of(key if parts[1] is None else key + parts[1], heads)
    v = heads_of(value if parts[2] is None else value + parts[2], heads)
    return q, k, v


def _infer_multi_head(ctx: InferContext) -> Sequence[Any]:
    query = ctx.shape(0)
    heads = ctx.attr("num_heads")
    if heads <= 0:
        ctx.fail(f"expected a positive number of heads, got num_heads={heads}")
    if len(query) not in (3, 5):
        ctx.fail(f"expected a query of 3 axes, or packed of 5, got {ctx.inputs_text()}")
    batch, length = query[0], query[1]
    if len(query) == 5:
        head: Dim = query[4]
        total, v_head = length, head
        ctx.fit(0, (batch, length, heads, 3, head))
        if ctx.has(1) or ctx.has(2):
            ctx.fail("expected neither 'key' nor 'value' beside a query that packs all three")
    else:
        head = floordiv(query[2], heads)
        ctx.unify(query[2], head * heads, f"expected a query of {heads} heads of one size")
        key = ctx.shape(1) if ctx.has(1) else ctx.fail("expected 'key' beside a plain query")
        ctx.unify(key[0], batch, "expected one batch size")
        total = key[2] if len(key) == 4 else key[1] if len(key) > 1 else 0
        v_head = head
        packed = (batch, total, heads, 2, head)
        ctx.fit(1, (batch, total, query[2]), (batch, heads, total, head), packed)
        if ctx.has(2) == (len(key) == 5):
            ctx.fail("expected 'value' beside a key that does not pack both, and no other")
        if ctx.has(2):
            value = ctx.shape(2)
            v_head = value[3] if len(value) == 4 else floordiv(value[-1], heads)
            wanted = (batch, heads, total, v_head), (batch, total, heads * v_head)
            ctx.fit(2, wanted[len(key) == 3])
    ctx.fit(3, (2 * heads * head + heads * v_head,))
    if ctx.has(6) != ctx.has(7):
        ctx.fail("expected both 'past_key' and 'past_value', or neither")
    room = total
    if ctx.has(6):
        past = ctx.shape(6, rank=4)[2]
        ctx.fit(6, (batch, heads, past, head))
        ctx.fit(7, (batch, heads, past, v_head))
        room = past if ctx.has(8) else total + past
        total = filled_to(ctx, 8, total) if ctx.has(8) else room
        if ctx.has(8):
            ctx.fit(8, (), (1,))
            fit_beams(ctx, 9, batch, room)
        elif ctx.has(9):
            ctx.fail("expected 'past_sequence_length' beside 'cache_indirection'")
    fit_mask(ctx, 4, batch, length, total)
    fit_bias(ctx, 5, batch, heads, length, total)
    return [
        (batch, length, v_head * heads),
        (batch, heads, room, head),
        (batch, heads, room, v_head),
        (batch, heads, length, total),
    ][: ctx.n_outputs]


def _composed_separate(
    query: Any, key: Any, value: Any, bias: Any, heads: int
) -> tuple[Any, Any, Any] | None:
    """``_separate`` over the builder."""

    def unpacked(packed: Any, count: int) -> list[Any]:
        parts = op("Split", packed, axis=3, num_outputs=count, outputs=count)
        return [op("Transpose", op("Squeeze", one, [3]), perm=[0, 2, 1, 3]) for one in parts]

    if rank_of(query) == 5:
        q, k, v = unpacked(query, 3)
        return q, k, v
    if key is None:
        return None
    hidden = size_of(query, 2)
    parts: Sequence[Any] = (None, None, None)
    if bias is not None:
        # (An open total need not show that values are as wide as they are.)
        last = size_of(value, 2) if rank_of(key) == 3 else size_of(bias, 0) - 2 * hidden
        parts = op("Split", bias, [hidden, hidden, last], axis=0, outputs=3)

    def split(x: Any, part: Any) -> Any:
        return split_heads(x if part is None else op("Add", x, part), heads)

    q = split(query, parts[0])
    if rank_of(key) == 5:
        return (q, *unpacked(key, 2))
    if rank_of(key) == 4:
        return q, key, value
    return q, split(key, parts[1]), split(value, parts[2])


@composed_wide
def _composed_multi_head(
    query: Any,
    key: Any = None,
    value: Any = None,
    bias: Any = None,
    key_padding_mask: Any = None,
    attention_bias: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    past_sequence_length: Any = None,
    cache_indirection: Any = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float | None = None,
    unidirectional: int = 0,
    n_outputs: int = 1,
) -> Any:
    parts = _composed_separate(query, key, value, bias, num_heads)
    if parts is None:
        return None
    q, k, v = parts
    past: Any = 0 if past_key is None else size_of(past_key, 2)
    present: tuple[Any, ...] = ()
    if past_key is not None and past_value is not None and past_sequence_length is not None:
        past = op("Cast", op("Reshape", past_sequence_length, [1]), to=ir.DataType.INT64)
        total = op("Add", past, size_of(k, 2))
        present = composed_appended(past_key, k, past), composed_appended(past_value, v, past)
        k, v = (op("Slice", x, [0], total, [2]) for x in present)
        if cache_indirection is not None:
            k, v = (composed_of_beams(x, cache_indirection, past) for x in (k, v))
    elif past_key is not None and past_value is not None:
        k, v = op("Concat", past_key, k, axis=2), op("Concat", past_value, v, axis=2)
    added = bias_of(
        key_padding_mask, attention_bias, q, k, causal=bool(unidirectional),
        filler=mask_filter_value, past=past,
    )  # fmt: skip
    present = present or (k, v)
    if n_outputs < 4:
        return (attended(q, k, v, added, scale), *present)[:n_outputs]
    scores = composed_scores(q, k, added, scale)
    return join_heads(op("MatMul", op("Softmax", scores), v)), *present, scores


def _as_multi_head(
    query: Any,
    key: Any = None,
    value: Any = None,
    mask: Any = None,
    attention_bias: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    past_sequence_length: Any = None,
    beam_width: Any = None,
    cache_indirection: Any = None,
    bias: Any = None,
) -> tuple[Any, ...]:
    """Return DecoderMaskedMultiHeadAttention's inputs in MultiHeadAttention's order."""
    cache = past_key, past_value, past_sequence_length, cache_indirection
    return query, key, value, bias, mask, attention_bias, *cache


def _decoder_attention(
    *inputs: Any,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float | None = None,
    output_qk: int = 0,
    past_present_share_buffer: int = 0,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    query, key, value, *others = _as_multi_head(*inputs)
    if key is None:
        query, key, value = np.split(query, 3, axis=2)
    return _multi_head_attention(
        query, key, value, *others, mask_filter_value=mask_filter_value, num_heads=num_heads,
        scale=scale, n_outputs=n_outputs,
    )  # fmt: skip


def _composed_decoder(
    *inputs: Any,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float | None = None,
    output_qk: int = 0,
    past_present_share_buffer: int = 0,
    n_outputs: int = 1,
) -> Any:
    query, key, value, *others = _as_multi_head(*inputs)
    if key is None:
        query, key, value = op("Split", query, axis=2, num_outputs=3, outputs=3)
    return _composed_multi_head(
        query, key, value, *others, mask_filter_value=mask_filter_value, num_heads=num_heads,
        scale=scale, n_outputs=n_outputs,
    )  # fmt: skip


def _infer_decoder(ctx: InferContext) -> Sequence[Any]:
    heads = ctx.attr("num_heads")
    if heads <= 0:
        ctx.fail(f"expected a positive number of heads, got num_heads={heads}")
    batch, length, width = ctx.shape(0, rank=3)
    ctx.unify(length, 1, "expected a query of one position")
    if ctx.has(1) != ctx.has(2):
        ctx.fail("expected both 'key' and 'value', or a query that packs all three")
    parts = heads if ctx.has(1) else 3 * heads
    size = floordiv(width, parts)
    ctx.unify(width, size * parts, f"expected a query of {parts} heads of one size")
    ctx.fit(10, (3 * heads * size,))
    if ctx.has(1) and len(ctx.shape(1)) == 4:
        if ctx.has(5) or ctx.has(6):
            ctx.fail("expected no cache beside keys of 4 axes, which are one")
        total = room = ctx.shape(1)[2]
        ctx.fit(1, (batch, heads, total, size))
        ctx.fit(2, (batch, heads, total, size))
    else:
        if not (ctx.has(5) and ctx.has(6) and ctx.has(7)):
            ctx.fail("expected 'past_key', 'past_value' and 'past_sequence_length'")
        if not ctx.attr("past_present_share_buffer"):
            ctx.fail("expected past_present_share_buffer=1: caches of a fixed room, got 0")
        for index in (1, 2):
            ctx.fit(index, (batch, 1, heads * size))
        room = ctx.shape(5, rank=4)[2]
        for index in (5, 6):
            ctx.fit(index, (batch, heads, room, size))
        ctx.fit(7, (), (1,))
        fit_beams(ctx, 9, batch, room)
        total = filled_to(ctx, 7, 1)
    if ctx.has(3) and ctx.known_rank(3) is not None:
        ctx.fit(3, (batch, total))
    fit_bias(ctx, 4, batch, heads, 1, total)
    cache = (batch, heads, room, size)
    return [(batch, 1, heads * size), cache, cache, (batch, heads, 1, total)][: ctx.n_outputs]


OPERATORS = (
    OpDef(
        "MultiHeadAttention",
        _infer_multi_head,
        _multi_head_attention,
        domain=DOMAIN,
        compose=_composed_multi_head,
    ),
    OpDef(
        "DecoderMaskedMultiHeadAttention",
        _infer_decoder,
        _decoder_attention,
        domain=DOMAIN,
        compose=_composed_decoder,
    ),
)

SCHEMAS = {
    (DOMAIN, "MultiHeadAttention"): declare(
        "query:T, key:T?, value:T?, bias:T?, key_padding_mask:M?, attention_bias:T?, "
        "past_key:T?, past_value:T?, past_sequence_length:M?, cache_indirection:M? "
        "-> output:T, present_key:T?, present_value:T?, qk:T?",
        {"mask_filter_value": -10000.0, "num_heads": 1, "scale": FLOAT, "unidirectional": 0},
        required=("num_heads",),
        T=FLOATS,
        M="int32",
    ),
    (DOMAIN, "DecoderMaskedMultiHeadAttention"): declare(
        "query:T, key:T?, value:T?, mask_index:M?, attention_bias:T?, past_key:T?, "
        "past_value:T?, past_sequence_length:M?, beam_width:M?, cache_indirection:M?, bias:T? "
        "-> output:T, present_key:T?, present_value:T?, qk:T?",
        {
            "mask_filter_value": -10000.0,
            "num_heads": 1,
            "output_qk": 0,
            "past_present_share_buffer": 0,
            "scale": FLOAT,
        },
        required=("num_heads",),
        T=FLOATS,
        M="int32",
    ),
}
