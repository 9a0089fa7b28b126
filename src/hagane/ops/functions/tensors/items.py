"""``x[index]`` and ``x[index] = value``, by the rules that NumPy and PyTorch share.

https://numpy.org/doc/stable/user/basics.indexing.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError
from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.numbers.elementary import cast, squeeze, transpose, unsqueeze
from hagane.symbolic import Expr, product

# A number or size, a slice of such, None for a new axis, an ellipsis, or a value: integers, or
# truth values in the shape of as many axes.
Part = Any
_LAST = 2**63 - 1
# Behind any item; ONNX Runtime takes the largest number for the first item of backward slices.
_BEHIND = 2**62


@dataclass(frozen=True, slots=True)
class _Place:
    """An index array with the axis that it applies to."""

    axis: int
    positions: Any


def take_items(x: Any, parts: Sequence[Part], *, numbers_are_arrays: bool = False) -> Any:
    """Return ``x[parts]``.

    Args:
        x: A tensor.
        parts: One an axis, in order; an ellipsis stands for all axes that are left.
        numbers_are_arrays: Whether numbers beside index arrays count as such, which matters to
            the place of their axes: so in NumPy, not in PyTorch.

    Raises:
        TypeInferenceError: There are more parts than axes.
    """
    if len(parts) == 1 and _is_truth(parts[0]):
        x, parts = unsqueeze(x, [0]), [op("Reshape", parts[0], [1])]
    full = _completed(parts, rank_of(x), keep_empty=numbers_are_arrays)
    if numbers_are_arrays and any(map(_is_array, full)):
        full = [np.array(part) if _is_number(part) else part for part in full]
    x, full = _picked(x, full)
    x = _sliced(x, full)
    places, numbers, dropped, added = _laid_out(full)
    x = unsqueeze(squeeze(x, dropped), added)
    if not places:
        return x
    return _gathered(x, places, in_place=numbers[-1] - numbers[0] == len(numbers) - 1)


def put_items(
    x: Any, parts: Sequence[Part], value: Any, *, numbers_are_arrays: bool = False
) -> Any:
    """Return ``x`` after ``x[parts] = value``; the value is broadcast and cast.

    Where index arrays name a place twice, one of the values is stored there.
    """
    if isinstance(value, Expr):
        value = np.array(value, dtype=object)
    value = cast(value, dtype_of(x)) if not isinstance(value, bool | int | float) else value
    only = parts[0] if len(parts) == 1 else None
    if _is_array(only) and dtype_of(only) == ir.DataType.BOOL and _is_one(value):
        mask = unsqueeze(only, list(range(rank_of(only), rank_of(x))))
        return op("Where", mask, value, x)
    shape = shape_of(x)
    if parts and all(map(_is_number, parts)):  # one place, or all that lies behind it
        if isinstance(value, bool | int | float):
            value = np.array(value, dtype_of(x).numpy())
        rest = list(shape[len(parts) :])
        for _ in range(rank_of(value) - len(rest)):
            value = squeeze(value, [0])
        update = op("Expand", value, rest) if rest else value
        return op("ScatterND", x, list(parts), update)
    count = product(shape)
    every = op("Reshape", op("Range", 0, count, 1), list(shape))
    wanted = take_items(every, parts, numbers_are_arrays=numbers_are_arrays)
    rank = rank_of(wanted)
    if isinstance(value, bool | int | float):
        value = np.array(value, dtype_of(x).numpy())
    extra = rank_of(value) - rank
    if extra > 0:  # leading axes of size 1 fit, as everywhere
        value = squeeze(value, range(extra))
    updates = op("Reshape", op("Expand", value, op("Shape", wanted)), [-1])
    places = op("Reshape", wanted, [-1, 1])
    flat = op("ScatterND", op("Reshape", x, [-1]), places, updates)
    return op("Reshape", flat, list(shape), allowzero=1)


def _is_array(part: Part) -> bool:
    return not (part is None or part is Ellipsis or isinstance(part, slice) or _is_number(part))


def _is_number(part: Part) -> bool:
    return isinstance(part, int | Expr | np.integer) and not isinstance(part, bool)


def _is_truth(part: Part) -> bool:
    """Whether a part is one truth value, which takes no axis: there is one more, of size 0 or 1."""
    return _is_array(part) and dtype_of(part) == ir.DataType.BOOL and rank_of(part) == 0


def _is_one(value: Any) -> bool:
    return isinstance(value, bool | int | float) or rank_of(value) == 0


def _width(part: Part) -> int:
    """Return how many axes a part takes."""
    if part is None or part is Ellipsis:
        return 0
    if _is_array(part) and dtype_of(part) == ir.DataType.BOOL:
        return rank_of(part)
    return 1


def _completed(parts: Sequence[Part], rank: int, *, keep_empty: bool) -> list[Part]:
    """Return parts for all axes; an ellipsis in the place of no axis is left there if wanted."""
    used = sum(_width(part) for part in parts)
    if used > rank:
        raise TypeInferenceError(f"too many indices: {used} for {rank} axes")
    rest: list[Part] = [slice(None)] * (rank - used)
    for number, part in enumerate(parts):
        if part is Ellipsis:
            middle = rest or ([Ellipsis] if keep_empty else [])
            return [*parts[:number], *middle, *parts[number + 1 :]]
    return [*parts, *rest]


def _picked(x: Any, full: list[Part]) -> tuple[Any, list[Part]]:
    """Return ``x`` with the numbers that only the run knows applied, and the other parts.

    One place is a Gather; the slices of several parts are one operator.
    """
    if any(map(_is_array, full)):
        return x, full
    axis, rest = 0, []
    for part in full:
        if isinstance(part, Expr):
            x = op("Gather", x, np.array(part, dtype=object), axis=axis)
        else:
            rest.append(part)
            axis += _width(part)
    return x, rest


def _sliced(x: Any, full: Sequence[Part]) -> Any:
    """Return ``x`` with slices and numbers applied; the axes of numbers stay, with size 1."""
    starts: list[Any] = []
    ends: list[Any] = []
    axes: list[int] = []
    steps: list[Any] = []
    axis = 0
    for part in full:
        if isinstance(part, slice) and (part.start, part.stop, part.step) != (None, None, None):
            step = 1 if part.step is None else part.step
            backward = isinstance(step, int) and step < 0
            first, last = (_LAST, -_LAST) if backward else (0, _LAST)
            start, end = first if part.start is None else part.start, part.stop
            end = last if end is None else end
            starts.append(start)
            ends.append(_reached(start, end, x, axis) if backward else end)
            axes.append(axis)
            steps.append(step)
        elif _is_number(part):
            starts.append(part)
            ends.append(_LAST if isinstance(part, int) and part == -1 else part + 1)
            axes.append(axis)
            steps.append(1)
        axis += _width(part)
    if not axes:
        return x
    given = [starts, ends, axes] if steps == [1] * len(steps) else [starts, ends, axes, steps]
    return op("Slice", x, *map(_vector, given))


def _reached(start: Any, end: Any, x: Any, axis: int) -> Any:
    """Return the end of a backward slice; nothing is left of one that starts before the first item.

    ONNX takes the first item for such a start.
    """
    if isinstance(start, int) and start >= 0:
        return end
    size = shape_of(x)[axis]
    if isinstance(start, int) and isinstance(size, int):
        return end if start + size >= 0 else _BEHIND
    place = op("Add", _vector([start]), _vector([size]))
    return op("Where", op("Less", place, [0]), [_BEHIND], _vector([end]))


def _vector(items: Sequence[Any]) -> Any:
    """Return numbers and scalar values as one vector."""
    if all(isinstance(item, int | Expr) for item in items):
        return list(items)
    columns = [
        [item] if isinstance(item, int | Expr) else op("Reshape", item, [1]) for item in items
    ]
    lifted = [item if isinstance(item, list) else cast(item, ir.DataType.INT64) for item in columns]
    return op("Concat", *lifted, axis=0) if len(lifted) > 1 else lifted[0]


def _laid_out(
    full: Sequence[Part],
) -> tuple[list[_Place], list[int], list[int], list[int]]:
    """Return index arrays, their numbers among the parts, axes to drop and axes to add.

    Axes of index arrays and added ones are counted once all are dropped and added.
    """
    places: list[_Place] = []
    numbers: list[int] = []
    dropped: list[int] = []
    added: list[int] = []
    before = axis = 0
    for part in full:
        if _is_number(part):
            dropped.append(before)
        before += _width(part)
    for number, part in enumerate([part for part in full if not _is_number(part)]):
        if part is None:
            added.append(axis)
            axis += 1
        elif _is_array(part):
            numbers.append(number)
            places += [_Place(axis + i, row) for i, row in enumerate(_positions(part))]
            axis += _width(part)
        else:
            axis += _width(part)
    return places, numbers, dropped, added


def _positions(part: Any) -> list[Any]:
    """Return an index array; for truth values, the positions along each axis that are true."""
    if dtype_of(part) != ir.DataType.BOOL:
        return [cast(part, ir.DataType.INT64)]
    rows = op("NonZero", part)
    return [op("Gather", rows, np.array(axis)) for axis in range(rank_of(part))]


def _gathered(x: Any, places: Sequence[_Place], *, in_place: bool) -> Any:
    """Return ``x`` with index arrays applied; their axes come in place, or in front of all."""
    if len(places) == 1:
        return op("Gather", x, places[0].positions, axis=places[0].axis)
    width = max(rank_of(place.positions) for place in places)
    joint = _joined([place.positions for place in places], width)
    taken = [place.axis for place in places]
    rest = [axis for axis in range(rank_of(x)) if axis not in taken]
    found = op("GatherND", transpose(x, [*taken, *rest]), joint)
    before = width + (sum(axis < taken[0] for axis in rest) if in_place else 0)
    return transpose(
        found, [*range(width, before), *range(width), *range(before, width + len(rest))]
    )


def _joined(positions: Sequence[Any], width: int) -> Any:
    """Return index arrays, broadcast, as one array with a last axis of as many."""
    total = op("Sum", *(cast(p, ir.DataType.DOUBLE) for p in positions))
    shape = op("Shape", total)
    columns = [unsqueeze(op("Expand", p, shape), [width]) for p in positions]
    return op("Concat", *columns, axis=width)
