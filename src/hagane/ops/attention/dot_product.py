"""Attention."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import dtype_of, op, rank_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.definition import OpDef
from hagane.ops.delegated import onnx_kernel
from hagane.ops.functions.layers.heads import join_heads, repeat_heads, split_heads
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    mul,
    neg,
    sub,
    transpose,
    unsqueeze,
    where,
)
from hagane.ops.functions.tensors.positions import positions_along
from hagane.ops.vjp import through
from hagane.symbolic import Dim, floordiv, minimum


def _infer_attention(ctx: InferContext) -> Sequence[Any]:
    q, k, v = (ctx.shape(i) for i in range(3))
    if not len(q) == len(k) == len(v) or len(q) not in (3, 4):
        ctx.fail(f"expected Q, K and V to have 3 or 4 axes alike, got {ctx.inputs_text()}")
    batch = ctx.unify(q[0], k[0], "expected one batch size")
    heads, kv_heads = ctx.attr("q_num_heads"), ctx.attr("kv_num_heads")
    v_head: Dim
    if len(q) == 3:
        if not heads or not kv_heads:
            ctx.fail("inputs of 3 axes need the attributes q_num_heads and kv_num_heads")
        if heads % kv_heads:
            ctx.fail(f"expected q_num_heads={heads} to be a multiple of kv_num_heads={kv_heads}")
        for name, size, count in (("Q", q[2], heads), ("K", k[2], kv_heads), ("V", v[2], kv_heads)):
            message = f"expected the size {size} of {name} to be a multiple of {count} heads"
            ctx.unify(size, floordiv(size, count) * count, message)
        head, k_head = floordiv(q[2], heads), floordiv(k[2], kv_heads)
        v_head = floordiv(v[2], kv_heads)
        n_heads: Dim = heads
        n_kv: Dim = kv_heads
        length, total = q[1], k[1]
        y: tuple[Dim, ...] = (batch, length, v_head * heads)
    else:
        n_heads, length, head = q[1:]
        n_kv, total, k_head = k[1:]
        v_head = v[3]
        ctx.unify(n_kv, v[1], "expected as many heads of keys as of values")
        message = "expected as many heads of queries as of keys, or a multiple"
        ctx.unify(n_heads, floordiv(n_heads, n_kv) * n_kv if n_kv else 0, message)
        y = (batch, n_heads, length, v_head)
    ctx.unify(head, k_head, "expected queries and keys of one head size")
    ctx.unify(k[-2], v[-2], "expected as many keys as values")
    ctx.unify(k[0], v[0], "expected one batch size")
    if ctx.has(4) != ctx.has(5):
        ctx.fail("expected both 'past_key' and 'past_value', or neither")
    if ctx.has(4):
        past = ctx.shape(4, rank=4)
        total = total + past[2]
        for i, size, own in ((4, k_head, past), (5, v_head, ctx.shape(5, rank=4))):
            wanted = (batch, n_kv, past[2], size)
            for left, right in zip(own, wanted, strict=True):
                ctx.unify(left, right, f"expected '{ctx.name(i)}' to continue what is given")
    if ctx.has(6):
        ctx.unify(ctx.shape(6, rank=1)[0], batch, "expected one count a row of the batch")
    if ctx.has(3) and ctx.known_rank(3):
        columns = ctx.shape(3)[-1]
        # Keys behind those that it mentions are hidden.
        ctx.unify(columns, minimum(columns, total), "expected no more columns of mask than keys")
    return [
        y,
        (batch, n_kv, total, k_head),
        TensorType(ctx.dtype(2), (batch, n_kv, total, v_head)),
        (batch, n_heads, length, total),
    ][: ctx.n_outputs]


_ONNX_ATTENTION = onnx_kernel("Attention")


def _attention(*inputs: Any, attributes: Mapping[str, Any], n_outputs: int) -> Any:
    """Compute the operator; where there is no key at all, a sum over none is 0."""
    q, k, v = inputs[:3]
    past = inputs[4:6] if len(inputs) > 5 and inputs[4] is not None else ()
    if k.shape[-2] or (past and past[0].shape[2]):
        found = _ONNX_ATTENTION(*inputs, attributes=attributes, n_outputs=n_outputs)
        if n_outputs > 3 and attributes.get("softcap") and not attributes["qk_matmul_output_mode"]:
            # The raw product; ONNX's kernel gives the capped one.
            plain = {**attributes, "softcap": 0.0}
            raw = _ONNX_ATTENTION(*inputs, attributes=plain, n_outputs=n_outputs)
            found = (*found[:3], raw[3])
        return found
    batch, heads, n_kv = q.shape[0], attributes.get("q_num_heads"), attributes.get("kv_num_heads")
    if q.ndim == 3:
        head, v_head, length = k.shape[2] // n_kv, v.shape[2] // n_kv, q.shape[1]
        y: tuple[int, ...] = (batch, length, heads * v_head)
    else:
        (heads, length, head), n_kv, v_head = q.shape[1:], k.shape[1], v.shape[3]
        y = (batch, heads, length, v_head)
    shapes: tuple[Any, ...] = (
        y,
        (batch, n_kv, 0, head),
        (batch, n_kv, 0, v_head),
        (batch, heads, length, 0),
    )
    types = (q.dtype, k.dtype, v.dtype, q.dtype)
    return tuple(np.zeros(*each) for each in zip(shapes, types, strict=True))[:n_outputs]


def composed_attention(
    q: Any,
    k: Any,
    v: Any,
    attn_mask: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    nonpad_kv_seqlen: Any = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    n_outputs: int = 1,
) -> tuple[Any, ...]:
    """Return the operator's outputs, over the builder."""
    packed = rank_of(q) == 3
    if packed:
        assert q_num_heads is not None
        assert kv_num_heads is not None
        q = split_heads(q, q_num_heads)
        k, v = split_heads(k, kv_num_heads), split_heads(v, kv_num_heads)
    offset: Any = 0
    counts = None
    if past_key is not None:
        offset = op("Shape", past_key, start=2, end=3)
        k, v = (op("Concat", past, new, axis=2) for past, new in ((past_key, k), (past_value, v)))
    elif nonpad_kv_seqlen is not None:
        counts = op("Reshape", nonpad_kv_seqlen, [-1, 1, 1, 1])
        offset = sub(counts, op("Shape", q, start=2, end=3))
    present = k, v
    repeats = floordiv(size_of(q, 1), size_of(k, 1))
    keys, values = repeat_heads(k, repeats), repeat_heads(v, repeats)
    scores = op("MatMul", q, transpose(keys, [0, 1, 3, 2]))
    scores = mul(scores, _head_scale(q) if scale is None else scale)
    raw = scores
    if softcap:
        scores = mul(op("Tanh", div(scores, softcap)), softcap)
    capped = scores
    bias = None if attn_mask is None else _mask_bias(attn_mask, scores)
    columns = positions_along(keys, 2)
    distance = sub(add(unsqueeze(positions_along(q, 2), [1]), offset), columns)
    allowed = []
    if is_causal:
        allowed.append(op("GreaterOrEqual", distance, 0))
    if left_window_size >= 0:
        allowed.append(op("LessOrEqual", distance, left_window_size))
    if right_window_size >= 0:
        allowed.append(op("LessOrEqual", neg(distance), right_window_size))
    if counts is not None:
        allowed.append(op("Less", columns, counts))
    for condition in allowed:
        part = _minus_infinity_unless(condition, scores)
        bias = part if bias is None else add(bias, part)
    if bias is None:
        probabilities = _softmax(scores, softmax_precision)
    else:
        # A row without any key that it may see is 0.
        closed = op("Equal", op("ReduceMax", bias, [-1], keepdims=1), -math.inf)
        biased = add(scores, bias)
        scores = biased
        probabilities = _softmax(where(closed, 0, biased), softmax_precision)
        probabilities = where(closed, 0, probabilities)
    shown = (raw, capped, scores, probabilities)[qk_matmul_output_mode]
    y = op("MatMul", cast(probabilities, dtype_of(v)), values)
    y = join_heads(y) if packed else y
    return (y, *present, cast(shown, dtype_of(q)))[:n_outputs]


