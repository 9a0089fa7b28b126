"""Pooling and unpooling."""

from __future__ import annotations

from typing import Any

from hagane.nn.autograd import type_check
from hagane.nn.functions.applying import array_of, function, lift, require, shape_of
from hagane.nn.functions.array import reshape
from hagane.nn.functions.images.windows import (
    as_tuple,
    get_conv_outsize,
    get_deconv_outsize,
    of_rank,
)
from hagane.nn.functions.joining import concat
from hagane.ops.functions.chainer import windows


def _prepare(where: str, x: Any, ndim: int, ksize: Any, stride: Any, pad: Any) -> Any:
    require(where, "x", x, kind="f", ndim=ndim + 2)
    kernel = as_tuple(ksize, ndim)
    return kernel, as_tuple(ksize if stride is None else stride, ndim), as_tuple(pad, ndim)


def _max_pool(
    where: str,
    x: Any,
    ndim: int,
    ksize: Any,
    stride: Any,
    pad: Any,
    cover_all: bool,
    return_indices: bool,
) -> Any:
    kernel, strides, pads = _prepare(where, x, ndim, ksize, stride, pad)
    sizes = tuple(shape_of(x)[2:])
    counts = [
        get_conv_outsize(n, k, s, p, cover_all)
        for n, k, s, p in zip(sizes, kernel, strides, pads, strict=True)
    ]
    if min(counts, default=1) <= 0:
        raise type_check.refuse(where, "the padded x to hold a window", f"x.shape == {shape_of(x)}")
    if ndim == 0:
        return x
    if not return_indices:
        return windows.max_pool(x, kernel, strides, pads, cover_all)
    y, places = windows.max_pool_with_places(x, kernel, strides, pads, cover_all)
    return y, array_of(places)


@function("x")
def max_pooling_nd(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window.

    Args:
        x: (batch, channels, *sizes).
        ksize: The window, one number or one an axis.
        stride: By default the window's size.
        pad: Around the array.
        cover_all: Whether every element lies in a window.
        return_indices: Whether the places in the windows, int64, are returned too.
    """
    ndim = len(shape_of(x)) - 2
    return _max_pool("max_pooling_nd", x, ndim, ksize, stride, pad, cover_all, return_indices)


max_pooling_1d = of_rank(max_pooling_nd, 1)
max_pooling_3d = of_rank(max_pooling_nd, 3)


@function("x")
def max_pooling_2d(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of images."""
    return _max_pool("max_pooling_2d", x, 2, ksize, stride, pad, cover_all, return_indices)


def _average_pool(
    where: str, x: Any, ndim: int, ksize: Any, stride: Any, pad: Any, pad_value: Any
) -> Any:
    if pad_value not in (0, None):
        raise ValueError(f"pad_value must be either 0 or None, not {pad_value}.")
    kernel, strides, pads = _prepare(where, x, ndim, ksize, stride, pad)
    if ndim == 0:
        return x
    return windows.average_pool(x, kernel, strides, pads, pad_value == 0)


@function("x")
def average_pooling_2d(x: Any, ksize: Any, stride: Any = None, pad: Any = 0) -> Any:
    """Return the mean of each window of images; padding counts as zeros."""
    return _average_pool("average_pooling_2d", x, 2, ksize, stride, pad, 0)


@function("x")
def average_pooling_nd(
    x: Any, ksize: Any, stride: Any = None, pad: Any = 0, pad_value: Any = 0
) -> Any:
    """Return the mean of each window; with ``pad_value=None`` padding is not counted."""
    ndim = len(shape_of(x)) - 2
    return _average_pool("average_pooling_nd", x, ndim, ksize, stride, pad, pad_value)


average_pooling_1d = of_rank(average_pooling_nd, 1)
average_pooling_3d = of_rank(average_pooling_nd, 3)


def _spread(
    where: str,
    x: Any,
    ndim: int,
    ksize: Any,
    stride: Any,
    pad: Any,
    outsize: Any,
    cover_all: bool,
    indexes: Any = None,
) -> Any:
    """Return elements put at all places of their windows, or at one place."""
    kernel, strides, pads = _prepare(where, x, ndim, ksize, stride, pad)
    counts = shape_of(x)[2:]
    if outsize is None:
        sizes = tuple(
            get_deconv_outsize(m, k, s, p, cover_all)
            for m, k, s, p in zip(counts, kernel, strides, pads, strict=True)
        )
    else:
        sizes = as_tuple(outsize, ndim)
    for i, (size, m) in enumerate(zip(sizes, counts, strict=True)):
        if get_conv_outsize(size, kernel[i], strides[i], pads[i], cover_all) != m:
            raise type_check.refuse(where, f"outsize[{i}] of which {m} windows come", f"{size}")
    return windows.unpool(x, kernel, strides, pads, sizes, indexes)


@function("x")
def unpooling_nd(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: Any = None,
    cover_all: bool = True,
) -> Any:
    """Return each element repeated over its window; where windows overlap they are added."""
    ndim = len(shape_of(x)) - 2
    return _spread("unpooling_nd", x, ndim, ksize, stride, pad, outsize, cover_all)


unpooling_1d = of_rank(unpooling_nd, 1)
unpooling_3d = of_rank(unpooling_nd, 3)


@function("x")
def unpooling_2d(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: Any = None,
    cover_all: bool = True,
) -> Any:
    """Return each pixel repeated over its window."""
    return _spread("unpooling_2d", x, 2, ksize, stride, pad, outsize, cover_all)


@function("x")
def upsampling_2d(
    x: Any,
    indexes: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: Any = None,
    cover_all: bool = True,
) -> Any:
    """Return each pixel at the place of its window that ``indexes`` names, else zeros.

    Args:
        x: (batch, channels, rows, columns).
        indexes: Places in windows, as ``max_pooling_2d`` returns them.
        ksize: The window.
        stride: By default the window's size.
        pad: Of the pooling.
        outsize: Height and width of the result.
        cover_all: Of the pooling.
    """
    if array_of(indexes).shape != tuple(shape_of(x)):
        raise type_check.refuse(
            "upsampling_2d", f"indexes.shape == {shape_of(x)}", f"{array_of(indexes).shape}"
        )
    return _spread(
        "upsampling_2d", x, 2, ksize, stride, pad, outsize, cover_all, lift(array_of(indexes))
    )


@function("x", composed=True)
def spatial_pyramid_pooling_2d(x: Any, pyramid_height: int, pooling: Any = None) -> Any:
    """Return the largest elements of images cut into 1, 4, 16, … parts (He et al. 2014)."""
    if pooling is None or isinstance(pooling, type):
        raise ValueError(f"pooling must be 'max', got {pooling!r}")
    if pooling != "max":
        raise ValueError(f"Unsupported pooling operation: {pooling}")
    require("spatial_pyramid_pooling_2d", "x", x, kind="f", ndim=4)
    sizes = tuple(shape_of(x)[2:])
    found = []
    for bins in (2**level for level in range(pyramid_height)):
        kernel = [-(-size // bins) for size in sizes]
        pads = [(k * bins - size) // 2 for k, size in zip(kernel, sizes, strict=True)]
        y = max_pooling_2d(x, kernel, None, pads, cover_all=True)
        batch, channels, height, width = shape_of(y)
        found.append(reshape(y, (batch, channels * height * width, 1, 1)))
    return concat(found)
