"""Tensors of numbers by their position: grids, triangles, identity matrices, steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import add, cast, mul, sub, unsqueeze, where
from hagane.ops.functions.tensors.parts import resized
from hagane.symbolic import Dim, floordiv

_INT64 = ir.DataType.INT64


def filled(sizes: Sequence[Dim], number: float, dtype: ir.DataType) -> Any:
    """Return a tensor of one number."""
    content = np.full(1, number, dtype.numpy())
    return op("ConstantOfShape", list(sizes) or np.zeros(0, np.int64), value=content)


def steps(count: Dim) -> Any:
    """Return 0, 1, … below a count; int64."""
    return op("Range", 0, count, 1)


def paced(start: Any, count: Any, step: float, dtype: ir.DataType) -> Any:
    """Return ``count`` floats from a number on, ``step`` apart; computed in float64."""
    places = cast(steps(count), ir.DataType.DOUBLE)
    first = op("Cast", start, to=ir.DataType.DOUBLE)
    return cast(add(mul(places, float(step)), first), dtype)


def counted(start: Any, count: Dim, step: Any, dtype: ir.DataType) -> Any:
    """Return ``count`` numbers from ``start`` on, by a step."""
    if dtype.is_integer() and dtype != ir.DataType.INT64:  # a step back is no number of uint8
        return cast(counted(start, count, step, ir.DataType.INT64), dtype)
    return cast(
        add(mul(cast(steps(count), dtype), _number(step, dtype)), _number(start, dtype)), dtype
    )


def stepping(start: Any, second: Any, count: Dim, dtype: ir.DataType) -> Any:
    """Return ``count`` floats, of which two are given, rounded as NumPy's ``arange`` does it."""
    first, second = cast(start, dtype), cast(second, dtype)
    return add(mul(cast(steps(count), dtype), sub(second, first)), first)


def _number(value: Any, dtype: ir.DataType) -> Any:
    if isinstance(value, int | float):
        return np.array(value, dtype.numpy())
    return value if dtype == ir.DataType.INT64 else op("Cast", value, to=dtype)


def _compared(name: str, rows: Dim, columns: Dim, offset: int) -> Any:
    """Return whether the row plus an offset compares with the column."""
    left = add(unsqueeze(steps(rows), [1]), offset)
    return op(name, left, unsqueeze(steps(columns), [0]))


def identity(rows: Dim, columns: Dim, offset: int, dtype: ir.DataType) -> Any:
    """Return a matrix with ones on a diagonal, ``offset`` above the main one, else zeros."""
    return cast(_compared("Equal", rows, columns, offset), dtype)


def triangle(rows: Dim, columns: Dim, offset: int, dtype: ir.DataType) -> Any:
    """Return a matrix of ones on and below a diagonal, else zeros."""
    return cast(_compared("GreaterOrEqual", rows, columns, offset), dtype)


def triangle_places(rows: Dim, columns: Dim, offset: int, *, upper: bool) -> Any:
    """Return rows and columns of a triangle of a matrix, row by row; (2, count), int64."""
    name = "LessOrEqual" if upper else "GreaterOrEqual"
    return op("NonZero", _compared(name, rows, columns, offset))


def cut_to_triangle(x: Any, offset: int, *, upper: bool) -> Any:
    """Return matrices (last two axes) with zeros beside a triangle."""
    return op("Trilu", x, np.array(offset), upper=int(upper))


def _parted(
    start: Any, stop: Any, count: Dim, dtype: ir.DataType, *, endpoint: bool
) -> tuple[Any, Any, Any, Any]:
    """Return both ends in a type, the numbers of all places, and how many parts lie between."""
    start, stop = (cast(x, dtype) if not isinstance(x, np.ndarray) else x for x in (start, stop))
    rank = max(rank_of(start), rank_of(stop))
    number = unsqueeze(steps(count), range(1, rank + 1))
    parts = count - 1 if endpoint else count
    if isinstance(parts, int):
        return start, stop, number, np.array(max(parts, 1), dtype.numpy())
    return start, stop, number, op("Max", op("Cast", parts, to=dtype), np.array(1, dtype.numpy()))


def spaced(start: Any, stop: Any, count: Dim, dtype: ir.DataType, *, endpoint: bool = True) -> Any:
    """Return numbers at equal distances along a new first axis.

    Args:
        start: The first number; a tensor gives one for each element.
        stop: The last one, or the one behind the last.
        count: How many.
        dtype: Floats.
        endpoint: Whether ``stop`` is the last one.
    """
    start, stop, number, total = _parted(start, stop, count, dtype, endpoint=endpoint)
    share = op("Div", cast(number, dtype), total)
    return add(mul(start, sub(1.0, share)), mul(stop, share))  # exact at both ends


