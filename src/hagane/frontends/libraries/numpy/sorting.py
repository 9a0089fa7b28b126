"""Sorting, counting and sets of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.numpy import array_programs
from hagane.frontends.libraries.numpy.operands import (
    BOOL,
    DOUBLE,
    FLOATS,
    INT64,
    axes,
    cast,
    promoted,
    reshape,
    shape_of,
    size,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.operands import axis as axis_of
from hagane.frontends.libraries.numpy.reducing import not_empty
from hagane.frontends.libraries.numpy.searching import axis_in, take
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.values.values import (
    Fields,
    Many,
    Tensor,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.sums import statistics
from hagane.ops.functions.tensors import ordering
from hagane.symbolic import Dim


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
        given = list(arguments)
        if "partition" in name:
            kth = given.pop(0) if given else _.get("kth")
        axis = given[0] if given else axis
        if axis is None:
            x = reshape(t, x, [-1])
        else:
            axis_in(t, axis, x)
        place = 0 if axis is None else axis_in(t, axis, x)
        if "partition" in name:
            _check_places(t, kth, shape_of(t, x)[place])
        dtype = INT64 if of_places else x.dtype
        if x.dtype.numpy().kind == "c":
            return typed(t, "Sort", [x], dtype, x.shape)
        part = int(of_places)
        return typed(t, "Sort", [x], dtype, x.shape, None,
                     lambda x: ordering.sorted_along(x, place)[part])  # fmt: skip

    NUMPY.function(name, methods=(name,) if method else ())(function)


def _check_places(t: Core, kth: Value, count: Dim) -> None:
    """Fail where the places by which ``partition`` divides are none of an axis."""
    x = to_array(t, kth)
    if len(shape_of(t, x)) > 1:
        t.fail("value", f"ValueError: object too deep for desired array: {t.show(x)}", x)
    if not x.dtype.is_integer() and shape_of(t, x) != (0,):
        t.fail("type", f"TypeError: Partition index must be integer, got {t.show(x)}", x)
    if x.known is not None and x.known.dtype != object and isinstance(count, int):
        for place in x.known.ravel().tolist():
            if not -count <= place < count:
                t.fail("value", f"ValueError: kth(={place}) out of bounds ({count})", x)


_sort("sort", False, False)
_sort("partition", False, False)
_sort("argsort", True, True)
_sort("argpartition", True, True)


@NUMPY.method("sort", "partition")
def sort_in_place(t: Core, self: Value, *given: Value, axis: Value = -1, **_: Value) -> Value:
    """Sort the array in place."""
    places = [axis, *(x for x in given if isinstance(x, int))]
    if not given and isinstance(axis, int):
        axis_in(t, places[0], self)
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
    return_counts: Value = False, axis: Value = None, *, equal_nan: Value = True,
    sorted: Value = True,
) -> Value:  # fmt: skip
    """Return the different elements; how many there are nobody knows before."""
    x = to_array(t, ar)
    count = t.emit.fresh("unique")
    shape: list[Dim] = list(shape_of(t, x))
    inverse: Any = tuple(shape)
    if axis is None:
        shape = [count]
    else:
        place = axis_in(t, axis, x)
        inverse = (shape[place],)
        shape[place] = count
    at = None if axis is None else axis_in(t, axis, x)
    plain = x.dtype.numpy().kind != "c" and (at is None or len(shape_of(t, x)) > 0)

    apart = equal_nan is False and x.dtype.is_floating_point()
    if apart and at is not None:
        t.outside("np.unique of slices of which no two with NaN are equal")

    def result(number: int, dtype: Any, own: Any) -> Tensor:
        function = ordering.different_numbers if apart else partial(ordering.different, axis=at)
        rule = (lambda x: function(x)[number]) if plain else None
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
    return unique(t, x, equal_nan=False)


def _unique_with(name: str, *names: str) -> None:
    def function(t: Core, x: Value) -> Value:
        wanted = [name in names for name in ("indices", "inverse_indices", "counts")]
        found = unique(t, x, *wanted, equal_nan=False)
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
    least = size(t, minlength)
    weight = [] if weights is None else [cast(t, to_array(t, weights), DOUBLE)]
    return typed(t, "BinCount", [found, *weight], dtype, (bins,), None,
                 lambda x, w=None: ordering.occurrences(x, w, least))  # fmt: skip


@NUMPY.function("histogram")
def histogram(t: Core, a: Value, bins: Value = 10, range: Value = None, density: Value = None,
              weights: Value = None) -> Value:  # fmt: skip
    """Return how many elements fall into each bin, and the bins' edges."""
    x = to_array(t, a)
    parts = x.dtype.numpy().kind in "iuf" and isinstance(density, bool | None)
    own = x.dtype if x.dtype in FLOATS else DOUBLE  # floats of 32 bits have edges of 32 bits
    if isinstance(bins, Tensor) and bins.shape == ():
        bins = t.tensor_number(bins, whole=True)
    if isinstance(bins, Tensor | list | tuple):
        edges = to_array(t, bins)
        count = (edges.shape or (t.emit.fresh("bins"),))[0] - 1
        wide = cast(t, x, promoted(t, [x, edges]))
        compared = cast(t, edges, wide.dtype)
    else:
        count = size(t, bins)
        wide = cast(t, x, own)
        asked = () if range is None else t.sequence(range)
        if isinstance(asked, Many):
            t.fail("value", "expected two ends as range, got a list whose length is not known")
        ends = [cast(t, to_array(t, end), own) for end in asked]
        edges = typed(t, "Histogram", [wide, *ends], own, (count + 1,), None,
                      (lambda x, *ends: ordering.even_edges(x, count, ends))
                      if parts else None)  # fmt: skip
        compared = edges
    given = [] if weights is None else [to_array(t, weights)]
    dtype = given[0].dtype if given else INT64
    counts = typed(t, "Histogram", [wide, compared, *given], dtype, (count,), None,
                   ordering.counts_between if parts else None)  # fmt: skip
    if density is not True:
        return counts, edges
    return typed(t, "Histogram", [counts, edges], DOUBLE, (count,), None,
                 _density if parts else None), edges  # fmt: skip


