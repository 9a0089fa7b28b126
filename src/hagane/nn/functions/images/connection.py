"""Convolutions."""

from __future__ import annotations

from typing import Any

from hagane.nn.autograd import type_check
from hagane.nn.functions.applying import function, pop_options, require, shape_of
from hagane.nn.functions.array import reshape, transpose
from hagane.nn.functions.images.windows import (
    as_tuple,
    get_conv_outsize,
    get_deconv_outsize,
    of_rank,
)
from hagane.nn.functions.products import bilinear, embed_id, linear
from hagane.ops.functions.chainer import windows

__all__ = ["bilinear", "embed_id", "linear"]


def _check_convolved(where: str, x: Any, W: Any, b: Any, ndim: int, inputs: int, maps: int) -> None:
    require(where, "x", x, kind="f", ndim=ndim + 2)
    require(where, "W", W, kind="f", ndim=ndim + 2)
    if shape_of(x)[1] != inputs:
        raise type_check.refuse(
            where, f"x.shape[1] == {inputs}, the channels of W", f"x.shape == {shape_of(x)}"
        )
    if b is not None:
        require(where, "b", b, kind="f", shape=(maps,), dtype_as=("x", x))


def _convolve(
    where: str,
    x: Any,
    W: Any,
    b: Any,
    ndim: int,
    stride: Any,
    pad: Any,
    cover_all: bool,
    dilate: Any,
    groups: int,
) -> Any:
    require(where, "W", W, kind="f", ndim=ndim + 2)
    maps, channels, *kernel = shape_of(W)
    _check_convolved(where, x, W, b, ndim, channels * groups, maps)
    if groups < 1 or maps % groups:
        raise type_check.refuse(where, f"W.shape[0] % {groups} == 0", f"W.shape[0] == {maps}")
    strides, pads, dilations = as_tuple(stride, ndim), as_tuple(pad, ndim), as_tuple(dilate, ndim)
    sizes = shape_of(x)[2:]
    for size, k, s, p, d in zip(sizes, kernel, strides, pads, dilations, strict=True):
        if get_conv_outsize(size, k, s, p, cover_all, d) <= 0:
            raise type_check.refuse(
                where,
                "the padded x to hold a window",
                f"x.shape == {shape_of(x)}, W: {shape_of(W)}",
            )
    return windows.convolution(x, W, b, strides, pads, dilations, groups, cover_all=cover_all)


@function("x", "W", "b")
def convolution_2d(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    **kwargs: Any,
) -> Any:
    """Return the cross-correlation of images with filters.

    Args:
        x: (batch, channels, height, width).
        W: (maps, channels / groups, kernel height, kernel width).
        b: (maps,).
        stride: Of the window, one number or two.
        pad: Zeros around the image.
        cover_all: Whether every pixel lies in a window.
        kwargs: ``dilate`` and ``groups``, both 1 by default.
    """
    dilate, groups = pop_options("convolution_2d", kwargs, ("deterministic",), dilate=1, groups=1)
    return _convolve("convolution_2d", x, W, b, 2, stride, pad, cover_all, dilate, groups)


