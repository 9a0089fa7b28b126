"""Operators that quantise activations as they come: DynamicQuantizeLSTM and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import op
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import (
    DOMAIN,
    FLOAT,
    FLOAT_LIST,
    FLOATS,
    INT,
    INTS,
    STRING_LIST,
    declare,
)
from hagane.ops.contrib.qlinear_composed import single
from hagane.ops.definition import Array, OpDef, Unsupported
from hagane.ops.linear.matmul import fit_columns, product_shape
from hagane.ops.precision import composed_wide
from hagane.ops.quantization.linear import dynamic_quantize
from hagane.ops.recurrent import layer
from hagane.ops.vjp import ROUNDED


def _product(a: Array, b: Array, b_scale: Array, b_zero: Array | None) -> Array:
    """Return ``a @ b`` for a float ``a``, quantised on the spot, and a quantised ``b``."""
    whole, scale, zero = dynamic_quantize(a)
    return _scaled(whole, zero, scale, b, b_zero, b_scale)


def _scaled(
    a: Array, a_zero: Array | None, a_scale: Array, b: Array, b_zero: Array | None, b_scale: Array
) -> Array:
    left = a.astype(np.int32) - (0 if a_zero is None else a_zero.astype(np.int32))
    right = b.astype(np.int32) - (0 if b_zero is None else b_zero.astype(np.int32))
    total = np.matmul(left, right).astype(np.float32)
    return total * (a_scale.astype(np.float32) * b_scale.astype(np.float32))


def _dynamic_quantize_matmul(
    a: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array | None = None,
    bias: Array | None = None,
) -> Array:
    y = _product(a, b, b_scale, b_zero)
    return (y if bias is None else y + bias).astype(np.float32)


def matmul_integer_to_float(
    a: Array,
    b: Array,
    a_scale: Array,
    b_scale: Array,
    a_zero: Array | None = None,
    b_zero: Array | None = None,
    bias: Array | None = None,
) -> Array:
    """Return ``a @ b`` of bytes with scales, as floats."""
    y = _scaled(a, a_zero, a_scale, b, b_zero, b_scale)
    return (y if bias is None else y + bias).astype(a_scale.dtype)


def _infer_matmul(ctx: InferContext) -> Sequence[Any]:
    shape = product_shape(ctx, ctx.shape(0), ctx.shape(1))
    scale, zero, bias = (2, 3, 4) if ctx.op.name == "DynamicQuantizeMatMul" else (3, 5, 6)
    if shape and ctx.known_rank(1) != 1:
        fit_columns(ctx, scale, shape[-1])
        fit_columns(ctx, zero, shape[-1])
        ctx.fit(bias, (shape[-1],))
    return [TensorType(ctx.dtype(2), shape)]


def _dynamic_quantize_lstm(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
    initial_c: Array | None,
    p: Array | None,
    w_scale: Array,
    w_zero: Array,
    r_scale: Array,
    r_zero: Array,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    """LSTM whose products are of 8-bit integers; w is (directions, inputs, 4 · hidden)."""
    count = layer.directions_of(direction)
    functions = layer.activations(
        activations, ("Sigmoid", "Tanh", "Tanh"), count, activation_alpha, activation_beta, clip
    )
    n = r.shape[1]
    bias = np.zeros((count, 8 * n), dtype=x.dtype) if b is None else b
    peephole = np.zeros((count, 3 * n), dtype=x.dtype) if p is None else p
    # Inputs share one scale over the whole sequence; states get a new one at each step.
    whole, x_scale, x_zero = dynamic_quantize(x)

    def cell(d: int) -> layer.Cell:
        f, g, h_activation = functions[d]
        total = bias[d, : 4 * n] + bias[d, 4 * n :]
        p_i, p_o, p_f = np.split(peephole[d], 3)

        def step(x_t: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
            h, c = state
            gates = _scaled(x_t, x_zero, x_scale, w[d], w_zero[d], w_scale[d])
            gates = gates + _product(h, r[d], r_scale[d], r_zero[d]) + total
            i, o, forget, candidate = np.split(gates.astype(np.float32), 4, axis=1)
            i = f(i + p_i * c)
            forget = 1 - i if input_forget else f(forget + p_f * c)
            c = forget * c + i * g(candidate)
            h = f(o + p_o * c) * h_activation(c)
            return h, (h, c)

        return step

    cells = [cell(d) for d in range(count)]
    zeros = np.zeros((count, x.shape[1], n), dtype=np.float32)
    states = [zeros if initial_h is None else initial_h, zeros if initial_c is None else initial_c]
    y, final = layer.run(
        whole, sequence_lens, states, cells, n, direction, layout=0, dtype=np.float32
    )
    return (y, *final)[:n_outputs]


def _infer_lstm(ctx: InferContext) -> Sequence[Any]:
    steps, batch, size = ctx.shape(0, rank=3)
    count = layer.checked_directions(ctx)
    hidden = ctx.shape(2, rank=3)[1]
    for index, own in ((1, size), (2, hidden)):
        for left, right in zip(ctx.shape(index, rank=3), (count, own, hidden * 4), strict=True):
            message = f"expected '{ctx.name(index)}' of the sizes {(count, own, hidden * 4)}"
            ctx.unify(left, right, message)
    for index in range(8, 12):
        for left, right in zip(ctx.shape(index), (count, hidden * 4), strict=False):
            ctx.unify(left, right, f"expected '{ctx.name(index)}' for a direction, or a column")
    if ctx.attr("hidden_size") is not None:
        ctx.unify(
            ctx.attr("hidden_size"),
            hidden,
            f"expected 'R' of hidden_size={ctx.attr('hidden_size')}",
        )
    state = (count, batch, hidden)
    layer.unify_optional(ctx, 4, count, batch, hidden, state)
    return [(steps, count, batch, hidden), state, state][: ctx.n_outputs]


def _composed_scaled(
    a: Any, a_zero: Any, a_scale: Any, b: Any, b_zero: Any, b_scale: Any, bias: Any
) -> Any:
    """``_scaled`` over the builder, and a bias."""
    total = op("MatMulInteger", a, b, single(a_zero), single(b_zero))
    scale = op("Mul", single(a_scale), single(b_scale))
    y = op("Mul", op("Cast", total, to=ir.DataType.FLOAT), scale)
    return y if bias is None else op("Add", y, bias)


def _composed_dynamic(a: Any, b: Any, b_scale: Any, b_zero: Any = None, bias: Any = None) -> Any:
    whole, scale, zero = op("DynamicQuantizeLinear", a, outputs=3)
    return _composed_scaled(whole, zero, scale, b, b_zero, b_scale, bias)


@composed_wide
def composed_to_float(
    a: Any,
    b: Any,
    a_scale: Any,
    b_scale: Any,
    a_zero: Any = None,
    b_zero: Any = None,
    bias: Any = None,
) -> Any:
    """``matmul_integer_to_float`` over the builder."""
    return _composed_scaled(a, a_zero, a_scale, b, b_zero, b_scale, bias)


OPERATORS = (
    OpDef(
        "DynamicQuantizeLSTM",
        _infer_lstm,
        _dynamic_quantize_lstm,
        domain=DOMAIN,
        compose=Unsupported("states are quantised anew at every step"),
        vjp=ROUNDED,
    ),
    OpDef(
        "DynamicQuantizeMatMul",
        _infer_matmul,
        _dynamic_quantize_matmul,
        domain=DOMAIN,
        compose=_composed_dynamic,
        vjp=ROUNDED,
    ),
    OpDef(
        "MatMulIntegerToFloat",
        _infer_matmul,
        matmul_integer_to_float,
        domain=DOMAIN,
        compose=composed_to_float,
        vjp=ROUNDED,
    ),
)

SCHEMAS = {
    (DOMAIN, "DynamicQuantizeLSTM"): declare(
        "X:T, W:T2, R:T2, B:T?, sequence_lens:T1?, initial_h:T?, initial_c:T?, P:T?, W_scale:T, "
        "W_zero_point:T2, R_scale:T, R_zero_point:T2 -> Y:T?, Y_h:T?, Y_c:T?",
        {
            "activation_alpha": FLOAT_LIST,
            "activation_beta": FLOAT_LIST,
            "activations": STRING_LIST,
            "clip": FLOAT,
            "direction": "forward",
            "hidden_size": INT,
            "input_forget": 0,
        },
        T="float",
        T1="int32",
        T2=INTS,
    ),
    (DOMAIN, "DynamicQuantizeMatMul"): declare(
        "A:T1, B:T2, b_scale:T1, b_zero_point:T2?, bias:T1? -> Y:T1", T1="float", T2=INTS
    ),
    (DOMAIN, "MatMulIntegerToFloat"): declare(
        "A:T1, B:T2, a_scale:T3, b_scale:T3, a_zero_point:T1?, b_zero_point:T2?, bias:T3? -> Y:T3",
        T1=INTS,
        T2=INTS,
        T3=FLOATS,
    ),
}
