"""Functions of NumPy that join arrays and take them apart."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hagane.frontends.libraries.numpy.operands import (
    axis as checked_axis,
)
from hagane.frontends.libraries.numpy.operands import (
    cast,
    dtype_of,
    promoted,
    reshape,
    shape_of,
    size,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.libraries.totals import total_size
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import OPEN
from hagane.frontends.python.values.values import (
    Many,
    Tensor,
    Value,
    is_size,
)
from hagane.ops.builder import op
from hagane.ops.functions.tensors import parts as functions
from hagane.symbolic import Dim, Expr, ceildiv, floordiv


def arrays_of(t: Core, values: Value, what: str) -> list[Tensor]:
    """Return the arrays to join, of which there has to be one at least."""
    if isinstance(values, Many):
        t.fail(OPEN, f"{what} of a number of arrays that is not known")
    if isinstance(values, Tensor):
        values = [t.tables.tensor_item(t, values, i) for i in range(_count(t, values))]
    if not isinstance(values, tuple | list):
        t.fail("type", f"expected a list of arrays, got {t.show(t.wrap(values))}")
    if not values:
        t.fail("value", f"ValueError: {what}: need at least one array")
    return [to_array(t, value) for value in values]


def _count(t: Core, x: Tensor) -> int:
    shape = shape_of(t, x)
    if not shape or not isinstance(shape[0], int):
        t.fail("value", f"expected a list of arrays, got {t.show(x)}", x)
    return shape[0]


def joined_shape(t: Core, tensors: Sequence[Tensor], place: int, what: str) -> tuple[Dim, ...]:
    """Return the shape of tensors joined along an axis; the other sizes have to agree."""
    first = tensors[0]
    shape = list(shape_of(t, first))
    total: Dim = shape[place]
    for other in tensors[1:]:
        own = shape_of(t, other)
        if len(own) != len(shape):
            t.fail(
                "rank",
                f"{what}: expected as many axes in all, got {t.show(first)} and {t.show(other)}",
                first,
                other,
            )
        for number, (a, b) in enumerate(zip(shape, own, strict=True)):
            if number != place and t.emit.differ(a, b):
                t.fail(
                    "shape-mismatch",
                    f"{what} along axis {place}: expected equal sizes in axis {number}, got "
                    f"{t.show(first)} and {t.show(other)}",
                    first,
                    other,
                )
        total = total + own[place]
    shape[place] = total
    return tuple(shape)


def concatenated(t: Core, tensors: Sequence[Tensor], place: int, dtype: Any, what: str) -> Tensor:
    """Return arrays joined along an axis."""
    shape = joined_shape(t, tensors, place, what)
    contents = [x.known for x in tensors]
    known: Any = None
    if all(c is not None for c in contents):
        known = np.concatenate(contents, axis=place)  # type: ignore[arg-type]
    parts = [cast(t, x, dtype) for x in tensors]
    return typed(
        t, "Concat", parts, dtype, shape, known, lambda *parts: op("Concat", *parts, axis=place)
    )


@NUMPY.function("concatenate", "concat")
def concatenate(
    t: Core, arrays: Value, axis: Value = 0, out: Value = None, *, dtype: Value = None, **_: Value
) -> Tensor:
    """Return arrays joined along an axis."""
    if isinstance(arrays, Many):
        return _of_many(t, arrays, axis, dtype, stacked=False)
    found = arrays_of(t, arrays, "concatenate")
    wanted = dtype_of(t, dtype, promoted(t, found))
    if axis is None:
        return concatenated(t, [reshape(t, x, [-1]) for x in found], 0, wanted, "concatenate")
    rank = len(shape_of(t, found[0]))
    if rank == 0:
        t.fail("rank", "zero-dimensional arrays cannot be concatenated", found[0])
    place = checked_axis(t, axis, rank, found[0])
    return concatenated(t, found, place, wanted, "concatenate")


def _of_many(t: Core, arrays: Many, axis: Value, dtype: Value, stacked: bool) -> Tensor:
    t.emit.require_size(arrays.length, 1, "number of arrays")
    x = to_array(t, t.settle(arrays.element))
    shape = list(shape_of(t, x))
    wanted = dtype_of(t, dtype, x.dtype)
    place = checked_axis(t, axis, len(shape), x, extra=int(stacked))
    if stacked:
        shape.insert(place, arrays.length)
    else:
        shape[place] = total_size(t, shape[place], arrays.length)
    return typed(t, "Concat", [x], wanted, tuple(shape))


@NUMPY.function("stack")
def stack(t: Core, arrays: Value, axis: Value = 0, out: Value = None, *, dtype: Value = None,
          **_: Value) -> Tensor:  # fmt: skip
    """Return arrays joined along a new axis."""
    if isinstance(arrays, Many):
        return _of_many(t, arrays, axis, dtype, stacked=True)
    found = arrays_of(t, arrays, "stack")
    place = checked_axis(t, axis, len(shape_of(t, found[0])), found[0], extra=1)
    wanted = dtype_of(t, dtype, promoted(t, found))
    grown = []
    for x in found:
        if len(shape_of(t, x)) != len(shape_of(t, found[0])):
            t.fail(
                "shape-mismatch",
                f"stack: expected one shape, got {t.show(found[0])} and {t.show(x)}",
                found[0],
                x,
            )
        grown.append(t.op("Unsqueeze", x, np.array([place], dtype=np.int64)))
    return concatenated(t, grown, place, wanted, "stack")


def _stacker(name: str, rank: int, place: int) -> None:
    def function(t: Core, tup: Value, *, dtype: Value = None, **_: Value) -> Tensor:
        wide = partial(t.call_library, f"numpy.atleast_{rank}d")
        if isinstance(tup, Many):
            one = wide([to_array(t, t.settle(tup.element))])
            where = 0 if name == "hstack" and len(shape_of(t, one)) == 1 else place
            return _of_many(t, replace(tup, element=one), where, dtype, stacked=False)
        found = [wide([x]) for x in arrays_of(t, tup, name)]
        where = 0 if name == "hstack" and len(shape_of(t, found[0])) == 1 else place
        return concatenated(t, found, where, dtype_of(t, dtype, promoted(t, found)), name)

    NUMPY.function(name)(function)


_stacker("vstack", 2, 0)
_stacker("row_stack", 2, 0)
_stacker("hstack", 1, 1)
_stacker("dstack", 3, 2)


@NUMPY.function("column_stack")
def column_stack(t: Core, tup: Value) -> Tensor:
    """Return vectors as the columns of a matrix."""
    found = []
    for x in arrays_of(t, tup, "column_stack"):
        shape = shape_of(t, x)
        if len(shape) < 2:
            x = reshape(t, x, [shape[0] if shape else 1, 1])
        found.append(x)
    return concatenated(t, found, 1, promoted(t, found), "column_stack")


@NUMPY.function("append")
def append(t: Core, arr: Value, values: Value, axis: Value = None) -> Tensor:
    """Return the array with values behind it."""
    return concatenate(t, [arr, values], axis)


def cuts(t: Core, x: Tensor, indices: Value, place: int, *, even: bool) -> list[Dim]:
    """Return the sizes of the parts that an axis is cut into."""
    total = shape_of(t, x)[place]
    if isinstance(indices, Tensor) and indices.shape not in ((), None):
        if indices.known is None:
            t.fail("value", f"the places to cut at are not known: {t.show(indices)}", indices)
        indices = indices.known.tolist()
    if isinstance(indices, Tensor):
        indices = size(t, indices)
    if isinstance(indices, tuple | list):
        bounds = [0, *[size(t, i) for i in indices], total]
        return [_span(t, a, b, total) for a, b in itertools.pairwise(bounds)]
    if not is_size(indices):
        t.fail("type", f"expected a number of parts or places, got {t.show(t.wrap(indices))}", x)
    if not isinstance(indices, int):
        t.fail("value", f"a number of parts that depends on sizes: {indices}", x)
    if indices < 1:
        t.fail("value", f"expected at least one part, got {indices}", x)
    if even and t.emit.indivisible(total, indices, f"axis {place}, cut into equal parts"):
        t.fail(
            "shape-mismatch",
            f"axis {place} of {t.show(x)} does not divide into {indices} equal parts",
            x,
        )
    return [
        floordiv(total, indices) if even else _ceil_part(total, indices, i) for i in range(indices)
    ]


def _ceil_part(total: Dim, count: int, number: int) -> Dim:
    return ceildiv(total - number, count)


def _span(t: Core, start: Dim, stop: Dim, total: Dim) -> Dim:
    """Return how many elements lie between two places, which slices cut to the array."""
    if all(isinstance(n, int) for n in (start, stop, total)):
        return len(range(*slice(start, stop).indices(int(str(total)))))
    from hagane.frontends.libraries.indexing import slice_length

    if isinstance(start, Expr) or isinstance(stop, Expr):
        return stop - start
    return slice_length(t, slice(start, stop), total)


def parts(t: Core, x: Tensor, place: int, counts: Sequence[Dim]) -> list[Tensor]:
    """Return the parts of an array along an axis."""
    shape = shape_of(t, x)
    found, start = [], 0
    for count in counts:
        own = (*shape[:place], count, *shape[place + 1 :])
        cut = partial(functions.part, axis=place, start=start, length=count)
        found.append(typed(t, "Split", [x], x.dtype, own, None, cut))
        start = start + count  # type: ignore[assignment]
    return found


def _splitter(name: str, even: bool, fixed: int | None) -> None:
    def function(t: Core, ary: Value, indices_or_sections: Value, axis: Value = 0) -> Value:
        x = to_array(t, ary)
        rank = len(shape_of(t, x))
        least = {None: 1, 0: 2, 1: 1, 2: 3}[fixed]
        if rank < least:
            t.fail("value", f"ValueError: {name} only works on arrays of {least} or more axes", x)
        where = axis if fixed is None else 0 if fixed == 1 and rank == 1 else fixed
        place = checked_axis(t, where, rank, x)
        places = indices_or_sections
        if isinstance(places, Tensor) and places.shape and places.known is not None:
            places = places.known.tolist()
        if isinstance(places, tuple | list) and all(isinstance(p, int) for p in places):
            ends = itertools.pairwise([0, *places, None])  # in any order, from behind too
            return [t.item(x, (*[slice(None)] * place, slice(*pair))) for pair in ends]
        return parts(t, x, place, cuts(t, x, places, place, even=even))

    NUMPY.function(name)(function)


_splitter("split", True, None)
_splitter("array_split", False, None)
_splitter("vsplit", True, 0)
_splitter("hsplit", True, 1)
_splitter("dsplit", True, 2)


@NUMPY.function("unstack")
def unstack(t: Core, x: Value, *, axis: Value = 0) -> Value:
    """Return the parts of an array along an axis, without the axis."""
    found = to_array(t, x)
    shape = shape_of(t, found)
    place = checked_axis(t, axis, len(shape), found)
    count = shape[place]
    rest = (*shape[:place], *shape[place + 1 :])
    if isinstance(count, int):
        return tuple(
            typed(t, "Split", [found], found.dtype, rest, None,
                  partial(functions.element, axis=place, place=number))
            for number in range(count)
        )  # fmt: skip
    return Many(typed(t, "Split", [found], found.dtype, rest), count)