@function("x", "W", "b")
def convolution_nd(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    dilate: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the cross-correlation over any number of axes, as ``convolution_2d``."""
    require("convolution_nd", "x", x, at_least=2)
    ndim = len(shape_of(x)) - 2
    return _convolve("convolution_nd", x, W, b, ndim, stride, pad, cover_all, dilate, groups)


convolution_1d = of_rank(convolution_nd, 1)
convolution_3d = of_rank(convolution_nd, 3)


def _transposed(
    where: str,
    x: Any,
    W: Any,
    b: Any,
    ndim: int,
    stride: Any,
    pad: Any,
    outsize: Any,
    dilate: Any,
    groups: int,
) -> Any:
    require(where, "W", W, kind="f", ndim=ndim + 2)
    inputs, maps, *kernel = shape_of(W)
    _check_convolved(where, x, W, b, ndim, inputs, maps * groups)
    strides, pads, dilations = as_tuple(stride, ndim), as_tuple(pad, ndim), as_tuple(dilate, ndim)
    sizes = shape_of(x)[2:]
    wanted = None if outsize is None else tuple(outsize)
    for i, size in enumerate(sizes):
        natural = get_deconv_outsize(size, kernel[i], strides[i], pads[i], d=dilations[i])
        made = natural if wanted is None else wanted[i]
        if made <= 0:
            raise type_check.refuse(
                where, "an output with elements", f"size {made} on axis {i + 2}"
            )
        if get_conv_outsize(made, kernel[i], strides[i], pads[i], d=dilations[i]) != size and (
            get_conv_outsize(made, kernel[i], strides[i], pads[i], True, dilations[i]) != size
        ):
            raise type_check.refuse(where, f"outsize[{i}] of which {size} windows come", f"{made}")
    return windows.deconvolution(x, W, b, strides, pads, dilations, groups, wanted)


@function("x", "W", "b")
def deconvolution_2d(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    outsize: Any = None,
    **kwargs: Any,
) -> Any:
    """Return the transposed convolution of images with filters.

    Args:
        x: (batch, channels, height, width).
        W: (channels, maps / groups, kernel height, kernel width).
        b: (maps,).
        stride: Of the window, one number or two.
        pad: Pixels that are cut off around the result.
        outsize: Height and width of the result; by default the smallest.
        kwargs: ``dilate`` and ``groups``, both 1 by default.
    """
    dilate, groups = pop_options("deconvolution_2d", kwargs, ("deterministic",), dilate=1, groups=1)
    return _transposed("deconvolution_2d", x, W, b, 2, stride, pad, outsize, dilate, groups)


@function("x", "W", "b")
def deconvolution_nd(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    outsize: Any = None,
    dilate: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the transposed convolution over any number of axes."""
    require("deconvolution_nd", "x", x, at_least=2)
    ndim = len(shape_of(x)) - 2
    return _transposed("deconvolution_nd", x, W, b, ndim, stride, pad, outsize, dilate, groups)


deconvolution_1d = of_rank(deconvolution_nd, 1)
deconvolution_3d = of_rank(deconvolution_nd, 3)


def dilated_convolution_2d(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    dilate: Any = 1,
    cover_all: bool = False,
) -> Any:
    """Return the cross-correlation with filters whose taps lie apart."""
    return convolution_2d(x, W, b, stride, pad, cover_all, dilate=dilate)


@function("x", "W", "b", composed=True)
def depthwise_convolution_2d(x: Any, W: Any, b: Any = None, stride: Any = 1, pad: Any = 0) -> Any:
    """Return the cross-correlation of each channel with filters of its own.

    Args:
        x: (batch, channels, height, width).
        W: (multiplier, channels, kernel height, kernel width).
        b: (channels * multiplier,).
        stride: Of the window.
        pad: Zeros around the image.
    """
    require("depthwise_convolution_2d", "W", W, kind="f", ndim=4)
    multiplier, channels, *kernel = shape_of(W)
    require("depthwise_convolution_2d", "x", x, kind="f", shape=(None, channels, None, None))
    _check_convolved("depthwise_convolution_2d", x, W, b, 2, channels, multiplier * channels)
    filters = reshape(transpose(W, (1, 0, 2, 3)), (multiplier * channels, 1, *kernel))
    return convolution_2d(x, filters, b, stride, pad, groups=channels)


@function("x")
def im2col(
    x: Any, ksize: Any, stride: Any = 1, pad: Any = 0, cover_all: bool = False, dilate: Any = 1
) -> Any:
    """Return the windows of images as columns: (batch, channels * kh * kw, rows, columns)."""
    require("im2col", "x", x, kind="f", ndim=4)
    kernel, strides, pads = as_tuple(ksize, 2), as_tuple(stride, 2), as_tuple(pad, 2)
    dilations = as_tuple(dilate, 2)
    counts = [
        get_conv_outsize(size, k, s, p, cover_all, d)
        for size, k, s, p, d in zip(shape_of(x)[2:], kernel, strides, pads, dilations, strict=True)
    ]
    return windows.image_columns(x, kernel, strides, pads, dilations, counts, cover_all)


@function("x", "W", "b")
def local_convolution_2d(x: Any, W: Any, b: Any = None, stride: Any = 1) -> Any:
    """Return the cross-correlation with a filter of its own at each place.

    Args:
        x: (batch, channels, height, width).
        W: (maps, rows, columns, channels, kernel height, kernel width).
        b: (maps, rows, columns).
        stride: Of the window.
    """
    require("local_convolution_2d", "x", x, kind="f", ndim=4)
    require("local_convolution_2d", "W", W, kind="f", ndim=6)
    maps, rows, columns, channels, *kernel = shape_of(W)
    require("local_convolution_2d", "x", x, shape=(None, channels, None, None))
    if b is not None:
        require("local_convolution_2d", "b", b, shape=(maps, rows, columns))
    strides = as_tuple(stride, 2)
    places = tuple(
        get_conv_outsize(size, k, s, 0)
        for size, k, s in zip(shape_of(x)[2:], kernel, strides, strict=True)
    )
    if places != (rows, columns):
        raise type_check.refuse(
            "local_convolution_2d", f"{places} places in W", f"{(rows, columns)}"
        )
    return windows.local_convolution(x, W, b, strides)


@function("x")
def shift(x: Any, ksize: Any = 3, dilate: Any = 1) -> Any:
    """Return images of which groups of channels are moved to all sides (Wu et al. 2017)."""
    require("shift", "x", x, kind="f", ndim=4)
    kh, kw = as_tuple(ksize, 2)
    dy, dx = as_tuple(dilate, 2)
    if kh % 2 == 0 or kw % 2 == 0:
        raise ValueError(f"shift: expected odd ksize, got {ksize}")
    _n, c, _h, _w = shape_of(x)
    if c < kh * kw:
        raise type_check.refuse("shift", f"x.shape[1] >= {kh * kw}", f"{c}")
    return windows.shifted(x, (kh, kw), (dy, dx), c)
