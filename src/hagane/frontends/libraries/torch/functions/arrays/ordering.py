"""Functions of PyTorch that sort, accumulate, count equal elements, or keep the best."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built, computed
from hagane.frontends.libraries.torch import programs
from hagane.frontends.libraries.torch.indices import from_front
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    INT64,
    axis,
    cast,
    category,
    dtype_of,
    need_float,
    need_tensor,
    shape_of,
    size,
    sizes,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.values.values import (
    Fields,
    Tensor,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.numbers.elementary import cast as to_dtype
from hagane.ops.functions.numbers.elementary import unsqueeze
from hagane.ops.functions.sums import statistics
from hagane.ops.functions.tensors import ordering
from hagane.ops.functions.tensors import parts as taken
from hagane.symbolic import Dim


@TORCH.function("topk", methods=("topk",))
def topk(
    t: Core, input: Value, k: Value, dim: Value = -1, largest: Value = True, sorted: Value = True
) -> Value:
    """Return the k largest elements along an axis, and where they are."""
    x = need_tensor(t, input, "input")
    shape = list(shape_of(t, x))
    place = axis(t, dim, len(shape), x)
    count = size(t, k)
    if isinstance(count, int) and not isinstance(shape[place], int):
        t.emit.require_size(shape[place], count, f"axis {place} for topk")
    elif not t.emit.holds(
        t.knowledge.less(count, shape[place], strict=False), f"{count} <= {shape[place]}"
    ):
        t.fail("value", f"topk takes {count} of only {shape[place]} elements: {t.show(x)}", x)
    shape[place] = count
    return _ordered(t, "TopK", x, tuple(shape), count, place, bool(largest))


def _ordered(
    t: Core, name: str, x: Tensor, shape: tuple[Dim, ...], count: Dim, place: int, largest: bool
) -> Fields:
    """Return the largest or smallest elements along an axis in order, and where they are."""
    if x.shape and category(x.dtype) in (1, 2):
        made = op("TopK", x, [count], axis=place, largest=int(largest), outputs=2)
        for tensor in made:
            t.emit.show_sizes(tensor, shape)
    else:
        made = (t.emit.typed(name, [x], x.dtype, shape), t.emit.typed(name, [x], INT64, shape))
    return Fields(made, ("values", "indices"))


@TORCH.function("sort", methods=("sort",))
def sort(t: Core, input: Value, dim: Value = -1, descending: Value = False, **_: Value) -> Value:
    """Return the input sorted along an axis, and where its elements were."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = axis(t, dim, len(shape), x)
    return _ordered(t, "Sort", x, shape, shape[place] if shape else 1, place, bool(descending))


@TORCH.function("msort", methods=("msort",))
def msort(t: Core, input: Value) -> Tensor:
    """Return the input sorted along its first axis."""
    x = need_tensor(t, input, "input")
    return sort(t, x, 0)[0]


@TORCH.function("argsort", methods=("argsort",))
def argsort(
    t: Core, input: Value, dim: Value = -1, descending: Value = False, **_: Value
) -> Tensor:
    """Return the positions that sort the input."""
    x = need_tensor(t, input, "input")
    return sort(t, x, dim, descending)[1]


def _cumulative(name: str) -> None:
    def function(t: Core, input: Value, dim: Value, *, dtype: Value = None) -> Value:
        x = need_tensor(t, input, "input")
        place = axis(t, dim, len(shape_of(t, x)), x)
        if name in ("cummax", "cummin"):
            shape = shape_of(t, x)
            if category(x.dtype) in (1, 2) and shape:
                largest = name == "cummax"
                found = [
                    built(t, (dtype, shape),
                             lambda x, k=k: ordering.running_extremes(x, place, largest)[k], x)
                    for k, dtype in enumerate((x.dtype, INT64))
                ]  # fmt: skip
            else:
                found = [t.emit.typed("CumMax", [x], dtype, shape) for dtype in (x.dtype, INT64)]
            return Fields(tuple(found), ("values", "indices"))
        whole = name == "logcumsumexp"
        default = x.dtype if whole or category(x.dtype) >= 2 else INT64
        wanted = dtype_of(dtype, default)
        made = t.emit.typed("CumSum", [x], wanted, x.shape)
        if category(wanted) == 3 or not shape_of(t, x):
            return made
        wide = cast(t, x, wanted)
        if whole:
            return built(t, made, ordering.running_log_sums, wide, place)
        return built(t, made, lambda x: statistics.running(name, x, place, skip=False), wide)

    TORCH.function(name, methods=(name,))(function)


