"""MaxUnpool and MaxRoiPool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import Call, content_of, dtype_of, op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import add, cast, div, mul, sub, unsqueeze, where
from hagane.ops.functions.tensors.positions import positions_along
from hagane.ops.functions.tensors.shapes import reshape_like
from hagane.ops.vjp import through
from hagane.symbolic import Dim


def _unpooled(
    sizes: Sequence[Dim],
    kernel: Sequence[int],
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> list[Dim]:
    rank = len(kernel)
    pads, strides = pads or (0,) * (2 * rank), strides or (1,) * rank
    return [(sizes[a] - 1) * strides[a] + kernel[a] - pads[a] - pads[a + rank] for a in range(rank)]


def _max_unpool(
    x: Array,
    indices: Array,
    output_shape: Array | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    if np.min(indices, initial=0) < 0:
        raise ValueError(f"expected places from 0 on as indices, got {np.min(indices)}")
    sizes = [int(n) for n in _unpooled(x.shape[2:], kernel_shape, pads, strides)]
    inferred = (*x.shape[:2], *sizes)
    canvas = np.zeros(int(np.prod(inferred)), dtype=x.dtype)
    if output_shape is None:
        canvas[indices.ravel()] = x.ravel()
        return canvas.reshape(inferred)
    # The indices count in the inferred shape; the larger one only adds zeros at the ends.
    result = np.zeros(tuple(int(n) for n in output_shape), dtype=x.dtype)
    flat_size = result.size if np.max(indices, initial=0) >= canvas.size else canvas.size
    if flat_size == result.size:
        result.ravel()[indices.ravel()] = x.ravel()
        return result
    canvas[indices.ravel()] = x.ravel()
    result[tuple(slice(0, n) for n in inferred)] = canvas.reshape(inferred)
    return result


def _infer_max_unpool(ctx: InferContext) -> Sequence[Any]:
    if ctx.has(2):
        return [ctx.dims(2)]
    shape = ctx.shape(0)
    sizes = _unpooled(shape[2:], ctx.attr("kernel_shape"), ctx.attr("pads"), ctx.attr("strides"))
    return [(*shape[:2], *sizes)]


def _max_roi_pool(
    x: Array, rois: Array, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0
) -> Array:
    """Max-pool each region into a fixed grid (Girshick, "Fast R-CNN", 2015, section 2.1)."""
    rows, columns = pooled_shape
    height, width = x.shape[2:]
    result = np.zeros((len(rois), x.shape[1], rows, columns), dtype=x.dtype)
    for r, roi in enumerate(rois):
        image = x[int(roi[0])]
        # Half away from zero, as C's round does.
        left, top, right, bottom = (int(np.floor(v * spatial_scale + 0.5)) for v in roi[1:])
        cell_h = max(bottom - top + 1, 1) / rows
        cell_w = max(right - left + 1, 1) / columns
        for i in range(rows):
            y0 = min(max(int(np.floor(i * cell_h)) + top, 0), height)
            y1 = min(max(int(np.ceil((i + 1) * cell_h)) + top, 0), height)
            for j in range(columns):
                x0 = min(max(int(np.floor(j * cell_w)) + left, 0), width)
                x1 = min(max(int(np.ceil((j + 1) * cell_w)) + left, 0), width)
                if y1 > y0 and x1 > x0:
                    result[r, :, i, j] = image[:, y0:y1, x0:x1].max(axis=(1, 2))
    return result


def composed_max_roi_pool(
    x: Any, rois: Any, *, pooled_shape: Sequence[int], spatial_scale: float
) -> Any:
    """Return the operator's output, over the builder: rows of each cell, then columns."""
    dtype = dtype_of(x)
    edges = op("Floor", add(mul(rois, spatial_scale), 0.5))
    _, left, top, right, bottom = (op("Gather", edges, i, axis=1) for i in range(5))
    region = op("Cast", op("Gather", rois, 0, axis=1), to=ir.DataType.INT64)
    y = op("Gather", x, region, axis=0)
    for axis, first, last in ((2, top, bottom), (3, left, right)):
        cells = pooled_shape[axis - 2]
        cell = div(op("Max", add(sub(last, first), 1), 1), cells)
        steps = cast(positions_along(y, axis), dtype)
        parts = []
        for i in range(cells):
            start = add(op("Floor", mul(cell, float(i))), first)
            end = add(op("Ceil", mul(cell, float(i + 1))), first)
            inside = op(
                "And",
                op("GreaterOrEqual", steps, unsqueeze(start, [1])),
                op("Less", steps, unsqueeze(end, [1])),
            )
            places = unsqueeze(inside, [1, 3] if axis == 2 else [1, 2])
            parts.append(op("ReduceMax", where(places, y, -math.inf), [axis], keepdims=1))
        y = op("Concat", *parts, axis=axis)
    return where(op("Equal", y, -math.inf), 0, y)


def _infer_max_roi_pool(ctx: InferContext) -> Sequence[Any]:
    _, channels, _, _ = ctx.shape(0, rank=4)
    count, _ = ctx.shape(1, rank=2)
    return [(count, channels, *ctx.attr("pooled_shape"))]


def _max_unpool_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x, indices, *wanted), (g,) = call.inputs, gradients
    shape, rank = shape_of(x), len(shape_of(x)) - 2
    sizes = _unpooled(shape[2:], call.attr("kernel_shape"), call.attr("pads"), call.attr("strides"))
    if wanted and shape_of(g)[2:] != tuple(sizes) and not _counts_in(g, indices, shape, sizes):
        g = op("Slice", g, [0] * rank, sizes, list(range(2, 2 + rank)))
    flat = [op("Reshape", value, [-1]) for value in (g, indices)]
    return [reshape_like(op("GatherElements", *flat, axis=0), x), None, *(None for _ in wanted)]


def _counts_in(g: Any, indices: Any, shape: Sequence[Dim], sizes: Sequence[Dim]) -> bool:
    """Whether indices are known to count in the shape of the result, which is the larger one."""
    known, whole = content_of(indices), math.prod((*shape[:2], *sizes))
    return known is not None and isinstance(whole, int) and np.max(known, initial=0) >= whole


OPERATORS = (
    OpDef("MaxRoiPool", _infer_max_roi_pool, _max_roi_pool, vjp=through(composed_max_roi_pool)),
    OpDef("MaxUnpool", _infer_max_unpool, _max_unpool, vjp=_max_unpool_vjp),
)
