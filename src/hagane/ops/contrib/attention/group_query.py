"""GroupQueryAttention: several heads of queries share one of keys, over a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hagane.graph.types import Shape, TensorType
from hagane.ops.builder import op, size_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.attention.heads import (
    fit_bias,
    heads_of,
    joined,
    rotated,
)
from hagane.ops.contrib.declare import DOMAIN, FLOAT, FLOATS, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.normalization.layer import rms_norm
from hagane.ops.normalization.softmax import softmax
from hagane.ops.precision import widened
from hagane.ops.vjp import CACHED
from hagane.symbolic import Dim, floordiv, maximum, minimum


@widened
def _group_query_attention(
    query: Array,
    key: Array | None,
    value: Array | None,
    past_key: Array | None,
    past_value: Array | None,
    seqlens_k: Array,
    total_sequence_length: Array,
    cos_cache: Array | None = None,
    sin_cache: Array | None = None,
    position_ids: Array | None = None,
    attention_bias: Array | None = None,
    head_sink: Array | None = None,
    k_scale: Array | None = None,
    v_scale: Array | None = None,
    q_norm_weight: Array | None = None,
    k_norm_weight: Array | None = None,
    *,
    do_rotary: int = 0,
    k_norm_epsilon: float | None = None,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    q_norm_epsilon: float | None = None,
    qk_norm_epsilon: float = 1e-6,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
) -> tuple[Array, Array, Array]:
    batch, length = query.shape[:2]
    if key is None or value is None:
        size = query.shape[2] // (num_heads + 2 * kv_num_heads)
        ends = [num_heads * size, (num_heads + kv_num_heads) * size]
        query, key, value = np.split(query, ends, axis=-1)
    q, k, v = heads_of(query, num_heads), heads_of(key, kv_num_heads), heads_of(value, kv_num_heads)
    if q_norm_weight is not None and k_norm_weight is not None:
        q = rms_norm(q, q_norm_weight, -1, q_norm_epsilon or qk_norm_epsilon)
        k = rms_norm(k, k_norm_weight, -1, k_norm_epsilon or qk_norm_epsilon)
    room = max(int(total_sequence_length.ravel()[0]), 0 if past_key is None else past_key.shape[2])
    last = seqlens_k.ravel()
    if room < length or (last < 0).any() or (last >= room).any():
        raise ValueError(
            f"expected 'seqlens_k' of 0 to {room - 1}, the last of {room} positions that hold "
            f"{length} new ones, got {last.tolist()}"
        )
    # A sequence's cache holds the keys before this call: all keys but the new ones.
    before = np.maximum(seqlens_k.ravel().astype(np.int64) + 1 - length, 0)
    if do_rotary:
        assert cos_cache is not None
        assert sin_cache is not None
        at = before[:, None] + np.arange(length) if position_ids is None else position_ids
        q = rotated(q, cos_cache, sin_cache, at, bool(rotary_interleaved))
        k = rotated(k, cos_cache, sin_cache, at, bool(rotary_interleaved))
    present_key = np.zeros((batch, kv_num_heads, room, k.shape[3]), dtype=k.dtype)
    present_value = np.zeros((batch, kv_num_heads, room, v.shape[3]), dtype=v.dtype)
    y = np.zeros((batch, num_heads, length, v.shape[3]), dtype=q.dtype)
    factor = scale or 1 / np.sqrt(q.shape[-1])
    for b, start in enumerate(before):
        if past_key is not None and past_value is not None:
            present_key[b, :, : past_key.shape[2]] = past_key[b]
            present_value[b, :, : past_value.shape[2]] = past_value[b]
        present_key[b, :, start : start + length] = k[b]
        present_value[b, :, start : start + length] = v[b]
        total = start + length
        keys = np.repeat(present_key[b, :, :total], num_heads // kv_num_heads, axis=0)
        values = np.repeat(present_value[b, :, :total], num_heads // kv_num_heads, axis=0)
        scores = np.matmul(q[b], keys.transpose(0, 2, 1)) * np.asarray(factor, dtype=q.dtype)
        if softcap:
            scores = np.tanh(scores / softcap) * softcap
        distance = start + np.arange(length)[:, None] - np.arange(total)
        allowed = distance >= 0
        if local_window_size > 0:
            allowed &= distance < local_window_size
        scores = np.where(allowed, scores, -np.inf)
        if attention_bias is not None:
            scores = scores + attention_bias[min(b, len(attention_bias) - 1), ..., :total]
        sinks = np.zeros(num_heads, scores.dtype) if head_sink is None else head_sink
        if head_sink is not None or smooth_softmax > 0:
            # One more score, which no value belongs to, takes its share.
            apart = np.broadcast_to(sinks[:, None, None], (num_heads, length, 1))
            scores = np.concatenate([scores, apart], axis=-1)
        y[b] = np.matmul(softmax(scores)[..., :total], values)
    return joined(y), present_key, present_value


# Attributes that the type rule refuses when they are set.
UNSUPPORTED = ("kv_cache_bit_width", "qk_output", "sliding_window_cache")


def _composed_norms(*inputs: Any, attributes: Mapping[str, Any], n_outputs: int) -> Any:
    """Write norms of queries and keys in front of the operator; None where it has none."""
    given: list[Any] = [*inputs, *[None] * (16 - len(inputs))]
    query, key, value, *others, q_weight, k_weight = given
    if q_weight is None or k_weight is None:
        return None
    settings, heads, kv_heads = (
        dict(attributes),
        attributes["num_heads"],
        attributes["kv_num_heads"],
    )
    shared = settings.pop("qk_norm_epsilon")
    epsilons = [settings.pop(f"{name}_norm_epsilon", None) or shared for name in "qk"]
    width = size_of(query, 2)
    if not isinstance(width, int):
        return None
    if key is None:
        size = width // (heads + 2 * kv_heads)
        parts = [heads * size, kv_heads * size, kv_heads * size]
        query, key, value = op("Split", query, parts, axis=2, outputs=3)
    size = size_of(q_weight, 0)
    normed = []
    for x, weight, count, epsilon in zip(
        (query, key), (q_weight, k_weight), (heads, kv_heads), epsilons, strict=True
    ):
        rows = op(
            "RMSNormalization", op("Reshape", x, [0, 0, count, size]), weight, epsilon=epsilon
        )
        normed.append(op("Reshape", rows, [0, 0, count * size]))
    while others and others[-1] is None:
        others.pop()
    return op(
        "GroupQueryAttention", *normed, value, *others, domain=DOMAIN, outputs=n_outputs, **settings
    )


def _infer_group_query(ctx: InferContext) -> Sequence[Any]:
    for name in UNSUPPORTED:
        if ctx.attr(name):
            ctx.fail(f"{name}={ctx.attr(name)} is not supported")
    for side in "kv":
        if ctx.attr(f"{side}_quant_type") != "NONE":
            ctx.fail(
                f"{side}_quant_type={ctx.attr(f'{side}_quant_type')} is not supported, NONE is"
            )
    if ctx.attr("causal") != 1:
        ctx.fail(f"expected causal=1, got {ctx.attr('causal')}: use MultiHeadAttention")
    if any(ctx.has(i) for i in (12, 13, 16)):
        ctx.fail("quantised caches and 'query_seqlens' are not supported")
    if ctx.has(14) != ctx.has(15):
        ctx.fail("expected both 'q_norm_weight' and 'k_norm_weight', or neither")
    batch, length, hidden = ctx.shape(0, rank=3)
    heads, kv_heads = ctx.attr("num_heads"), ctx.attr("kv_num_heads")
    if heads % kv_heads:
        ctx.fail(f"expected num_heads={heads} to be a multiple of kv_num_heads={kv_heads}")
    if ctx.has(3) != ctx.has(4):
        ctx.fail("expected both 'past_key' and 'past_value', or neither")
    if ctx.has(1) != ctx.has(2):
        ctx.fail("expected both 'key' and 'value', or a query that packs all three")
    if ctx.attr("do_rotary") and not (ctx.has(7) and ctx.has(8)):
        ctx.fail("expected 'cos_cache' and 'sin_cache' beside do_rotary=1")
    parts = heads if ctx.has(1) else heads + 2 * kv_heads
    head = floordiv(hidden, parts)
    ctx.unify(hidden, head * parts, f"expected a query of {parts} heads of one size")
    _unify_operands(ctx, batch, length, kv_heads, head)
    if ctx.has(10) and ctx.known_rank(10) is not None:
        known = ctx.dims(6) if ctx.data(6) is not None else None
        total = ctx.shape(10, rank=4)[3] if known is None else known[0]
        fit_bias(ctx, 10, batch, heads, length, total)
    totals = ctx.dims(6) if ctx.data(6) is not None else None
    room: Dim = ctx.fresh("total") if totals is None else totals[0]
    if ctx.has(3) and totals is not None:
        room = maximum(room, ctx.shape(3, rank=4)[2])
    cache = (batch, kv_heads, room, head)
    dtype = ctx.dtype(0)
    return [(batch, length, head * heads), TensorType(dtype, cache), TensorType(dtype, cache)][
        : ctx.n_outputs
    ]


def _unify_operands(ctx: InferContext, batch: Dim, length: Dim, kv_heads: int, head: Dim) -> None:
    """Compare the sizes of all inputs but the query and the bias, which may broadcast."""

    def expect(index: int, wanted: Shape) -> None:
        if ctx.has(index):
            for left, right in zip(ctx.shape(index, rank=len(wanted)), wanted, strict=True):
                ctx.unify(left, right, f"expected '{ctx.name(index)}' to fit the query's sizes")

    expect(1, (batch, length, kv_heads * head))
    expect(2, (batch, length, kv_heads * head))
    if ctx.has(3):
        past = ctx.shape(3, rank=4)[2]
        expect(3, (batch, kv_heads, past, head))
        expect(4, (batch, kv_heads, past, head))
    counts: Dim = 1
    for dim in ctx.shape(5):
        counts = counts * dim
    ctx.unify(counts, batch, "expected one length a row of the batch as 'seqlens_k'")
    if ctx.attr("do_rotary"):
        longest, half = ctx.shape(7, rank=2)
        ctx.unify(half, minimum(half, floordiv(head, 2)), "expected no more angles than pairs")
        expect(8, (longest, half))
        expect(9, (batch, length))
    expect(11, (ctx.attr("num_heads"),))
    expect(14, (head,))
    expect(15, (head,))


OPERATORS = (
    OpDef(
        "GroupQueryAttention",
        _infer_group_query,
        _group_query_attention,
        domain=DOMAIN,
        compose=_composed_norms,
        vjp=CACHED,
    ),
)

SCHEMAS = {
    (DOMAIN, "GroupQueryAttention"): declare(
        "query:T, key:T?, value:T?, past_key:T?, past_value:T?, seqlens_k:M, "
        "total_sequence_length:M, cos_cache:T?, sin_cache:T?, position_ids:I?, "
        "attention_bias:T?, head_sink:T?, k_scale:float?, v_scale:float?, q_norm_weight:T?, "
        "k_norm_weight:T?, query_seqlens:M? -> output:T, present_key:T?, present_value:T?",
        {
            "causal": 1,
            "do_rotary": 0,
            "k_norm_epsilon": FLOAT,
            "k_quant_type": "NONE",
            "kv_cache_bit_width": 0,
            "kv_num_heads": 1,
            "local_window_size": -1,
            "num_heads": 1,
            "q_norm_epsilon": FLOAT,
            "qk_norm_epsilon": 1e-6,
            "qk_output": 0,
            "rotary_interleaved": 0,
            "scale": 0.0,
            "sliding_window_cache": 0,
            "smooth_softmax": 0,
            "softcap": 0.0,
            "v_quant_type": "NONE",
        },
        required=("num_heads", "kv_num_heads"),
        T=FLOATS,
        M="int32",
        I="int64",
    ),
}