def grid(axes: Sequence[Any], counts: Sequence[Dim], place: int, order: Sequence[int]) -> Any:
    """Return the coordinates along one axis of a grid.

    Args:
        axes: The coordinates by axis, each (count,).
        counts: How many there are by axis.
        place: The axis.
        order: The axes of the grid, in the order of the result's.
    """
    return on_grid(axes[place], counts, place, order)


def on_grid(x: Any, counts: Sequence[Dim], place: int, order: Sequence[int]) -> Any:
    """Return the coordinates along one axis of a grid, (count,) or one of them, over the grid."""
    sizes = [counts[axis] for axis in order]
    ones: list[Dim] = [counts[axis] if axis == place else 1 for axis in order]
    return op("Expand", resized(x, ones), sizes)


def coordinates(sizes: Sequence[Dim], dtype: ir.DataType) -> Any:
    """Return the coordinates of all places of a grid, axis by axis, along a new first axis."""
    own = [cast(steps(n), dtype) for n in sizes]
    order = list(range(len(sizes)))
    found = [unsqueeze(grid(own, sizes, axis, order), [0]) for axis in order]
    return op("Concat", *found, axis=0) if len(found) > 1 else found[0]


def one_hot(x: Any, count: Dim, dtype: ir.DataType) -> Any:
    """Return 1 at the place that an integer names along a new last axis, else 0.

    A run fails where an integer names none.
    """
    places = cast(steps(count), dtype_of(x))
    return cast(op("Equal", unsqueeze(op("Gather", places, x), [rank_of(x)]), places), dtype)


def with_corner(x: Any, sizes: Sequence[Dim]) -> Any:
    """Return zeros of some shape with ``x`` in the corner of first elements."""
    pads: list[Any] = [0] * len(sizes)
    pads += [wanted - own for wanted, own in zip(sizes, shape_of(x), strict=True)]
    return op("Pad", x, pads, number_like(0, x))


def masked(x: Any, mask: Any, value: float) -> Any:
    """Return ``x`` with a value where a mask holds."""
    return where(mask, number_like(value, x), x)


def spaced_as(start: Any, stop: Any, count: Dim, dtype: ir.DataType) -> Any:
    """Return PyTorch's ``linspace``, computed in float64.

    Whole numbers are counted from whole ends, each half from its own, and cut toward zero
    (``RangeFactoriesKernel.cpp`` of PyTorch's sources).
    """
    double = ir.DataType.DOUBLE
    if not dtype.is_integer():
        return cast(spaced(start, stop, count, double), dtype)
    start, stop = (
        np.trunc(end) if isinstance(end, np.ndarray) else cast(cast(end, dtype), double)
        for end in (start, stop)
    )
    start, stop, number, total = _parted(start, stop, count, double, endpoint=True)
    step = op("Div", sub(stop, start), total)
    rising = add(start, mul(cast(number, double), step))
    falling = sub(stop, mul(cast(sub(count - 1, number), double), step))
    found = where(op("Less", number, floordiv(count, 2)), rising, falling)
    return cast(where(op("Equal", number, 0), start, found), dtype)


def stepped(start: Any, stop: Any, count: Dim, dtype: ir.DataType, *, endpoint: bool = True) -> Any:
    """Return numbers at equal distances along a new first axis, rounded as NumPy rounds them.

    Args:
        start: The first number; a tensor gives one for each element.
        stop: The last one, or the one behind the last.
        count: How many.
        dtype: Floats.
        endpoint: Whether ``stop`` is the last one.
    """
    start, stop, number, total = _parted(start, stop, count, dtype, endpoint=endpoint)
    place = cast(number, dtype)
    whole = sub(stop, start)
    step = op("Div", whole, total)
    found = add(
        where(op("Equal", step, 0), mul(op("Div", place, total), whole), mul(place, step)), start
    )
    if not endpoint or count == 1:
        return found
    is_last = op("And", op("Equal", number, count - 1), op("Greater", number, 0))
    return where(is_last, stop, found)


def stepped_as(start: Any, stop: Any, count: Dim, dtype: ir.DataType, endpoint: bool) -> Any:
    """Return NumPy's ``linspace``, computed in the ends' type; whole numbers are rounded down."""
    found = stepped(start, stop, count, dtype_of(start), endpoint=endpoint)
    return cast(op("Floor", found) if dtype.is_integer() else found, dtype)


def one_hot_of_all(x: Any) -> Any:
    """Return one-hot vectors of as many elements as the largest number needs; int64."""
    count = add(op("ReduceMax", op("Reshape", x, [-1]), keepdims=0), 1)
    places = op("Range", 0, count, 1)
    return cast(op("Equal", unsqueeze(op("Gather", places, x), [rank_of(x)]), places), _INT64)