for _name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
    _cumulative(_name)
TORCH.method("cumsum_")(TORCH.functions["torch.cumsum"])
TORCH.method("cumprod_")(TORCH.functions["torch.cumprod"])


@TORCH.function("unique_consecutive", methods=("unique_consecutive",))
def unique_consecutive(
    t: Core, input: Value, return_inverse: Value = False, return_counts: Value = False,
    dim: Value = None,
) -> Value:  # fmt: skip
    """Return runs of equal elements as one each; how many there are nobody knows before."""
    x = need_tensor(t, input, "input")
    count = t.emit.fresh("unique")
    shape = list(shape_of(t, x))
    if dim is not None:
        shape[axis(t, dim, len(shape), x)] = count
        return t.emit.typed("Unique", [x], x.dtype, tuple(shape))

    def part(number: int, dtype: ir.DataType, own: tuple[Dim, ...]) -> Tensor:
        return built(t, (dtype, own), lambda x: ordering.different_neighbours(x)[number], x)

    results = [part(0, x.dtype, (count,))]
    if return_inverse:
        results.append(part(1, INT64, tuple(shape)))
    if return_counts:
        results.append(part(2, INT64, (count,)))
    return results[0] if len(results) == 1 else tuple(results)


@TORCH.function("unique", methods=("unique",))
def unique(
    t: Core, input: Value, sorted: Value = True, return_inverse: Value = False,
    return_counts: Value = False, dim: Value = None,
) -> Value:  # fmt: skip
    """Return the different elements; how many there are nobody knows before."""
    x = need_tensor(t, input, "input")
    count = t.emit.fresh("unique")
    shape = list(shape_of(t, x))
    if dim is None:
        shape = [count]
    else:
        shape[axis(t, dim, len(shape), x)] = count
    place = None if dim is None else axis(t, dim, len(shape), x)
    inverse = shape_of(t, x) if place is None else (shape_of(t, x)[place],)

    def part(number: int, dtype: ir.DataType, own: tuple[Dim, ...]) -> Tensor:
        if category(x.dtype) == 3:
            return t.emit.typed("Unique", [x], dtype, own)
        return built(t, (dtype, own), lambda x: ordering.different(x, place)[number], x)

    results = [part(0, x.dtype, tuple(shape))]
    if return_inverse:
        results.append(part(2, INT64, inverse))
    if return_counts:
        results.append(part(3, INT64, (count,)))
    return results[0] if len(results) == 1 else tuple(results)


@TORCH.function("bincount", methods=("bincount",))
def bincount(t: Core, input: Value, weights: Value = None, minlength: Value = 0) -> Tensor:
    """Return how often each number occurs."""
    x = need_tensor(t, input, "input")
    shape_of(t, x, 1)
    if category(x.dtype) != 1:
        t.fail("dtype-mismatch", f"bincount takes integers, got {t.show(x)}", x,
               remedy="convert it with .long()")  # fmt: skip
    x = from_front(t, x)
    double = isinstance(weights, Tensor) and weights.dtype != FLOAT
    dtype = INT64 if weights is None else ir.DataType.DOUBLE if double else FLOAT
    made = (dtype, (t.emit.fresh("bins"),))
    least = size(t, minlength)
    weight = [] if weights is None else [cast(t, weights, dtype)]
    return built(t, made, lambda x, w=None: ordering.occurrences(x, w, least), x, *weight)