def _density(counts: Any, edges: Any) -> Any:
    counts, edges = (op("Cast", x, to=DOUBLE) for x in (counts, edges))
    widths = op(
        "Sub", op("Slice", edges, [1], [2**63 - 1], [0]), op("Slice", edges, [0], [-1], [0])
    )
    return op("Div", op("Div", counts, widths), op("ReduceSum", counts, keepdims=0))


@NUMPY.function("isin")
def isin(
    t: Core, element: Value, test_elements: Value, assume_unique: Value = False,
    invert: Value = False, *, kind: Value = None,
) -> Tensor:  # fmt: skip
    """Return which elements are among others."""
    x, others = to_array(t, element), to_array(t, test_elements)
    dtype = promoted(t, [x, others])
    operands = [cast(t, v, dtype) for v in (x, others)]
    if dtype.numpy().kind == "c" or not isinstance(invert, bool):
        return typed(t, "IsIn", operands, BOOL, x.shape)
    made = typed(t, "IsIn", operands, BOOL, x.shape, None, ordering.is_among)
    return typed(t, "Not", [made], BOOL, x.shape, None, partial(op, "Not")) if invert else made


def _sets(name: str, function: Callable[..., Any], program: Callable[..., Any]) -> None:
    def made(
        t: Core, ar1: Value, ar2: Value, assume_unique: Value = False,
        return_indices: Value = False,
    ) -> Value:  # fmt: skip
        left, right = to_array(t, ar1), to_array(t, ar2)
        if assume_unique is not False or return_indices is not False:
            more = [assume_unique, return_indices][: 2 if name == "intersect1d" else 1]
            return run_own(t, program, [left, right, *more], {})
        dtype = promoted(t, [left, right])
        shape = (t.emit.fresh("elements"),)
        own = left.dtype if name == "setdiff1d" else dtype  # elements of the first alone
        if dtype.numpy().kind == "c":
            return typed(t, "Set", [left, right], own, shape)
        operands = [cast(t, v, dtype) for v in (left, right)]
        return cast(t, typed(t, "Set", operands, dtype, shape, None, function), own)

    NUMPY.function(name)(made)


_sets("intersect1d", ordering.in_both, array_programs.intersect1d)
_sets("union1d", ordering.in_either, np.union1d)
_sets("setdiff1d", ordering.in_first, array_programs.setdiff1d)
_sets("setxor1d", ordering.in_one, array_programs.setxor1d)
