"""Elementwise operators, pooling and products on quantised tensors (the QLinear family).

Each dequantises its inputs, computes in float32 and quantises the result, as the operators are
specified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import op
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, FLOATS, INT_LIST, INTS, declare
from hagane.ops.contrib.qlinear_composed import (
    composed_add,
    composed_concat,
    composed_gemm,
    composed_global,
    composed_leaky_relu,
    composed_mul,
    composed_pool,
    composed_softmax,
    composed_unary,
    composed_where,
)
from hagane.ops.convolution.pool import average_pool
from hagane.ops.convolution.window import Window, check_window
from hagane.ops.definition import Array, Kernel, OpDef
from hagane.ops.elementwise.activation import sigmoid
from hagane.ops.linear.matmul import fit_columns, infer_gemm
from hagane.ops.normalization.softmax import softmax
from hagane.ops.quantization.linear import OPERATORS as LINEAR
from hagane.ops.quantization.linear import dequantize, quantize
from hagane.ops.registry import schema
from hagane.ops.values import array_dtype, factor_of
from hagane.ops.vjp import ROUNDED
from hagane.symbolic import Dim

_ONE = np.ones((), np.float32)


def _real(x: Array, scale: Array, zero: Array | None) -> Array:
    zero = None if zero is None else zero.reshape(())
    return dequantize(x, scale.reshape(()), zero, np.float32)


def _whole(y: Array, scale: Array, zero: Array | None, like: Array) -> Array:
    dtype = array_dtype(like if zero is None else zero)
    zero = None if zero is None else zero.reshape(())
    return quantize(np.asarray(y), scale.reshape(()), zero, dtype)


def _around(y: Array, zero: Array | None, like: Array) -> Array:
    """Return numbers as bytes around a zero point, rounded after its addition."""
    return _whole(y if zero is None else y + zero.astype(np.float32), _ONE, None, like)


def _added(
    a: Array,
    a_scale: Array,
    a_zero: Array | None,
    b: Array,
    b_scale: Array,
    b_zero: Array | None,
    c_scale: Array,
    c_zero: Array | None = None,
) -> Array:
    total = _real(a, a_scale / c_scale, a_zero) + _real(b, b_scale / c_scale, b_zero)
    return _around(total, c_zero, a)


def _multiplied(
    a: Array,
    a_scale: Array,
    a_zero: Array | None,
    b: Array,
    b_scale: Array,
    b_zero: Array | None,
    c_scale: Array,
    c_zero: Array | None = None,
) -> Array:
    factor = factor_of(a_scale.reshape(()), b_scale.reshape(()), c_scale)
    return _around(_real(a, _ONE, a_zero) * _real(b, _ONE, b_zero) * factor, c_zero, a)


def _binary(name: str, reference: Kernel, compose: Kernel) -> OpDef:
    return OpDef(
        f"QLinear{name}",
        lambda ctx: [ctx.broadcast(ctx.shape(0), ctx.shape(3))],
        reference,
        domain=DOMAIN,
        compose=compose,
        vjp=ROUNDED,
    )


def _sigmoid(
    x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array | None = None
) -> Array:
    return _whole(sigmoid(_real(x, x_scale, x_zero)), y_scale, y_zero, x)


def _leaky_relu(
    x: Array,
    x_scale: Array,
    x_zero: Array | None,
    y_scale: Array,
    y_zero: Array | None = None,
    *,
    alpha: float = 0.01,
) -> Array:
    real = _real(x, x_scale, x_zero)
    return _whole(np.where(real >= 0, real, alpha * real), y_scale, y_zero, x)


def _softmax(
    x: Array,
    x_scale: Array,
    x_zero: Array | None,
    y_scale: Array,
    y_zero: Array | None = None,
    *,
    axis: int = -1,
    opset: int = 13,
) -> Array:
    real = _real(x, x_scale, x_zero)
    if opset < 13:
        flat = real.reshape(int(np.prod(real.shape[:axis])), -1)
        return _whole(softmax(flat).reshape(x.shape), y_scale, y_zero, x)
    return _whole(softmax(real, axis), y_scale, y_zero, x)


def _concat(y_scale: Array, y_zero: Array, *inputs: Array, axis: int) -> Array:
    parts = [_real(inputs[i], inputs[i + 1], inputs[i + 2]) for i in range(0, len(inputs), 3)]
    return _whole(np.concatenate(parts, axis), y_scale, y_zero, inputs[0])


def _infer_concat(ctx: InferContext) -> Sequence[Any]:
    if ctx.n_inputs % 3 != 2 or not all(ctx.has(i) for i in range(2, ctx.n_inputs)):
        ctx.fail(f"expected data, scale and zero point of each part, got {ctx.inputs_text()}")
    for i in range(2, ctx.n_inputs):
        wanted = ctx.dtype(1) if i % 3 != 0 else ir.DataType.FLOAT
        if ctx.dtype(i) != wanted:
            ctx.fail(f"expected {wanted} as input {i}, got {ctx.inputs_text()}")
    shapes = [ctx.shape(i) for i in range(2, ctx.n_inputs, 3)]
    axis = ctx.axis(ctx.attr("axis"), len(shapes[0]))
    total: Dim = 0
    for shape in shapes:
        total = total + shape[axis]
    first = shapes[0]
    return [TensorType(ctx.dtype(1), (*first[:axis], total, *first[axis + 1 :]))]


def _where(
    condition: Array,
    x: Array,
    x_scale: Array,
    x_zero: Array,
    y: Array,
    y_scale: Array,
    y_zero: Array,
    z_scale: Array,
    z_zero: Array,
) -> Array:
    chosen = np.where(condition, _real(x, x_scale, x_zero), _real(y, y_scale, y_zero))
    return _whole(chosen, z_scale, z_zero, x)


def _infer_where(ctx: InferContext) -> Sequence[Any]:
    return [ctx.broadcast(ctx.shape(0), ctx.shape(1), ctx.shape(4))]


def _average_pool(
    x: Array,
    x_scale: Array,
    x_zero: Array | None,
    y_scale: Array,
    y_zero: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    real = _real(x, x_scale, x_zero)
    y = average_pool(
        np.moveaxis(real, -1, 1) if channels_last else real,
        kernel_shape=kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        pads=pads,
        strides=strides,
    )
    return _around((np.moveaxis(y, 1, -1) if channels_last else y) / y_scale, y_zero, x)


def _infer_average_pool(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    last = bool(ctx.attr("channels_last"))
    spatial = shape[1:-1] if last else shape[2:]
    window = Window.of(
        ctx.attr("kernel_shape"),
        ctx.attr("strides"),
        None,
        ctx.attr("pads"),
        ctx.attr("auto_pad"),
        bool(ctx.attr("ceil_mode")),
    )
    check_window(ctx, window, spatial)
    output = window.output(spatial)
    return [(shape[0], *output, shape[-1]) if last else (*shape[:2], *output)]


def _global_average_pool(
    x: Array,
    x_scale: Array,
    x_zero: Array | None,
    y_scale: Array,
    y_zero: Array | None = None,
    *,
    channels_last: int = 0,
) -> Array:
    axes = tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))
    mean = _real(x, _ONE, x_zero).mean(axis=axes, keepdims=True)
    return _whole(mean * (x_scale / y_scale).reshape(()), _ONE, y_zero, x)


def _infer_global(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    if ctx.attr("channels_last"):
        return [(shape[0], *(1 for _ in shape[1:-1]), shape[-1])]
    return [(*shape[:2], *(1 for _ in shape[2:]))]


def _gemm(
    a: Array,
    a_scale: Array,
    a_zero: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array,
    c: Array | None = None,
    y_scale: Array | None = None,
    y_zero: Array | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    left = a.astype(np.int32) - a_zero.astype(np.int32).reshape(())
    # A scale for each column of the product belongs to the rows of a transposed right operand.
    right = b.T if transB else b
    right = right.astype(np.int32) - b_zero.astype(np.int32).reshape(-1)
    total = np.matmul(left.T if transA else left, right)
    if c is not None:
        total = total + c
    unit = a_scale.reshape(()) * np.float32(alpha)
    factor = factor_of(unit, b_scale.reshape(-1), _ONE if y_scale is None else y_scale)
    real = np.asarray(total.astype(np.float32) * factor)
    return real if y_scale is None else _whole(real, _ONE, y_zero, a)


def _infer_gemm(ctx: InferContext) -> Sequence[Any]:
    (shape,) = infer_gemm(ctx, 3, 6)
    for index in (4, 5):
        fit_columns(ctx, index, shape[1])
    if ctx.has(7) != ctx.has(8):
        ctx.fail("expected both 'y_scale' and 'y_zero_point', or neither")
    dtype = ctx.dtype(0) if ctx.has(8) else ctx.dtype(1)
    return [TensorType(dtype, shape)]


def _aligned(source: OpDef) -> OpDef:
    """Return ONNX's own quantisation under this domain; element types and rules are the same."""
    known = schema(*source.key).attribute_types

    def compose(*inputs: Any, attributes: Mapping[str, Any]) -> Any:
        given = {key: attributes[key] for key in known if key in attributes}
        return op(source.name, *inputs, **given)

    return replace(source, domain=DOMAIN, compose=compose)


