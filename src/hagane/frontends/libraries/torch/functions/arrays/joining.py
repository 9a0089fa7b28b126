"""Functions of PyTorch that join tensors and cut them into parts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hagane.frontends.libraries.computing import built, computed
from hagane.frontends.libraries.torch.operands import (
    INT64,
    as_float,
    at_least,
    axis,
    cast,
    category,
    elements,
    expect_axes,
    need_tensor,
    own_axis,
    promoted,
    reshape,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.libraries.totals import total_size
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.memory import note_part
from hagane.frontends.python.values.strides import lie, strides_of
from hagane.frontends.python.values.values import (
    Many,
    Tensor,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.numbers.elementary import transpose
from hagane.ops.functions.tensors import parts as taken
from hagane.ops.functions.tensors import placing
from hagane.symbolic import Dim, floordiv, maximum, minimum, product


def _tensors(t: Core, tensors: Value, what: str) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        t.fail("type", f"{what} takes a list of tensors, got one: {t.show(tensors)}", tensors)
    if not isinstance(tensors, list | tuple):
        t.fail("type", f"{what} takes a list of tensors, got {t.show(t.wrap(tensors))}")
    if not tensors:
        t.fail("value", f"{what} got an empty list of tensors")
    return [need_tensor(t, x, f"tensors[{place}]") for place, x in enumerate(tensors)]


def _one_dtype(t: Core, tensors: Sequence[Tensor]) -> list[Tensor]:
    dtype = tensors[0].dtype
    for x in tensors[1:]:
        dtype = promoted(dtype, x.dtype)
    return [cast(t, x, dtype) for x in tensors]


@TORCH.function("cat", "concat", "concatenate")
def cat(t: Core, tensors: Value, dim: Value = 0, *, out: Value = None, **keywords: Value) -> Tensor:
    """Return tensors joined along an axis; all others have to agree."""
    dim = keywords.pop("axis", dim)
    if keywords:
        t.fail("call", f"torch.cat has no argument '{next(iter(keywords))}'")
    if isinstance(tensors, Many):
        return _cat_many(t, tensors, dim)
    found = _tensors(t, tensors, "torch.cat")
    for x in found:
        _refuse_scalar(t, x)
    kept = [x for x in found if x.shape != (0,)] or found[:1]
    first = kept[0]
    for x in kept[1:]:
        if len(shape_of(t, x)) != len(shape_of(t, first)):
            t.fail(
                "rank",
                f"expected tensors of one rank, got {t.show(first)} and {t.show(x)}",
                first,
                x,
            )
    rank = len(shape_of(t, first))
    place = axis(t, dim, rank, first)
    return t.op("Concat", *_one_dtype(t, kept), axis=place)


def _cat_many(t: Core, tensors: Many, dim: Value) -> Tensor:
    x = need_tensor(t, tensors.element, "tensors[0]")
    _refuse_scalar(t, x)
    shape = list(shape_of(t, x))
    place = axis(t, dim, len(shape), x)
    shape[place] = total_size(t, shape[place], tensors.length)
    return t.emit.typed("Concat", [x], x.dtype, tuple(shape))


def _refuse_scalar(t: Core, x: Tensor) -> None:
    if not shape_of(t, x):
        t.fail(
            "rank",
            f"expected tensors of one axis or more, got {t.show(x)}",
            x,
            remedy="use torch.stack, which makes the axis",
        )


@TORCH.function("stack")
def stack(t: Core, tensors: Value, dim: Value = 0, *, out: Value = None) -> Tensor:
    """Return tensors of one shape joined along a new axis."""
    if isinstance(tensors, Many):
        x = need_tensor(t, tensors.element, "tensors[0]")
        shape = list(shape_of(t, x))
        shape.insert(axis(t, dim, len(shape), x, extra=1), tensors.length)
        return t.emit.typed("Stack", [x], x.dtype, tuple(shape))
    found = _tensors(t, tensors, "torch.stack")
    first = shape_of(t, found[0])
    for x in found[1:]:
        other = shape_of(t, x)
        if len(other) != len(first) or any(
            t.emit.differ(a, b) for a, b in zip(first, other, strict=True)
        ):
            t.fail(
                "shape-mismatch",
                f"stack expects tensors of one shape, got {t.show(found[0])} and {t.show(x)}",
                found[0],
                x,
            )
    place = np.array([axis(t, dim, len(first), found[0], extra=1)], dtype=np.int64)
    wide = [t.op("Unsqueeze", x, place) for x in _one_dtype(t, found)]
    return t.op("Concat", *wide, axis=int(place[0]))


def _stacked(name: str, at: int, least: int) -> None:
    def wide(t: Core, x: Tensor) -> Tensor:
        shape = list(shape_of(t, x))
        if least == 3 and len(shape) == 1:
            shape = [1, *shape]
        while len(shape) < least:
            shape = [1, *shape] if at == 0 or not shape else [*shape, 1]
        return reshape(t, x, shape)

    def function(t: Core, tensors: Value) -> Tensor:
        if isinstance(tensors, Many):
            one = wide(t, need_tensor(t, tensors.element, "tensors[0]"))
            place = at if len(shape_of(t, one)) > at else 0
            return _cat_many(t, replace(tensors, element=one), place)
        found = [wide(t, x) for x in _tensors(t, tensors, f"torch.{name}")]
        return cat(t, found, at if len(shape_of(t, found[0])) > at else 0)

    TORCH.function(name)(function)


_stacked("vstack", 0, 2)
_stacked("row_stack", 0, 2)
_stacked("column_stack", 1, 2)
_stacked("hstack", 1, 1)
_stacked("dstack", 2, 3)


@TORCH.function("diag_embed", methods=("diag_embed",))
def diag_embed(
    t: Core, input: Value, offset: Value = 0, dim1: Value = -2, dim2: Value = -1
) -> Tensor:
    """Return square matrices with the last axis of the input as a diagonal."""
    x = need_tensor(t, input, "input")
    expect_axes(t, x)
    shape = shape_of(t, x)
    side = shape[-1] + abs(offset)
    a, b = (axis(t, d, len(shape), x, extra=1) for d in (dim1, dim2))
    if a == b:
        t.fail("axis", f"expected two axes as dim1 and dim2, got {dim1} and {dim2}", x)
    result = list(shape[:-1])
    for place in sorted((a, b)):
        result.insert(place, side)

    def compute() -> Value:
        made, last = taken.diagonal_matrix(x, offset), len(shape)
        order = list(range(last - 1))
        for place, source in sorted(((a, last - 1), (b, last))):
            order.insert(place, source)
        return transpose(made, order)

    return computed(t, (x.dtype, tuple(result)), compute)


@TORCH.function("diagonal", methods=("diagonal",))
def diagonal(t: Core, input: Value, offset: Value = 0, dim1: Value = 0, dim2: Value = 1) -> Tensor:
    """Return a diagonal of two axes, as the last axis."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    a, b = axis(t, dim1, len(shape), x), axis(t, dim2, len(shape), x)
    rest = tuple(dim for place, dim in enumerate(shape) if place not in (a, b))
    if a == b:
        t.fail("axis", f"the diagonal of one axis ({dim1}) with itself: {t.show(x)}", x)
    rows, columns = (shape[a], shape[b] - offset) if offset > 0 else (shape[a] + offset, shape[b])
    length = minimum(rows, columns) if offset == 0 else maximum(0, minimum(rows, columns))
    made = computed(t, (x.dtype, (*rest, length)), lambda: taken.diagonal(x, offset, a, b, length))
    if isinstance(offset, int) and x.kind == "torch.Tensor":
        note_part(made.value, x.value, partial(_diagonal, offset=offset, a=a, b=b))
    before = strides_of(x)
    others = [stride for place, stride in enumerate(before) if place not in (a, b)]
    return lie(made, (*others, before[a] + before[b]))


