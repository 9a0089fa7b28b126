"""Regions of images, pooled to a fixed number of parts.

Where the samples of a part lie follows from the regions alone: a row and a column of each sample
along both axes, with weights of their lower and upper neighbours. The pixels are gathered then, so
that one formula serves pooling of whole pixels and of interpolated ones, of arrays and of values
of a graph. Places are computed in double precision, as Chainer computes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.elementary import add, cast, div, mul, sub, transpose, where

_DOUBLE, _WHOLE = ir.DataType.DOUBLE, ir.DataType.INT64


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples along one axis of images: values that broadcast to (regions, parts, samples).

    Attributes:
        low: The pixel before each sample, integers.
        high: The pixel behind it.
        weight: That of ``high``, doubles; ``low`` has the rest. None if samples are pixels.
        counted: Whether the sample belongs to its part.
        inside: Whether it lies in the image too; the outside counts as zero in means.
        longest: The number of samples, an integer of shape (1,).
    """

    low: Any
    high: Any
    weight: Any
    counted: Any
    inside: Any
    longest: Any


def aligned(
    x: Any, regions: Any, images: Any, sizes: Sequence[int], scale: float,
    ratios: Sequence[int | None], mode: str,
) -> Any:  # fmt: skip
    """Return means or maxima of interpolated samples of parts of regions (He et al., 2017).

    Args:
        x: (batch, channels, height, width).
        regions: (regions, 4): top, left, bottom, right.
        images: The image of each region, integers (regions,).
        sizes: Rows and columns of parts.
        scale: Pixels of ``x`` in a unit of the regions.
        ratios: How many samples a part has along both axes; as many as pixels if None.
        mode: ``mean`` or ``max``; the maximum of a part that lies outside is minus infinity.

    Returns:
        (regions, channels, *sizes).
    """
    corners = mul(cast(regions, _DOUBLE), float(scale))
    along = []
    for i in range(2):
        start = _column(corners, i)
        length = op("Max", sub(_column(corners, 2 + i), start), np.float64(1))
        along.append(_of_points(start, length, sizes[i], ratios[i], _size(x, 2 + i)))
    return _pooled(x, images, along[0], along[1], mode, 0.0 if mode == "mean" else -np.inf)


def pooled(
    x: Any, regions: Any, images: Any, sizes: Sequence[int], scale: float, more: int, mode: str,
    empty: float,
) -> Any:  # fmt: skip
    """Return means or maxima of the pixels of parts of regions, of which neighbours may share some.

    Args:
        x: (batch, channels, height, width).
        regions: (regions, 4): top, left, bottom, right.
        images: The image of each region, integers (regions,).
        sizes: Rows and columns of parts.
        scale: Pixels of ``x`` in a unit of the regions.
        more: 1 if the last pixels are inside, 0 if they are outside.
        mode: ``mean`` or ``max``.
        empty: The value of a part without pixels.

    Returns:
        (regions, channels, *sizes).
    """
    # Python rounds halves to even, as Round does.
    corners = op("Round", mul(cast(regions, _DOUBLE), float(scale)))
    along = []
    for i in range(2):
        start = _column(corners, i)
        length = add(sub(_column(corners, 2 + i), start), float(more))
        length = op("Max", length, np.float64(1))
        along.append(_of_pixels(start, length, sizes[i], _size(x, 2 + i)))
    return _pooled(x, images, along[0], along[1], mode, empty)


def _column(corners: Any, i: int) -> Any:
    """Return one number of each region: (regions, 1)."""
    return op("Gather", corners, np.array([i]), axis=1)


def _size(x: Any, axis: int) -> Any:
    """Return one size of ``x``: an integer of shape (1,)."""
    return op("Gather", op("Shape", x), np.array([axis]), axis=0)


def _numbers(counts: Any) -> tuple[Any, Any]:
    """Return 0, 1, ... up to the largest count, doubles, and how many these are, of shape (1,)."""
    most = op("ReduceMax", op("Concat", op("Reshape", counts, [-1]), np.ones(1), axis=0), [0])
    numbers = op("Range", np.float64(0), op("Squeeze", most, [0]), np.float64(1))
    return numbers, cast(most, _WHOLE)


