"""LinearAttention and CausalConvWithState."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import dtype_of, op, scan, shape_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.definition import OpDef
from hagane.ops.delegated import onnx_kernel
from hagane.ops.functions.layers.heads import join_heads, repeat_heads, split_heads
from hagane.ops.functions.numbers.elementary import add, cast, exp, mul, sub, transpose, unsqueeze
from hagane.ops.vjp import through
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
    if ctx.has(3):
        wanted = (batch, channels, weight[2] - 1)
        for left, right in zip(ctx.shape(3, rank=3), wanted, strict=True):
            ctx.unify(left, right, "expected the steps that a filter reaches back as 'past_state'")
    return [(batch, channels, length), (batch, channels, weight[2] - 1)]


def composed_causal_conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    past_state: Any = None,
    *,
    activation: str = "none",
    n_outputs: int = 1,
) -> tuple[Any, ...]:
    """Return the operator's outputs, over the builder."""
    reach = size_of(weight, 2) - 1
    if past_state is None:
        padded = op("Pad", x, [0, 0, reach, 0, 0, 0])
    else:
        padded = op("Concat", past_state, x, axis=2)
    y = op("Conv", padded, weight, bias, group=size_of(x, 1))
    y = y if activation == "none" else op("Swish", y)
    state = op("Slice", padded, op("Shape", x, start=2), [2**62], [2])
    return (y, state)[:n_outputs]


def composed_linear_attention(
    query: Any,
    key: Any,
    value: Any,
    past_state: Any = None,
    decay: Any = None,
    beta: Any = None,
    *,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
    n_outputs: int = 1,
) -> tuple[Any, ...]:
    """Return the operator's outputs, over the builder: in float32, as the operator works."""
    wide = ir.DataType.FLOAT
    q = cast(split_heads(query, q_num_heads), wide)
    k, v = (cast(split_heads(x, kv_num_heads), wide) for x in (key, value))
    batch, heads, _, size = shape_of(k)
    gates = []
    if decay is not None:
        gates.append(exp(cast(split_heads(decay, kv_num_heads), wide)))
    if beta is not None:
        gates.append(cast(transpose(unsqueeze(beta, [3]), [0, 2, 1, 3]), wide))
    zeros = np.zeros(1, np.float32)
    if past_state is None:
        first = op("ConstantOfShape", [batch, heads, size, size_of(v, 3)], value=zeros)
    else:
        first = cast(past_state, wide)
    factor = scale or float(size) ** -0.5  # type: ignore[arg-type]

    def step(state: Any, q_t: Any, k_t: Any, v_t: Any, *rest: Any) -> tuple[Any, Any]:
        open_gates = list(rest)
        if decay is not None:
            state = mul(state, unsqueeze(open_gates.pop(0), [3]))
        if beta is not None:
            seen = op("Einsum", state, k_t, equation="bhdm,bhd->bhm")
            v_t = mul(sub(v_t, seen), open_gates.pop(0))
        state = add(state, mul(unsqueeze(k_t, [3]), unsqueeze(v_t, [2])))
        read = repeat_heads(state, q_num_heads // kv_num_heads)
        return state, mul(op("Einsum", q_t, read, equation="bhd,bhdm->bhm"), factor)

    last, y = scan([first], [q, k, v, *gates], step, stacked=1, axis=2)
    y = join_heads(transpose(y, [1, 2, 0, 3]))
    state_type = dtype_of(query if past_state is None else past_state)
    return (cast(y, dtype_of(query)), cast(last, state_type))[:n_outputs]


OPERATORS = (
    OpDef(
        "CausalConvWithState",
        _infer_causal_conv,
        onnx_kernel("CausalConvWithState"),
        compose=composed_causal_conv,
        vjp=through(composed_causal_conv),
    ),
    OpDef(
        "LinearAttention",
        _infer_linear_attention,
        onnx_kernel("LinearAttention"),
        compose=composed_linear_attention,
        vjp=through(composed_linear_attention),
    ),
)
