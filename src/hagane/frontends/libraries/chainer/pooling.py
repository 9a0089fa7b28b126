"""Pooling of Chainer: a partial window at the end counts where ``cover_all`` says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.chainer.operands import (
    computed,
    floating,
    kind_of,
    made,
    need_rank,
    numbers,
    per_axis,
    same_shape,
    shape_of,
    variable,
)
from hagane.frontends.libraries.chainer.table import function
from hagane.frontends.libraries.chainer.windows import input_size, output_size, positive
from hagane.frontends.libraries.numpy.operands import INT64
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.chainer import regions
from hagane.ops.functions.chainer import windows as functions
from hagane.ops.functions.chainer.images import roi_average
from hagane.symbolic import Dim


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a pooling.

    Attributes:
        x: The variable, (batch, channels, *sizes).
        kernel: Sizes of a window.
        strides: Distances between neighbours.
        pads: The widths of the margins.
        counts: How many there are along each axis.
        cover_all: Whether the last one may reach over the end.
    """

    x: Tensor
    kernel: Sequence[Dim]
    strides: Sequence[Dim]
    pads: Sequence[Dim]
    counts: Sequence[Dim]
    cover_all: bool

    def known(self) -> list[list[int]] | None:
        """Return kernel, strides and padding as numbers; None where one is a formula."""
        found = numbers([*self.kernel, *self.strides, *self.pads])
        rank = len(self.kernel)
        return None if found is None else [found[i : i + rank] for i in range(0, 3 * rank, rank)]

    def is_whole(self) -> bool:
        """Whether the one window is the whole picture."""
        assert self.x.shape is not None
        return tuple(self.kernel) == tuple(self.x.shape[2:]) and not any(self.pads)

    def result(self) -> tuple[ir.DataType, tuple[Dim, ...]]:
        """Return the type of a variable with one element a window."""
        assert self.x.shape is not None
        return self.x.dtype, (*self.x.shape[:2], *self.counts)


def windows_of(t: Core, rank: int, x: Value, ksize: Value, stride: Value, pad: Value,
               cover_all: Value) -> Windows:  # fmt: skip
    """Return the windows of a pooling over the last ``rank`` axes."""
    found = floating(t, x)
    shape = need_rank(t, found, rank + 2, "x")
    kernel = per_axis(t, ksize, rank, "ksize")
    strides = kernel if stride is None else per_axis(t, stride, rank, "stride")
    pads = per_axis(t, pad, rank, "pad")
    for step in strides:
        t.emit.require_size(step, 1, "stride")
    tail = [
        output_size(n, k, s, p, bool(cover_all))
        for n, k, s, p in zip(shape[2:], kernel, strides, pads, strict=True)
    ]
    positive(t, tail, found, "the pooling")
    return Windows(found, kernel, strides, pads, tail, bool(cover_all))


def max_pool(t: Core, w: Windows, return_indices: Value = False) -> Value:
    """Return the largest element of each window, and where in it that is if asked for."""
    known, result = w.known(), w.result()
    if w.is_whole() and not return_indices:  # sizes that are formulas too
        axes = list(range(2, 2 + len(w.kernel)))
        return computed(t, result, lambda x: op("ReduceMax", x, axes, keepdims=1), w.x)
    if known is None:
        y = made(t, "MaxPool", [w.x], *result)
        return (y, made(t, "MaxPool", [y], INT64, y.shape)) if return_indices else y
    y = computed(t, result, functions.max_pool, w.x, *known, w.cover_all)
    if not return_indices:
        return y
    places = (INT64, result[1])
    run = functions.max_places
    return (y, computed(t, places, run, w.x, *known, w.cover_all))


def average_pool(t: Core, w: Windows, pad_value: Value = 0) -> Tensor:
    """Return the mean of each window; margins are zeros, or do not count."""
    known, result = w.known(), w.result()
    if pad_value not in (0, None):
        t.fail("value", f"expected pad_value to be 0 or None, got {t.show(t.wrap(pad_value))}")
    if w.is_whole():  # sizes that are formulas too
        axes = list(range(2, 2 + len(w.kernel)))
        return computed(t, result, lambda x: op("ReduceMean", x, axes, keepdims=1), w.x)
    if known is None:
        return made(t, "AveragePool", [w.x], *result)
    return computed(t, result, functions.average_pool, w.x, *known, pad_value == 0)


def _register(name: str, rank: int) -> None:
    def spatial(t: Core, x: Value) -> int:
        return rank or len(shape_of(t, variable(t, x))) - 2

    def maximum(t: Core, x: Value, ksize: Value, stride: Value = None, pad: Value = 0,
                cover_all: Value = True, return_indices: Value = False) -> Value:  # fmt: skip
        windows = windows_of(t, spatial(t, x), x, ksize, stride, pad, cover_all)
        return max_pool(t, windows, return_indices)

    def average(t: Core, x: Value, ksize: Value, stride: Value = None, pad: Value = 0,
                pad_value: Value = 0) -> Tensor:  # fmt: skip
        return average_pool(
            t, windows_of(t, spatial(t, x), x, ksize, stride, pad, False), pad_value
        )

    def average_2d(t: Core, x: Value, ksize: Value, stride: Value = None, pad: Value = 0) -> Tensor:
        return average_pool(t, windows_of(t, 2, x, ksize, stride, pad, False))

    def unpooling(t: Core, x: Value, ksize: Value, stride: Value = None, pad: Value = 0,
                  outsize: Value = None, cover_all: Value = True) -> Tensor:  # fmt: skip
        return unpool(t, spatial(t, x), x, ksize, stride, pad, outsize, cover_all)

    function(f"max_pooling_{name}")(maximum)
    function(f"average_pooling_{name}")(average_2d if rank == 2 else average)
    function(f"unpooling_{name}")(unpooling)