OPERATORS = (
    _binary("Add", _added, composed_add),
    OpDef(
        "QLinearAveragePool",
        _infer_average_pool,
        _average_pool,
        domain=DOMAIN,
        compose=composed_pool,
        vjp=ROUNDED,
    ),
    OpDef(
        "QLinearConcat",
        _infer_concat,
        _concat,
        domain=DOMAIN,
        compose=composed_concat,
        vjp=ROUNDED,
    ),
    OpDef(
        "QLinearGlobalAveragePool",
        _infer_global,
        _global_average_pool,
        domain=DOMAIN,
        compose=composed_global,
        vjp=ROUNDED,
    ),
    OpDef(
        "QLinearLeakyRelu",
        lambda ctx: [ctx.shape(0)],
        _leaky_relu,
        domain=DOMAIN,
        compose=composed_leaky_relu,
        vjp=ROUNDED,
    ),
    _binary("Mul", _multiplied, composed_mul),
    OpDef(
        "QLinearSigmoid",
        lambda ctx: [ctx.shape(0)],
        _sigmoid,
        domain=DOMAIN,
        compose=composed_unary("Sigmoid"),
        vjp=ROUNDED,
    ),
    OpDef(
        "QLinearSoftmax",
        lambda ctx: [ctx.shape(0)],
        _softmax,
        domain=DOMAIN,
        compose=composed_softmax,
        vjp=ROUNDED,
    ),
    OpDef("QLinearWhere", _infer_where, _where, domain=DOMAIN, compose=composed_where, vjp=ROUNDED),
    OpDef("QGemm", _infer_gemm, _gemm, domain=DOMAIN, compose=composed_gemm, vjp=ROUNDED),
    *(_aligned(one) for one in LINEAR if one.name != "DynamicQuantizeLinear"),
)

