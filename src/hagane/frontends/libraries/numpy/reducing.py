"""Functions of NumPy that reduce axes, or run along them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.numpy import array_programs
from hagane.frontends.libraries.numpy.masked import (
    begun,
    continued,
    mean_of_selected,
    selected,
    variance_of_selected,
)
from hagane.frontends.libraries.numpy.operands import (
    BOOL,
    DOUBLE,
    FLOATS,
    INT64,
    axes,
    axis,
    cast,
    dtype_of,
    elements,
    reshape,
    shape_of,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.libraries.numpy.ufuncs import elementwise
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.numbers.elementary import where as chosen
from hagane.ops.functions.sums import statistics
from hagane.ops.functions.tensors import parts
from hagane.symbolic import product

_KIND = {"u": ir.DataType.UINT64, "i": INT64, "b": INT64}
_REAL = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: DOUBLE}


_SUMMED = (*FLOATS, INT64, ir.DataType.INT32)


def reduced(
    t: Core, operator: str, x: Tensor, place: Value, keepdims: Value, dtype: ir.DataType,
    function: Callable[..., Any] | None = None, *operands: Any,
) -> Tensor:  # fmt: skip
    """Return a reduction.

    Args:
        t: The interpreter.
        operator: One of ONNX's, where it has the meaning; else empty.
        x: The array.
        place: The axes, as the program gave them.
        keepdims: Whether they stay with size 1.
        dtype: The element type of the result.
        function: The function over the builder that computes it from the array, the axes, whether
            they stay, and the operands.
        operands: Its other arguments.
    """
    shape = shape_of(t, x)
    places = axes(t, place, len(shape), x)
    if operator and x.dtype == dtype and x.dtype in _SUMMED and places:
        numbers = np.array(places, dtype=np.int64)
        made: Tensor = t.op(operator, x, numbers, keepdims=int(bool(keepdims)))
        return made
    left = tuple(
        1 if i in places else n for i, n in enumerate(shape) if keepdims or i not in places
    )
    if not shape and operator == "ReduceMean" and x.dtype == dtype:
        function = _alone
    if function is None or (not places and shape):
        return typed(t, operator or "Reduce", [x], dtype, left)
    return built(t, (dtype, left), function, x, places, bool(keepdims), *operands)


def _alone(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return an array without axes, which is its own mean."""
    return op("Identity", x)


def not_empty(t: Core, x: Tensor, place: Value, name: str) -> None:
    """Fail where a reduction that has no neutral element gets nothing."""
    shape = shape_of(t, x)
    for number in axes(t, place, len(shape), x):
        if shape[number] == 0:
            t.fail("value", f"ValueError: zero-size array to {name}: {t.show(x)}", x)


def _sum_like(name: str, operator: str) -> None:
    def function(
        t: Core, a: Value, axis: Value = None, dtype: Value = None, out: Value = None,
        keepdims: Value = False, initial: Value = None, where: Value = True,
    ) -> Tensor:  # fmt: skip
        x = to_array(t, a)
        wanted = dtype_of(t, dtype, _accumulated(x.dtype))
        whole = axis is None and x.known is not None
        known = _total(name, x.known) if whole and wanted.is_integer() else None
        x = selected(t, name, cast(t, x, wanted), where, initial)
        if name.startswith("nan") and wanted in FLOATS:
            neutral = np.array(name == "nanprod", wanted.numpy())
            x = built(t, (wanted, shape_of(t, x)), lambda x: chosen(op("IsNaN", x), neutral, x), x)
        rule = statistics.total if operator == "ReduceSum" else statistics.product_of
        made = reduced(t, operator, x, axis, keepdims, wanted, rule)
        if initial is not None or where is not True:
            return continued(t, name, made, initial)
        if known is not None and not keepdims:
            made.known = known
        return made

    NUMPY.function(name, methods=(name,) if not name.startswith("nan") else ())(function)


def _accumulated(dtype: ir.DataType) -> ir.DataType:
    """Return the element type of sums: narrow integers become the platform's."""
    found = dtype.numpy()
    return _KIND[found.kind] if found.kind in _KIND and found.itemsize < 8 else dtype


def _total(name: str, known: Any) -> Any:
    items = known.ravel().tolist()
    held = np.empty((), dtype=object)
    held[()] = product(items) if name == "prod" else sum(items)
    return held


for _name, _operator in (
    ("sum", "ReduceSum"),
    ("prod", "ReduceProd"),
    ("nansum", "ReduceSum"),
    ("nanprod", "ReduceProd"),
):
    _sum_like(_name, _operator)


# Means and spreads that are no operators; NaN-skipping ones have types only.
_SPREADS: dict[str, Callable[..., Any]] = {
    "nanmean": statistics.mean_of_numbers,
    "var": statistics.variance,
    "std": statistics.deviation,
    "nanvar": statistics.variance_of_numbers,
    "nanstd": statistics.deviation_of_numbers,
}


