"""Pooling of Chainer: a partial window at the end counts where ``cover_all`` says so."""

from __future__ import annotations

from hagane.frontends.libraries.chainer.operands import (
    INT32,
    floating,
    kind_of,
    made,
    need_rank,
    per_axis,
    shape_of,
    variable,
)
from hagane.frontends.libraries.chainer.table import function
from hagane.frontends.libraries.chainer.windows import input_size, output_size, positive
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value


def pool(t: Core, rank: int, operator: str, x: Value, ksize: Value, stride: Value, pad: Value,
         cover_all: Value) -> Tensor:  # fmt: skip
    """Return a pooling over the last ``rank`` axes."""
    found = floating(t, x)
    shape = need_rank(t, found, rank + 2, "x")
    kernel = per_axis(t, ksize, rank, "ksize")
    strides = kernel if stride is None else per_axis(t, stride, rank, "stride")
    pads = per_axis(t, pad, rank, "pad")
    tail = [
        output_size(n, k, s, p, bool(cover_all))
        for n, k, s, p in zip(shape[2:], kernel, strides, pads, strict=True)
    ]
    positive(t, tail, found, "the pooling")
    return made(t, operator, [found], found.dtype, (*shape[:2], *tail))


def _register(name: str, rank: int) -> None:
    def spatial(t: Core, x: Value) -> int:
        return rank or len(shape_of(t, variable(t, x))) - 2

    def maximum(t: Core, x: Value, ksize: Value, stride: Value = None, pad: Value = 0,
                cover_all: Value = True, return_indices: Value = False) -> Value:  # fmt: skip
        y = pool(t, spatial(t, x), "MaxPool", x, ksize, stride, pad, cover_all)
        return (y, made(t, "MaxPool", [y], INT32, y.shape)) if return_indices else y

    def average(t: Core, x: Value, ksize: Value, stride: Value = None, pad: Value = 0,
                pad_value: Value = 0) -> Tensor:  # fmt: skip
        return pool(t, spatial(t, x), "AveragePool", x, ksize, stride, pad, False)

    def average_2d(t: Core, x: Value, ksize: Value, stride: Value = None, pad: Value = 0) -> Tensor:
        return pool(t, 2, "AveragePool", x, ksize, stride, pad, False)

    def unpooling(t: Core, x: Value, ksize: Value, stride: Value = None, pad: Value = 0,
                  outsize: Value = None, cover_all: Value = True) -> Tensor:  # fmt: skip
        return unpool(t, spatial(t, x), x, ksize, stride, pad, outsize, cover_all)

    function(f"max_pooling_{name}")(maximum)
    function(f"average_pooling_{name}")(average_2d if rank == 2 else average)
    function(f"unpooling_{name}")(unpooling)


def unpool(t: Core, rank: int, x: Value, ksize: Value, stride: Value, pad: Value, outsize: Value,
           cover_all: Value) -> Tensor:  # fmt: skip
    """Return the inverse of a pooling: every element spread over its window."""
    found = floating(t, x)
    shape = need_rank(t, found, rank + 2, "x")
    kernel = per_axis(t, ksize, rank, "ksize")
    strides = kernel if stride is None else per_axis(t, stride, rank, "stride")
    pads = per_axis(t, pad, rank, "pad")
    if outsize is not None:
        tail = per_axis(t, outsize, rank, "outsize")
        for size, n, k, s, p in zip(tail, shape[2:], kernel, strides, pads, strict=True):
            if t.emit.differ(output_size(size, k, s, p, bool(cover_all)), n):
                t.fail(
                    "shape-mismatch",
                    f"no pooling of {size} elements gives {n}: {t.show(found)}",
                    found,
                )
    else:
        tail = [
            input_size(n, k, s, p, bool(cover_all))
            for n, k, s, p in zip(shape[2:], kernel, strides, pads, strict=True)
        ]
    positive(t, tail, found, "the unpooling")
    return made(t, "Unpool", [found], found.dtype, (*shape[:2], *tail))


for _name, _rank in (("2d", 2), ("nd", 0), ("1d", 1), ("3d", 3)):
    _register(_name, _rank)


@function("upsampling_2d")
def upsampling_2d(
    t: Core,
    x: Value,
    indexes: Value,
    ksize: Value,
    stride: Value = None,
    pad: Value = 0,
    outsize: Value = None,
    cover_all: Value = True,
) -> Tensor:
    """Return maxima put back where they came from."""
    from hagane.frontends.libraries.chainer.operands import same_shape

    same_shape(t, variable(t, x), variable(t, indexes, "indexes"), "x and indexes")
    return unpool(t, 2, x, ksize, stride, pad, outsize, cover_all)


@function("spatial_pyramid_pooling_2d")
def spatial_pyramid_pooling_2d(
    t: Core, x: Value, pyramid_height: Value, pooling: Value = None
) -> Tensor:
    """Return maxima over grids of 1, 4, 16, ... cells, joined along the channels."""
    found = floating(t, x)
    shape = need_rank(t, found, 4, "x")
    if pooling != "max":
        t.fail("value", f"expected pooling='max', got {t.show(t.wrap(pooling))}", found)
    cells = sum(4**level for level in range(pyramid_height))
    return made(t, "PyramidPool", [found], found.dtype, (shape[0], shape[1] * cells, 1, 1))


def _regions(t: Core, x: Value, rois: Value, columns: int) -> tuple[Tensor, Tensor]:
    found, boxes = floating(t, x), floating(t, rois, "rois")
    need_rank(t, found, 4, "x")
    if t.emit.differ(need_rank(t, boxes, 2, "rois")[1], columns):
        t.fail("shape-mismatch", f"expected {columns} numbers a region, got {t.show(boxes)}", boxes)
    return found, boxes


@function("roi_pooling_2d")
def roi_pooling_2d(
    t: Core, x: Value, rois: Value, outh: Value, outw: Value, spatial_scale: Value
) -> Tensor:
    """Return a grid of maxima for each region (picture, left, top, right, bottom)."""
    found, boxes = _regions(t, x, rois, 5)
    shape = (shape_of(t, boxes)[0], shape_of(t, found)[1], outh, outw)
    return made(t, "RoiPool", [found, boxes], found.dtype, shape)


@function(
    "roi_max_pooling_2d", "roi_average_pooling_2d", "roi_max_align_2d", "roi_average_align_2d"
)
def roi_pooling(t: Core, x: Value, rois: Value, roi_indices: Value, outsize: Value,
                spatial_scale: Value, sampling_ratio: Value = None) -> Tensor:  # fmt: skip
    """Return a grid for each region (top, left, bottom, right)."""
    found, boxes = _regions(t, x, rois, 4)
    numbers = variable(t, roi_indices, "roi_indices")
    if kind_of(numbers) != "i" or t.emit.differ(
        need_rank(t, numbers, 1, "roi_indices")[0], shape_of(t, boxes)[0]
    ):
        t.fail(
            "shape-mismatch", f"expected a picture for each region, got {t.show(numbers)}", boxes
        )
    shape = (shape_of(t, boxes)[0], shape_of(t, found)[1], *per_axis(t, outsize, 2, "outsize"))
    return made(t, "RoiPool", [found, boxes], found.dtype, shape)