def _diagonal(array: Any, offset: int, a: int, b: int) -> Any:
    """Return a diagonal of two axes of an array, as a view that can be written."""
    found = array.diagonal(offset, a, b)
    places = [slice(None)] * array.ndim
    places[b if offset > 0 else a] = slice(abs(offset), None)
    return np.lib.stride_tricks.as_strided(array[tuple(places)], found.shape, found.strides)


@TORCH.function("diag", methods=("diag",))
def diag(t: Core, input: Value, diagonal: Value = 0) -> Tensor:
    """Return the diagonal of a matrix, or a matrix with a diagonal."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    if len(shape) == 2:
        made: Tensor = t.call_library("torch.diagonal", [x, diagonal])
        return made
    if len(shape) != 1:
        t.fail("rank", f"diag takes one or two axes, got {t.show(x)}", x)
    return diag_embed(t, x, diagonal)


@TORCH.function("diagflat", methods=("diagflat",))
def diagflat(t: Core, input: Value, offset: Value = 0) -> Tensor:
    """Return a matrix with the elements of the input as its diagonal."""
    x = need_tensor(t, input, "input")
    shape_of(t, x)
    return diag_embed(t, reshape(t, x, [elements(x)]), offset)


@TORCH.function("block_diag")
def block_diag(t: Core, *tensors: Value) -> Tensor:
    """Return a matrix of blocks along its diagonal."""
    rows: Dim = 0
    columns: Dim = 0
    for x in _tensors(t, list(tensors), "torch.block_diag"):
        if len(shape_of(t, x)) > 2:
            t.fail("rank", f"expected tensors of at most 2 axes, got {t.show(x)}", x)
        shape = (1, 1, *shape_of(t, x))[-2:]
        rows, columns = rows + shape[0], columns + shape[1]
    joined = _one_dtype(t, _tensors(t, list(tensors), "torch.block_diag"))
    given = [reshape(t, x, [*(1, 1, *shape_of(t, x))[-2:]]) for x in joined]
    made = (given[0].dtype, (rows, columns))
    return built(t, made, lambda *matrices: placing.joined_corners(matrices), *given)


@TORCH.function("combinations")
def combinations(t: Core, input: Value, r: Value = 2, with_replacement: Value = False) -> Tensor:
    """Return the combinations of elements: (count, r)."""
    x = need_tensor(t, input, "input")
    at_least(t, r, 0, "r")
    length = shape_of(t, x, 1)[0] + (r - 1 if with_replacement else 0)
    count: Dim = 1
    for k in range(r):
        count = floordiv(count * (length - k), k + 1)
    own = shape_of(t, x, 1)[0]
    if not isinstance(own, int):
        return t.emit.typed("Combinations", [x], x.dtype, (count, r))
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array([*pick(range(own), r)], np.int64).reshape(-1, r)
    return built(t, (x.dtype, (count, r)), placing.combined, x, places)


@TORCH.function("cartesian_prod")
def cartesian_prod(t: Core, *tensors: Value) -> Tensor:
    """Return the Cartesian product of vectors: (count, vectors)."""
    found = _tensors(t, list(tensors), "torch.cartesian_prod")
    count = product(shape_of(t, x, 1)[0] for x in found)
    shape = (count, len(found)) if len(found) > 1 else (count,)
    if len(found) == 1:
        return found[0]
    made = (found[0].dtype, shape)
    return built(t, made, lambda *vectors: placing.under_each_other(vectors), *found)


@TORCH.function("diff", methods=("diff",))
def diff(
    t: Core, input: Value, n: Value = 1, dim: Value = -1, prepend: Value = None,
    append: Value = None,
) -> Tensor:  # fmt: skip
    """Return the differences of neighbours along an axis."""
    x = need_tensor(t, input, "input")
    at_least(t, n, 0, "n")
    if isinstance(n, int) and n == 0:  # the axis is not looked at
        return need_tensor(t, t.call_library("torch.clone", [x]), "input")
    parts = [part for part in (prepend, x, append) if part is not None]
    x = cat(t, parts, dim) if len(parts) > 1 else x
    shape = list(shape_of(t, x))
    place = axis(t, dim, len(shape), x)
    if not shape:
        t.fail("rank", f"diff needs at least one axis, got {t.show(x)}", x)
    length = shape[place] - n
    shape[place] = max(length, 0) if isinstance(length, int) else length
    if not isinstance(length, int):
        t.emit.require_size(length, 0, "length of the differences")

    def compute() -> Value:
        made = x
        for _ in range(n):
            made = taken.differences(made, place)
        return made

    return computed(t, (x.dtype, tuple(shape)), compute)


@TORCH.function("trapezoid", "trapz")
def trapezoid(t: Core, y: Value, x: Value = None, *, dx: Value = 1, dim: Value = -1) -> Tensor:
    """Return the integral along an axis."""
    found, place, given = _integrated(t, y, x, dx, dim)
    shape = list(shape_of(t, found))
    del shape[place]
    made = (found.dtype, tuple(shape))
    if given is None:
        return t.emit.typed("Trapezoid", [found], *made)
    return built(t, made, lambda y, *x: op("ReduceSum", taken.areas(
        y, x[0] if x else float(dx), place), [place], keepdims=0), found, *given)  # fmt: skip


@TORCH.function("cumulative_trapezoid")
def cumulative_trapezoid(
    t: Core, y: Value, x: Value = None, *, dx: Value = 1, dim: Value = -1
) -> Tensor:
    """Return the integral up to each element along an axis but the first."""
    found, place, given = _integrated(t, y, x, dx, dim)
    shape = list(shape_of(t, found))
    shape[place] = shape[place] - 1
    made = (found.dtype, tuple(shape))
    if given is None:
        return t.emit.typed("Trapezoid", [found], *made)
    return built(t, made, lambda y, *x: op("CumSum", taken.areas(
        y, x[0] if x else float(dx), place), place), found, *given)  # fmt: skip


def _integrated(
    t: Core, y: Value, x: Value, dx: Value, dim: Value
) -> tuple[Tensor, int, list[Tensor] | None]:
    """Return the values, the axis, and their places; None in place of these if nobody knows."""
    found = need_tensor(t, y, "y")
    whole = category(found.dtype) < 2 and found.dtype.itemsize < 4  # sums of which overflow
    found = as_float(t, found)
    place = own_axis(t, dim, found)
    if whole:
        return found, place, None
    if not isinstance(x, Tensor):
        return found, place, [] if isinstance(dx, int | float) else None
    own = shape_of(t, x)
    wide = cast(t, x, found.dtype)
    if len(own) == 1:
        ones = [1] * (len(shape_of(t, found)) - place - 1)
        return found, place, [reshape(t, wide, [own[0], *ones])]
    return found, place, [wide] if len(own) == len(shape_of(t, found)) else None


@TORCH.function("nonzero", "argwhere", methods=("nonzero", "argwhere"))
def nonzero(t: Core, input: Value, *, as_tuple: Value = False) -> Value:
    """Return where the input is not zero: (count, axes), or one index list an axis."""
    x = need_tensor(t, input, "input")
    rank = len(shape_of(t, x))
    if not rank:
        row = nonzero(t, reshape(t, x, [1]), as_tuple=as_tuple)
        return row if as_tuple else t.op("Slice", row, *(np.array([n]) for n in (0, 0, 1)))
    count = t.emit.count("nonzero", x)
    if as_tuple:
        return tuple(computed(t, (INT64, (count,)), partial(_row, x, k)) for k in range(rank))
    return computed(t, (INT64, (count, rank)), lambda: transpose(op("NonZero", x), [1, 0]))


def _row(x: Tensor, axis: int) -> Value:
    return taken.element(op("NonZero", x), 0, axis)
