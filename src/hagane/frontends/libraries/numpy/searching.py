"""Functions of NumPy that choose, search, filter and place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.indexing import broadcast_shapes, check_places
from hagane.frontends.libraries.numpy import array_programs, programs
from hagane.frontends.libraries.numpy.joining import concatenate
from hagane.frontends.libraries.numpy.masked import either
from hagane.frontends.libraries.numpy.operands import (
    BOOL,
    DOUBLE,
    INT64,
    axis,
    broadcast_shape,
    cast,
    elements,
    is_number,
    new,
    promoted,
    reshape,
    shape_of,
    sizes,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.shaping import permuted
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.libraries.numpy.ufuncs import elementwise
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.images import filters
from hagane.ops.functions.sums import statistics
from hagane.ops.functions.tensors import ordering, positions
from hagane.ops.functions.tensors.parts import part
from hagane.ops.functions.tensors.positions import to_places
from hagane.symbolic import floordiv, maximum, minimum, product


@NUMPY.function("where")
def where(t: Core, condition: Value, x: Value = None, y: Value = None) -> Value:
    """Return elements of x where the condition holds, else of y; or where it holds."""
    c = to_array(t, condition)
    if x is None and y is None:
        return nonzero(t, c)
    if x is None or y is None:
        t.fail("call", "either both or neither of x and y should be given")
    operands = [v if is_number(v) else to_array(t, v) for v in (x, y)]
    dtype = promoted(t, operands)
    arrays = [cast(t, to_array(t, v), dtype) for v in operands]
    shape = broadcast_shape(t, c, *arrays)
    return typed(t, "Where", [cast(t, c, BOOL), *arrays], dtype, shape, None, partial(op, "Where"))


@NUMPY.function("nonzero", methods=("nonzero",))
def nonzero(t: Core, a: Value) -> Value:
    """Return the places of elements that are not zero; how many nobody knows before."""
    x = to_array(t, a)
    count = t.emit.fresh("nonzero")
    rank = len(shape_of(t, x))
    if not rank:
        t.fail("rank", f"nonzero takes at least one axis, got {t.show(x)}", x)
    return tuple(
        typed(t, "NonZero", [x], INT64, (count,), None, partial(_place_along, axis=axis))
        for axis in range(rank)
    )


def _place_along(x: Any, axis: int) -> Any:
    return op("Gather", op("NonZero", x), np.array(axis), axis=0)


@NUMPY.function("flatnonzero")
def flatnonzero(t: Core, a: Value) -> Tensor:
    """Return the places of elements that are not zero, of the flattened array."""
    found: Tensor = nonzero(t, reshape(t, to_array(t, a), [-1]))[0]
    return found


@NUMPY.function("argwhere")
def argwhere(t: Core, a: Value) -> Tensor:
    """Return the places of elements that are not zero, one a row."""
    x = to_array(t, a)
    shape = (t.emit.fresh("nonzero"), len(shape_of(t, x)))
    if not shape_of(t, x):
        return typed(t, "NonZero", [x], INT64, shape)
    rows = lambda x: op("Transpose", op("NonZero", x), perm=[1, 0])  # noqa: E731
    return typed(t, "NonZero", [x], INT64, shape, None, rows)


@NUMPY.function("take", methods=("take",))
def take(
    t: Core, a: Value, indices: Value, axis: Value = None, out: Value = None, mode: Value = "raise"
) -> Tensor:
    """Return elements at indices along an axis, of the flattened array without one."""
    x, places = to_array(t, a), to_array(t, indices)
    need_integers(t, places)
    if axis is None:
        x, axis = reshape(t, x, [-1]), 0
    shape = shape_of(t, x)
    place = axis_in(t, axis, x)
    own = (*shape[:place], *shape_of(t, places), *shape[place + 1 :])
    if mode == "raise":
        check_places(t, x, places, place)
    if mode not in ("raise", "wrap", "clip"):
        return typed(t, "Gather", [x, places], x.dtype, own)
    rule = partial(positions.taken, axis=place, mode=mode)
    return typed(t, "Gather", [x, places], x.dtype, own, None, rule)


def need_integers(t: Core, places: Tensor) -> None:
    """Fail unless the elements can be places."""
    if not places.dtype.is_integer() and places.dtype != BOOL:
        t.fail(
            "dtype-mismatch",
            f"expected integers as indices, got {t.show(places)}",
            places,
            remedy="convert it with .astype(np.int64)",
        )


def axis_in(t: Core, value: Value, x: Tensor) -> int:
    """Return a valid axis of an array, not negative."""
    return axis(t, value, len(shape_of(t, x)), x)


@NUMPY.function("take_along_axis")
def take_along_axis(t: Core, arr: Value, indices: Value, axis: Value = -1) -> Tensor:
    """Return elements at indices along an axis, which broadcast along the others."""
    x, places = to_array(t, arr), to_array(t, indices)
    need_integers(t, places)
    if axis is None:
        x, axis = reshape(t, x, [-1]), 0
    shape, own = shape_of(t, x), shape_of(t, places)
    if len(shape) != len(own):
        t.fail("rank", f"expected as many axes, got {t.show(x)} and {t.show(places)}", x, places)
    place = axis_in(t, axis, x)
    left = [(*s[:place], *s[place + 1 :]) for s in (shape, own)]
    common = list(broadcast_shapes(t, left, x))
    common.insert(place, own[place])
    rest = [n for axis, n in enumerate(common) if axis != place]
    wide = [list(rest), list(rest)]
    wide[0].insert(place, shape[place])
    wide[1].insert(place, own[place])

    def taken(x: Any, places: Any) -> Any:
        x, places = (op("Expand", v, sizes) for v, sizes in zip((x, places), wide, strict=True))
        return op("GatherElements", x, to_places(places), axis=place)

    return typed(t, "GatherElements", [x, places], x.dtype, tuple(common), None, taken)


@NUMPY.function("choose", methods=("choose",))
def choose(t: Core, a: Value, choices: Value, out: Value = None, mode: Value = "raise") -> Tensor:
    """Return elements of one of several arrays."""
    places = to_array(t, a)
    dtype = promoted(t, [c if is_number(c) else to_array(t, c) for c in choices])
    given = [cast(t, to_array(t, c), dtype) for c in choices]
    shape = broadcast_shape(t, places, *given)
    if mode not in ("raise", "wrap", "clip"):
        return typed(t, "Choose", [places, *given], dtype, shape)
    rule = partial(_chosen, mode=mode)
    return typed(t, "Choose", [places, *given], dtype, shape, None, rule)


def _chosen(places: Any, *arrays: Any, mode: str) -> Any:
    """Return the elements of arrays that places name.

    Numbers beyond the last are counted from the first again with ``wrap``, are the nearest one
    with ``clip``, and fail in the run otherwise.
    """
    places = positions.to_places(places)
    if mode == "wrap":
        places = op("Mod", places, len(arrays))
    elif mode == "clip":
        places = op("Min", op("Max", places, 0), len(arrays) - 1)
    else:
        places = op("Gather", np.arange(len(arrays)), places, axis=0)
    found = arrays[0]
    for number, x in enumerate(arrays[1:], 1):
        found = op("Where", op("Equal", places, number), x, found)
    return found


def _first_that_holds(*operands: Any) -> Any:
    """Return elements of the first of some arrays whose condition holds, else of the last."""
    count = (len(operands) - 1) // 2
    found = operands[-1]
    for number in reversed(range(count)):
        found = op("Where", operands[number], operands[count + number], found)
    return found


@NUMPY.function("select")
def select(t: Core, condlist: Value, choicelist: Value, default: Value = 0) -> Tensor:
    """Return elements of the first array whose condition holds."""
    conditions = [to_array(t, c) for c in condlist]
    for c in conditions:
        if c.dtype != BOOL:
            t.fail("dtype-mismatch", f"expected a bool condition, got {t.show(c)}", c)
    if len(condlist) != len(choicelist):
        t.fail("value", f"{len(condlist)} conditions for {len(choicelist)} choices")
    values = [v if is_number(v) else to_array(t, v) for v in (*choicelist, default)]
    arrays = [to_array(t, v) for v in values]
    shape = broadcast_shape(t, *conditions, *arrays)
    dtype = promoted(t, values)
    given = [cast(t, x, dtype) for x in arrays]
    return typed(t, "Select", [*conditions, *given], dtype, shape, None, _first_that_holds)


@NUMPY.function("compress", methods=())
def compress(t: Core, condition: Value, a: Value, axis: Value = None) -> Tensor:
    """Return the slices along an axis where the condition holds."""
    x = to_array(t, a)
    x = reshape(t, x, [-1]) if axis is None else x
    shape = list(shape_of(t, x))
    place = 0 if axis is None else axis_in(t, axis, x)
    shape[place] = t.emit.fresh("compressed")
    kept = cast(t, to_array(t, condition), BOOL)
    return typed(t, "Compress", [x, kept], x.dtype, tuple(shape), None,
                 partial(op, "Compress", axis=place))  # fmt: skip


@NUMPY.function("extract")
def extract(t: Core, condition: Value, arr: Value) -> Tensor:
    """Return the elements where the condition holds."""
    x, kept = to_array(t, arr), cast(t, to_array(t, condition), BOOL)
    rows = [reshape(t, v, [-1]) for v in (x, kept)]
    shape = (t.emit.fresh("extracted"),)
    return typed(t, "Compress", rows, x.dtype, shape, None, partial(op, "Compress", axis=0))


@NUMPY.function("interp")
def interp(
    t: Core, x: Value, xp: Value, fp: Value, left: Value = None, right: Value = None,
    period: Value = None,
) -> Tensor:  # fmt: skip
    """Return values between known points."""
    places = to_array(t, x)
    known, values = to_array(t, xp), to_array(t, fp)
    if t.emit.differ(shape_of(t, known, 1, "xp")[0], shape_of(t, values, 1, "fp")[0]):
        t.fail("shape-mismatch", f"{t.show(known)} does not fit {t.show(values)}", known, values)
    operands = [cast(t, v, DOUBLE) for v in (places, known, values)]
    if period is not None or values.dtype.numpy().kind == "c":
        return typed(t, "Interpolate", [places], DOUBLE, places.shape)
    made = typed(t, "Interpolate", operands, DOUBLE, places.shape, None, ordering.between_points)
    for bound, end, beyond in ((left, 0, "less"), (right, -1, "greater")):
        if bound is not None:
            edge = t.call_library("numpy.take", [operands[1], end])
            inside = elementwise(t, "logical_not", elementwise(t, beyond, operands[0], edge))
            made = either(t, inside, made, bound)
    return made


@NUMPY.function("convolve")
def convolve(t: Core, a: Value, v: Value, mode: Value = "full") -> Tensor:
    """Return a convolution of two vectors."""
    return _filtered(t, a, v, mode, turned=True)


@NUMPY.function("correlate")
def correlate(t: Core, a: Value, v: Value, mode: Value = "valid") -> Tensor:
    """Return the sums of products of a vector with another at each of its places."""
    return _filtered(t, a, v, mode, turned=False)


def _filtered(t: Core, a: Value, v: Value, mode: Value, *, turned: bool) -> Tensor:
    left, right = to_array(t, a), to_array(t, v)
    n, m = shape_of(t, left, 1)[0], shape_of(t, right, 1, "v")[0]
    count = n + m - 1 if mode == "full" else maximum(n, m)
    if mode == "valid":
        count = maximum(n, m) - minimum(n, m) + 1
    dtype = promoted(t, [left, right])
    fits = not t.knowledge.possible(t.knowledge.less(n, m))
    known = dtype.numpy().kind in "iuf" and mode in ("full", "same", "valid")
    if not known or not (fits or turned):
        return typed(t, "Convolve", [left, right], dtype, (count,))
    operands = [cast(t, v, dtype) for v in (left, right)]
    if not fits:  # either may be the longer one; the sums at all places are the same then
        first = {"full": 0, "same": floordiv(minimum(n, m) - 1, 2), "valid": minimum(n, m) - 1}

        def some(x: Any, kernel: Any) -> Any:
            found = filters.convolved(x, kernel, "full", turned=True)
            return found if mode == "full" else part(found, 0, first[mode], count)

        return typed(t, "Convolve", operands, dtype, (count,), None, some)
    rule = partial(filters.convolved, mode=mode, turned=turned)
    return typed(t, "Convolve", operands, dtype, (count,), None, rule)


@NUMPY.function("delete")
def delete(t: Core, arr: Value, obj: Value, axis: Value = None) -> Tensor:
    """Return the array without elements along an axis."""
    x = to_array(t, arr)
    x, place = (reshape(t, x, [-1]), 0) if axis is None else (x, axis_in(t, axis, x))
    shape = list(shape_of(t, x))
    given = list(obj) if isinstance(obj, list | tuple) else [obj]
    if isinstance(obj, Tensor) and obj.known is not None and obj.dtype.is_integer():
        given = obj.known.reshape(-1).tolist()
    whole = all(isinstance(number, int) and not isinstance(number, bool) for number in given)
    size = shape[place]
    if whole and given and isinstance(size, int):
        check_places(t, x, to_array(t, given), place)
        given = [number % size for number in given]
    # Where a size is not known, places from both ends may be one.
    if not whole or min(given, default=0) < 0 <= max(given, default=0):
        made = run_own(t, programs.delete_at, [x, t.wrap(obj), place], {})
        assert isinstance(made, Tensor)
        return made
    gone = len(set(given))
    shape[place] = shape[place] - gone
    numbers = np.unique(np.array(given, np.int64))
    rule = partial(positions.without, numbers=numbers, axis=place)
    return typed(t, "Delete", [x], x.dtype, tuple(shape), None, rule)


@NUMPY.function("insert")
def insert(t: Core, arr: Value, obj: Value, values: Value, axis: Value = None) -> Tensor:
    """Return the array with values put before an element."""
    x = to_array(t, arr)
    added = to_array(t, values, None if isinstance(values, Tensor) else x.dtype)
    x, place = (reshape(t, x, [-1]), 0) if axis is None else (x, axis_in(t, axis, x))
    shape = list(shape_of(t, x))
    shape[place] = shape[place] + (elements(t, added) if axis is None else 1)
    if not isinstance(obj, int):
        return typed(t, "Insert", [x], x.dtype, tuple(shape))
    rule = partial(positions.inserted, place=obj, axis=place)
    added = cast(t, added, x.dtype)
    if axis is None:
        added = reshape(t, added, [-1])
    return typed(t, "Insert", [x, added], x.dtype, tuple(shape), None, rule)


@NUMPY.function("unravel_index")
def unravel_index(t: Core, indices: Value, shape: Value, **_: Value) -> Value:
    """Return flat places as coordinates."""
    given = to_array(t, indices)
    if given.dtype.is_floating_point():
        t.fail("type", f"TypeError: only int indices permitted, got {t.show(given)}", given)
    places = cast(t, given, INT64)
    counts = sizes(t, shape)
    own = shape_of(t, places)
    if _:
        return tuple(new(t, INT64, own) for _ in counts)
    return tuple(
        typed(t, "Unravel", [places], INT64, own, None,
              partial(positions.coordinate, inner=product(counts[axis + 1 :]), size=counts[axis]))
        for axis in range(len(counts))
    )  # fmt: skip


@NUMPY.function("ravel_multi_index")
def ravel_multi_index(
    t: Core, multi_index: Value, dims: Value, mode: Value = "raise", order: Value = "C"
) -> Tensor:
    """Return coordinates as flat places."""
    arrays = [cast(t, to_array(t, x), INT64) for x in multi_index]
    counts = sizes(t, dims)
    if mode == "raise" and order == "C":
        shape = broadcast_shape(t, *arrays)
        return typed(t, "Ravel", arrays, INT64, shape, None, partial(positions.flat_place, counts))
    given = [tuple(arrays), tuple(counts), t.wrap(mode), order]
    made: Tensor = run_own(t, array_programs.ravel_multi_index, given, {})
    return made


def _as_rows(t: Core, x: Tensor) -> Tensor:
    return x if len(shape_of(t, x)) > 1 else reshape(t, x, [1, -1])


def _together(name: str, function: Callable[..., Any]) -> None:
    def made(
        t: Core, x: Value, y: Value = None, rowvar: Value = True, bias: Value = False,
        ddof: Value = None, fweights: Value = None, aweights: Value = None, **_: Value,
    ) -> Tensor:  # fmt: skip
        found = to_array(t, x)
        if rowvar is False and len(shape_of(t, found)) == 2:
            found = permuted(t, found, None)
        if y is not None:  # its rows behind those of x
            more = _as_rows(t, to_array(t, y))
            if rowvar is False and len(shape_of(t, to_array(t, y))) == 2:
                more = permuted(t, more, None)
            found = concatenate(t, [_as_rows(t, found), more], 0)
        rows = shape_of(t, found)[0]
        if isinstance(rows, int) and rows == 1 and len(shape_of(t, found)) == 2:
            found = reshape(t, found, [-1])  # one variable has a number as result
        elif len(shape_of(t, found)) == 2:
            t.emit.suppose_not_one(rows, "number of variables, of which one gives a number")
        shape = () if len(shape_of(t, found)) == 1 else (rows, rows)
        plain = all(isinstance(v, bool | int | None) for v in (rowvar, bias, ddof))
        if found.dtype.numpy().kind == "c" or not plain:
            return typed(t, "Covariance", [found], DOUBLE, shape)
        correction = (0 if bias else 1) if ddof is None else ddof
        weights = [w if w is None else to_array(t, w) for w in (fweights, aweights)]
        given = (
            [correction, *weights] if fweights is not None or aweights is not None else [correction]
        )
        return built(t, (DOUBLE, shape), function, cast(t, found, DOUBLE), *given)

    NUMPY.function(name)(made)


_together("cov", statistics.covariance)
_together("corrcoef", statistics.correlation)


@NUMPY.function("copyto", "fill_diagonal")
def written(t: Core, *_: Value, **__: Value) -> Value:
    """Return None: an array is written, which changes no type."""
    return None


@NUMPY.function("seterr", "random.seed", "set_printoptions")
def set_up(t: Core, *_: Value, **__: Value) -> Value:
    """Return None: a setting changes no type."""
    return None


@NUMPY.function("save", "savez")
def beside(t: Core, *_: Value, **__: Value) -> Value:
    """Return None: its effect changes no type."""
    return None
