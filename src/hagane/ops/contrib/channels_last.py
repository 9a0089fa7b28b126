"""NhwcMaxPool, QLinearConv: images with their channels last, as ONNX Runtime has those of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, FLOATS, INTS, WINDOW, declare
from hagane.ops.convolution.conv import infer_conv
from hagane.ops.convolution.pool import infer_pool, max_pool
from hagane.ops.convolution.window import Window
from hagane.ops.definition import Array, OpDef
from hagane.ops.quantization.product import OPERATORS as PRODUCTS
from hagane.ops.vjp import ROUNDED

(_QLINEAR_CONV,) = (one for one in PRODUCTS if one.name == "QLinearConv")


def _nhwc_max_pool(
    x: Array,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    y = max_pool(
        np.moveaxis(x, -1, 1),
        kernel_shape=kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        pads=pads,
        strides=strides,
    )
    return np.moveaxis(np.asarray(y), 1, -1)


def _infer_nhwc_max_pool(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    ((n, c, *spatial),) = infer_pool(ctx, (shape[0], shape[-1], *shape[1:-1]))
    return [(n, *spatial, c)]


# Taps along all axes that are taken as slices.
_MOST_TAPS = 16


def _largest_of_slices(x: Any, window: Window, sizes: Sequence[int]) -> Any:
    """Return the maxima of bytes, an axis after the other: channels lie side by side throughout."""
    output = [int(n) for n in window.output(sizes)]
    amounts, reach = window.amounts(sizes), []
    for axis, size in enumerate(sizes):
        before, after = amounts[axis]
        end = (output[axis] - 1) * window.strides[axis] + window.extent(axis)
        reach += [(before, max(after, end - before - size))]
    padding = [before for before, _ in reach] + [after for _, after in reach]
    if any(padding):
        least = np.iinfo(dtype_of(x).numpy()).min
        at = list(range(1, 1 + len(sizes)))
        x = op("Pad", x, padding, np.array(least, dtype_of(x).numpy()), at)
    for axis, taps in enumerate(window.kernel):
        stride, last = window.strides[axis], (output[axis] - 1) * window.strides[axis] + 1
        slices = []
        for tap in range(taps):
            slices.append(op("Slice", x, [tap], [tap + last], [1 + axis], [stride]))
        x = op("Max", *slices)
    return x


def _composed_pool(
    x: Any,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    window = Window.of(kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode))
    sizes = [size for size in shape_of(x)[1:-1] if isinstance(size, int)]
    whole = dtype_of(x) in (ir.DataType.INT8, ir.DataType.UINT8)
    few = sum(kernel_shape) <= _MOST_TAPS and set(window.dilations) == {1}
    if whole and few and len(sizes) == window.rank:
        return _largest_of_slices(x, window, sizes)
    rank = rank_of(x)
    y = op(
        "MaxPool", op("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)]), auto_pad=auto_pad,
        ceil_mode=ceil_mode, dilations=dilations, kernel_shape=kernel_shape, pads=pads,
        strides=strides,
    )  # fmt: skip
    return op("Transpose", y, perm=[0, *range(2, rank), 1])


def _q_linear_conv(*inputs: Array | None, attributes: Mapping[str, Any]) -> Array:
    (x, *others), settings = inputs, dict(attributes)
    if not settings.pop("channels_last", 0):
        return np.asarray(_QLINEAR_CONV.bound(settings, 1)(x, *others))
    y = _QLINEAR_CONV.bound(settings, 1)(np.moveaxis(np.asarray(x), -1, 1), *others)
    return np.moveaxis(np.asarray(y), 1, -1)


def _composed_q_linear_conv(*inputs: Any, attributes: Mapping[str, Any]) -> Any:
    (x, *others), settings = inputs, dict(attributes)
    if not settings.pop("channels_last", 0):
        return op("QLinearConv", x, *others, **settings)
    rank = rank_of(x)
    x = op("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])
    y = op("QLinearConv", x, *others, **settings)
    return op("Transpose", y, perm=[0, *range(2, rank), 1])


def _infer_q_linear_conv(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    if not ctx.attr("channels_last") or len(shape) < 3:
        (found,) = infer_conv(ctx, x=0, w=3, bias=8)
        return [TensorType(ctx.dtype(7), found)]
    n, *spatial, c = shape
    ((n, c, *spatial),) = infer_conv(ctx, x=0, w=3, bias=8, x_shape=(n, c, *spatial))
    return [TensorType(ctx.dtype(7), (n, *spatial, c))]


OPERATORS = (
    OpDef(
        "NhwcMaxPool", _infer_nhwc_max_pool, _nhwc_max_pool, domain=DOMAIN, compose=_composed_pool
    ),
    OpDef(
        "QLinearConv",
        _infer_q_linear_conv,
        _q_linear_conv,
        domain=DOMAIN,
        compose=_composed_q_linear_conv,
        vjp=ROUNDED,
    ),
)

SCHEMAS = {
    (DOMAIN, "NhwcMaxPool"): declare(
        "x:T -> y:T",
        {**WINDOW, "ceil_mode": 0},
        required=("kernel_shape",),
        T=f"int8 uint8 {FLOATS}",
    ),
    (DOMAIN, "QLinearConv"): declare(
        "x:T1, x_scale:float, x_zero_point:T1, w:T2, w_scale:float, w_zero_point:T2, "
        "y_scale:float, y_zero_point:T3, B:int32? -> y:T3",
        {**WINDOW, "channels_last": 0, "group": 1},
        T1=INTS,
        T2=INTS,
        T3=INTS,
    ),
}
