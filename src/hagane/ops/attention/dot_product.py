"""Attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hagane.graph.types import TensorType
from hagane.ops.context import InferContext
from hagane.ops.definition import OpDef
from hagane.ops.delegated import onnx_kernel
from hagane.symbolic import Dim, floordiv


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
            if isinstance(size, int) and size % count:
                ctx.fail(f"expected the size {size} of {name} to be a multiple of {count} heads")
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
        y = (batch, n_heads, length, v_head)
    ctx.unify(head, k_head, "expected queries and keys of one head size")
    ctx.unify(k[-2], v[-2], "expected as many keys as values")
    if ctx.has(4):
        total = total + ctx.shape(4, rank=4)[2]
    return [
        y,
        (batch, n_kv, total, k_head),
        TensorType(ctx.dtype(2), (batch, n_kv, total, v_head)),
        (batch, n_heads, length, total),
    ][: ctx.n_outputs]


OPERATORS = (OpDef("Attention", _infer_attention, onnx_kernel("Attention")),)
