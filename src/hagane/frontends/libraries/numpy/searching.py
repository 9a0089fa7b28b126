"""Functions of NumPy that choose, sort, search and count."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.indexing import broadcast_shapes
from hagane.frontends.libraries.numpy.operands import (
    BOOL,
    DOUBLE,
    FLOATS,
    INT64,
    axes,
    axis,
    broadcast_shape,
    cast,
    elements,
    is_number,
    new,
    promoted,
    reshape,
    shape_of,
    size,
    sizes,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.operands import axis as axis_of
from hagane.frontends.libraries.numpy.reducing import not_empty
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Fields, Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.images import filters
from hagane.ops.functions.sums import statistics
from hagane.ops.functions.tensors import ordering, positions
from hagane.ops.functions.tensors.positions import to_places
from hagane.symbolic import Dim, maximum, product


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
    place = _axis(t, axis, x)
    own = (*shape[:place], *shape_of(t, places), *shape[place + 1 :])
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


def _axis(t: Core, value: Value, x: Tensor) -> int:
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
    place = _axis(t, axis, x)
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
def choose(t: Core, a: Value, choices: Value, *_: Value, **__: Value) -> Tensor:
    """Return elements of one of several arrays."""
    arrays = [to_array(t, c) for c in choices]
    places = to_array(t, a)
    shape = broadcast_shape(t, places, *arrays)
    dtype = promoted(t, arrays)
    given = [cast(t, x, dtype) for x in arrays]
    return typed(t, "Choose", [places, *given], dtype, shape, None, _chosen)


def _chosen(places: Any, *arrays: Any) -> Any:
    """Return the elements of arrays that places name."""
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
    place = 0 if axis is None else _axis(t, axis, x)
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


def _arg(name: str) -> None:
    def function(
        t: Core, a: Value, axis: Value = None, out: Value = None, *, keepdims: Value = False
    ) -> Tensor:
        x = to_array(t, a)
        not_empty(t, x, axis, name)
        shape = shape_of(t, x)
        if isinstance(axis, tuple | list):
            t.fail("type", f"{name} takes one axis, got {axis}", x)
        places = axes(t, axis, len(shape), x)
        rest = tuple(
            1 if i in places else n for i, n in enumerate(shape) if keepdims or i not in places
        )
        if x.dtype.numpy().kind == "c":
            return typed(t, "ArgMax", [x], INT64, rest)
        if name.startswith("nan") and x.dtype in FLOATS:
            fill = -np.inf if name == "nanargmax" else np.inf
            least = np.array(fill, x.dtype.numpy())
            x = built(t, x, lambda x: op("Where", op("IsNaN", x), least, x), x)
        if not shape:
            x = reshape(t, x, [1])
            return built(t, (INT64, ()), statistics.position, x, [0], False, name[-3:])
        return built(t, (INT64, rest), statistics.position, x, places, bool(keepdims), name[-3:])

    NUMPY.function(name, methods=(name,) if not name.startswith("nan") else ())(function)


for _name in ("argmax", "argmin", "nanargmax", "nanargmin"):
    _arg(_name)


def _sort(name: str, of_places: bool, method: bool) -> None:
    def function(t: Core, a: Value, *arguments: Value, axis: Value = -1, **_: Value) -> Tensor:
        x = to_array(t, a)
        given = list(arguments[1:] if "partition" in name else arguments)
        axis = given[0] if given else axis
        if axis is None:
            x = reshape(t, x, [-1])
        else:
            _axis(t, axis, x)
        place = 0 if axis is None else _axis(t, axis, x)
        dtype = INT64 if of_places else x.dtype
        if x.dtype.numpy().kind == "c":
            return typed(t, "Sort", [x], dtype, x.shape)
        part = int(of_places)
        return typed(t, "Sort", [x], dtype, x.shape, None,
                     lambda x: ordering.sorted_along(x, place)[part])  # fmt: skip

    NUMPY.function(name, methods=(name,) if method else ())(function)


_sort("sort", False, False)
_sort("partition", False, False)
_sort("argsort", True, True)
_sort("argpartition", True, True)


@NUMPY.method("sort", "partition")
def sort_in_place(t: Core, self: Value, *_: Value, **__: Value) -> Value:
    """Sort the array in place."""
    self.known = None
    return None


@NUMPY.function("lexsort")
def lexsort(t: Core, keys: Value, axis: Value = -1) -> Tensor:
    """Return the places that sort by several keys."""
    x = to_array(t, keys)
    shape = shape_of(t, x)
    if x.dtype.numpy().kind == "c" or len(shape) < 2 or not isinstance(shape[0], int):
        return typed(t, "Sort", [x], INT64, shape[1:])
    place = axis_of(t, axis, len(shape) - 1, x)
    rule = partial(ordering.sorted_by_several, count=shape[0], axis=place)
    return typed(t, "Sort", [x], INT64, shape[1:], None, rule)


@NUMPY.function("searchsorted", methods=("searchsorted",))
def searchsorted(t: Core, a: Value, v: Value, side: Value = "left", sorter: Value = None) -> Tensor:
    """Return where elements belong in sorted ones."""
    x, values = to_array(t, a), to_array(t, v)
    shape_of(t, x, 1)
    if sorter is not None:
        x = take(t, x, sorter, 0)
    if side not in ("left", "right") or x.dtype.numpy().kind == "c":
        return typed(t, "SearchSorted", [x, values], INT64, values.shape)
    dtype = promoted(t, [x, values])
    operands = [cast(t, v, dtype) for v in (x, values)]
    rule = partial(ordering.sorted_places, right=side == "right")
    return typed(t, "SearchSorted", operands, INT64, values.shape, None, rule)


@NUMPY.function("digitize")
def digitize(t: Core, x: Value, bins: Value, right: Value = False) -> Tensor:
    """Return the number of the bin that each element lies in; bins rise or fall."""
    values, edges = to_array(t, x), to_array(t, bins)
    shape_of(t, edges, 1, "bins")
    dtype = promoted(t, [values, edges])
    operands = [cast(t, v, dtype) for v in (values, edges)]
    rule = partial(ordering.bins_of, right=bool(right))
    return typed(t, "Digitize", operands, INT64, values.shape, None, rule)


@NUMPY.function("unique")
def unique(
    t: Core, ar: Value, return_index: Value = False, return_inverse: Value = False,
    return_counts: Value = False, axis: Value = None, **_: Value,
) -> Value:  # fmt: skip
    """Return the different elements; how many there are nobody knows before."""
    x = to_array(t, ar)
    count = t.emit.fresh("unique")
    shape: list[Dim] = list(shape_of(t, x))
    inverse: Any = tuple(shape)
    if axis is None:
        shape = [count]
    else:
        place = _axis(t, axis, x)
        inverse = (shape[place],)
        shape[place] = count
    at = None if axis is None else _axis(t, axis, x)
    plain = x.dtype.numpy().kind != "c" and (at is None or len(shape_of(t, x)) > 0)

    def result(number: int, dtype: Any, own: Any) -> Tensor:
        rule = (lambda x: ordering.different(x, at)[number]) if plain else None
        return typed(t, "Unique", [x], dtype, own, None, rule)

    results = [result(0, x.dtype, tuple(shape))]
    for number, wanted, own in (
        (1, return_index, (count,)),
        (2, return_inverse, inverse),
        (3, return_counts, (count,)),
    ):
        if wanted:
            results.append(result(number, INT64, own))
    return results[0] if len(results) == 1 else tuple(results)


@NUMPY.function("unique_values")
def unique_values(t: Core, x: Value) -> Value:
    """Return the different elements."""
    return unique(t, x)


def _unique_with(name: str, *names: str) -> None:
    def function(t: Core, x: Value) -> Value:
        found = unique(t, x, "indices" in names, "inverse_indices" in names, "counts" in names)
        return Fields(found, names)

    NUMPY.function(name)(function)


_unique_with("unique_counts", "values", "counts")
_unique_with("unique_inverse", "values", "inverse_indices")
_unique_with("unique_all", "values", "indices", "inverse_indices", "counts")


@NUMPY.function("bincount")
def bincount(t: Core, x: Value, weights: Value = None, minlength: Value = 0) -> Tensor:
    """Return how often each number occurs."""
    found = to_array(t, x)
    shape_of(t, found, 1, "x")
    if not found.dtype.is_integer():
        t.fail("dtype-mismatch", f"bincount takes integers, got {t.show(found)}", found)
    bins = t.emit.fresh("bins")
    dtype = INT64 if weights is None else DOUBLE
    if not isinstance(minlength, int):
        return typed(t, "BinCount", [found], dtype, (bins,))
    weight = [] if weights is None else [cast(t, to_array(t, weights), DOUBLE)]
    return typed(t, "BinCount", [found, *weight], dtype, (bins,), None,
                 lambda x, w=None: ordering.occurrences(x, w, minlength))  # fmt: skip


@NUMPY.function("histogram")
def histogram(t: Core, a: Value, bins: Value = 10, *_: Value, density: Value = None,
              **__: Value) -> Value:  # fmt: skip
    """Return how many elements fall into each bin, and the bins' edges."""
    x = to_array(t, a)
    count = size(t, bins) if not isinstance(bins, Tensor | list) else t.emit.fresh("bins")
    if not isinstance(count, int) or density or _ or __ or x.dtype.numpy().kind not in "iuf":
        counts = typed(t, "Histogram", [x], DOUBLE if density else INT64, (count,))
        return (counts, typed(t, "Histogram", [x], DOUBLE, (count + 1,)))
    # Floats of 32 bits have edges of 32 bits.
    own = x.dtype if x.dtype in FLOATS else DOUBLE
    wide = cast(t, x, own)
    edges = built(t, (own, (count + 1,)), lambda: ordering.even_edges(wide, count))
    return built(t, (INT64, (count,)), ordering.counts_between, wide, edges), edges


