"""LinearAttention and CausalConvWithState."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hagane.graph.types import TensorType
from hagane.ops.context import InferContext
from hagane.ops.definition import OpDef
from hagane.ops.delegated import onnx_kernel
from hagane.symbolic import floordiv


def _infer_linear_attention(ctx: InferContext) -> Sequence[Any]:
    q, k, v = (ctx.shape(i, rank=3) for i in range(3))
    heads, kv_heads = ctx.attr("q_num_heads"), ctx.attr("kv_num_heads")
    if heads % kv_heads:
        ctx.fail(f"expected q_num_heads={heads} to be a multiple of kv_num_heads={kv_heads}")
    k_size, v_size = floordiv(k[2], kv_heads), floordiv(v[2], kv_heads)
    ctx.unify(floordiv(q[2], heads), k_size, "expected queries and keys of one head size")
    state = ctx.tensor(3).dtype if ctx.has(3) else ctx.dtype(0)
    return [
        (q[0], q[1], v_size * heads),
        TensorType(state, (q[0], kv_heads, k_size, v_size)),
    ]


def _infer_causal_conv(ctx: InferContext) -> Sequence[Any]:
    batch, channels, length = ctx.shape(0, rank=3)
    weight = ctx.shape(1, rank=3)
    ctx.unify(channels, weight[0], "expected one filter a channel")
    return [(batch, channels, length), (batch, channels, weight[2] - 1)]


OPERATORS = (
    OpDef("CausalConvWithState", _infer_causal_conv, onnx_kernel("CausalConvWithState")),
    OpDef("LinearAttention", _infer_linear_attention, onnx_kernel("LinearAttention")),
)