def unpool(t: Core, rank: int, x: Value, ksize: Value, stride: Value, pad: Value, outsize: Value,
           cover_all: Value, places: Tensor | None = None) -> Tensor:  # fmt: skip
    """Return the inverse of a pooling: every element spread over its window, or at one place."""
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
    known = numbers([*kernel, *strides, *pads])
    if known is None:
        return made(t, "Unpool", [found], found.dtype, (*shape[:2], *tail))
    split = [known[i : i + rank] for i in range(0, 3 * rank, rank)]
    result = (found.dtype, (*shape[:2], *tail))
    return computed(t, result, functions.unpool, found, *split, tail, places)


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
    places = variable(t, indexes, "indexes")
    same_shape(t, variable(t, x), places, "x and indexes")
    return unpool(t, 2, x, ksize, stride, pad, outsize, cover_all, places)


@function("spatial_pyramid_pooling_2d")
def spatial_pyramid_pooling_2d(
    t: Core, x: Value, pyramid_height: Value, pooling: Value = None
) -> Tensor:
    """Return maxima over grids of 1, 4, 16, ... cells, joined along the channels."""
    found = floating(t, x)
    shape = need_rank(t, found, 4, "x")
    if pooling != "max":
        t.fail("value", f"expected pooling='max', got {t.show(t.wrap(pooling))}", found)
    cells = sum(
        _bins(t, shape[2], 2**level) * _bins(t, shape[3], 2**level)
        for level in range(pyramid_height)
    )
    result = (found.dtype, (shape[0], shape[1] * cells, 1, 1))
    sizes = numbers(shape[2:])
    if sizes is None:  # sizes of windows that the data decide
        return made(t, "PyramidPool", [found], *result)
    return computed(t, result, functions.pyramid, found, pyramid_height, *sizes)


def _bins(t: Core, size: Dim, bins: int) -> int:
    """Return into how many parts an axis is cut: fewer than it should be if it is short and odd."""
    if not isinstance(size, int):
        t.emit.require_size(size, bins, f"axis that is cut into {bins} parts")
        return bins
    kernel = -(-size // bins)
    padded = size + (kernel * bins - size) // 2 * 2
    return -(-(padded - kernel) // kernel) + 1


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
    size = [*per_axis(t, outh, 1, "outh"), *per_axis(t, outw, 1, "outw")]
    for count in size:
        t.emit.require_size(count, 1, "number of rows and columns")
    shape = (shape_of(t, boxes)[0], shape_of(t, found)[1], *size)
    known = numbers(size)
    if known is None:
        return made(t, "RoiPool", [found, boxes], found.dtype, shape)

    def run(x: Any, boxes: Any) -> Any:
        corners = op("Gather", boxes, np.array([2, 1, 4, 3]), axis=1)
        images = op("Gather", boxes, np.array(0), axis=1)
        return regions.pooled(x, corners, images, known, float(spatial_scale), 1, "max", 0.0)

    return computed(t, (found.dtype, shape), run, found, boxes)


def _roi(name: str) -> None:
    def run(t: Core, x: Value, rois: Value, roi_indices: Value, outsize: Value,
            spatial_scale: Value, sampling_ratio: Value = None) -> Tensor:  # fmt: skip
        found, boxes = _regions(t, x, rois, 4)
        places = variable(t, roi_indices, "roi_indices")
        if kind_of(places) != "i" or t.emit.differ(
            need_rank(t, places, 1, "roi_indices")[0], shape_of(t, boxes)[0]
        ):
            t.fail(
                "shape-mismatch", f"expected a picture for each region, got {t.show(places)}", boxes
            )
        size = per_axis(t, outsize, 2, "outsize")
        shape = (shape_of(t, boxes)[0], shape_of(t, found)[1], *size)
        known = numbers(size)
        if known is None:
            return made(t, "RoiPool", [found, boxes], found.dtype, shape)
        result, scale = (found.dtype, shape), float(spatial_scale)
        ratios = sampling_ratio if isinstance(sampling_ratio, tuple) else (sampling_ratio,) * 2
        kind, way = name.split("_")
        mode = {"average": "mean"}.get(kind, kind)
        if way == "pooling":
            empty = 0.0 if mode == "mean" else -np.inf
            return computed(t, result, regions.pooled, found, boxes, places, known, scale, 0, mode,
                            empty)  # fmt: skip
        if mode == "mean" and ratios[0] == ratios[1]:
            return computed(t, result, roi_average, found, boxes, places, known, scale,
                            ratios[0] or 0)  # fmt: skip
        return computed(t, result, regions.aligned, found, boxes, places, known, scale, ratios,
                        mode)  # fmt: skip

    function(f"roi_{name}_2d")(run)


for _name in ("max_pooling", "average_pooling", "max_align", "average_align"):
    _roi(_name)