def _head_scale(q: Any) -> Any:
    """Return 1 / sqrt of the size of a head."""
    head = size_of(q, 3)
    if isinstance(head, int):
        return head**-0.5
    return op("Reciprocal", op("Sqrt", op("Cast", op("Shape", q, start=3), to=dtype_of(q))))


def _softmax(scores: Any, precision: int | None) -> Any:
    wide = scores if precision is None else cast(scores, ir.DataType(precision))
    return cast(op("Softmax", wide, axis=-1), dtype_of(scores))


def _minus_infinity_unless(condition: Any, like: Any) -> Any:
    dtype = dtype_of(like).numpy()
    return where(condition, np.zeros((), dtype), np.full((), -math.inf, dtype))


def _mask_bias(mask: Any, scores: Any) -> Any:
    """Return a mask as addends of scores; keys that it does not mention are hidden."""
    if dtype_of(mask) == ir.DataType.BOOL:
        mask = _minus_infinity_unless(mask, scores)
    rank = rank_of(mask)
    if size_of(mask, rank - 1) == size_of(scores, 3):
        return mask
    missing = sub(op("Shape", scores, start=3), op("Shape", mask, start=rank - 1))
    # (A negative pad would cut a mask of more keys than there are, which does not fit.)
    pads = op("Concat", [0] * (2 * rank - 1), op("Max", missing, [0]), axis=0)
    return op("Pad", mask, pads, np.full((), -math.inf, dtype_of(mask).numpy()))


OPERATORS = (
    OpDef(
        "Attention",
        _infer_attention,
        _attention,
        compose=composed_attention,
        vjp=through(composed_attention),
    ),
)
