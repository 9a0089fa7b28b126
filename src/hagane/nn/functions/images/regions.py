"""Pooling of regions of interest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.functions.applying import array_of, function, require
from hagane.ops.functions.chainer import regions
from hagane.ops.functions.chainer.images import roi_average


def _pair(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, Iterable) else (x, x)


def _is_size(x: Any) -> bool:
    return isinstance(x, int | np.integer) and int(x) > 0


def _outsize(outsize: Any) -> tuple[int, int]:
    pair = _pair(outsize)
    for i, size in enumerate(pair):
        if not _is_size(size):
            raise TypeError(f"outsize[{i}] must be positive integer: {type(size)}, {size}")
    return int(pair[0]), int(pair[1])


def _scale(spatial_scale: Any) -> float:
    if not isinstance(spatial_scale, int | float | np.number) or not float(spatial_scale) > 0:
        raise TypeError(
            f"spatial_scale must be a positive float number: {type(spatial_scale)}, {spatial_scale}"
        )
    return float(spatial_scale)


def _ratios(sampling_ratio: Any) -> tuple[Any, ...]:
    pair = _pair(sampling_ratio)
    if not all(s is None or _is_size(s) for s in pair):
        raise TypeError(f"sampling_ratio must be integer >= 1 or a pair of it: {sampling_ratio}")
    return pair


def _given(where: str, x: Any, rois: Any, roi_indices: Any) -> tuple[Any, Any]:
    """Return regions (top, left, bottom, right) and their images, checked."""
    require(where, "x", x, kind="f", ndim=4)
    boxes, images = array_of(rois), array_of(roi_indices)
    if boxes.dtype != x.dtype or boxes.ndim != 2 or boxes.shape[1] != 4:
        raise type_check.refuse(
            where, f"rois: {x.dtype}, (…, 4)", f"rois: {boxes.dtype}, {boxes.shape}"
        )
    if images.dtype.kind != "i" or images.shape != boxes.shape[:1]:
        raise type_check.refuse(
            where,
            f"roi_indices: {len(boxes)} integers",
            f"roi_indices: {images.dtype}, {images.shape}",
        )
    return boxes, images


def _aligned(
    where: str, x: Any, rois: Any, roi_indices: Any, outsize: Any, spatial_scale: Any,
    sampling_ratio: Any, mode: str,
) -> Any:  # fmt: skip
    sizes, scale, ratios = _outsize(outsize), _scale(spatial_scale), _ratios(sampling_ratio)
    boxes, images = _given(where, x, rois, roi_indices)
    if mode == "mean" and ratios[0] == ratios[1]:
        return roi_average(x, boxes, images, sizes, scale, ratios[0] or 0)
    return regions.aligned(x, boxes, images, sizes, scale, ratios, mode)


@function("x", ":rois", ":roi_indices")
def roi_average_align_2d(
    x: Any,
    rois: Any,
    roi_indices: Any,
    outsize: Any,
    spatial_scale: float,
    sampling_ratio: Any = None,
) -> Any:
    """Return the means of sampled parts of regions (He et al. 2017).

    Args:
        x: (batch, channels, height, width).
        rois: Regions (top, left, bottom, right), (regions, 4).
        roi_indices: The image of each region, int32 (regions,).
        outsize: Rows and columns of parts.
        spatial_scale: Pixels of ``x`` in a unit of ``rois``.
        sampling_ratio: How many samples a part has each way, one number or two; as many as pixels
            if None.

    Returns:
        (regions, channels, rows, columns).
    """
    where = "roi_average_align_2d"
    return _aligned(where, x, rois, roi_indices, outsize, spatial_scale, sampling_ratio, "mean")


@function("x", ":rois", ":roi_indices")
def roi_max_align_2d(
    x: Any,
    rois: Any,
    roi_indices: Any,
    outsize: Any,
    spatial_scale: float,
    sampling_ratio: Any = None,
) -> Any:
    """Return the largest samples of parts of regions; see :func:`roi_average_align_2d`."""
    where = "roi_max_align_2d"
    return _aligned(where, x, rois, roi_indices, outsize, spatial_scale, sampling_ratio, "max")


@function("x", ":rois", ":roi_indices")
def roi_average_pooling_2d(
    x: Any, rois: Any, roi_indices: Any, outsize: Any, spatial_scale: float
) -> Any:
    """Return the means of the pixels of parts of regions.

    Args:
        x: (batch, channels, height, width).
        rois: Regions (top, left, bottom, right), (regions, 4); the last pixels are outside.
        roi_indices: The image of each region, int32 (regions,).
        outsize: Rows and columns of parts.
        spatial_scale: Pixels of ``x`` in a unit of ``rois``.
    """
    sizes, scale = _outsize(outsize), _scale(spatial_scale)
    boxes, images = _given("roi_average_pooling_2d", x, rois, roi_indices)
    return regions.pooled(x, boxes, images, sizes, scale, 0, "mean", 0.0)


@function("x", ":rois", ":roi_indices")
def roi_max_pooling_2d(
    x: Any, rois: Any, roi_indices: Any, outsize: Any, spatial_scale: float
) -> Any:
    """Return the largest pixels of parts of regions; see :func:`roi_average_pooling_2d`."""
    sizes, scale = _outsize(outsize), _scale(spatial_scale)
    boxes, images = _given("roi_max_pooling_2d", x, rois, roi_indices)
    return regions.pooled(x, boxes, images, sizes, scale, 0, "max", -np.inf)


@function("x", ":rois")
def roi_pooling_2d(x: Any, rois: Any, outh: Any, outw: Any, spatial_scale: float) -> Any:
    """Return the largest pixels of parts of regions (Girshick 2015).

    Args:
        x: (batch, channels, height, width).
        rois: Image and region (left, top, right, bottom), (regions, 5); the last pixels are inside.
        outh: Rows of parts.
        outw: Columns of parts.
        spatial_scale: Pixels of ``x`` in a unit of ``rois``.
    """
    where = "roi_pooling_2d"
    for name, size in (("outh", outh), ("outw", outw)):
        if not _is_size(size):
            raise TypeError(f"{name} must be positive integer: {type(size)}, {size}")
    require(where, "x", x, kind="f", ndim=4)
    boxes = array_of(rois)
    if boxes.dtype != x.dtype or boxes.ndim != 2 or boxes.shape[1] != 5:
        raise type_check.refuse(
            where, f"rois: {x.dtype}, (…, 5)", f"rois: {boxes.dtype}, {boxes.shape}"
        )
    corners, images = boxes[:, [2, 1, 4, 3]], boxes[:, 0].astype(np.int64)
    return regions.pooled(x, corners, images, (outh, outw), _scale(spatial_scale), 1, "max", 0.0)
