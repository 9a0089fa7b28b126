"""QLinearConv and QLinearMatMul."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.graph.types import TensorType
from hagane.ops.context import InferContext
from hagane.ops.convolution.conv import convolve, infer_conv, shift_weight
from hagane.ops.convolution.window import Window
from hagane.ops.definition import Array, OpDef
from hagane.ops.linear.matmul import product_shape
from hagane.ops.quantization.linear import quantize
from hagane.ops.values import array_dtype, factor_of
from hagane.ops.vjp import ROUNDED


def requantize(sums: Array, factor: Array, zero: Array) -> Array:
    """Return sums of products times a factor, rounded to bytes around ``zero``."""
    real = sums.astype(np.float32) * factor
    return quantize(real, np.ones((), np.float32), zero.reshape(()), array_dtype(zero))


def _qlinear_conv(
    x: Array,
    x_scale: Array,
    x_zero: Array,
    w: Array,
    w_scale: Array,
    w_zero: Array,
    y_scale: Array,
    y_zero: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    window = Window.of(kernel_shape or w.shape[2:], strides, dilations, pads, auto_pad)
    shifted = x.astype(np.int32) - x_zero.astype(np.int32)
    total = convolve(shifted, shift_weight(w, w_zero), window, group)
    per_map = (-1, *(1,) * window.rank)
    if b is not None:
        total = total + b.reshape(per_map)
    scales = w_scale.reshape(() if w_scale.size == 1 else per_map)
    return requantize(total, factor_of(x_scale.reshape(()), scales, y_scale), y_zero)


def _infer_qlinear_conv(ctx: InferContext) -> Sequence[Any]:
    (shape,) = infer_conv(ctx, x=0, w=3, bias=8)
    return [TensorType(ctx.dtype(7), shape)]


def _rows(value: Array, ndim: int) -> Array:
    """Return a per-row scale or zero point of a left operand as a column."""
    return value[:, None] if value.ndim == 1 and value.size > 1 and ndim > 1 else value


def _qlinear_matmul(
    a: Array,
    a_scale: Array,
    a_zero: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array,
    y_scale: Array,
    y_zero: Array,
) -> Array:
    left = a.astype(np.int64) - _rows(a_zero, a.ndim).astype(np.int64)
    right = b.astype(np.int64) - b_zero.astype(np.int64)
    total = np.matmul(left, right)
    return requantize(total, factor_of(_rows(a_scale, a.ndim), b_scale, y_scale), y_zero)


def _infer_qlinear_matmul(ctx: InferContext) -> Sequence[Any]:
    shape = product_shape(ctx, ctx.shape(0), ctx.shape(3))
    return [TensorType(ctx.dtype(7), shape)]


OPERATORS = (
    OpDef("QLinearConv", _infer_qlinear_conv, _qlinear_conv, vjp=ROUNDED),
    OpDef("QLinearMatMul", _infer_qlinear_matmul, _qlinear_matmul, vjp=ROUNDED),
)
