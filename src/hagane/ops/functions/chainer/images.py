"""Chainer's images sampled at other places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.functions.numbers.elementary import cast, transpose
from hagane.symbolic import Dim

_WIDTH_FIRST = np.array([1, 0, 3, 2])


def resized(x: Any, sizes: Sequence[Dim], mode: str, align_corners: bool) -> Any:
    """Return images (batch, channels, height, width) of another height and width.

    Args:
        x: The images.
        sizes: Height and width of the result.
        mode: ``bilinear`` or ``nearest``.
        align_corners: Whether the corner pixels stay at the corners, for ``bilinear``.
    """
    given = [x, None, None, [*shape_of(x)[:2], *sizes]]
    if mode == "nearest":
        how = "asymmetric"
        return op("Resize", *given, mode=mode, nearest_mode="floor",
                  coordinate_transformation_mode=how)  # fmt: skip
    how = "align_corners" if align_corners else "half_pixel"
    return op("Resize", *given, mode="linear", coordinate_transformation_mode=how)


def affine_grid(theta: Any, height: int, width: int) -> Any:
    """Return where affine maps take the pixels of an image (Jaderberg et al., 2015).

    Args:
        theta: Maps, (batch, 2, 3).
        height: Of the result.
        width: Of the result.

    Returns:
        Places between -1 and 1, first along the width: (batch, 2, height, width).
    """
    rows, columns = np.meshgrid(
        np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij"
    )
    places = np.stack([columns.ravel(), rows.ravel(), np.ones(rows.size)])
    moved = op("MatMul", theta, places.astype(dtype_of(theta).numpy()))
    return op("Reshape", moved, [shape_of(theta)[0], 2, height, width], allowzero=1)


def sampled(x: Any, grid: Any) -> Any:
    """Return images interpolated at places of a grid (batch, 2, rows, columns); zeros outside."""
    moved = transpose(grid, [0, 2, 3, 1])
    return op("GridSample", x, moved, mode="linear", padding_mode="zeros", align_corners=1)


def roi_average(
    x: Any, regions: Any, images: Any, sizes: Sequence[int], scale: float, ratio: int
) -> Any:
    """Return the means of sampled parts of regions (He et al., 2017).

    Args:
        x: (batch, channels, height, width).
        regions: (regions, 4): top, left, bottom, right.
        images: The image of each region, integers (regions,).
        sizes: Rows and columns of parts.
        scale: Pixels of ``x`` in a unit of the regions.
        ratio: How many samples a part has each way; as many as pixels if 0.
    """
    boxes = op("Gather", cast(regions, dtype_of(x)), _WIDTH_FIRST, axis=1)
    return op(
        "RoiAlign", x, boxes, cast(images, ir.DataType.INT64), mode="avg",
        output_height=sizes[0], output_width=sizes[1], sampling_ratio=ratio, spatial_scale=scale,
        coordinate_transformation_mode="output_half_pixel",
    )  # fmt: skip