def _of_points(starts: Any, lengths: Any, parts: int, ratio: int | None, limit: Any) -> Samples:
    """Return evenly distributed points of regions: starts and lengths are (regions, 1)."""
    step = div(lengths, float(parts))
    if ratio:
        counts: Any = np.array([[float(ratio)]])
        numbers, longest = np.arange(float(ratio)), np.array([ratio])
    else:
        counts = op("Max", op("Ceil", step), np.float64(1))
        numbers, longest = _numbers(counts)
    counted = op("Less", numbers, op("Unsqueeze", counts, [2]))
    within = mul(add(numbers, 0.5), op("Unsqueeze", div(step, counts), [2]))
    first = add(starts, mul(step, np.arange(float(parts))))
    places = add(op("Unsqueeze", first, [2]), within)
    end = cast(limit, _DOUBLE)
    inside = op("And", op("GreaterOrEqual", places, np.float64(-1)),
                op("LessOrEqual", places, end))  # fmt: skip
    clipped = op("Min", op("Max", places, np.float64(0)), sub(end, 1.0))
    floor = op("Floor", clipped)
    low, last = cast(floor, _WHOLE), sub(limit, 1)
    high = op("Min", add(low, 1), last)
    inside = op("And", inside, counted)
    return Samples(low, high, sub(clipped, floor), counted, inside, longest)


def _of_pixels(starts: Any, lengths: Any, parts: int, limit: Any) -> Samples:
    """Return the whole pixels of regions: starts and lengths are (regions, 1)."""
    end, step = cast(limit, _DOUBLE), div(lengths, float(parts))
    numbers = np.arange(float(parts))

    def edge(number: Any, rounding: str) -> Any:
        place = add(op(rounding, mul(step, number)), starts)
        return op("Min", op("Max", place, np.float64(0)), end)

    first, last = edge(numbers, "Floor"), edge(numbers + 1, "Ceil")
    offsets, longest = _numbers(sub(last, first))
    places = add(op("Unsqueeze", first, [2]), offsets)
    counted = op("Less", places, op("Unsqueeze", last, [2]))
    low = cast(op("Min", op("Max", places, np.float64(0)), sub(end, 1.0)), _WHOLE)
    return Samples(low, low, None, counted, counted, longest)


def _pooled(x: Any, images: Any, rows: Samples, columns: Samples, mode: str, empty: float) -> Any:
    dtype = dtype_of(x)
    pixels, channels = transpose(x, [0, 2, 3, 1]), _size(x, 1)
    pixels = op("Reshape", pixels, op("Concat", np.array([-1]), channels, axis=0))
    width = _size(x, 3)
    first = mul(cast(images, _WHOLE), mul(_size(x, 2), width))
    first = op("Unsqueeze", first, [1, 2, 3, 4])
    samples: Any = None
    for row, row_weight in _neighbours(rows):
        for column, column_weight in _neighbours(columns):
            places = add(first, mul(_down(row), width), _across(column))
            found = op("Gather", pixels, places, axis=0)
            if row_weight is not None:
                weights = mul(_down(row_weight), _across(column_weight))
                found = mul(found, op("Unsqueeze", cast(weights, dtype), [5]))
            samples = found if samples is None else add(samples, found)
    inside, counted = _both(rows.inside, columns.inside), _both(rows.counted, columns.counted)
    hidden = np.array(0 if mode == "mean" else -np.inf, dtype.numpy())
    samples = where(op("Unsqueeze", inside, [5]), samples, hidden)
    counts = op("ReduceSum", cast(counted if mode == "mean" else inside, _DOUBLE), [3, 4],
                keepdims=0)  # fmt: skip
    counts = op("Unsqueeze", counts, [3])
    if mode == "mean":
        shares = cast(div(np.float64(1), op("Max", counts, np.float64(1))), dtype)
        y = mul(op("ReduceSum", samples, [3, 4], keepdims=0), shares)
    else:
        shape = op("Slice", op("Shape", samples), np.array([0]), np.array([3]))
        together = mul(rows.longest, columns.longest)
        flat = op("Reshape", samples, op("Concat", shape, together, channels, axis=0))
        # The first of several largest samples gets the gradient.
        place = op("ArgMax", flat, axis=3, keepdims=1)
        y = op("Squeeze", op("GatherElements", flat, place, axis=3), [3])
    y = where(op("Greater", counts, np.float64(0)), y, np.array(empty, dtype.numpy()))
    return transpose(y, [0, 3, 1, 2])


def _neighbours(along: Samples) -> list[tuple[Any, Any]]:
    """Return the pixels beside each sample, with their weights."""
    if along.weight is None:
        return [(along.low, None)]
    return [(along.low, sub(1.0, along.weight)), (along.high, along.weight)]


def _both(rows: Any, columns: Any) -> Any:
    return op("And", _down(rows), _across(columns))


def _down(x: Any) -> Any:
    """Return samples along the height: (regions, parts, 1, samples, 1)."""
    return op("Unsqueeze", x, [2, 4])


def _across(x: Any) -> Any:
    """Return samples along the width: (regions, 1, parts, 1, samples)."""
    return op("Unsqueeze", x, [1, 3])
