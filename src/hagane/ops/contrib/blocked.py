"""The domain ``com.microsoft.nchwc``: images in blocks of channels, as ONNX Runtime keeps them.

ONNX Runtime writes these operators into the models that it saves at its highest level of
optimisation. It stores images as (batch, channels / block, height, width, block), and weights in
the order in which its kernels read them, where ``block`` is a number of the processor that wrote
the file: nothing in the file says it, so a file means what ONNX Runtime takes it for on this one.

Here such an image is a plain one, (batch, channels, height, width), with channels of zeros up to a
whole block, for no operator of these models tells the order of its elements; the weights
are put back in order.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from hagane.machine.cpu import cpu_features
from hagane.ops.builder import op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, FLOAT_LIST, INT_LIST, STRING, WINDOW, declare
from hagane.ops.contrib.fused import OPERATORS as FUSED
from hagane.ops.convolution import OPERATORS as CONVOLUTIONS
from hagane.ops.definition import Array, OpDef
from hagane.ops.schema import Schema
from hagane.ops.vision.resize import OPERATORS as VISION
from hagane.ops.vjp import through
from hagane.symbolic import Dim, floordiv

_NCHWC = "com.microsoft.nchwc"


@cache
def block_size() -> int:
    """Return the channels of a block on this processor."""
    wide = platform.machine() not in ("x86_64", "AMD64") or "avx512f" in cpu_features()
    return 16 if wide else 8


def _aligned(channels: Dim) -> Dim:
    block = block_size()
    return floordiv(channels + (block - 1), block) * block


def _refuse(ctx: InferContext, expected: str, channels: Dim) -> None:
    ctx.fail(
        f"expected {expected} in blocks of {block_size()}, as ONNX Runtime has them on this "
        f"processor, got {channels}: the model was optimised for another processor; save it "
        "again with graph_optimization_level ORT_ENABLE_EXTENDED"
    )


def _check_blocks(ctx: InferContext, what: str, channels: Dim) -> None:
    if isinstance(channels, int) and channels % block_size():
        _refuse(ctx, what, channels)


def _sizes_in_order(shape: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the sizes of a weight as it is stored, and the order that makes it plain.

    With as many input channels as a block has, the weight is (maps / block, channels / block,
    height, width, block of channels, block of maps), with fewer (maps / block, channels, height,
    width, block of maps).
    """
    maps, channels, *kernel = shape
    block = block_size()
    if channels < block:
        return [maps // block, channels, *kernel, block], [0, 4, 1, 2, 3]
    return [maps // block, channels // block, *kernel, block, block], [0, 5, 1, 4, 2, 3]


def _plain_weight(w: Array) -> Array:
    sizes, order = _sizes_in_order(w.shape)
    return w.reshape(sizes).transpose(order).reshape(w.shape)


def _composed_weight(w: Any) -> Any:
    shape = [size for size in shape_of(w) if isinstance(size, int)]
    if len(shape) < 4:
        return None
    sizes, order = _sizes_in_order(shape)
    return op("Reshape", op("Transpose", op("Reshape", w, sizes), perm=order), shape)


def _named(name: str, source: Sequence[OpDef]) -> OpDef:
    (found,) = (one for one in source if one.name == name)
    return found


_FUSED_CONV = _named("FusedConv", FUSED)
_RESIZE = _named("Resize", VISION)


def _conv(
    x: Array,
    w: Array,
    b: Array | None = None,
    z: Array | None = None,
    *,
    attributes: Mapping[str, Any],
) -> Any:
    return _FUSED_CONV.bound(dict(attributes), 1)(x, _plain_weight(w), b, z)


def _composed_conv(
    x: Any, w: Any, b: Any = None, z: Any = None, *, attributes: Mapping[str, Any]
) -> Any:
    plain = _composed_weight(w)
    if plain is None:
        return None
    return op("FusedConv", x, plain, b, z, domain=DOMAIN, **attributes)


def _infer_conv(ctx: InferContext) -> Sequence[Any]:
    maps, channels = ctx.shape(1, rank=4)[:2]
    _check_blocks(ctx, "maps", maps)
    if isinstance(channels, int) and channels > block_size():
        _check_blocks(ctx, "channels", channels)
    return _FUSED_CONV.infer(ctx)


def _reorder_input(x: Array, *, channels_last: int = 0) -> Array:
    x = np.moveaxis(x, -1, 1) if channels_last else x
    missing = int(_aligned(x.shape[1])) - x.shape[1]
    return np.pad(x, [(0, 0), (0, missing), (0, 0), (0, 0)])


def _composed_input(x: Any, *, channels_last: int = 0) -> Any:
    x = op("Transpose", x, perm=[0, 3, 1, 2]) if channels_last else x
    channels = shape_of(x)[1]
    if not isinstance(channels, int):
        return None
    missing = _aligned(channels) - channels
    return op("Pad", x, [0, missing], None, [1]) if missing else op("Identity", x)


def _infer_input(ctx: InferContext) -> Sequence[Any]:
    n, *sizes = ctx.shape(0, rank=4)
    channels = sizes.pop(-1 if ctx.attr("channels_last") else 0)
    return [(n, _aligned(channels), *sizes)]


def _reorder_output(x: Array, *, channels: int, channels_last: int = 0) -> Array:
    x = x[:, :channels]
    return np.moveaxis(x, 1, -1) if channels_last else x


def _composed_output(x: Any, *, channels: int, channels_last: int = 0) -> Any:
    if shape_of(x)[1] != channels:
        x = op("Slice", x, [0], [channels], [1])
    return op("Transpose", x, perm=[0, 2, 3, 1]) if channels_last else op("Identity", x)


def _infer_output(ctx: InferContext) -> Sequence[Any]:
    n, blocks, *sizes = ctx.shape(0, rank=4)
    channels = ctx.attr("channels")
    if channels < 1:
        ctx.fail(f"expected channels to be positive, got {channels}")
    if isinstance(blocks, int) and blocks != _aligned(channels):
        _refuse(ctx, f"{channels} channels", blocks)
    sizes.insert(2 if ctx.attr("channels_last") else 0, channels)
    return [(n, *sizes)]


def _resizing(mode: str, transformation: str) -> dict[str, Any]:
    """Return attributes of Resize; steps of the nearest pixel are whole ones whatever is said."""
    if mode == "nearest":
        transformation = "asymmetric"
    return {
        "mode": mode,
        "coordinate_transformation_mode": transformation,
        "nearest_mode": "floor",
    }


def _upsample(
    x: Array,
    *,
    scales: Sequence[int],
    mode: str = "nearest",
    coordinate_transformation_mode: str = "asymmetric",
) -> Any:
    settings = _resizing(mode, coordinate_transformation_mode)
    return _RESIZE.bound(settings, 1)(x, None, np.array(scales, np.float32))


def _composed_upsample(
    x: Any,
    *,
    scales: Sequence[int],
    mode: str = "nearest",
    coordinate_transformation_mode: str = "asymmetric",
) -> Any:
    settings = _resizing(mode, coordinate_transformation_mode)
    return op("Resize", x, None, np.array(scales, np.float32), **settings)


def _infer_upsample(ctx: InferContext) -> Sequence[Any]:
    shape, scales = ctx.shape(0, rank=4), ctx.attr("scales")
    if len(scales) != 4 or min(scales) < 1 or tuple(scales[:2]) != (1, 1):
        ctx.fail(f"expected scales of 1, 1, height and width, got {list(scales)}")
    return [tuple(size * scale for size, scale in zip(shape, scales, strict=True))]


def _pool(name: str) -> OpDef:
    """Return a pooling, which is the plain one: it takes each channel by itself."""

    def compose(x: Any, *, attributes: Mapping[str, Any]) -> Any:
        return op(name, x, **attributes)

    source = _named(name, CONVOLUTIONS)
    return replace(source, domain=_NCHWC, compose=compose, vjp=through(compose))


_POOLS = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")

OPERATORS = (
    OpDef("Conv", _infer_conv, _conv, domain=_NCHWC, compose=_composed_conv),
    *map(_pool, _POOLS),
    OpDef("ReorderInput", _infer_input, _reorder_input, domain=_NCHWC, compose=_composed_input),
    OpDef("ReorderOutput", _infer_output, _reorder_output, domain=_NCHWC, compose=_composed_output),
    OpDef("Upsample", _infer_upsample, _upsample, domain=_NCHWC, compose=_composed_upsample),
)


def _declare(signature: str, attributes: Mapping[str, Any], *required: str) -> Schema:
    return declare(signature, attributes, required, T="float")


SCHEMAS = {
    (_NCHWC, "AveragePool"): _declare(
        "X:T -> Y:T", {**WINDOW, "ceil_mode": 0, "count_include_pad": 0}, "kernel_shape"
    ),
    (_NCHWC, "Conv"): _declare(
        "X:T, W:T, B:T?, Sum:T? -> Y:T",
        {**WINDOW, "activation": STRING, "activation_params": FLOAT_LIST, "group": 1},
    ),
    (_NCHWC, "GlobalAveragePool"): _declare("X:T -> Y:T", {}),
    (_NCHWC, "GlobalMaxPool"): _declare("X:T -> Y:T", {}),
    (_NCHWC, "MaxPool"): _declare(
        "X:T -> Y:T", {**WINDOW, "ceil_mode": 0, "storage_order": 0}, "kernel_shape"
    ),
    (_NCHWC, "ReorderInput"): _declare("X:T -> Y:T", {"channels_last": 0}),
    (_NCHWC, "ReorderOutput"): _declare("X:T -> Y:T", {"channels": 0, "channels_last": 0}),
    (_NCHWC, "Upsample"): _declare(
        "X:T -> Y:T",
        {
            "coordinate_transformation_mode": "asymmetric",
            "mode": "nearest",
            "scales": INT_LIST,
        },
        "scales",
    ),
}