@NUMPY.function("isin")
def isin(t: Core, element: Value, test_elements: Value, **_: Value) -> Tensor:
    """Return which elements are among others."""
    x, others = to_array(t, element), to_array(t, test_elements)
    dtype = promoted(t, [x, others])
    inverted = _.get("invert", False)
    operands = [cast(t, v, dtype) for v in (x, others)]
    if dtype.numpy().kind == "c" or not isinstance(inverted, bool):
        return typed(t, "IsIn", operands, BOOL, x.shape)
    made = typed(t, "IsIn", operands, BOOL, x.shape, None, ordering.is_among)
    return typed(t, "Not", [made], BOOL, x.shape, None, partial(op, "Not")) if inverted else made


def _sets(name: str, function: Callable[..., Any]) -> None:
    def made(t: Core, ar1: Value, ar2: Value, **_: Value) -> Tensor:
        left, right = to_array(t, ar1), to_array(t, ar2)
        dtype = promoted(t, [left, right])
        shape = (t.emit.fresh("elements"),)
        if dtype.numpy().kind == "c" or _:
            return typed(t, "Set", [left, right], dtype, shape)
        operands = [cast(t, v, dtype) for v in (left, right)]
        return typed(t, "Set", operands, dtype, shape, None, function)

    NUMPY.function(name)(made)