def _mean_like(name: str, real: bool) -> None:
    def function(
        t: Core, a: Value, axis: Value = None, dtype: Value = None, out: Value = None,
        keepdims: Value = False, *, where: Value = True, ddof: Value = 0, around: Value = None,
    ) -> Tensor:  # fmt: skip
        x = to_array(t, a)
        own = x.dtype if x.dtype.numpy().kind in "fc" else DOUBLE
        wanted = dtype_of(t, dtype, own)
        x = cast(t, x, wanted)
        if (where is not True or around is not None) and wanted in FLOATS:
            skips = name.startswith("nan")
            if not real:
                return mean_of_selected(t, x, axis, keepdims, where, numbers=skips)
            made = variance_of_selected(t, x, axis, keepdims, where, around, ddof, numbers=skips)
            return elementwise(t, "sqrt", made) if name.endswith("std") else made
        if where is not True or around is not None:
            return reduced(t, "", x, axis, keepdims, wanted)
        if name == "mean" or (name == "nanmean" and to_array(t, a).dtype not in FLOATS):
            return reduced(t, "ReduceMean", x, axis, keepdims, wanted)
        if wanted in _REAL:
            made = reduced(t, "", x, axis, keepdims, wanted)
            return t.emit.like(made, _REAL[wanted]) if real else made
        whole = to_array(t, a).dtype not in FLOATS  # which are never NaN
        function = _SPREADS.get(name.removeprefix("nan") if whole else name)
        return reduced(t, "", x, axis, keepdims, wanted, function, *([ddof] if real else []))

    def deviation(
        t: Core, a: Value, axis: Value = None, dtype: Value = None, out: Value = None,
        ddof: Value = 0, keepdims: Value = False, *, where: Value = True, mean: Value = None,
        correction: Value = None,
    ) -> Tensor:  # fmt: skip
        if correction is not None:
            if ddof != 0:
                t.fail("value", "ValueError: ddof and correction can't be provided simultaneously.")
            ddof = correction
        return function(t, a, axis, dtype, out, keepdims, where=where, ddof=ddof, around=mean)

    methods = (name,) if name in ("mean", "std", "var") else ()
    NUMPY.function(name, methods=methods)(deviation if real else function)


for _name in ("mean", "nanmean"):
    _mean_like(_name, real=False)
for _name in ("std", "var", "nanstd", "nanvar"):
    _mean_like(_name, real=True)


@NUMPY.function("average")
def average(t: Core, a: Value, axis: Value = None, weights: Value = None, returned: Value = False,
            *, keepdims: Value = False) -> Value:  # fmt: skip
    """Return the mean, weighted if asked for."""
    x = to_array(t, a)
    dtype = x.dtype if x.dtype.numpy().kind in "fc" else DOUBLE
    if weights is not None:
        w = to_array(t, weights)
        if len(shape_of(t, w)) == len(shape_of(t, x)):
            for left, right in zip(shape_of(t, w), shape_of(t, x), strict=True):
                if t.emit.differ(left, right):
                    t.fail("shape-mismatch", f"{t.show(w)} does not weigh {t.show(x)}", w, x)
        else:
            places = axes(t, axis, len(shape_of(t, x)), x)
            if len(places) != 1 or t.emit.differ(shape_of(t, w, 1)[0], shape_of(t, x)[places[0]]):
                t.fail("shape-mismatch", f"{t.show(w)} does not weigh {t.show(x)}", w, x)
        dtype = ir.DataType.from_numpy(np.result_type(dtype.numpy(), w.dtype.numpy()))
        dtype = dtype if dtype.numpy().kind in "fc" else DOUBLE
        x, w = cast(t, x, dtype), cast(t, w, dtype)
        if len(shape_of(t, w)) < len(shape_of(t, x)):
            place = axes(t, axis, len(shape_of(t, x)), x)[0]
            ones = [1] * (len(shape_of(t, x)) - place - 1)
            w = reshape(t, w, [shape_of(t, w)[0], *ones])
        w = elementwise(t, "multiply", elementwise(t, "equal", x, x), w)
        made, total = (
            reduced(t, "ReduceSum", v, axis, keepdims, dtype)
            for v in (elementwise(t, "multiply", x, w), w)
        )
        made = elementwise(t, "divide", made, total)
        return (made, total) if returned else made
    x = cast(t, x, dtype)
    made = reduced(t, "ReduceMean", x, axis, keepdims, dtype)
    if not returned:
        return made
    ones = t.call_library("numpy.ones_like", [x])
    return made, reduced(t, "ReduceSum", ones, axis, keepdims, dtype)


