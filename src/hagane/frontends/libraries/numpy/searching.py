"""Functions of NumPy that choose, sort, search and count."""

from __future__ import annotations

from functools import partial
from typing import Any

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.indexing import broadcast_shapes
from hagane.frontends.libraries.numpy.operands import (
    BOOL,
    DOUBLE,
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
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.reducing import not_empty
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Fields, Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions import statistics
from hagane.symbolic import Dim, maximum


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


@NUMPY.function("nonzero", "flatnonzero", "argwhere", methods=("nonzero",))
def nonzero(t: Core, a: Value) -> Value:
    """Return the places of elements that are not zero; how many nobody knows before."""
    x = to_array(t, a)
    count = t.emit.fresh("nonzero")
    name = t.emit.label.rpartition(".")[2]
    if name == "argwhere":
        return typed(t, "NonZero", [x], INT64, (count, len(shape_of(t, x))))
    if name == "flatnonzero":
        return typed(t, "NonZero", [x], INT64, (count,))
    if not shape_of(t, x):
        t.fail("rank", f"nonzero takes at least one axis, got {t.show(x)}", x)
    return tuple(typed(t, "NonZero", [x], INT64, (count,)) for _ in shape_of(t, x))


@NUMPY.function("take", methods=("take",))
def take(
    t: Core, a: Value, indices: Value, axis: Value = None, out: Value = None, mode: Value = "raise"
) -> Tensor:
    """Return elements at indices along an axis, of the flattened array without one."""
    x, places = to_array(t, a), to_array(t, indices)
    need_integers(t, places)
    if axis is None:
        return typed(t, "Gather", [x, places], x.dtype, places.shape)
    shape = shape_of(t, x)
    place = _axis(t, axis, x)
    own = (*shape[:place], *shape_of(t, places), *shape[place + 1 :])
    return typed(t, "Gather", [x, places], x.dtype, own)


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
    return typed(t, "GatherElements", [x, places], x.dtype, tuple(common))


@NUMPY.function("choose", methods=("choose",))
def choose(t: Core, a: Value, choices: Value, *_: Value, **__: Value) -> Tensor:
    """Return elements of one of several arrays."""
    arrays = [to_array(t, c) for c in choices]
    places = to_array(t, a)
    shape = broadcast_shape(t, places, *arrays)
    return typed(t, "Choose", [places, *arrays], promoted(t, arrays), shape)


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
    return typed(t, "Select", [*conditions, *arrays], promoted(t, values), shape)


@NUMPY.function("compress", methods=())
def compress(t: Core, condition: Value, a: Value, axis: Value = None) -> Tensor:
    """Return the slices along an axis where the condition holds."""
    x = to_array(t, a)
    shape = [elements(t, x)] if axis is None else list(shape_of(t, x))
    shape[0 if axis is None else _axis(t, axis, x)] = t.emit.fresh("compressed")
    return typed(t, "Compress", [x], x.dtype, tuple(shape))


@NUMPY.function("extract")
def extract(t: Core, condition: Value, arr: Value) -> Tensor:
    """Return the elements where the condition holds."""
    x = to_array(t, arr)
    return typed(t, "Compress", [x], x.dtype, (t.emit.fresh("extracted"),))


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
        if name.startswith("nan") or not shape:
            return typed(t, "ArgMax", [x], INT64, rest)
        return computed(t, (INT64, rest), statistics.position, x, places, bool(keepdims), name[3:])

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
        return typed(t, "Sort", [x], INT64 if of_places else x.dtype, x.shape)

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
    return typed(t, "Sort", [x], INT64, shape_of(t, x)[1:])


@NUMPY.function("searchsorted", "digitize", methods=("searchsorted",))
def searchsorted(t: Core, a: Value, v: Value, *_: Value, **__: Value) -> Tensor:
    """Return where elements belong in sorted ones."""
    if t.emit.label.endswith("digitize"):
        a, v = v, a
    x, values = to_array(t, a), to_array(t, v)
    shape_of(t, x, 1)
    return typed(t, "SearchSorted", [x, values], INT64, values.shape)


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
    results = [typed(t, "Unique", [x], x.dtype, tuple(shape))]
    for wanted, own in (
        (return_index, (count,)),
        (return_inverse, inverse),
        (return_counts, (count,)),
    ):
        if wanted:
            results.append(typed(t, "Unique", [x], INT64, own))
    return results[0] if len(results) == 1 else tuple(results)


@NUMPY.function("unique_values")
def unique_values(t: Core, x: Value) -> Value:
    """Return the different elements."""
    return unique(t, x)


@NUMPY.function("unique_counts", "unique_inverse", "unique_all")
def unique_counts(t: Core, x: Value) -> Value:
    """Return the different elements with how often, or where, they occur."""
    name = t.emit.label.rpartition("_")[2]
    names = {"counts": ("values", "counts"), "inverse": ("values", "inverse_indices"),
             "all": ("values", "indices", "inverse_indices", "counts")}[name]  # fmt: skip
    found = unique(t, x, "indices" in names, "inverse_indices" in names, "counts" in names)
    return Fields(found, names)


@NUMPY.function("bincount")
def bincount(t: Core, x: Value, weights: Value = None, minlength: Value = 0) -> Tensor:
    """Return how often each number occurs."""
    found = to_array(t, x)
    shape_of(t, found, 1, "x")
    if not found.dtype.is_integer():
        t.fail("dtype-mismatch", f"bincount takes integers, got {t.show(found)}", found)
    bins = t.emit.fresh("bins")
    return typed(t, "BinCount", [found], INT64 if weights is None else DOUBLE, (bins,))


@NUMPY.function("histogram")
def histogram(t: Core, a: Value, bins: Value = 10, *_: Value, density: Value = None,
              **__: Value) -> Value:  # fmt: skip
    """Return how many elements fall into each bin, and the bins' edges."""
    x = to_array(t, a)
    count = size(t, bins) if not isinstance(bins, Tensor | list) else t.emit.fresh("bins")
    counts = typed(t, "Histogram", [x], DOUBLE if density else INT64, (count,))
    return (counts, typed(t, "Histogram", [x], DOUBLE, (count + 1,)))


@NUMPY.function("isin")
def isin(t: Core, element: Value, test_elements: Value, **_: Value) -> Tensor:
    """Return which elements are among others."""
    x = to_array(t, element)
    return typed(t, "IsIn", [x], BOOL, x.shape)


@NUMPY.function("intersect1d", "union1d", "setdiff1d", "setxor1d")
def sets(t: Core, ar1: Value, ar2: Value, **_: Value) -> Tensor:
    """Return a set made of two; how many elements it has nobody knows before."""
    left, right = to_array(t, ar1), to_array(t, ar2)
    dtype = promoted(t, [left, right])
    return typed(t, "Set", [left, right], dtype, (t.emit.fresh("elements"),))


@NUMPY.function("interp")
def interp(t: Core, x: Value, xp: Value, fp: Value, *_: Value) -> Tensor:
    """Return values between known points."""
    places = to_array(t, x)
    known, values = to_array(t, xp), to_array(t, fp)
    if t.emit.differ(shape_of(t, known, 1, "xp")[0], shape_of(t, values, 1, "fp")[0]):
        t.fail("shape-mismatch", f"{t.show(known)} does not fit {t.show(values)}", known, values)
    return typed(t, "Interpolate", [places], DOUBLE, places.shape)


@NUMPY.function("convolve", "correlate")
def convolve(t: Core, a: Value, v: Value, mode: Value = "") -> Tensor:
    """Return a convolution of two vectors."""
    left, right = to_array(t, a), to_array(t, v)
    n, m = shape_of(t, left, 1)[0], shape_of(t, right, 1, "v")[0]
    mode = mode or ("full" if t.emit.label.endswith("convolve") else "valid")
    count = n + m - 1 if mode == "full" else maximum(n, m)
    if mode == "valid":
        from hagane.symbolic import minimum

        count = maximum(n, m) - minimum(n, m) + 1
    return typed(t, "Convolve", [left, right], promoted(t, [left, right]), (count,))


@NUMPY.function("delete")
def delete(t: Core, arr: Value, obj: Value, axis: Value = None) -> Tensor:
    """Return the array without elements along an axis."""
    x = to_array(t, arr)
    x, place = (reshape(t, x, [-1]), 0) if axis is None else (x, _axis(t, axis, x))
    shape = list(shape_of(t, x))
    gone = len(set(obj)) if isinstance(obj, list | tuple) else 1
    shape[place] = shape[place] - gone
    return typed(t, "Delete", [x], x.dtype, tuple(shape))


@NUMPY.function("insert")
def insert(t: Core, arr: Value, obj: Value, values: Value, axis: Value = None) -> Tensor:
    """Return the array with values put before an element."""
    x, added = to_array(t, arr), to_array(t, values)
    x, place = (reshape(t, x, [-1]), 0) if axis is None else (x, _axis(t, axis, x))
    shape = list(shape_of(t, x))
    shape[place] = shape[place] + (elements(t, added) if axis is None else 1)
    return typed(t, "Insert", [x], x.dtype, tuple(shape))


@NUMPY.function("unravel_index")
def unravel_index(t: Core, indices: Value, shape: Value, **_: Value) -> Value:
    """Return flat places as coordinates."""
    places = to_array(t, indices)
    return tuple(new(t, INT64, shape_of(t, places)) for _ in shape)


@NUMPY.function("ravel_multi_index")
def ravel_multi_index(t: Core, multi_index: Value, dims: Value, **_: Value) -> Tensor:
    """Return coordinates as flat places."""
    arrays = [to_array(t, x) for x in multi_index]
    return typed(t, "Ravel", arrays, INT64, broadcast_shape(t, *arrays))


@NUMPY.function("cov", "corrcoef")
def cov(t: Core, m: Value, *_: Value, **__: Value) -> Tensor:
    """Return how rows vary together."""
    x = to_array(t, m)
    rows = shape_of(t, x)[0]
    shape = () if len(shape_of(t, x)) == 1 else (rows, rows)
    return typed(t, "Covariance", [x], DOUBLE, shape)


@NUMPY.function("seterr", "random.seed", "set_printoptions", "save", "savez", "put", "copyto")
def nothing(t: Core, *_: Value, **__: Value) -> Value:
    """Return None: what it does changes no type."""
    return None