@TORCH.function("histogram", methods=("histogram",))
def histogram(t: Core, input: Value, bins: Value, **_: Value) -> Value:
    """Return how many elements fall into each bin, and the edges of the bins."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    count = bins if not isinstance(bins, Tensor) else shape_of(t, bins, 1)[0] - 1
    if not _ and (isinstance(bins, Tensor) or isinstance(count, int)):
        edges = bins if isinstance(bins, Tensor) else built(
            t, (x.dtype, (count + 1,)), lambda x: ordering.even_edges(x, count), x)  # fmt: skip
        found = built(t, (x.dtype, (count,)), lambda x, edges: to_dtype(
            ordering.counts_between(x, edges), x.dtype), x, edges)  # fmt: skip
        return Fields((found, edges), ("hist", "bin_edges"))
    return Fields(
        (t.emit.typed("Histogram", [x], x.dtype, (count,)),
         t.emit.typed("Histogram", [x], x.dtype, (count + 1,))), ("hist", "bin_edges"),
    )  # fmt: skip


@TORCH.function("ops.torchvision.nms")
def nms(t: Core, dets: Value, scores: Value, iou_threshold: Value) -> Tensor:
    """Return the places of the boxes (count, 4) that no better one overlaps, the best first."""
    boxes, found = need_tensor(t, dets, "dets"), need_tensor(t, scores, "scores")
    for name, x, rank in (("dets", boxes, 2), ("scores", found, 1)):
        if len(shape_of(t, x)) != rank:
            t.fail("rank", f"expected {rank} axes of '{name}', got {t.show(x)}", x)
    if not isinstance(iou_threshold, float | int):
        t.fail("value", f"expected 'iou_threshold' to be a number, got {t.show(iou_threshold)}")
    if boxes.dtype != found.dtype:
        t.fail("dtype", f"expected 'dets' and 'scores' of one type, got {t.show(boxes)} and "
               f"{t.show(found)}", boxes)  # fmt: skip
    if boxes.dtype == ir.DataType.DOUBLE:
        return need_tensor(t, run_own(t, programs.suppressed, [boxes, found, iou_threshold], {}),
                           "kept")  # fmt: skip
    count = t.emit.count("kept", boxes)

    def kept() -> Value:
        selected = op(
            "NonMaxSuppression",
            unsqueeze(boxes, [0]),
            unsqueeze(found, [0, 1]),
            op("Size", found),
            np.float32(iou_threshold),
        )
        return taken.element(selected, 1, 2)

    return computed(t, (INT64, (count,)), kept)


@TORCH.function("ops.torchvision.roi_align")
def roi_align(
    t: Core,
    input: Value,
    rois: Value,
    spatial_scale: Value,
    pooled_height: Value,
    pooled_width: Value,
    sampling_ratio: Value = -1,
    aligned: Value = False,
) -> Tensor:
    """Return means of samples in regions, (count, channels, rows, columns).

    The regions are (count, 5): the picture of each, then left, top, right and bottom.
    """
    images, regions = need_tensor(t, input, "input"), need_tensor(t, rois, "rois")
    for name, x, rank in (("input", images, 4), ("rois", regions, 2)):
        if len(shape_of(t, x)) != rank:
            t.fail("rank", f"expected {rank} axes of '{name}', got {t.show(x)}", x)
    size = sizes(t, (pooled_height, pooled_width))
    shape = (shape_of(t, regions)[0], shape_of(t, images)[1], *size)
    if t.emit.differ(shape_of(t, regions)[1], 5):
        t.fail("shape-mismatch", f"expected regions (image, x1, y1, x2, y2), got "
               f"{t.show(regions)}", regions)  # fmt: skip
    if images.dtype != regions.dtype:
        t.fail("dtype-mismatch", f"expected pictures and regions of one type, got "
               f"{t.show(images)} and {t.show(regions)}", images, regions)  # fmt: skip
    if not isinstance(spatial_scale, int | float):  # sizes or data decide
        corners = t.call_library("torch.narrow", [regions, 1, 1, 4])
        scaled = t.call_library("torch.mul", [corners, spatial_scale])
        places = t.call_library("torch.narrow", [regions, 1, 0, 1])
        regions = need_tensor(t, t.call_library("torch.cat", [(places, scaled), 1]), "rois")
        spatial_scale = 1.0
    plain = (spatial_scale, *size, sampling_ratio, aligned)
    if not all(isinstance(value, bool | int | float) for value in plain):
        return t.emit.typed("RoiAlign", [images, regions], images.dtype, shape)
    scale, rows, columns, ratio, exact = plain

    def pooled() -> Value:
        return op(
            "RoiAlign", images, taken.part(regions, 1, 1, 4),
            to_dtype(taken.element(regions, 1, 0), INT64), mode="avg", output_height=rows,
            output_width=columns, sampling_ratio=max(ratio, 0), spatial_scale=float(scale),
            coordinate_transformation_mode="half_pixel" if exact else "output_half_pixel",
        )  # fmt: skip

    return computed(t, (images.dtype, shape), pooled)