def _extreme(name: str, operator: str) -> None:
    def function(
        t: Core, a: Value, axis: Value = None, out: Value = None, keepdims: Value = False,
        initial: Value = None, where: Value = True,
    ) -> Tensor:  # fmt: skip
        x = to_array(t, a)
        if initial is None:
            not_empty(t, x, axis, name)
        if initial is not None or where is not True:
            x = begun(t, name, x, axes(t, axis, len(shape_of(t, x)), x), where, initial)
        skips = name.startswith("nan") and x.dtype in FLOATS
        rule = partial(statistics.extreme, operator, skip=skips)
        made = reduced(t, "" if skips else operator, x, axis, keepdims, x.dtype, rule)
        if initial is not None:
            return continued(t, name, made, initial)
        if axis is None and not keepdims and x.known is not None and x.known.size:
            made.known = _known_extreme(operator, x.known)
        return made

    NUMPY.function(name, methods=(name,) if name in ("max", "min") else ())(function)


def _known_extreme(operator: str, known: Any) -> Any:
    from hagane.symbolic import maximum, minimum

    if known.dtype != object:
        return np.asarray(known.max() if operator == "ReduceMax" else known.min())
    held = np.empty((), dtype=object)
    held[()] = (maximum if operator == "ReduceMax" else minimum)(*known.ravel())
    return held


for _name in ("max", "amax", "nanmax"):
    _extreme(_name, "ReduceMax")
for _name in ("min", "amin", "nanmin"):
    _extreme(_name, "ReduceMin")


@NUMPY.function("ptp")
def ptp(
    t: Core, a: Value, axis: Value = None, out: Value = None, keepdims: Value = False
) -> Tensor:
    """Return the largest minus the smallest element."""
    x = to_array(t, a)
    not_empty(t, x, axis, "ptp")
    return reduced(t, "", x, axis, keepdims, x.dtype, statistics.spread)


def _truth(name: str) -> None:
    def function(
        t: Core,
        a: Value,
        axis: Value = None,
        out: Value = None,
        keepdims: Value = False,
        *,
        where: Value = True,
    ) -> Tensor:
        x = to_array(t, a)
        function_of = statistics.any_true if name == "any" else statistics.all_true
        if where is not True:
            x = selected(t, name, cast(t, x, BOOL), where, None)
        made = reduced(t, "", x, axis, keepdims, BOOL, function_of)
        if axis is None and not keepdims and x.known is not None and x.known.dtype != object:
            made.known = np.asarray(getattr(np, name)(x.known))
        return made

    NUMPY.function(name, methods=(name,))(function)


_truth("any")
_truth("all")


@NUMPY.function("count_nonzero")
def count_nonzero(t: Core, a: Value, axis: Value = None, *, keepdims: Value = False) -> Tensor:
    """Return how many elements are not zero."""
    return reduced(t, "", to_array(t, a), axis, keepdims, INT64, statistics.count)


def _cumulative(name: str) -> None:
    def function(
        t: Core, a: Value, axis: Value = None, dtype: Value = None, out: Value = None
    ) -> Tensor:
        x = to_array(t, a)
        wanted = dtype_of(t, dtype, _accumulated(x.dtype))
        if axis is None:
            shape: Any = (elements(t, x),)
        else:
            _axis(t, axis, x)
            shape = shape_of(t, x)
        known = None
        if x.known is not None and len(shape_of(t, x)) == 1 and wanted.is_integer():
            known = _running(name, x.known)
        place = 0 if axis is None else _axis(t, axis, x)
        rows = cast(t, x if axis is not None else reshape(t, x, [-1]), wanted)
        if wanted.numpy().kind == "c":
            return typed(t, "CumSum", [x], wanted, shape, known)
        return typed(t, "CumSum", [rows], wanted, shape, known,
                     partial(statistics.running, name.removeprefix("nan"), axis=place,
                             skip=name.startswith("nan")))  # fmt: skip

    NUMPY.function(name, methods=(name,) if not name.startswith("nan") else ())(function)


def _axis(t: Core, value: Value, x: Tensor) -> int:
    return axis(t, value, len(shape_of(t, x)), x)


def _running(name: str, known: Any) -> Any:
    held = np.empty(known.shape, dtype=object)
    total: Any = 1 if name == "cumprod" else 0
    for place, item in enumerate(known.tolist()):
        total = total * item if name == "cumprod" else total + item
        held[place] = total
    return held


for _name in ("cumsum", "cumprod", "nancumsum", "nancumprod"):
    _cumulative(_name)


