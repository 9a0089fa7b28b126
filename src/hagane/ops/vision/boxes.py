"""NonMaxSuppression and RoiAlign."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.delegated import onnx_kernel
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    mul,
    sub,
    transpose,
    unsqueeze,
    where,
)
from hagane.ops.functions.tensors.shapes import size_as_number
from hagane.ops.precision import widened
from hagane.ops.vjp import DISCRETE, through


def _corners(boxes: Array, centred: bool) -> Array:
    """Return boxes as (y1, x1, y2, x2) with y1 <= y2 and x1 <= x2."""
    if centred:
        x, y, w, h = boxes.T
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], axis=1)
    y1, x1, y2, x2 = boxes.T
    return np.stack(
        [np.minimum(y1, y2), np.minimum(x1, x2), np.maximum(y1, y2), np.maximum(x1, x2)], axis=1
    )


def overlap(box: Array, others: Array) -> Array:
    """Return the intersection over union of one box with others."""
    height = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    width = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    inner = np.clip(height, 0, None) * np.clip(width, 0, None)
    areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    union = (box[2] - box[0]) * (box[3] - box[1]) + areas - inner
    return np.where(union > 0, inner / np.where(union > 0, union, 1), 0)


def _non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
    *,
    center_point_box: int = 0,
) -> Array:
    def scalar(value: Array | None) -> float | None:
        return None if value is None or not value.size else value.ravel()[0]

    if boxes.shape[:2] != (scores.shape[0], scores.shape[2]):
        raise ValueError(
            f"expected one score a box, got boxes {list(boxes.shape)}, scores {list(scores.shape)}"
        )
    limit = int(scalar(max_output_boxes_per_class) or 0)
    threshold = scalar(iou_threshold) or 0.0
    floor = scalar(score_threshold)
    selected: list[tuple[int, int, int]] = []
    for batch in range(boxes.shape[0]):
        corners = _corners(boxes[batch], bool(center_point_box))
        for category in range(scores.shape[1]):
            score = scores[batch, category]
            order = np.argsort(-score, kind="stable")
            if floor is not None:
                order = order[score[order] > floor]
            taken = 0
            while order.size and taken < limit:
                best, order = order[0], order[1:]
                selected.append((batch, category, int(best)))
                taken += 1
                order = order[overlap(corners[best], corners[order]) <= threshold]
    return np.array(selected, dtype=np.int64).reshape(-1, 3)


def _infer_nms(ctx: InferContext) -> Sequence[Any]:
    if ctx.known_rank(0) is not None and ctx.known_rank(1) is not None:
        boxes, scores = ctx.shape(0, rank=3), ctx.shape(1, rank=3)
        ctx.unify(boxes[0], scores[0], "expected boxes and scores of one batch")
        ctx.unify(boxes[1], scores[2], "expected one score a box")
        ctx.unify(boxes[2], 4, "expected four numbers a box")
    return [(ctx.fresh("selected"), 3)]


def _infer_roi_align(ctx: InferContext) -> Sequence[Any]:
    _, channels, _, _ = ctx.shape(0, rank=4)
    count, four = ctx.shape(1, rank=2)
    ctx.unify(four, 4, "expected four numbers a region")
    ctx.unify(count, ctx.shape(2, rank=1)[0], "expected one batch index a region")
    return [(count, channels, ctx.attr("output_height"), ctx.attr("output_width"))]


def composed_roi_align(
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:
    """Return the operator's output, over the builder."""
    half_pixel = coordinate_transformation_mode == "half_pixel"
    corners = sub(mul(rois, spatial_scale), 0.5 if half_pixel else 0.0)
    left, top, right, bottom = (op("Gather", corners, i, axis=1) for i in range(4))
    tall = _samples(x, 2, top, bottom, output_height, sampling_ratio, half_pixel)
    wide = _samples(x, 3, left, right, output_width, sampling_ratio, half_pixel)
    batch, channels, height, width = shape_of(x)
    pixels = transpose(op("Reshape", x, [batch, channels, height * width]), [0, 2, 1])
    parts = []
    for row, of_row in tall.taps:
        for column, of_column in wide.taps:
            # (regions, rows, samples a row, columns, samples a column)
            at = add(mul(unsqueeze(row, [3, 4]), width), unsqueeze(column, [1, 2]))
            weight = mul(unsqueeze(of_row, [3, 4]), unsqueeze(of_column, [1, 2]))
            of_region = op("Reshape", batch_indices, [-1, 1, 1, 1, 1])
            pair = [unsqueeze(op("Expand", v, op("Shape", at)), [5]) for v in (of_region, at)]
            read = op("GatherND", pixels, op("Concat", *pair, axis=5))
            parts.append(mul(read, unsqueeze(weight, [5])))
    counts = op("And", unsqueeze(tall.counts, [3, 4]), unsqueeze(wide.counts, [1, 2]))
    counts = unsqueeze(counts, [5])
    if mode == "avg":
        total = op("ReduceSum", where(counts, add(*parts), 0), [2, 4], keepdims=0)
        number = op("Max", mul(tall.number, wide.number), 1)
        y = div(total, op("Reshape", number, [-1, 1, 1, 1]))
    else:
        best = where(counts, op("Max", *parts), -math.inf)
        y = op("ReduceMax", best, [2, 4], keepdims=0)
    return transpose(y, [0, 3, 1, 2])


