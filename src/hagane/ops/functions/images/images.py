"""Windows of images that are no operators themselves, and channels moved into space.

Images are (batch, channels, *sizes).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product as combinations
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.images.windows import padded, tap
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import add, cast, div, mul, transpose, unsqueeze, where
from hagane.ops.functions.tensors.filling import filled
from hagane.ops.functions.tensors.padding import padded_around
from hagane.ops.functions.tensors.parts import resized
from hagane.symbolic import Dim, Expr, ceildiv, floordiv, maximum, product

_INT64 = ir.DataType.INT64
_ONES = np.ones(2, np.float32)


def _around(pads: Sequence[Dim], extra: Sequence[Dim]) -> list[Dim]:
    return [0, 0, *pads, 0, 0, *(p + e for p, e in zip(pads, extra, strict=True))]


def averages(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    counts: Sequence[Dim] | None, *, include_pads: bool, divisor: int | None,
) -> Any:  # fmt: skip
    """Return the means of windows, as PyTorch has them.

    Args:
        x: Floats.
        kernel: Sizes of a window.
        strides: Distances between neighbouring windows.
        pads: Zeros around, on either side.
        counts: How many windows there are, where the last ones may reach beyond the padded image;
            elements beyond are not counted. None for all that fit.
        include_pads: Whether zeros around count.
        divisor: The divisor of sums, in place of counts.
    """
    area = math.prod(kernel)
    settings: dict[str, Any] = {"kernel_shape": list(kernel), "strides": list(strides)}
    if counts is None:
        whole = include_pads or divisor is not None
        found = op("AveragePool", x, pads=[*pads, *pads], count_include_pad=int(whole), **settings)
        return found if divisor is None else mul(found, area / divisor)
    sizes = shape_of(x)[2:]
    spans = zip(counts, strides, kernel, sizes, pads, strict=True)
    extra = [maximum(0, (c - 1) * s + k - n - 2 * p) for c, s, k, n, p in spans]

    def sums(values: Any, amounts: list[Dim]) -> Any:
        wide = padded_around(values, amounts, 0, "constant")
        made = mul(op("AveragePool", wide, **settings), float(area))
        axes = list(range(2, 2 + len(counts)))
        return op("Slice", made, [0] * len(axes), list(counts), axes)

    total = sums(x, _around(pads, extra))
    if divisor is not None:
        return div(total, float(divisor))
    dtype = dtype_of(x)
    if include_pads:
        inner = [n + 2 * p for n, p in zip(sizes, pads, strict=True)]
        ones = filled([1, 1, *inner], 1, dtype)
        return div(total, sums(ones, [0, 0, *[0] * len(pads), 0, 0, *extra]))
    return div(total, sums(filled([1, 1, *sizes], 1, dtype), _around(pads, extra)))


def norms_of_windows(x: Any, means: Any, order: float, area: int) -> Any:
    """Return the p-norms of windows from the means of powers: PyTorch's ``lp_pool``.

    Args:
        x: The images, whose element type counts.
        means: The means of ``x ** order`` over windows.
        order: p.
        area: How many elements a window has.
    """
    size = mul(op("Sign", means), op("Relu", op("Abs", means)))
    return op("Pow", mul(size, float(area)), number_like(1 / order, x))


def largest_with_places(x: Any, settings: dict[str, Any]) -> tuple[Any, Any]:
    """Return the largest elements of windows, and their places in their image; int64."""
    values, places = op("MaxPool", x, outputs=2, **settings)
    return values, op("Mod", places, product(shape_of(x)[2:]))


def put_back(x: Any, places: Any, sizes: Sequence[Dim]) -> Any:
    """Return zeros with elements at places of their image.

    Args:
        x: (batch, channels, ...), or without the batch.
        places: In the same shape, int64.
        sizes: The sizes of the images.
    """
    lead = list(shape_of(x))[: -len(sizes)]
    whole = filled([*lead, product(sizes)], 0, dtype_of(x))
    count = product(shape_of(x)[len(lead) :])
    flat, at = (resized(v, [*lead, count]) for v in (x, places))
    return resized(op("ScatterElements", whole, at, flat, axis=len(lead)), [*lead, *sizes])


def reduced_to(x: Any, sizes: Sequence[Dim], operator: str) -> Any:
    """Return the means or largest elements of windows that divide axes into so many parts.

    Args:
        x: A tensor.
        sizes: How many parts the last axes have; numbers, unless they stay as they are.
        operator: ``ReduceMean`` or ``ReduceMax``.
    """
    rank = rank_of(x)
    for number, count in enumerate(sizes):
        axis = rank - len(sizes) + number
        size = shape_of(x)[axis]
        if size == count:
            continue
        assert isinstance(count, int)
        found = []
        for k in range(count):
            start, end = floordiv(size * k, count), ceildiv(size * (k + 1), count)
            window = op("Slice", x, [start], [end], [axis]) if count > 1 else x
            found.append(op(operator, window, [axis], keepdims=1))
        x = op("Concat", *found, axis=axis) if count > 1 else found[0]
    return x


def adaptive_places(x: Any, sizes: Sequence[int]) -> Any:
    """Return where the largest elements of such windows lie in their image; int64.

    Args:
        x: (..., *sizes), all of which are numbers.
        sizes: How many windows there are along the last axes.
    """
    own = [int(str(n)) for n in shape_of(x)[-len(sizes) :]]
    table: Any = np.zeros((1, 1), np.int64)
    for size, count in zip(own, sizes, strict=True):
        starts = [size * k // count for k in range(count)]
        ends = [-(-size * (k + 1) // count) for k in range(count)]
        width = max(e - s for s, e in zip(starts, ends, strict=True))
        each = np.array([[min(s + j, e - 1) for j in range(width)]
                         for s, e in zip(starts, ends, strict=True)])  # fmt: skip
        outer = table[:, None, :, None] * size + each[None, :, None, :]
        table = outer.reshape(table.shape[0] * count, table.shape[1] * width)
    lead = list(shape_of(x))[: -len(sizes)]
    flat = resized(x, [*lead, math.prod(own)])
    read = op("Gather", flat, table, axis=len(lead))
    best = op("ArgMax", read, axis=len(lead) + 1, keepdims=1)
    wide = op("Expand", table, [*lead, *table.shape])
    places = op("GatherElements", wide, best, axis=len(lead) + 1)
    return resized(places, [*lead, *sizes])


def response_normalized(x: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    """Return each element over a power of the mean square of channels near its own."""
    rank, channels = rank_of(x), shape_of(x)[1]
    amounts = [0] * (2 * rank)
    amounts[1], amounts[rank + 1] = size // 2, (size - 1) // 2
    wide = padded_around(mul(x, x), amounts, 0, "constant")
    total: Any = None
    for number in range(size):
        part = op("Slice", wide, [number], [channels + number], [1])
        total = part if total is None else add(total, part)
    scale = add(mul(total, alpha / size), k)
    return div(x, op("Pow", scale, number_like(beta, x)))


# Channels and space.


def channels_to_space(x: Any, factor: int) -> Any:
    """Return (..., C / r^2, H r, W r) of (..., C, H, W)."""
    *lead, channels, height, width = shape_of(x)
    n = len(lead)
    x = resized(x, [*lead, floordiv(channels, factor**2), factor, factor, height, width])
    x = transpose(x, [*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return resized(x, [*lead, floordiv(channels, factor**2), height * factor, width * factor])


def space_to_channels(x: Any, factor: int) -> Any:
    """Return (..., C r^2, H / r, W / r) of (..., C, H, W)."""
    *lead, channels, height, width = shape_of(x)
    rows, columns = floordiv(height, factor), floordiv(width, factor)
    n = len(lead)
    x = resized(x, [*lead, channels, rows, factor, columns, factor])
    x = transpose(x, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return resized(x, [*lead, channels * factor**2, rows, columns])


def shuffled_channels(x: Any, groups: int) -> Any:
    """Return the channels of groups interleaved."""
    batch, channels, *sizes = shape_of(x)
    x = resized(x, [batch, groups, floordiv(channels, groups), *sizes])
    x = transpose(x, [0, 2, 1, *range(3, 3 + len(sizes))])
    return resized(x, [batch, channels, *sizes])


def columns_of_windows(
    x: Any, kernel: Sequence[int], dilations: Sequence[int], pads: Sequence[int],
    strides: Sequence[int], counts: Sequence[Dim],
) -> Any:  # fmt: skip
    """Return all windows as columns: (batch, channels * kernel, windows)."""
    batch, channels = shape_of(x)[:2]
    x = padded(x, [*pads, *pads])
    taps = []
    for place in combinations(*(range(k) for k in kernel)):
        offset = [k * d for k, d in zip(place, dilations, strict=True)]
        taps.append(unsqueeze(tap(x, offset, counts, strides), [2]))
    found = op("Concat", *taps, axis=2) if len(taps) > 1 else taps[0]
    return resized(found, [batch, channels * math.prod(kernel), product(counts)])


def scaled(
    x: Any, sizes: Sequence[Dim], scales: Sequence[float] | None, mode: str, corners: bool
) -> Any:
    """Return images of other sizes.

    Args:
        x: Floats.
        sizes: The sizes of the results.
        scales: Factors, where they say how places of pixels follow; else the sizes do.
        mode: ``nearest``, ``nearest-exact``, ``linear`` or ``cubic``.
        corners: Whether the middles of corner pixels stay in place.
    """
    lead = list(shape_of(x))[:2]
    if mode.startswith("nearest"):
        if scales is not None and not all(map(_is_plain, scales)):
            return _nearest(x, sizes, scales, mode)
        exact = mode == "nearest-exact"
        settings: dict[str, Any] = {
            "mode": "nearest",
            "coordinate_transformation_mode": "half_pixel" if exact else "asymmetric",
            "nearest_mode": "round_prefer_ceil" if exact else "floor",
        }
    elif corners:  # of the sizes: ONNX takes those of factors before they are rounded
        settings = {"mode": mode, "coordinate_transformation_mode": "align_corners"}
        scales = None
    else:
        settings = {"mode": mode, "coordinate_transformation_mode": "half_pixel"}
    if scales is None:
        return op("Resize", x, None, None, [*lead, *sizes], **settings)
    sources = list(shape_of(x))[2:]
    factors = np.array(scales, np.float32)
    if mode == "linear":  # an axis whose size stays is copied
        pairs = list(zip(sources, sizes, strict=True))
        factors[[source == size for source, size in pairs]] = 1
        small = (factors > 1) & (factors < 1.5)  # a few pixels times these are as many pixels
        if any(less and isinstance(n, Expr) for less, n in zip(small, sources, strict=True)):
            stays = op("Equal", sources, list(sizes))
            found = where(stays, np.float32(1), factors)
            return op("Resize", x, None, op("Concat", _ONES, found, axis=0), **settings)
    return op("Resize", x, None, np.concatenate([_ONES, factors]), **settings)


def _is_plain(scale: float) -> bool:
    """Whether places times the inverse of a factor have no error that rounding could show."""
    return scale == int(scale) or math.frexp(scale)[0] == 0.5


def _nearest(x: Any, sizes: Sequence[Dim], scales: Sequence[float], mode: str) -> Any:
    """Return the nearest elements by factors, at the places that PyTorch's float32 gives.

    In pictures, an axis that comes out as long as it was, or twice as long, is copied so in mode
    ``nearest``, whatever the factor.
    """
    picture = len(sizes) == 2 and mode == "nearest"
    for axis, (size, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        if scale == 1:
            continue
        places = cast(op("Range", 0, size, 1), ir.DataType.FLOAT)
        if mode == "nearest-exact":
            places = add(places, np.float32(0.5))
        step: Any = np.float32(1 / scale)
        source = shape_of(x)[axis]
        if picture and 1 < scale < 3:  # the only factors that give these lengths
            times = int(scale)
            step = where(op("Equal", size, source * times), np.float32(1 / times), step)
        found = cast(op("Floor", mul(places, step)), _INT64)
        x = op("Gather", x, op("Min", found, source - 1), axis=axis)
    return x


def bags(
    weight: Any, places: Any, starts: Any, mode: str, weights: Any, *, last: bool,
    padding: int | None,
) -> Any:  # fmt: skip
    """Return sums, means or largest elements of the rows that belong to each bag.

    Args:
        weight: (rows, size), floats.
        places: (count,), the rows of all bags behind each other.
        starts: (bags,), where each bag begins.
        mode: ``sum``, ``mean`` or ``max``.
        weights: (count,), factors of a sum; or None.
        last: Whether the last start is the end of the bag before, and none of its own.
        padding: A row that does not count; or None.
    """
    places, starts = cast(places, _INT64), cast(starts, _INT64)
    size = op("Shape", places)
    ends = op("Concat", op("Slice", starts, [1], [2**63 - 1], [0]), size, axis=0)
    if last:
        starts, ends = (op("Slice", v, [0], [-1], [0]) for v in (starts, ends))
    at = op("Range", 0, op("Squeeze", size, [0]), 1)
    inside = op("And", op("GreaterOrEqual", at, unsqueeze(starts, [1])),
                op("Less", at, unsqueeze(ends, [1])))  # fmt: skip
    if padding is not None:
        inside = op("And", inside, op("Not", op("Equal", places, padding)))
    rows = op("Gather", weight, places, axis=0)
    if mode == "max":
        low = number_like(-math.inf, weight)
        spread = op("Where", unsqueeze(inside, [2]), unsqueeze(rows, [0]), low)
        found = op("ReduceMax", spread, [1], keepdims=0)
        return op("Where", op("IsInf", found), number_like(0, weight), found)
    share = cast(inside, dtype_of(weight))
    if mode == "mean":
        count = op("ReduceSum", share, [1], keepdims=1)
        share = div(share, op("Max", count, number_like(1, weight)))
    elif weights is not None:
        share = mul(share, weights)
    return op("MatMul", share, rows)