def _cumulative_of_standard(name: str) -> None:
    def function(t: Core, x: Value, *, axis: Value = None, dtype: Value = None,
                 out: Value = None, include_initial: Value = False) -> Tensor:  # fmt: skip
        found = to_array(t, x)
        shape = list(shape_of(t, found))
        place = _axis(t, 0 if axis is None and len(shape) == 1 else axis, found)
        wanted = dtype_of(t, dtype, _accumulated(found.dtype))
        if include_initial:
            shape[place] = shape[place] + 1
        if wanted.numpy().kind == "c":
            return typed(t, "CumSum", [found], wanted, tuple(shape))
        rule = partial(statistics.running, name, axis=place, skip=False,
                       first=bool(include_initial))  # fmt: skip
        return typed(t, "CumSum", [cast(t, found, wanted)], wanted, tuple(shape), None, rule)

    NUMPY.function({"cumsum": "cumulative_sum", "cumprod": "cumulative_prod"}[name])(function)


_cumulative_of_standard("cumsum")
_cumulative_of_standard("cumprod")


@NUMPY.function("diff")
def diff(
    t: Core, a: Value, n: Value = 1, axis: Value = -1, prepend: Value = None,
    append: Value = None,
) -> Tensor:  # fmt: skip
    """Return the differences of neighbours along an axis."""
    x = to_array(t, a)
    if prepend is not None or append is not None:
        x = _lengthened(t, x, axis, prepend, append)
    shape = list(shape_of(t, x))
    if not shape:
        t.fail("rank", f"diff requires at least one axis, got {t.show(x)}", x)
    place = _axis(t, axis, x)
    left = shape[place] - n
    shape[place] = max(0, left) if isinstance(left, int) else left
    if not isinstance(n, int) or x.dtype.numpy().kind == "c":
        return typed(t, "Diff", [x], x.dtype, tuple(shape))

    def differences(x: Any) -> Any:
        for _ in range(n):
            x = parts.differences(x, place)
        return x

    return typed(t, "Diff", [x], x.dtype, tuple(shape), None, differences)


def _lengthened(t: Core, x: Tensor, axis: Value, before: Value, after: Value) -> Tensor:
    """Return an array with values before and behind those of an axis; numbers stand for a row."""
    place, rows = _axis(t, axis, x), []
    row = tuple(1 if i == place else n for i, n in enumerate(shape_of(t, x)))
    for value in (before, x, after):
        if value is not None:
            part = to_array(t, value)
            alone = not shape_of(t, part)
            rows.append(t.call_library("numpy.broadcast_to", [part, row]) if alone else part)
    made: Tensor = t.call_library("numpy.concatenate", [tuple(rows), place])
    return made


@NUMPY.function("gradient")
def gradient(
    t: Core, f: Value, *spacing: Value, axis: Value = None, edge_order: Value = 1
) -> Value:
    """Return central differences, an array for each axis."""
    x = to_array(t, f)
    dtype = x.dtype if x.dtype in FLOATS else DOUBLE
    places = axes(t, axis, len(shape_of(t, x)), x)
    if len(spacing) > 1 and len(spacing) != len(places):
        t.fail("type", f"TypeError: {len(spacing)} spacings for {len(places)} axes", x)
    if len(spacing) == 1 and len(places) > 1 and isinstance(spacing[0], Tensor) and spacing[0].rank:
        t.fail("type", f"TypeError: the places along one axis for {len(places)} axes", x)
    distances = [*spacing] if len(spacing) > 1 else [*(spacing or [1.0])] * len(places)
    plain = edge_order == 1 and all(isinstance(d, int | float) for d in distances)
    wide = cast(t, x, dtype)
    found = [
        built(t, (dtype, shape_of(t, x)), parts.slopes, wide, place, float(distance))
        if plain
        else run_own(t, array_programs.slopes, [wide, t.wrap(distance), place, edge_order], {})
        for place, distance in zip(places, distances, strict=False)
    ]
    return found[0] if len(found) == 1 else tuple(found)


@NUMPY.function("linalg.trace")
def matrix_trace(t: Core, x: Value, /, *, offset: Value = 0, dtype: Value = None) -> Tensor:
    """Return the sums of the diagonals of matrices, the last two axes."""
    return trace(t, x, offset, -2, -1, dtype)


@NUMPY.function("trace", methods=("trace",))
def trace(t: Core, a: Value, offset: Value = 0, axis1: Value = 0, axis2: Value = 1,
          dtype: Value = None, out: Value = None) -> Tensor:  # fmt: skip
    """Return the sum of a diagonal."""
    x = to_array(t, a)
    shape = shape_of(t, x)
    if len(shape) < 2:
        t.fail("rank", f"trace requires at least two axes, got {t.show(x)}", x)
    gone = (_axis(t, axis1, x), _axis(t, axis2, x))
    rest = tuple(n for i, n in enumerate(shape) if i not in gone)
    wanted = dtype_of(t, dtype, _accumulated(x.dtype))
    line: Tensor = t.call_library("numpy.diagonal", [x, offset, *gone])
    if wanted.numpy().kind == "c":
        return typed(t, "Trace", [x], wanted, rest)
    return built(t, (wanted, rest), statistics.total, cast(t, line, wanted), [len(rest)], False)
