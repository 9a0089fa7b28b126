"""Attention, MultiHeadAttention, GroupQueryAttention, RotaryEmbedding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.attention.rotary import rotate
from hagane.ops.builder import op, rank_of, shape_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, FLOAT, FLOATS, INT_LIST, declare
from hagane.ops.definition import Array, OpDef, Unsupported
from hagane.ops.normalization.softmax import softmax
from hagane.ops.precision import composed_wide, widened
from hagane.ops.vjp import CACHED
from hagane.symbolic import Dim, floordiv, maximum


def _heads(x: Array, count: int) -> Array:
    """Split the last axis: (batch, length, heads · size) to (batch, heads, length, size)."""
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def _joined(x: Array) -> Array:
    """Undo ``_heads``."""
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def _attend(q: Array, k: Array, v: Array, bias: Array | None, scale: float | None) -> Array:
    factor = scale or 1 / np.sqrt(q.shape[-1])
    scores = np.matmul(q, k.transpose(0, 1, 3, 2)) * np.asarray(factor, dtype=q.dtype)
    if bias is not None:
        scores = scores + bias
    return np.matmul(softmax(scores).astype(v.dtype), v)


def _causal(length: int, total: int, dtype: Any, filler: float) -> Array:
    """Return an additive mask that lets query i see keys up to i + (total - length)."""
    allowed = np.arange(total)[None] <= np.arange(length)[:, None] + (total - length)
    return np.where(allowed, 0, filler).astype(dtype)


def _padding(mask: Array, batch: int, total: int, dtype: Any, filler: float) -> Array:
    """Return a key mask as an additive bias, (batch, 1, 1 or length, total).

    The mask is (batch,) key lengths, (2 · batch,) ends and starts, (batch, total) zeros and
    ones, or (batch, length, total).
    """
    if mask.ndim == 1:
        ends = mask[:batch, None]
        starts = mask[batch : 2 * batch, None] if len(mask) == 2 * batch else 0
        positions = np.arange(total)[None]
        keep = (positions < ends) & (positions >= starts)
        return np.where(keep, 0, filler).astype(dtype)[:, None, None]
    bias = np.where(mask != 0, 0, filler).astype(dtype)
    return bias[:, None, None] if mask.ndim == 2 else bias[:, None]


def _sum(*biases: Array | None) -> Array | None:
    total: Array | None = None
    for bias in biases:
        if bias is not None:
            total = bias if total is None else total + bias
    return total


@widened
def _attention(
    x: Array,
    weights: Array,
    bias: Array | None = None,
    mask_index: Array | None = None,
    past: Array | None = None,
    attention_bias: Array | None = None,
    past_sequence_length: Array | None = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    qkv_hidden_sizes: Sequence[int] | None = None,
    scale: float | None = None,
    unidirectional: int = 0,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    projected = x @ weights if bias is None else x @ weights + bias
    sizes = qkv_hidden_sizes or [weights.shape[1] // 3] * 3
    q, k, v = (_heads(p, num_heads) for p in np.split(projected, np.cumsum(sizes)[:-1], axis=-1))
    if past is not None:
        k, v = np.concatenate([past[0], k], axis=2), np.concatenate([past[1], v], axis=2)
    length, total = q.shape[2], k.shape[2]
    mask = _causal(length, total, x.dtype, mask_filter_value) if unidirectional else None
    if mask_index is not None:
        padding = _padding(mask_index, len(x), total, x.dtype, mask_filter_value)
        mask = _sum(mask, padding)
    y = _joined(_attend(q, k, v, _sum(mask, attention_bias), scale))
    return (y, np.stack([k, v]))[:n_outputs] if n_outputs > 1 else (y,)


def _infer_attention(ctx: InferContext) -> Sequence[Any]:
    batch, length, hidden = ctx.shape(0, rank=3)
    rows, columns = ctx.shape(1, rank=2)
    ctx.unify(hidden, rows, "expected as many weight rows as input features")
    heads, sizes = ctx.attr("num_heads"), ctx.attr("qkv_hidden_sizes")
    value: Dim = sizes[2] if sizes else floordiv(columns, 3)
    total: Dim = length
    if ctx.has(4):
        total = total + ctx.shape(4, rank=5)[3]
    present = (2, batch, heads, total, floordiv(value, heads))
    return [(batch, length, value), present][: ctx.n_outputs]


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
    if past_key is not None and past_value is not None:
        k, v = np.concatenate([past_key, k], axis=2), np.concatenate([past_value, v], axis=2)
    length, total = q.shape[2], k.shape[2]
    mask = _causal(length, total, q.dtype, mask_filter_value) if unidirectional else None
    if key_padding_mask is not None:
        padding = _padding(key_padding_mask, len(q), total, q.dtype, mask_filter_value)
        mask = _sum(mask, padding)
    y = _joined(_attend(q, k, v, _sum(mask, attention_bias), scale))
    return (y, k, v)[:n_outputs]


def _separate(
    query: Array, key: Array | None, value: Array | None, bias: Array | None, heads: int
) -> tuple[Array, Array, Array]:
    """Return q, k and v, (batch, heads, length, size), from any of the packed forms."""
    if query.ndim == 5:  # (batch, length, heads, 3, size)
        q, k, v = (query[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
        return q, k, v
    hidden = query.shape[2]
    parts = (None, None, None) if bias is None else np.split(bias, [hidden, 2 * hidden])
    q = _heads(query if parts[0] is None else query + parts[0], heads)
    if key is None:
        raise ValueError("expected 'key', or a query that packs all three")
    if key.ndim == 5:  # (batch, length, heads, 2, size)
        k, v = (key[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2))
        return q, k, v
    if key.ndim == 4:  # already split into heads
        assert value is not None
        return q, key, value
    assert value is not None
    k = _heads(key if parts[1] is None else key + parts[1], heads)
    v = _heads(value if parts[2] is None else value + parts[2], heads)
    return q, k, v


def _infer_multi_head(ctx: InferContext) -> Sequence[Any]:
    query = ctx.shape(0)
    heads = ctx.attr("num_heads")
    batch, length = query[0], query[1]
    if len(query) == 5:
        head: Dim = query[4]
        total, v_head = length, head
    else:
        head = floordiv(query[2], heads)
        key = ctx.shape(1) if ctx.has(1) else ctx.fail("expected 'key' beside a plain query")
        total = key[2] if len(key) == 4 else key[1]
        v_head = head
        if ctx.has(2):
            value = ctx.shape(2)
            v_head = value[3] if len(value) == 4 else floordiv(value[2], heads)
    if ctx.has(6):
        total = total + ctx.shape(6, rank=4)[2]
    return [
        (batch, length, v_head * heads),
        (batch, heads, total, head),
        (batch, heads, total, v_head),
    ][: ctx.n_outputs]


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
    *,
    do_rotary: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
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
    q, k, v = _heads(query, num_heads), _heads(key, kv_num_heads), _heads(value, kv_num_heads)
    # A sequence's cache holds the keys before this call: all keys but the new ones.
    before = np.maximum(seqlens_k.ravel().astype(np.int64) + 1 - length, 0)
    if do_rotary:
        assert cos_cache is not None
        assert sin_cache is not None
        at = before[:, None] + np.arange(length) if position_ids is None else position_ids
        q = _rotated(q, cos_cache, sin_cache, at, bool(rotary_interleaved))
        k = _rotated(k, cos_cache, sin_cache, at, bool(rotary_interleaved))
    room = max(int(total_sequence_length.ravel()[0]), 0 if past_key is None else past_key.shape[2])
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
    return _joined(y), present_key, present_value


def _rotated(x: Array, cos: Array, sin: Array, at: Array, interleaved: bool) -> Array:
    size = 2 * cos.shape[-1]
    lead = x.transpose(0, 2, 1, 3)
    turned = rotate(lead[..., :size], cos[at][:, :, None], sin[at][:, :, None], interleaved)
    return np.concatenate([turned, lead[..., size:]], axis=-1).transpose(0, 2, 1, 3)


# Attributes that the type rule refuses when they are set.
UNSUPPORTED = ("kv_cache_bit_width", "qk_output", "sliding_window_cache")


def _infer_group_query(ctx: InferContext) -> Sequence[Any]:
    for name in UNSUPPORTED:
        if ctx.attr(name):
            ctx.fail(f"{name}={ctx.attr(name)} is not supported")
    if any(ctx.has(i) for i in range(12, ctx.n_inputs)):
        ctx.fail("quantised caches and query/key norms are not supported")
    batch, length, hidden = ctx.shape(0, rank=3)
    heads, kv_heads = ctx.attr("num_heads"), ctx.attr("kv_num_heads")
    if heads % kv_heads:
        ctx.fail(f"expected num_heads={heads} to be a multiple of kv_num_heads={kv_heads}")
    head = floordiv(hidden, heads) if ctx.has(1) else floordiv(hidden, heads + 2 * kv_heads)
    totals = ctx.dims(6) if ctx.data(6) is not None else None
    room: Dim = ctx.fresh("total") if totals is None else totals[0]
    if ctx.has(3) and totals is not None:
        room = maximum(room, ctx.shape(3, rank=4)[2])
    cache = (batch, kv_heads, room, head)
    dtype = ctx.dtype(0)
    return [(batch, length, head * heads), TensorType(dtype, cache), TensorType(dtype, cache)][
        : ctx.n_outputs
    ]


@widened
def _rotary_embedding(
    x: Array,
    position_ids: Array,
    cos_cache: Array,
    sin_cache: Array,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Array:
    if x.ndim == 3:
        size = 2 * cos_cache.shape[1]
        heads = num_heads or x.shape[2] // size
        split = _heads(x, heads)
    else:
        split = x
    batch, length = split.shape[0], split.shape[2]
    if position_ids.size == 1:
        at = np.broadcast_to(position_ids.ravel()[0] + np.arange(length), (batch, length))
    else:
        at = position_ids
    turned = _rotated(split, cos_cache, sin_cache, at, bool(interleaved))
    return _joined(turned) if x.ndim == 3 else turned


def _split_heads(x: Any, count: int) -> Any:
    """``_heads`` over the builder."""
    return op("Transpose", op("Reshape", x, [0, 0, count, -1]), perm=[0, 2, 1, 3])


def _join_heads(x: Any) -> Any:
    """``_joined`` over the builder."""
    return op("Reshape", op("Transpose", x, perm=[0, 2, 1, 3]), [0, 0, -1])


def _bias_of(mask: Any, attention_bias: Any, q: Any, k: Any, *, causal: bool, filler: float) -> Any:
    """Return the summand of the scores, None for nothing."""
    batch, length, total = size_of(q, 0), size_of(q, 2), size_of(k, 2)
    found = [] if attention_bias is None else [attention_bias]
    if causal:
        rows = op("Add", op("Range", 0, length, 1), total - length)
        allowed = op("LessOrEqual", op("Range", 0, total, 1), op("Unsqueeze", rows, [1]))
        found.append(op("Where", allowed, np.float32(0), np.float32(filler)))
    if mask is not None and rank_of(mask) == 1:
        ends = op("Cast", mask, to=ir.DataType.INT64)
        positions = op("Unsqueeze", op("Range", 0, total, 1), [0])
        keep = op("Less", positions, op("Unsqueeze", op("Slice", ends, [0], [batch], [0]), [1]))
        if size_of(mask, 0) != batch:
            starts = op("Slice", ends, [batch], [batch * 2], [0])
            late = op("GreaterOrEqual", positions, op("Unsqueeze", starts, [1]))
            keep = op("And", keep, late)
        bias = op("Where", keep, np.float32(0), np.float32(filler))
        found.append(op("Unsqueeze", bias, [1, 2]))
    elif mask is not None:
        bias = op("Where", op("Cast", mask, to=ir.DataType.BOOL), np.float32(0), np.float32(filler))
        found.append(op("Unsqueeze", bias, [1, 2] if rank_of(mask) == 2 else [1]))
    if not found:
        return None
    return reduce(lambda a, b: op("Add", a, b), found)


def _attended(q: Any, k: Any, v: Any, bias: Any, scale: float | None) -> Any:
    """``_attend`` over the builder, heads joined."""
    if bias is not None and rank_of(bias) < 4:
        bias = op("Unsqueeze", bias, list(range(4 - rank_of(bias))))
    return _join_heads(op("Attention", q, k, v, bias, scale=scale or None))


@composed_wide
def _composed_attention(
    x: Any,
    weights: Any,
    bias: Any = None,
    mask_index: Any = None,
    past: Any = None,
    attention_bias: Any = None,
    past_sequence_length: Any = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    qkv_hidden_sizes: Sequence[int] | None = None,
    scale: float | None = None,
    unidirectional: int = 0,
    n_outputs: int = 1,
) -> Any:
    columns = size_of(weights, 1)
    if mask_index is not None and rank_of(mask_index) not in (1, 2, 3):
        return None
    if not isinstance(columns, int):
        return None
    projected = op("MatMul", x, weights)
    projected = projected if bias is None else op("Add", projected, bias)
    sizes = list(qkv_hidden_sizes or [columns // 3] * 3)
    q, k, v = (
        _split_heads(part, num_heads) for part in op("Split", projected, sizes, axis=-1, outputs=3)
    )
    if past is not None:
        before = op("Split", past, axis=0, num_outputs=2, outputs=2)
        keys, values = (op("Squeeze", one, [0]) for one in before)
        k, v = op("Concat", keys, k, axis=2), op("Concat", values, v, axis=2)
    added = _bias_of(
        mask_index, attention_bias, q, k, causal=bool(unidirectional), filler=mask_filter_value
    )
    y = _attended(q, k, v, added, scale)
    if n_outputs == 1:
        return y
    present = op("Concat", op("Unsqueeze", k, [0]), op("Unsqueeze", v, [0]), axis=0)
    return y, present


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
    hidden = size_of(query, 2)
    parts: Sequence[Any] = (None, None, None)
    if bias is not None:
        total = size_of(bias, 0)
        if not isinstance(hidden, int) or not isinstance(total, int):
            return None
        parts = op("Split", bias, [hidden, hidden, total - 2 * hidden], axis=0, outputs=3)

    def split(x: Any, part: Any) -> Any:
        return _split_heads(x if part is None else op("Add", x, part), heads)

    if key is None:
        return None
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
    if past_key is not None and past_value is not None:
        k, v = op("Concat", past_key, k, axis=2), op("Concat", past_value, v, axis=2)
    added = _bias_of(
        key_padding_mask, attention_bias, q, k, causal=bool(unidirectional),
        filler=mask_filter_value,
    )  # fmt: skip
    return (_attended(q, k, v, added, scale), k, v)[:n_outputs]


@composed_wide
def _composed_rotary(
    x: Any,
    position_ids: Any,
    cos_cache: Any,
    sin_cache: Any,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
) -> Any:
    half = size_of(cos_cache, 1)
    flat = rank_of(x) == 3
    if not isinstance(half, int):
        return None
    width = size_of(x, 2) if flat else size_of(x, 3)
    heads = num_heads
    if flat and not heads:
        if not isinstance(width, int):
            return None
        heads = width // (2 * half)
    size = floordiv(width, heads) if flat else width
    if shape_of(position_ids) in ((), (1,), (1, 1)):
        batch, length = size_of(x, 0), size_of(x, 1 if flat else 2)
        first = op("Reshape", position_ids, [1, 1])
        steps = op("Unsqueeze", op("Range", 0, length, 1), [0])
        position_ids = op("Expand", op("Add", steps, first), [batch, length])
    return op(
        "RotaryEmbedding", x, cos_cache, sin_cache, position_ids, interleaved=interleaved,
        num_heads=heads if flat else None,
        rotary_embedding_dim=None if size == 2 * half else 2 * half,
    )  # fmt: skip


OPERATORS = (
    OpDef("Attention", _infer_attention, _attention, domain=DOMAIN, compose=_composed_attention),
    OpDef(
        "GroupQueryAttention",
        _infer_group_query,
        _group_query_attention,
        domain=DOMAIN,
        compose=Unsupported("its caches are filled to another length in each sequence"),
        vjp=CACHED,
    ),
    OpDef(
        "MultiHeadAttention",
        _infer_multi_head,
        _multi_head_attention,
        domain=DOMAIN,
        compose=_composed_multi_head,
    ),
    OpDef(
        "RotaryEmbedding",
        lambda ctx: [ctx.shape(0)],
        _rotary_embedding,
        domain=DOMAIN,
        compose=_composed_rotary,
    ),
)

SCHEMAS = {
    (DOMAIN, "Attention"): declare(
        "input:T, weights:T, bias:T?, mask_index:M?, past:T?, attention_bias:T?, "
        "past_sequence_length:M? -> output:T, present:T?",
        {
            "mask_filter_value": -10000.0,
            "num_heads": 1,
            "qkv_hidden_sizes": INT_LIST,
            "scale": FLOAT,
            "unidirectional": 0,
        },
        required=("num_heads",),
        T=FLOATS,
        M="int32",
    ),
    (DOMAIN, "GroupQueryAttention"): declare(
        "query:T, key:T?, value:T?, past_key:T?, past_value:T?, seqlens_k:M, "
        "total_sequence_length:M, cos_cache:T?, sin_cache:T?, position_ids:I?, "
        "attention_bias:T?, head_sink:T?, k_scale:float?, v_scale:float?, q_norm_weight:T?, "
        "k_norm_weight:T? -> output:T, present_key:T?, present_value:T?",
        {
            "do_rotary": 0,
            "kv_cache_bit_width": 0,
            "kv_num_heads": 1,
            "local_window_size": -1,
            "num_heads": 1,
            "qk_output": 0,
            "rotary_interleaved": 0,
            "scale": 0.0,
            "sliding_window_cache": 0,
            "smooth_softmax": 0,
            "softcap": 0.0,
        },
        required=("num_heads", "kv_num_heads"),
        T=FLOATS,
        M="int32",
        I="int64",
    ),
    (DOMAIN, "MultiHeadAttention"): declare(
        "query:T, key:T?, value:T?, bias:T?, key_padding_mask:M?, attention_bias:T?, "
        "past_key:T?, past_value:T?, past_sequence_length:M?, cache_indirection:M? "
        "-> output:T, present_key:T?, present_value:T?",
        {"mask_filter_value": -10000.0, "num_heads": 1, "scale": FLOAT, "unidirectional": 0},
        required=("num_heads",),
        T=FLOATS,
        M="int32",
    ),
    (DOMAIN, "RotaryEmbedding"): declare(
        "input:T, position_ids:I, cos_cache:T, sin_cache:T -> output:T",
        {
            "interleaved": 0,
            "is_packed_batching": 0,
            "num_heads": 0,
            "rotary_embedding_dim": 0,
            "scale": 1.0,
        },
        T=FLOATS,
        I="int64",
    ),
}
