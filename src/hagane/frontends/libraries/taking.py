"""Items of tensors as operators: slices, positions, index arrays and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.graph.types import Shape
from hagane.symbolic import Dim, Expr

_END = np.iinfo(np.int64).max


def take(t: Core, x: Tensor, parts: Sequence[Value], shape: Shape) -> Tensor:
    """Return the items of ``x`` that ``parts`` choose, one part an axis, None for a new axis.

    Args:
        t: The interpreter.
        x: The tensor.
        parts: Slices, sizes, index tensors, masks (of as many axes as they have) and None.
        shape: The shape of the result.
    """
    result = _sliced(t, x, parts)
    axis = 0
    places: list[tuple[int, Dim]] = []  # axes that go, and which item stays
    arrays: list[tuple[int, Tensor]] = []
    for part in parts:
        if part is None:
            continue
        if isinstance(part, Tensor):
            arrays += _indices(t, part, axis)
            axis += part.rank if part.dtype == ir.DataType.BOOL else 1
            continue
        if not isinstance(part, slice):
            places.append((axis, part))
        axis += 1
    for gone, place in reversed(places):
        result = t.op("Gather", result, _number(place), axis=gone)
    moved = [(a - sum(gone < a for gone, _ in places), index) for a, index in arrays]
    if moved:
        result = _gathered(t, result, moved, _is_together(parts))
    new = _new_axes(parts)
    if new:
        result = t.op("Unsqueeze", result, np.array(new, np.int64))
    result.shape = shape
    return result


def _sliced(t: Core, x: Tensor, parts: Sequence[Value]) -> Tensor:
    starts: list[Dim] = []
    ends: list[Dim] = []
    axes: list[int] = []
    steps: list[int] = []
    axis = 0
    for part in parts:
        if part is None:
            continue
        if isinstance(part, slice) and part != slice(None):
            bounds = [_bound(t, bound) for bound in (part.start, part.stop)]
            step = 1 if part.step is None else part.step
            if not isinstance(step, int):
                t.fail("capture", "a slice whose step is not known")
            last = _END if step > 0 else -_END
            starts.append(bounds[0] if bounds[0] is not None else 0 if step > 0 else _END)
            ends.append(bounds[1] if bounds[1] is not None else last)
            axes.append(axis)
            steps.append(step)
        masked = isinstance(part, Tensor) and part.dtype == ir.DataType.BOOL
        axis += part.rank if masked else 1
    if not axes:
        return x
    made: Tensor = t.op(
        "Slice", x, _numbers(starts), _numbers(ends), np.array(axes), np.array(steps)
    )
    return made


def _bound(t: Core, bound: Value) -> Any:
    return t.tensor_number(bound, whole=True) if isinstance(bound, Tensor) else bound


def _numbers(dims: Sequence[Dim]) -> Any:
    if any(isinstance(dim, Expr) for dim in dims):
        made = np.empty(len(dims), dtype=object)
        made[:] = list(dims)
        return made
    return np.array(dims, dtype=np.int64)


def _number(place: Dim) -> Any:
    return np.array(place, dtype=object if isinstance(place, Expr) else np.int64)


def _indices(t: Core, part: Tensor, axis: int) -> list[tuple[int, Tensor]]:
    """Return the axes that a tensor chooses items along, with the positions."""
    if part.dtype != ir.DataType.BOOL:
        whole = part if part.dtype == ir.DataType.INT64 else t.op("Cast", part, to=7)
        return [(axis, whole)]
    rows = t.op("NonZero", part)
    return [
        (axis + place, t.op("Gather", rows, np.array(place), axis=0)) for place in range(part.rank)
    ]


def _is_together(parts: Sequence[Value]) -> bool:
    numbers = [i for i, part in enumerate(parts) if isinstance(part, Tensor)]
    return not numbers or numbers[-1] - numbers[0] == len(numbers) - 1


def _gathered(
    t: Core, x: Tensor, arrays: Sequence[tuple[int, Tensor]], together: bool
) -> Tensor:
    """Return the items at positions along several axes, which become one group of axes."""
    if len(arrays) == 1:
        axis, index = arrays[0]
        made: Tensor = t.op("Gather", x, index, axis=axis)
        return made
    axes = [axis for axis, _ in arrays]
    rest = [axis for axis in range(x.rank) if axis not in axes]
    total = arrays[0][1]
    for _, index in arrays[1:]:
        total = t.op("Add", total, index)
    common = t.op("Shape", total)
    last = np.array([-1], np.int64)
    spread = [t.op("Unsqueeze", t.op("Expand", index, common), last) for _, index in arrays]
    positions = t.op("Concat", *spread, axis=-1)
    front = t.op("Transpose", x, perm=[*axes, *rest])
    result: Tensor = t.op("GatherND", front, positions)
    before = sum(axis < axes[0] for axis in rest) if together else 0
    if not before:
        return result
    count = total.rank
    order = [*range(count, count + before), *range(count), *range(count + before, result.rank)]
    result = t.op("Transpose", result, perm=order)
    return result


def _new_axes(parts: Sequence[Value]) -> list[int]:
    """Return where new axes of length 1 lie in the result."""
    found, place = [], 0
    for part in parts:
        if part is None:
            found.append(place)
        if part is None or isinstance(part, slice):
            place += 1
        elif isinstance(part, Tensor):
            return found if None not in parts[parts.index(part) :] else _refuse_order()
    return found


def _refuse_order() -> list[int]:
    raise NotImplementedError("a new axis behind an index array")