_sets("intersect1d", ordering.in_both)
_sets("union1d", ordering.in_either)
_sets("setdiff1d", ordering.in_first)
_sets("setxor1d", ordering.in_one)


@NUMPY.function("interp")
def interp(t: Core, x: Value, xp: Value, fp: Value, *_: Value) -> Tensor:
    """Return values between known points."""
    places = to_array(t, x)
    known, values = to_array(t, xp), to_array(t, fp)
    if t.emit.differ(shape_of(t, known, 1, "xp")[0], shape_of(t, values, 1, "fp")[0]):
        t.fail("shape-mismatch", f"{t.show(known)} does not fit {t.show(values)}", known, values)
    operands = [cast(t, v, DOUBLE) for v in (places, known, values)]
    if _ or values.dtype.numpy().kind == "c":
        return typed(t, "Interpolate", [places], DOUBLE, places.shape)
    return typed(t, "Interpolate", operands, DOUBLE, places.shape, None, ordering.between_points)


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
        from hagane.symbolic import minimum

        count = maximum(n, m) - minimum(n, m) + 1
    dtype = promoted(t, [left, right])
    fits = not t.knowledge.possible(t.knowledge.less(n, m))
    if dtype.numpy().kind not in "iuf" or mode not in ("full", "same", "valid") or not fits:
        return typed(t, "Convolve", [left, right], dtype, (count,))
    operands = [cast(t, v, dtype) for v in (left, right)]
    rule = partial(filters.convolved, mode=mode, turned=turned)
    return typed(t, "Convolve", operands, dtype, (count,), None, rule)