_POOLING = {
    "auto_pad": "NOTSET",
    "ceil_mode": 0,
    "channels_last": 0,
    "count_include_pad": 0,
    "kernel_shape": INT_LIST,
    "pads": INT_LIST,
    "strides": INT_LIST,
}
_UNARY = "X:T, X_scale:float, X_zero_point:T?, Y_scale:float, Y_zero_point:T? -> Y:T"
_PAIR = (
    "A:T, A_scale:float, A_zero_point:T?, B:T, B_scale:float, B_zero_point:T?, C_scale:float, "
    "C_zero_point:T? -> C:T"
)
_QUANTISED = f"{INTS} int16 uint16 int32 int4 uint4"

SCHEMAS = {
    (DOMAIN, "DequantizeLinear"): declare(
        "x:T1, x_scale:T2, x_zero_point:T1? -> y:T2",
        {"axis": 1, "block_size": 0, "output_dtype": 0},
        T1=_QUANTISED,
        T2=FLOATS,
    ),
    (DOMAIN, "QuantizeLinear"): declare(
        "x:T1, y_scale:T1, y_zero_point:T2? -> y:T2",
        {"axis": 1, "block_size": 0, "output_dtype": 0, "precision": 0, "saturate": 1},
        T1=FLOATS,
        T2=_QUANTISED,
    ),
    (DOMAIN, "QGemm"): declare(
        "A:TA, a_scale:T, a_zero_point:TA, B:TB, b_scale:T, b_zero_point:TB, C:int32?, "
        "y_scale:T?, y_zero_point:TYZ? -> Y:TY",
        {"alpha": 1.0, "transA": 0, "transB": 0},
        TA=INTS,
        TB=INTS,
        T="float",
        TYZ=INTS,
        TY=f"{INTS} float",
    ),
    (DOMAIN, "QLinearAdd"): declare(_PAIR, T=INTS),
    (DOMAIN, "QLinearAveragePool"): declare(_UNARY, _POOLING, ("kernel_shape",), T=INTS),
    (DOMAIN, "QLinearConcat"): declare(
        "Y_scale:float, Y_zero_point:T, inputs:TV* -> Y:T",
        {"axis": 0},
        required=("axis",),
        T=INTS,
        TV=f"{INTS} float",
    ),
    (DOMAIN, "QLinearGlobalAveragePool"): declare(_UNARY, {"channels_last": 0}, T=INTS),
    (DOMAIN, "QLinearLeakyRelu"): declare(_UNARY, {"alpha": 0.01}, T=INTS),
    (DOMAIN, "QLinearMul"): declare(_PAIR, T=INTS),
    (DOMAIN, "QLinearSigmoid"): declare(_UNARY, T=INTS),
    (DOMAIN, "QLinearSoftmax"): declare(_UNARY, {"axis": -1, "opset": 13}, ("opset",), T=INTS),
    (DOMAIN, "QLinearWhere"): declare(
        "condition:bool, X:T, x_scale:float, x_zero_point:T, Y:T, y_scale:float, "
        "y_zero_point:T, z_scale:float, z_zero_point:T -> Z:T",
        T=INTS,
    ),
}
