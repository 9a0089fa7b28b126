"""Attention: one weight projects to queries, keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import op, rank_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.attention.composed import attended, bias_of, split_heads
from hagane.ops.contrib.attention.heads import (
    attend,
    causal_mask,
    fit_bias,
    fit_mask,
    heads_of,
    joined,
    padding_mask,
    sum_of,
)
from hagane.ops.contrib.declare import DOMAIN, FLOAT, FLOATS, INT_LIST, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import composed_wide, widened
from hagane.symbolic import Dim, floordiv


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
    return attend_projected(
        projected, mask_index, past, attention_bias, mask_filter_value=mask_filter_value,
        num_heads=num_heads, scale=scale, sizes=qkv_hidden_sizes, unidirectional=unidirectional,
        n_outputs=n_outputs,
    )  # fmt: skip


def attend_projected(
    projected: Array,
    mask_index: Array | None,
    past: Array | None,
    attention_bias: Array | None = None,
    *,
    mask_filter_value: float,
    num_heads: int,
    scale: float | None,
    sizes: Sequence[int] | None = None,
    unidirectional: int,
    n_outputs: int,
) -> tuple[Array, ...]:
    """Return the attention of queries, keys and values that lie beside each other."""
    dtype = projected.dtype
    sizes = sizes or [projected.shape[-1] // 3] * 3
    q, k, v = (heads_of(p, num_heads) for p in np.split(projected, np.cumsum(sizes)[:-1], axis=-1))
    if past is not None:
        k, v = np.concatenate([past[0], k], axis=2), np.concatenate([past[1], v], axis=2)
    length, total = q.shape[2], k.shape[2]
    mask = causal_mask(length, total, dtype) if unidirectional else None
    if mask_index is not None:
        padding = padding_mask(mask_index, len(projected), total, dtype, mask_filter_value)
        mask = sum_of(mask, padding)
    y = joined(attend(q, k, v, sum_of(mask, attention_bias), scale))
    return (y, np.stack([k, v]))[:n_outputs] if n_outputs > 1 else (y,)


def infer_packed(ctx: InferContext, bias: int, mask: int, past: int) -> Sequence[Any]:
    """Infer the attention of input 0 by the weights of input 1.

    Args:
        ctx: The node.
        bias: The number of the input that is added to the projections.
        mask: That of the mask.
        past: That of earlier keys and values.

    Returns:
        Shapes: (batch, length, size), (2, batch, heads, total, size of a head).
    """
    batch, length, hidden = ctx.shape(0, rank=3)
    rows, columns = ctx.shape(1, rank=2)
    ctx.unify(hidden, rows, "expected as many weight rows as input features")
    ctx.fit(bias, (columns,))
    heads = ctx.attr("num_heads")
    if heads <= 0:
        ctx.fail(f"expected a positive number of heads, got num_heads={heads}")
    third = heads * floordiv(columns, 3 * heads)
    sizes: Sequence[Dim] = ctx.attr("qkv_hidden_sizes") or [third] * 3
    if len(sizes) != 3 or sizes[0] != sizes[1]:
        ctx.fail(f"expected sizes of queries, keys (as large) and values, got {list(sizes)}")
    whole = sum(sizes, start=0)
    ctx.unify(columns, whole, f"expected {whole} columns, of {heads} heads of one size each")
    for size in sizes:
        if isinstance(size, int) and size % heads:
            ctx.fail(f"expected sizes of {heads} heads of one size, got {list(sizes)}")
    value, total = sizes[2], length
    if ctx.has(past):
        total = total + ctx.shape(past, rank=5)[3]
        if sizes[0] != value:
            ctx.fail(f"expected values as large as keys beside 'past', got {list(sizes)}")
        ctx.fit(past, (2, batch, heads, None, floordiv(value, heads)))
    fit_mask(ctx, mask, batch, length, total)
    return [(batch, length, value), (2, batch, heads, total, floordiv(value, heads))]


def _infer_attention(ctx: InferContext) -> Sequence[Any]:
    shapes = infer_packed(ctx, bias=2, mask=3, past=4)
    batch, length = ctx.shape(0)[:2]
    fit_bias(ctx, 5, batch, ctx.attr("num_heads"), length, shapes[1][3])
    return shapes[: ctx.n_outputs]


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
    if mask_index is not None and rank_of(mask_index) not in (1, 2, 3):
        return None
    projected = op("MatMul", x, weights)
    projected = projected if bias is None else op("Add", projected, bias)
    columns = size_of(weights, 1)
    sizes = list(qkv_hidden_sizes or [])
    if not sizes and isinstance(columns, int):
        sizes = [columns // 3] * 3
    return composed_projected(
        projected, mask_index, past, attention_bias, mask_filter_value=mask_filter_value,
        num_heads=num_heads, scale=scale, sizes=sizes, unidirectional=unidirectional,
        n_outputs=n_outputs,
    )  # fmt: skip


def composed_projected(
    projected: Any,
    mask_index: Any,
    past: Any,
    attention_bias: Any = None,
    *,
    mask_filter_value: float,
    num_heads: int,
    scale: float | None,
    sizes: Sequence[int],
    unidirectional: int,
    n_outputs: int,
) -> Any:
    """``attend_projected`` over the builder; of three equal parts where there are no sizes."""
    if sizes:
        parts = op("Split", projected, sizes, axis=-1, outputs=3)
        q, k, v = (split_heads(part, num_heads) for part in parts)
    else:
        whole = op("Reshape", projected, [0, 0, 3, num_heads, -1])
        parts = op("Split", whole, axis=2, num_outputs=3, outputs=3)
        q, k, v = (op("Transpose", op("Squeeze", one, [2]), perm=[0, 2, 1, 3]) for one in parts)
    if past is not None:
        before = op("Split", past, axis=0, num_outputs=2, outputs=2)
        keys, values = (op("Squeeze", one, [0]) for one in before)
        k, v = op("Concat", keys, k, axis=2), op("Concat", values, v, axis=2)
    added = bias_of(
        mask_index, attention_bias, q, k, causal=bool(unidirectional), filler=mask_filter_value
    )
    y = attended(q, k, v, added, scale)
    if n_outputs == 1:
        return y
    present = op("Concat", op("Unsqueeze", k, [0]), op("Unsqueeze", v, [0]), axis=0)
    return y, present


OPERATORS = (
    OpDef("Attention", _infer_attention, _attention, domain=DOMAIN, compose=_composed_attention),
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
}
