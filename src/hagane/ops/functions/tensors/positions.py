"""Taking and putting elements by position along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.numbers.elementary import cast, transpose, unsqueeze


def extent(x: Any, axis: int) -> Any:
    """Return the size of an axis, counted from the front: a number, or a value of one element."""
    size = shape_of(x)[axis]
    return size if isinstance(size, int) else op("Shape", x, start=axis, end=axis + 1)


def positions_along(x: Any, axis: int) -> Any:
    """Return 0, 1, … below the size of an axis, counted from the front; int64."""
    size = extent(x, axis)
    return op("Range", 0, size if isinstance(size, int) else op("Squeeze", size, [0]), 1)


def put_along(updates: Any, positions: Any, size: Any, axis: int) -> Any:
    """Return zeros to which slices were added at positions along an axis.

    It is the gradient of taking: of ``Gather`` with ``positions`` along ``axis``.

    Args:
        updates: The slices, in the shape that Gather would give: axes of ``positions`` stand in the
            place of ``axis``.
        positions: Integers of any rank, counted from the back where they are negative.
        size: The size of the axis in the result: a number, or a value of one element.
        axis: The axis, counted from the front.
    """
    inner = rank_of(positions)
    rank = rank_of(updates) - inner + 1
    moved = [*range(axis, axis + inner), *range(axis), *range(axis + inner, rank - 1 + inner)]
    updates = transpose(updates, moved)
    rest = shape_of(updates)[inner:]
    if isinstance(size, int) and all(isinstance(dim, int) for dim in rest):
        sizes: Any = [size, *rest]
    else:
        first = [size] if isinstance(size, int) else size
        sizes = op("Concat", first, op("Shape", updates, start=inner), axis=0)
    zeros = op("ConstantOfShape", sizes, value=np.zeros(1, dtype_of(updates).numpy()))
    places = unsqueeze(cast(positions, ir.DataType.INT64), [inner])
    added = op("ScatterND", zeros, places, updates, reduction="add")
    return transpose(added, [*range(1, axis + 1), 0, *range(axis + 1, rank)])


def to_places(x: Any) -> Any:
    """Return integers of any type, or truth values, as places; int64."""
    return cast(x, ir.DataType.INT64)


def taken(x: Any, places: Any, axis: int, mode: str) -> Any:
    """Return elements at places along an axis.

    Args:
        x: A tensor.
        places: Integers.
        axis: The axis.
        mode: For places beyond the ends: ``raise``, ``wrap`` or ``clip``.
    """
    places = to_places(places)
    size = extent(x, axis)
    if not isinstance(size, int) and not rank_of(places):
        size = op("Squeeze", size, [0])
    if mode == "wrap":
        places = op("Mod", places, size)
    elif mode == "clip":
        places = op("Min", op("Max", places, 0), op("Sub", size, 1) if not isinstance(size, int)
                    else size - 1)  # fmt: skip
    return op("Gather", x, places, axis=axis)


def without(x: Any, numbers: Any, axis: int) -> Any:
    """Return ``x`` without some elements along an axis; negative numbers count from its end."""
    size = extent(x, axis)
    gone = op("Where", np.asarray(numbers < 0), op("Add", numbers, size), numbers)
    places = positions_along(x, axis)
    hit = op("Equal", unsqueeze(places, [1]), gone)
    kept = op("Equal", op("ReduceSum", cast(hit, ir.DataType.INT64), [1], keepdims=0), 0)
    return op("Compress", x, kept, axis=axis)


def inserted(x: Any, values: Any, place: int, axis: int) -> Any:
    """Return ``x`` with values before an element along an axis.

    Args:
        x: A tensor.
        values: Their first axis becomes ``axis`` where they have as many as ``x``; they broadcast
            along the others.
        place: The number of the element, counted from the end where it is negative.
        axis: The axis.
    """
    rank = rank_of(x)
    values = unsqueeze(values, range(rank - rank_of(values)))
    values = transpose(values, [*range(1, axis + 1), 0, *range(axis + 1, rank)])
    sizes = list(shape_of(x))
    sizes[axis] = shape_of(values)[axis]
    values = op("Expand", values, sizes)
    before = op("Slice", x, [0], [place], [axis])
    after = op("Slice", x, [place], [2**63 - 1], [axis])
    return op("Concat", before, values, after, axis=axis)


def coordinate(places: Any, inner: Any, size: Any) -> Any:
    """Return the coordinate along an axis of places counted over several.

    Args:
        places: Integers.
        inner: How many elements one step along the axis passes.
        size: The size of the axis.
    """
    return op("Mod", op("Div", places, inner), size)


def flat_place(sizes: Any, *coordinates: Any) -> Any:
    """Return places counted over all axes from coordinates along each."""
    found = coordinates[0]
    for size, own in zip(sizes[1:], coordinates[1:], strict=True):
        found = op("Add", op("Mul", found, size), own)
    return found
