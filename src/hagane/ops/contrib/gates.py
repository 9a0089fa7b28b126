"""Gates and norms of language models with linear attention: GatedRMSNorm and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import dtype_of, op, rank_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, FLOATS, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.elementwise.activation import sigmoid, softplus
from hagane.ops.precision import composed_wide, widened
from hagane.symbolic import floordiv


def _rms(x: Array, epsilon: float) -> Array:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.asarray(epsilon, x.dtype))


def _scaled_silu(x: Array, scale: Array | None = None, *, alpha: float = 1.0) -> Array:
    factor = alpha if scale is None else scale.astype(x.dtype).reshape(())
    z = np.asarray(x * factor, x.dtype)
    return np.asarray(z * sigmoid(z.astype(np.float32)).astype(x.dtype), x.dtype)


def _composed_scaled_silu(x: Any, scale: Any = None, *, alpha: float = 1.0) -> Any:
    if scale is not None:
        z = op("Mul", x, op("Cast", op("Reshape", scale, [1]), to=dtype_of(x)))
    else:
        z = op("Mul", x, alpha)
    return op("Mul", z, op("Sigmoid", z))


def _infer_scaled_silu(ctx: InferContext) -> Sequence[Any]:
    ctx.fit(1, (), (1,))
    return [ctx.shape(0)]


def _gated_add(x: Array, y: Array, gate: Array, gate_weight: Array | None = None) -> Array:
    return np.asarray(x + np.asarray(y * gate, x.dtype), x.dtype)


def _composed_gated_add(x: Any, y: Any, gate: Any, gate_weight: Any = None) -> Any:
    return op("Add", x, op("Mul", y, gate))


def _infer_gated_add(ctx: InferContext) -> Sequence[Any]:
    if ctx.has(3):
        ctx.fail("'gate_weight' is not supported, which ONNX Runtime has on GPUs alone")
    shape = ctx.shape(0)
    ctx.fit(1, shape)
    ctx.fit(2, (*shape[:-1], 1))
    return [shape]


@widened
def _gated_rms(
    x: Array, scale: Array, gate: Array, *, activation: str = "silu", epsilon: float = 1e-5
) -> Array:
    rows = x.reshape(*x.shape[:-1], -1, len(scale))
    turned = sigmoid(gate) if activation == "sigmoid" else gate * sigmoid(gate)
    return (_rms(rows, epsilon) * scale).reshape(x.shape) * turned


@composed_wide
def _composed_gated_rms(
    x: Any, scale: Any, gate: Any, *, activation: str = "silu", epsilon: float = 1e-5
) -> Any:
    size, width = size_of(scale, 0), size_of(x, rank_of(x) - 1)
    if not isinstance(size, int) or not isinstance(width, int):
        return None
    kept = [0] * (rank_of(x) - 1)
    rows = op("Reshape", x, [*kept, width // size, size])
    y = op("Reshape", op("RMSNormalization", rows, scale, epsilon=epsilon), [*kept, width])
    gated = op("Mul", y, op("Sigmoid", gate))
    return gated if activation == "sigmoid" else op("Mul", gated, gate)


def _infer_gated_rms(ctx: InferContext) -> Sequence[Any]:
    if ctx.attr("activation") not in ("silu", "swish", "sigmoid"):
        ctx.fail(f"expected activation to be silu, swish, sigmoid, got '{ctx.attr('activation')}'")
    shape = ctx.shape(0)
    (size,) = ctx.shape(1, rank=1)
    whole = floordiv(shape[-1], size) * size if isinstance(size, int) and size else shape[-1]
    ctx.unify(shape[-1], whole, "expected rows of whole scales")
    ctx.fit(2, shape)
    return [shape]


@widened
def _branch_rms(
    x: Array, scale: Array | None = None, *, epsilon: float = 1e-5, num_branches: int = 0
) -> Array:
    rows = x.reshape(*x.shape[:-1], num_branches, -1) if num_branches else x
    y = _rms(rows, epsilon)
    if scale is not None:
        y = y * (scale if scale.size == rows.shape[-1] else scale.reshape(rows.shape[-2:]))
    return y.reshape(x.shape)


@composed_wide
def _composed_branch_rms(
    x: Any, scale: Any = None, *, epsilon: float = 1e-5, num_branches: int = 0
) -> Any:
    rank = rank_of(x)
    width = size_of(x, rank - 1)
    branches = num_branches or size_of(x, rank - 2)
    if not isinstance(width, int) or not isinstance(branches, int):
        return None
    size = width // num_branches if num_branches else width
    kept = [0] * (rank - 1)
    rows = op("Reshape", x, [*kept, num_branches, size]) if num_branches else x
    y = op("RMSNormalization", rows, np.ones(size, np.float32), epsilon=epsilon)
    if scale is not None:
        whole = rank_of(scale) == 1 and size_of(scale, 0) == size
        y = op("Mul", y, scale if whole else op("Reshape", scale, [branches, size]))
    return op("Reshape", y, [*kept, width]) if num_branches else y


def _infer_branch_rms(ctx: InferContext) -> Sequence[Any]:
    shape, count = ctx.shape(0), ctx.attr("num_branches")
    if len(shape) < (1 if count else 2):
        ctx.fail(f"expected branches as an axis, or num_branches, got {ctx.inputs_text()}")
    branches, size = (count, floordiv(shape[-1], count)) if count else shape[-2:]
    ctx.unify(shape[-1], size * branches if count else size, f"expected {count} branches of a size")
    if ctx.has(1):
        ctx.fit(1, (None,), (branches, size))
        numbers = (*ctx.shape(1), size, branches)
        told = len(numbers) == 3 and all(isinstance(number, int) for number in numbers)
        if told and numbers[0] not in (size, branches * size):
            ctx.fail(f"expected a scale of {size} or {branches * size}, got {ctx.inputs_text()}")
    return [shape]


def _attention_gate(
    a: Array, dt_bias: Array, decay_scale: Array, b: Array | None = None, *, n_outputs: int = 1
) -> tuple[Array | None, ...]:
    decay = decay_scale * softplus(a.astype(np.float32) + dt_bias)
    beta = None if b is None else sigmoid(b.astype(np.float32)).astype(b.dtype)
    return (decay.astype(a.dtype), beta)[:n_outputs]


def _composed_gate(
    a: Any, dt_bias: Any, decay_scale: Any, b: Any = None, *, n_outputs: int = 1
) -> tuple[Any, ...]:
    wide = op("Cast", a, to=ir.DataType.FLOAT)
    decay = op("Mul", op("Softplus", op("Add", wide, dt_bias)), decay_scale)
    decay = op("Cast", decay, to=dtype_of(a))
    beta = None if b is None else op("Sigmoid", b)
    return (decay, beta)[:n_outputs]


def _infer_gate(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    for index in (1, 2):
        ctx.fit(index, shape[-1:])
    ctx.fit(3, shape)
    if ctx.n_outputs > 1 and not ctx.has(3):
        ctx.fail("expected 'b', of which 'beta' is made")
    return [TensorType(ctx.dtype(0), shape)] * ctx.n_outputs


def _define(name: str, infer: Any, reference: Any, compose: Any) -> OpDef:
    return OpDef(name, infer, reference, domain=DOMAIN, compose=compose)


OPERATORS = (
    _define("BranchwiseRMSNorm", _infer_branch_rms, _branch_rms, _composed_branch_rms),
    _define("GatedAdd", _infer_gated_add, _gated_add, _composed_gated_add),
    _define("GatedRMSNorm", _infer_gated_rms, _gated_rms, _composed_gated_rms),
    _define("LinearAttentionGate", _infer_gate, _attention_gate, _composed_gate),
    _define("ScaledSiLU", _infer_scaled_silu, _scaled_silu, _composed_scaled_silu),
)

SCHEMAS = {
    (DOMAIN, "BranchwiseRMSNorm"): declare(
        "X:T, scale:M? -> Y:T", {"epsilon": 1e-5, "num_branches": 0}, T=FLOATS, M=FLOATS
    ),
    (DOMAIN, "GatedAdd"): declare("X:T, Y:T, gate:T, gate_weight:T? -> output:T", T=FLOATS),
    (DOMAIN, "GatedRMSNorm"): declare(
        "X:T, scale:T, gate:T -> Y:T", {"activation": "silu", "epsilon": 1e-5}, T=FLOATS
    ),
    (DOMAIN, "LinearAttentionGate"): declare(
        "a:T, dt_bias:float, decay_scale:float, b:T? -> decay:T, beta:T?", T=FLOATS
    ),
    (DOMAIN, "ScaledSiLU"): declare("X:T, scale:M? -> Y:T", {"alpha": 1.0}, T=FLOATS, M=FLOATS),
}
