"""The QLinear family over the builder: inputs to real numbers, the operator on these, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.definition import Kernel

_ONE = np.ones((), np.float32)


def single(value: Any) -> Any:
    """Return a scale or zero point, which may be a list of one, as a scalar."""
    if value is None or rank_of(value) == 0 or shape_of(value) != (1,) * rank_of(value):
        return value
    return op("Reshape", value, [])


def _dequantized(x: Any, scale: Any, zero: Any) -> Any:
    return op("DequantizeLinear", x, single(scale), single(zero))


def _quantized(y: Any, scale: Any, zero: Any, like: Any) -> Any:
    zero = np.zeros((), dtype_of(like).numpy()) if zero is None else single(zero)
    return op("QuantizeLinear", y, single(scale), zero)


def _rounded_around(y: Any, zero: Any, like: Any) -> Any:
    """Return numbers as bytes around a zero point, rounded after its addition.

    As ONNX Runtime has it: around an odd one, 2.5 is rounded up.
    """
    if zero is not None:
        y = op("Add", y, op("Cast", single(zero), to=ir.DataType.FLOAT))
    return _quantized(y, _ONE, None, like)


def composed_mul(
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    c_scale: Any,
    c_zero: Any = None,
) -> Any:
    """Return QLinearMul."""
    total = op("Mul", _dequantized(a, _ONE, a_zero), _dequantized(b, _ONE, b_zero))
    factor = op("Div", op("Mul", single(a_scale), single(b_scale)), single(c_scale))
    return _rounded_around(op("Mul", total, factor), c_zero, a)


def composed_add(
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    c_scale: Any,
    c_zero: Any = None,
) -> Any:
    """Return QLinearAdd."""
    scales = [op("Div", single(scale), single(c_scale)) for scale in (a_scale, b_scale)]
    left, right = _dequantized(a, scales[0], a_zero), _dequantized(b, scales[1], b_zero)
    return _rounded_around(op("Add", left, right), c_zero, a)


def composed_unary(name: str) -> Kernel:
    """Return the composition of an operator on one quantised tensor."""

    def compose(
        x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None, **attributes: Any
    ) -> Any:
        y = op(name, _dequantized(x, x_scale, x_zero), **attributes)
        return _quantized(y, y_scale, y_zero, x)

    return compose


def composed_leaky_relu(
    x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None, *, alpha: float = 0.01
) -> Any:
    """Return QLinearLeakyRelu."""
    return composed_unary("LeakyRelu")(x, x_scale, x_zero, y_scale, y_zero, alpha=alpha)


def composed_softmax(
    x: Any,
    x_scale: Any,
    x_zero: Any,
    y_scale: Any,
    y_zero: Any = None,
    *,
    axis: int = -1,
    opset: int = 13,
) -> Any:
    """Return QLinearSoftmax, of all axes from ``axis`` on before opset 13."""
    real = _dequantized(x, x_scale, x_zero)
    if opset >= 13:
        return _quantized(op("Softmax", real, axis=axis), y_scale, y_zero, x)
    flat = op("Softmax", op("Flatten", real, axis=axis), axis=-1)
    return _quantized(op("Reshape", flat, op("Shape", x)), y_scale, y_zero, x)


def composed_concat(y_scale: Any, y_zero: Any, *inputs: Any, axis: int) -> Any:
    """Return QLinearConcat; each input comes with its scale and zero point."""
    parts = [_dequantized(*inputs[i : i + 3]) for i in range(0, len(inputs), 3)]
    return _quantized(op("Concat", *parts, axis=axis), y_scale, y_zero, inputs[0])


def composed_where(
    condition: Any,
    x: Any,
    x_scale: Any,
    x_zero: Any,
    y: Any,
    y_scale: Any,
    y_zero: Any,
    z_scale: Any,
    z_zero: Any,
) -> Any:
    """Return QLinearWhere."""
    left, right = _dequantized(x, x_scale, x_zero), _dequantized(y, y_scale, y_zero)
    return _quantized(op("Where", condition, left, right), z_scale, z_zero, x)


def composed_pool(
    x: Any,
    x_scale: Any,
    x_zero: Any,
    y_scale: Any,
    y_zero: Any = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """Return QLinearAveragePool."""
    real, rank = _dequantized(x, x_scale, x_zero), rank_of(x)
    if channels_last:
        real = op("Transpose", real, perm=[0, rank - 1, *range(1, rank - 1)])
    y = op(
        "AveragePool", real, auto_pad=auto_pad, ceil_mode=ceil_mode,
        count_include_pad=count_include_pad, kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip
    if channels_last:
        y = op("Transpose", y, perm=[0, *range(2, rank), 1])
    return _rounded_around(op("Div", y, single(y_scale)), y_zero, x)


def composed_global(
    x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None, *, channels_last: int = 0
) -> Any:
    """Return QLinearGlobalAveragePool."""
    rank = rank_of(x)
    axes = list(range(1, rank - 1) if channels_last else range(2, rank))
    mean = op("ReduceMean", _dequantized(x, _ONE, x_zero), axes)
    factor = op("Div", single(x_scale), single(y_scale))
    return _quantized(op("Mul", mean, factor), _ONE, y_zero, x)


def composed_gemm(
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    c: Any = None,
    y_scale: Any = None,
    y_zero: Any = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    """Return QGemm; without a scale of the result, real numbers."""
    left = op("Transpose", a, perm=[1, 0]) if transA else a
    right = op("Transpose", b, perm=[1, 0]) if transB else b
    total = op("MatMulInteger", left, right, single(a_zero), single(b_zero))
    if c is not None:
        total = op("Add", total, c)
    scale = single(a_scale)
    if alpha != 1:
        scale = op("Mul", scale, alpha)
    factor = op("Mul", scale, single(b_scale))
    if y_scale is not None:
        factor = op("Div", factor, single(y_scale))
    real = op("Mul", op("Cast", total, to=ir.DataType.FLOAT), factor)
    return real if y_scale is None else _quantized(real, _ONE, y_zero, a)