@NUMPY.function("delete")
def delete(t: Core, arr: Value, obj: Value, axis: Value = None) -> Tensor:
    """Return the array without elements along an axis."""
    x = to_array(t, arr)
    x, place = (reshape(t, x, [-1]), 0) if axis is None else (x, _axis(t, axis, x))
    shape = list(shape_of(t, x))
    gone = len(set(obj)) if isinstance(obj, list | tuple) else 1
    shape[place] = shape[place] - gone
    given = list(obj) if isinstance(obj, list | tuple) else [obj]
    if not all(isinstance(number, int) for number in given):
        return typed(t, "Delete", [x], x.dtype, tuple(shape))
    numbers = np.unique(np.array(given, np.int64))
    rule = partial(positions.without, numbers=numbers, axis=place)
    return typed(t, "Delete", [x], x.dtype, tuple(shape), None, rule)


@NUMPY.function("insert")
def insert(t: Core, arr: Value, obj: Value, values: Value, axis: Value = None) -> Tensor:
    """Return the array with values put before an element."""
    x, added = to_array(t, arr), to_array(t, values)
    x, place = (reshape(t, x, [-1]), 0) if axis is None else (x, _axis(t, axis, x))
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
    places = cast(t, to_array(t, indices), INT64)
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
def ravel_multi_index(t: Core, multi_index: Value, dims: Value, **_: Value) -> Tensor:
    """Return coordinates as flat places."""
    arrays = [cast(t, to_array(t, x), INT64) for x in multi_index]
    counts = sizes(t, dims)
    shape = broadcast_shape(t, *arrays)
    if _:
        return typed(t, "Ravel", arrays, INT64, shape)
    return typed(t, "Ravel", arrays, INT64, shape, None, partial(positions.flat_place, counts))


def _together(name: str, function: Callable[..., Any]) -> None:
    def made(t: Core, x: Value, *_: Value, **__: Value) -> Tensor:
        found = to_array(t, x)
        rows = shape_of(t, found)[0]
        shape = () if len(shape_of(t, found)) == 1 else (rows, rows)
        ddof = __.get("ddof")
        unlike = [key for key in __ if key != "ddof" or name == "corrcoef"]
        if found.dtype.numpy().kind == "c" or _ or unlike:
            return typed(t, "Covariance", [found], DOUBLE, shape)
        correction = 1 if ddof is None else ddof
        return built(t, (DOUBLE, shape), function, cast(t, found, DOUBLE), correction)

    NUMPY.function(name)(made)


_together("cov", statistics.covariance)
_together("corrcoef", statistics.correlation)


@NUMPY.function("seterr", "random.seed", "set_printoptions", "save", "savez", "put", "copyto")
def nothing(t: Core, *_: Value, **__: Value) -> Value:
    """Return None: what it does changes no type."""
    return None
