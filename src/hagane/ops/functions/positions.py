"""Taking and putting elements by position along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.elementary import cast, transpose, unsqueeze


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
