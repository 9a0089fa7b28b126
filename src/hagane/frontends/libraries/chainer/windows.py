"""Convolutions of Chainer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hagane.frontends.libraries.chainer.operands import (
    computed,
    floating,
    made,
    need_rank,
    numbers,
    per_axis,
    shape_of,
    variable,
)
from hagane.frontends.libraries.chainer.table import function
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.functions.chainer import windows as functions
from hagane.symbolic import Dim, ceildiv, floordiv


def output_size(
    size: Dim, kernel: Dim, stride: Dim, pad: Dim, cover_all: bool, dilate: Dim = 1
) -> Dim:
    """Return the number of windows along an axis (``chainer.utils.get_conv_outsize``)."""
    extent = kernel if dilate == 1 else kernel + (kernel - 1) * (dilate - 1)
    room = (size if pad == 0 else size + 2 * pad) - extent
    return (ceildiv(room, stride) if cover_all else floordiv(room, stride)) + 1


def input_size(
    size: Dim, kernel: Dim, stride: Dim, pad: Dim, cover_all: bool = False, dilate: Dim = 1
) -> Dim:
    """Return the size that gives so many windows (``chainer.utils.get_deconv_outsize``)."""
    extent = kernel if dilate == 1 else (kernel - 1) * dilate + 1
    found = stride * (size - 1) + extent
    if cover_all:
        found = found - stride + 1
    return found if pad == 0 else found - 2 * pad


def positive(t: Core, sizes: Sequence[Dim], x: Tensor, what: str) -> None:
    """Restrict the inputs to those for which something is left to compute."""
    for size in sizes:
        if isinstance(size, int) and size < 1:
            t.fail("shape-mismatch", f"{what} leaves nothing of {t.show(x)}", x)
        t.emit.require_size(size, 1, f"output of {t.emit.label or what}")


def channels(t: Core, x: Tensor, found: Dim, expected: Dim) -> None:
    """Fail unless axis 1 has the channels that the weight expects."""
    if t.emit.differ(found, expected):
        places = [i for i, dim in enumerate(shape_of(t, x)) if dim == expected]
        t.fail(
            "shape-mismatch",
            f"expected {expected} channels in axis 1, got {found}: {t.show(x)}",
            x,
            remedy=f"move axis {places[0]} to axis 1 with F.transpose" if places else "",
        )


def _bias(t: Core, b: Value, count: Dim) -> Tensor | None:
    if b is None:
        return None
    bias = floating(t, b, "b")
    if t.emit.differ(need_rank(t, bias, 1, "b")[0], count):
        t.fail("shape-mismatch", f"expected a bias of {count}, got {t.show(bias)}", bias)
    return bias


def convolution(
    t: Core, rank: int, x: Value, W: Value, b: Value, stride: Value, pad: Value, cover_all: Value,
    dilate: Value, groups: Value,
) -> Tensor:  # fmt: skip
    """Return a convolution over the last ``rank`` axes."""
    found, w = floating(t, x), floating(t, W, "W")
    shape, kernel = need_rank(t, found, rank + 2, "x"), need_rank(t, w, rank + 2, "W")
    channels(t, found, shape[1], kernel[1] * groups)
    bias = _bias(t, b, kernel[0])
    strides, pads = per_axis(t, stride, rank, "stride"), per_axis(t, pad, rank, "pad")
    dilations = per_axis(t, dilate, rank, "dilate")
    for step in strides:
        t.emit.require_size(step, 1, "stride")
    tail = [
        output_size(n, k, s, p, bool(cover_all), d)
        for n, k, s, p, d in zip(shape[2:], kernel[2:], strides, pads, dilations, strict=True)
    ]
    known = numbers([*strides, *pads, *dilations, groups])
    if known is None:
        positive(t, tail, found, "the convolution")
        return made(t, "Conv", [found, w], found.dtype, (shape[0], kernel[0], *tail))
    if all(isinstance(n, int) for n in tail):
        positive(t, tail, found, "the convolution")
    run = partial(functions.convolution, cover_all=bool(cover_all))
    split = [known[:rank], known[rank : 2 * rank], known[2 * rank : -1], known[-1]]
    y = computed(t, (found.dtype, (shape[0], kernel[0], *tail)), run, found, w, bias, *split)
    positive(t, shape_of(t, y)[2:], found, "the convolution")
    return y


def deconvolution(
    t: Core, rank: int, x: Value, W: Value, b: Value, stride: Value, pad: Value, outsize: Value,
    dilate: Value, groups: Value,
) -> Tensor:  # fmt: skip
    """Return a transposed convolution over the last ``rank`` axes."""
    found, w = floating(t, x), floating(t, W, "W")
    shape, kernel = need_rank(t, found, rank + 2, "x"), need_rank(t, w, rank + 2, "W")
    channels(t, found, shape[1], kernel[0])
    bias = _bias(t, b, kernel[1] * groups)
    strides, pads = per_axis(t, stride, rank, "stride"), per_axis(t, pad, rank, "pad")
    dilations = per_axis(t, dilate, rank, "dilate")
    axes = list(zip(shape[2:], kernel[2:], strides, pads, dilations, strict=True))
    if outsize is None:
        tail = [input_size(n, k, s, p, dilate=d) for n, k, s, p, d in axes]
    else:
        tail = per_axis(t, outsize, rank, "outsize")
        for size, (n, k, s, p, d) in zip(tail, axes, strict=True):
            if t.emit.differ(output_size(size, k, s, p, False, d), n):
                t.fail(
                    "shape-mismatch",
                    f"no convolution of {size} elements gives {n}: {t.show(found)}",
                    found,
                )
    positive(t, tail, found, "the deconvolution")
    result = (found.dtype, (shape[0], kernel[1] * groups, *tail))
    known = numbers([*strides, *pads, *dilations, groups])
    if known is None:
        return made(t, "ConvTranspose", [found, w], *result)
    split = [known[:rank], known[rank : 2 * rank], known[2 * rank : -1], known[-1]]
    sizes = None if outsize is None else tail
    return computed(t, result, functions.deconvolution, found, w, bias, *split, sizes)


@function("convolution_2d")
def convolution_2d(
    t: Core,
    x: Value,
    W: Value,
    b: Value = None,
    stride: Value = 1,
    pad: Value = 0,
    cover_all: Value = False,
    *,
    dilate: Value = 1,
    groups: Value = 1,
) -> Tensor:
    """Return a convolution over (height, width)."""
    return convolution(t, 2, x, W, b, stride, pad, cover_all, dilate, groups)


@function("deconvolution_2d")
def deconvolution_2d(
    t: Core,
    x: Value,
    W: Value,
    b: Value = None,
    stride: Value = 1,
    pad: Value = 0,
    outsize: Value = None,
    *,
    dilate: Value = 1,
    groups: Value = 1,
) -> Tensor:
    """Return a transposed convolution over (height, width)."""
    return deconvolution(t, 2, x, W, b, stride, pad, outsize, dilate, groups)


def _of_rank(name: str, rank: int) -> None:
    def run(t: Core, x: Value, W: Value, b: Value = None, stride: Value = 1, pad: Value = 0,
            cover_all: Value = False, dilate: Value = 1, groups: Value = 1) -> Tensor:  # fmt: skip
        spatial = rank or len(shape_of(t, variable(t, x))) - 2
        return convolution(t, spatial, x, W, b, stride, pad, cover_all, dilate, groups)

    def transposed(
        t: Core,
        x: Value,
        W: Value,
        b: Value = None,
        stride: Value = 1,
        pad: Value = 0,
        outsize: Value = None,
        dilate: Value = 1,
        groups: Value = 1,
    ) -> Tensor:
        spatial = rank or len(shape_of(t, variable(t, x))) - 2
        return deconvolution(t, spatial, x, W, b, stride, pad, outsize, dilate, groups)

    function(f"convolution_{name}")(run)
    function(f"deconvolution_{name}")(transposed)


for _name, _rank in (("nd", 0), ("1d", 1), ("3d", 3)):
    _of_rank(_name, _rank)


@function("dilated_convolution_2d")
def dilated_convolution_2d(
    t: Core,
    x: Value,
    W: Value,
    b: Value = None,
    stride: Value = 1,
    pad: Value = 0,
    dilate: Value = 1,
    cover_all: Value = False,
) -> Tensor:
    """Return a convolution whose taps lie ``dilate`` apart."""
    return convolution(t, 2, x, W, b, stride, pad, cover_all, dilate, 1)


@function("depthwise_convolution_2d")
def depthwise_convolution_2d(t: Core, x: Value, W: Value, b: Value = None, stride: Value = 1,
                             pad: Value = 0) -> Tensor:  # fmt: skip
    """Return a convolution of each channel by itself."""
    found, w = floating(t, x), floating(t, W, "W")
    shape, kernel = need_rank(t, found, 4, "x"), need_rank(t, w, 4, "W")
    channels(t, found, shape[1], kernel[1])
    bias = _bias(t, b, kernel[0] * kernel[1])
    strides, pads = per_axis(t, stride, 2, "stride"), per_axis(t, pad, 2, "pad")
    tail = [
        output_size(n, k, s, p, False)
        for n, k, s, p in zip(shape[2:], kernel[2:], strides, pads, strict=True)
    ]
    positive(t, tail, found, "the convolution")
    result = (found.dtype, (shape[0], kernel[0] * kernel[1], *tail))
    known = numbers([*strides, *pads, kernel[1]])
    if known is None:
        return made(t, "Conv", [found, w], *result)
    split = [known[:2], known[2:4], known[4]]
    return computed(t, result, functions.depthwise, found, w, bias, *split)


@function("local_convolution_2d")
def local_convolution_2d(t: Core, x: Value, W: Value, b: Value = None, stride: Value = 1) -> Tensor:
    """Return a convolution with a kernel of its own at every place."""
    found, w = floating(t, x), floating(t, W, "W")
    shape, kernel = need_rank(t, found, 4, "x"), need_rank(t, w, 6, "W")
    channels(t, found, shape[1], kernel[3])
    strides = per_axis(t, stride, 2, "stride")
    for n, k, s, expected in zip(shape[2:], kernel[4:], strides, kernel[1:3], strict=True):
        if t.emit.differ(output_size(n, k, s, 0, False), expected):
            t.fail("shape-mismatch", f"{t.show(found)} does not fit {t.show(w)}", found, w)
    result = (found.dtype, (shape[0], kernel[0], *kernel[1:3]))
    bias = None if b is None else floating(t, b, "b")
    if bias is not None and any(map(t.emit.differ, need_rank(t, bias, 3, "b"), kernel[:3])):
        t.fail("shape-mismatch", f"expected a bias for every place, got {t.show(bias)}", bias)
    known = numbers([*strides, *kernel[4:]])
    if known is None:
        return made(t, "Conv", [found, w], *result)
    return computed(t, result, functions.local_convolution, found, w, bias, known[:2])


@function("im2col")
def im2col(t: Core, x: Value, ksize: Value, stride: Value = 1, pad: Value = 0,
           cover_all: Value = False, dilate: Value = 1) -> Tensor:  # fmt: skip
    """Return all windows as channels: (batch, channels * kernel, height, width)."""
    found = floating(t, x)
    shape = need_rank(t, found, 4, "x")
    settings = [
        per_axis(t, v, 2, n)
        for v, n in ((ksize, "ksize"), (stride, "stride"), (pad, "pad"), (dilate, "dilate"))
    ]
    tail = [
        output_size(n, k, s, p, bool(cover_all), d)
        for n, k, s, p, d in zip(shape[2:], *settings, strict=True)
    ]
    positive(t, tail, found, "im2col")
    area = settings[0][0] * settings[0][1]
    result = (found.dtype, (shape[0], shape[1] * area, *tail))
    known = numbers([size for pair in settings for size in pair])
    if known is None:
        return made(t, "Im2Col", [found], *result)
    pairs = [known[i : i + 2] for i in range(0, 8, 2)]
    return computed(t, result, functions.image_columns, found, *pairs, tail, bool(cover_all))