@dataclass(frozen=True, slots=True)
class _Samples:
    """Where each cell of each region is read along one axis.

    Attributes:
        taps: Positions, int64, and weights of two neighbours, each (regions, cells, samples).
        counts: Which of the samples there are, likewise.
        number: How many samples a cell has, (regions,).
    """

    taps: list[tuple[Any, Any]]
    counts: Any
    number: Any


def _samples(
    x: Any, axis: int, start: Any, end: Any, cells: int, ratio: int, half_pixel: bool
) -> _Samples:
    extent = sub(end, start) if half_pixel else op("Max", sub(end, start), 1)
    cell = div(extent, cells)
    dtype = dtype_of(x)
    if ratio > 0:
        number: Any = op("Add", mul(op("Floor", cell), 0), ratio)
        most: Any = ratio
    else:
        number = op("Ceil", cell)
        most = cast(op("ReduceMax", op("Max", number, 1), keepdims=0), ir.DataType.INT64)
    steps = cast(op("Range", 0, most, 1), dtype)
    numbers = np.arange(cells).astype(dtype.numpy()).reshape(1, cells, 1)
    share = div(add(steps, 0.5), unsqueeze(number, [1, 2]))
    place = add(unsqueeze(start, [1, 2]), mul(add(share, numbers), unsqueeze(cell, [1, 2])))
    size = size_as_number(x, axis, x)
    inside = op("And", op("GreaterOrEqual", place, -1), op("LessOrEqual", place, size))
    place = op("Min", op("Max", place, 0), sub(size, 1))
    low = op("Floor", place)
    high = op("Min", add(low, 1), sub(size, 1))
    t = sub(place, low)
    taps = [(low, where(inside, sub(1, t), 0)), (high, where(inside, t, 0))]
    whole = [(cast(position, ir.DataType.INT64), weight) for position, weight in taps]
    return _Samples(
        whole,
        op("Less", steps, op("Expand", unsqueeze(number, [1, 2]), op("Shape", place))),
        number,
    )


_aligned = onnx_kernel("RoiAlign")


@widened
def _roi_align(
    x: Array, rois: Array, batch_indices: Array, *, attributes: dict[str, Any], n_outputs: int
) -> Any:
    if batch_indices.shape != rois.shape[:1]:
        raise ValueError(
            f"expected one batch index a region, got {list(batch_indices.shape)} for {len(rois)}"
        )
    outside = batch_indices[(batch_indices < 0) | (batch_indices >= len(x))]
    if outside.size:
        raise ValueError(f"expected images of 0 to {len(x) - 1}, got batch index {outside[0]}")
    return _aligned(x, rois, batch_indices, attributes=attributes, n_outputs=n_outputs)


OPERATORS = (
    OpDef("NonMaxSuppression", _infer_nms, _non_max_suppression, vjp=DISCRETE),
    OpDef(
        "RoiAlign",
        _infer_roi_align,
        _roi_align,
        compose=composed_roi_align,
        vjp=through(composed_roi_align),
    ),
)
