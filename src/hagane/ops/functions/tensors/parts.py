"""Parts of tensors, and their elements in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.numbers.elementary import cast, sub, transpose, unsqueeze
from hagane.ops.functions.tensors.positions import extent, positions_along
from hagane.symbolic import Dim

_LAST = 2**63 - 1
_NO_AXES = np.zeros(0, np.int64)


def part(x: Any, axis: int, start: Dim, length: Dim) -> Any:
    """Return ``length`` elements from ``start`` on along an axis."""
    return op("Slice", x, [start], [start + length], [axis])


def parts(x: Any, axis: int, lengths: Sequence[Dim]) -> list[Any]:
    """Return neighbouring parts of given lengths along an axis, from the front."""
    found, start = [], 0
    for length in lengths:
        found.append(part(x, axis, start, length))
        start = start + length  # type: ignore[assignment]
    return found


def element(x: Any, axis: int, place: int) -> Any:
    """Return one element along an axis, without that axis."""
    return op("Gather", x, np.array(place), axis=axis)


def flip(x: Any, axes: Sequence[int]) -> Any:
    """Return ``x`` with the order along axes reversed."""
    count = len(axes)
    if not count:
        return x
    return op("Slice", x, [-1] * count, [-_LAST] * count, list(axes), [-1] * count)


def roll(x: Any, shift: Dim, axis: int) -> Any:
    """Return ``x`` with elements moved on along an axis; those beyond its end come in front."""
    size = extent(x, axis)
    least_one = max(size, 1) if isinstance(size, int) else op("Max", size, 1)
    places = op("Mod", sub(positions_along(x, axis), shift), least_one)
    return op("Gather", x, places, axis=axis)


def flat(x: Any) -> Any:
    """Return the elements along one axis."""
    return op("Reshape", x, [-1])


def resized(x: Any, shape: Sequence[Dim]) -> Any:
    """Return ``x`` in another shape of as many elements."""
    return op("Reshape", x, list(shape), allowzero=1) if shape else op("Reshape", x, _NO_AXES)


def repeat_each(x: Any, axis: int, times: Dim) -> Any:
    """Return ``x`` with each element along an axis as many times in a row."""
    each = max(times, 1) if isinstance(times, int) else op("Max", times, 1)
    places = op("Div", op("Range", 0, shape_of(x)[axis] * times, 1), each)
    return op("Gather", x, places, axis=axis)


def places_repeated(counts: Any) -> Any:
    """Return the position of each count as many times in a row as it says: ``[2, 1]``: 0, 0, 1."""
    counts = cast(counts, ir.DataType.INT64)
    ends = op("CumSum", counts, np.array(0))
    total = op("ReduceSum", counts, keepdims=0)
    steps = op("Range", 0, total, 1)
    passed = op("LessOrEqual", unsqueeze(ends, [1]), unsqueeze(steps, [0]))
    return op("ReduceSum", cast(passed, ir.DataType.INT64), [0], keepdims=0)


def diagonal(x: Any, offset: int, rows: int, columns: int, length: Dim) -> Any:
    """Return a diagonal of two axes as the last axis.

    Args:
        x: A tensor.
        offset: How far the diagonal lies above the main one; below where negative.
        rows: The axis of the rows.
        columns: The axis of the columns.
        length: The number of elements on the diagonal.
    """
    rest = [axis for axis in range(rank_of(x)) if axis not in (rows, columns)]
    x = transpose(x, [*rest, rows, columns])
    *front, height, width = shape_of(x)
    first = offset if offset >= 0 else width * -offset
    places = op("Add", op("Mul", op("Range", 0, length, 1), width + 1), first)
    return op("Gather", resized(x, [*front, height * width]), places, axis=len(front))


def diagonal_matrix(x: Any, offset: int) -> Any:
    """Return matrices (last two axes) with the last axis of ``x`` as a diagonal, else zeros."""
    *front, length = shape_of(x)
    side = length + abs(offset)
    zero = np.zeros(1, dtype_of(x).numpy())
    if offset:
        x = op("Concat", x, op("ConstantOfShape", [*front, abs(offset)], value=zero), axis=-1)
    steps = op("Range", 0, side, 1)
    shifted = op("Add", unsqueeze(steps, [1]), offset)
    on_it = op("Equal", shifted, unsqueeze(steps, [0]))
    rank = len(front) + 1
    return op("Where", on_it, unsqueeze(x, [rank if offset >= 0 else rank - 1]), zero[0])


def windows_along(x: Any, axis: int, window: Dim, step: Dim, count: Dim) -> Any:
    """Return ``count`` windows along an axis; their elements are a new last axis."""
    starts = unsqueeze(op("Mul", op("Range", 0, count, 1), step), [1])
    places = op("Add", starts, op("Range", 0, window, 1))
    rank = rank_of(x)
    order = [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1]
    return transpose(op("Gather", x, places, axis=axis), order)


def strided(x: Any, sizes: Sequence[Dim], strides: Sequence[Dim], offset: Dim) -> Any:
    """Return the elements that lie ``strides`` apart, from a place on, among those of ``x``.

    Args:
        x: A tensor, whose elements count in the order of its axes.
        sizes: The shape of the result.
        strides: The distance of two neighbours along each axis of the result, in elements.
        offset: The place of the first element.
    """
    places: Any = op("Add", np.array(0), offset)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        steps = op("Mul", op("Range", 0, size, 1), stride)
        behind = [*range(1, len(sizes) - axis)]
        places = op("Add", places, unsqueeze(steps, behind) if behind else steps)
    return op("Gather", op("Reshape", x, np.array([-1])), places, axis=0)


def differences(x: Any, axis: int) -> Any:
    """Return each element minus the one before it along an axis; of truth values, their xor."""
    after = op("Slice", x, [1], [_LAST], [axis])
    before = op("Slice", x, [0], [-1], [axis])
    if dtype_of(x) == ir.DataType.BOOL:
        return op("Xor", after, before)
    return op("Sub", after, before)


def slopes(x: Any, axis: int, distance: float) -> Any:
    """Return central differences along an axis of floats, one-sided at its ends."""
    inner = sub(op("Slice", x, [2], [_LAST], [axis]), op("Slice", x, [0], [-2], [axis]))
    first = op("Slice", differences(x, axis), [0], [1], [axis])
    last = op("Slice", differences(x, axis), [-1], [_LAST], [axis])
    made = op("Concat", first, op("Div", inner, 2.0), last, axis=axis)
    return op("Div", made, float(distance))


def areas(y: Any, x: Any, axis: int) -> Any:
    """Return the areas of the trapezoids between neighbours along an axis.

    Args:
        y: Floats.
        x: Their places, of a shape that broadcasts with that of ``y``, or their distance.
        axis: The axis of ``y``.
    """
    after, before = op("Slice", y, [1], [_LAST], [axis]), op("Slice", y, [0], [-1], [axis])
    middle = op("Div", op("Add", after, before), 2.0)
    if isinstance(x, int | float):
        return op("Mul", middle, float(x))
    return op("Mul", middle, differences(x, axis - rank_of(y) + rank_of(x)))
