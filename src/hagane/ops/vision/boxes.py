"""NonMaxSuppression and RoiAlign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.delegated import onnx_kernel
from hagane.ops.precision import widened


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
        ctx.unify(boxes[1], scores[2], "expected one score a box")
        ctx.unify(boxes[2], 4, "expected four numbers a box")
    return [(ctx.fresh("selected"), 3)]


def _infer_roi_align(ctx: InferContext) -> Sequence[Any]:
    _, channels, _, _ = ctx.shape(0, rank=4)
    count, four = ctx.shape(1, rank=2)
    ctx.unify(four, 4, "expected four numbers a region")
    ctx.unify(count, ctx.shape(2, rank=1)[0], "expected one batch index a region")
    return [(count, channels, ctx.attr("output_height"), ctx.attr("output_width"))]


OPERATORS = (
    OpDef("NonMaxSuppression", _infer_nms, _non_max_suppression),
    OpDef("RoiAlign", _infer_roi_align, widened(onnx_kernel("RoiAlign"))),
)
