"""Methods of ufuncs, and indexable objects such as ``np.c_``, composed of other functions.

https://numpy.org/doc/stable/reference/ufuncs.html#methods and
https://numpy.org/doc/stable/reference/generated/numpy.c_.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.composed import programmed
from hagane.frontends.libraries.numpy import array_programs, fitting, programs
from hagane.frontends.libraries.numpy.joining import concatenated
from hagane.frontends.libraries.numpy.operands import axis as checked_axis
from hagane.frontends.libraries.numpy.operands import (
    cast,
    dtype_of,
    is_number,
    reshape,
    shape_of,
    to_array,
    weak,
)
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.libraries.numpy.ufuncs import elementwise
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.values.values import (
    MISSING,
    Tensor,
    Value,
)
from hagane.symbolic import Dim

_REDUCED = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any",
}  # fmt: skip
_ACCUMULATED = {"add": "cumsum", "multiply": "cumprod"}
# The others' results are of the element type of their operands, or truth values.
_FOLDED = ("maximum", "minimum", "fmax", "fmin", "subtract")
_PROGRAMS: dict[str, Callable[..., Any]] = {
    "ix_": programs.ix_, "polyval": programs.polyval, "piecewise": programs.piecewise,
    "apply_along_axis": programs.apply_along_axis, "block": programs.block,
    "putmask": programs.putmask, "place": programs.place, "put": programs.put,
    "put_along_axis": array_programs.put_along_axis, "vander": array_programs.vander,
    "iscomplexobj": array_programs.iscomplexobj, "isrealobj": array_programs.isrealobj,
    "iscomplex": array_programs.iscomplex, "isreal": array_programs.isreal,
    "ndindex": array_programs.ndindex, "ndenumerate": array_programs.ndenumerate,
    "isposinf": array_programs.isposinf, "isneginf": array_programs.isneginf,
    "sort_complex": array_programs.sort_complex,
    "histogram_bin_edges": array_programs.histogram_bin_edges,
    "poly": fitting.poly, "polyfit": fitting.polyfit,
    "linalg.cond": array_programs.cond, "fix": array_programs.fix, "unwrap": array_programs.unwrap,
    "ediff1d": array_programs.ediff1d, "trim_zeros": array_programs.trim_zeros,
    "fft.fftshift": array_programs.fftshift, "fft.ifftshift": array_programs.ifftshift,
    "fft.fftfreq": array_programs.fftfreq, "fft.rfftfreq": array_programs.rfftfreq,
    "triu_indices_from": array_programs.triu_indices_from,
    "tril_indices_from": array_programs.tril_indices_from,
    "diag_indices_from": array_programs.diag_indices_from,
}  # fmt: skip
_OUTER = (
    "add", "subtract", "multiply", "divide", "true_divide", "maximum", "minimum", "power",
    "floor_divide", "remainder", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "arctan2", "hypot", "logical_and", "logical_or",
)  # fmt: skip


def _reduced(name: str, function: str) -> None:
    def reduce(
        t: Core, array: Value, axis: Value = 0, dtype: Value = None, out: Value = None,
        keepdims: Value = False, initial: Value = MISSING, where: Value = True,
    ) -> Value:  # fmt: skip
        """Return the array reduced by a ufunc along an axis, the first one by default."""
        keywords: dict[str, Value] = {"axis": axis, "keepdims": keepdims}
        if dtype is not None:
            keywords["dtype"] = dtype
        if initial is not MISSING:
            keywords["initial"] = initial
        if where is not True:
            keywords["where"] = where
        if out is not None:
            t.fail("call", f"np.{name}.reduce(out=...) is not understood")
        return t.call_library(f"numpy.{function}", [array], keywords)

    NUMPY.function(f"{name}.reduce")(reduce)


def _accumulated(name: str, function: str) -> None:
    def accumulate(t: Core, array: Value, axis: Value = 0, dtype: Value = None) -> Value:
        """Return the results of a ufunc over ever more elements of an axis."""
        return t.call_library(f"numpy.{function}", [array], {"axis": axis, "dtype": dtype})

    NUMPY.function(f"{name}.accumulate")(accumulate)


def _folded(name: str) -> None:
    def accumulate(t: Core, array: Value, axis: Value = 0, dtype: Value = None) -> Value:
        """Return the results of a ufunc over ever more elements of an axis."""
        x = to_array(t, array)
        x = x if dtype is None else cast(t, x, dtype_of(t, dtype, x.dtype))
        return run_own(t, programs.accumulate, [t.lift(getattr(np, name)), x, axis], {})

    NUMPY.function(f"{name}.accumulate")(accumulate)


def _reduced_at(name: str, function: str) -> None:
    def reduceat(t: Core, array: Value, indices: Value, axis: Value = 0) -> Value:
        """Return the reductions of the slices between places."""
        reduce = t.lift(getattr(np, function))
        return run_own(t, programs.reduceat, [reduce, t.wrap(array), t.wrap(indices), axis], {})

    NUMPY.function(f"{name}.reduceat")(reduceat)


def _outer(name: str) -> None:
    def outer(t: Core, A: Value, B: Value) -> Value:
        """Return a ufunc of each element of one array with each of another."""
        first, second = to_array(t, A), to_array(t, B)
        wide = [*shape_of(t, first), *([1] * len(shape_of(t, second)))]
        return elementwise(t, name, reshape(t, first, wide), second)

    NUMPY.function(f"{name}.outer")(outer)


for _name, _function in _REDUCED.items():
    _reduced(_name, _function)
for _name, _function in _ACCUMULATED.items():
    _accumulated(_name, _function)
for _name in _FOLDED:
    _folded(_name)
for _name, _function in _REDUCED.items():
    _reduced_at(_name, _function)
for _name, _program in _PROGRAMS.items():
    programmed(NUMPY, _name, _program)
for _name in _OUTER:
    _outer(_name)


@NUMPY.function("trapezoid", "trapz")
def trapezoid(t: Core, y: Value, x: Value = None, dx: Value = 1.0, axis: Value = -1) -> Value:
    """Return the integral along an axis of a function that is linear between its values."""
    values = to_array(t, y)
    rank = len(shape_of(t, values))
    place = checked_axis(t, axis, rank, values)
    before = (slice(None),) * place
    pair = [
        t.tables.tensor_item(t, values, (*before, part))
        for part in (slice(1, None), slice(None, -1))
    ]
    steps = dx
    if x is not None:
        places = to_array(t, x)
        lone = len(shape_of(t, places)) == 1
        steps = t.call_library("numpy.diff", [places], {"axis": 0 if lone else axis})
        if lone:
            wide: list[Dim] = [1] * rank
            wide[place] = shape_of(t, steps)[0]
            steps = reshape(t, steps, wide)
    area = elementwise(t, "multiply", steps, elementwise(t, "add", *pair))
    halves = elementwise(t, "divide", area, 2.0)
    return t.call_library("numpy.sum", [halves], {"axis": axis})


def _joined(t: Core, index: Value, *, columns: bool) -> Tensor:
    """Return the arrays, numbers and ranges of an index, joined as rows or as columns."""
    found, kinds = [], list[Any]()
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, slice):
            step = 1 if part.step is None else part.step
            bounds = [0 if part.start is None else part.start, part.stop, step]
            if isinstance(step, complex):
                t.fail("index", "np.r_ and np.c_ with a complex step are not understood")
            part = t.call_library("numpy.arange", bounds, {})
        if isinstance(part, str):
            t.fail("index", "np.r_ and np.c_ with directions as a text are not understood")
        made = to_array(t, part)
        kinds.append(weak(part) if is_number(part) else made.dtype.numpy())
        rank = len(shape_of(t, made))
        if rank == 0 or (columns and rank == 1):
            made = reshape(t, made, [-1, 1] if columns else [-1])
        found.append(made)
    place = len(shape_of(t, found[0])) - 1 if columns else 0
    dtype = ir.DataType.from_numpy(np.result_type(*kinds))
    return concatenated(t, found, place, dtype, "np.c_" if columns else "np.r_")


@NUMPY.function("r_.__getitem__")
def rows(t: Core, key: Value) -> Tensor:
    """Return arrays, numbers and ranges joined along the first axis."""
    return _joined(t, key, columns=False)


@NUMPY.function("c_.__getitem__")
def columns(t: Core, key: Value) -> Tensor:
    """Return arrays joined along the last axis, those of one axis as columns."""
    return _joined(t, key, columns=True)


def _range(t: Core, part: Value) -> Value:
    """Return the numbers of a slice; a step of ``5j`` asks for 5 of them, the end included."""
    if not isinstance(part, slice):
        t.fail("index", f"expected slices as in np.mgrid[:3, :4], got {t.show(part)}")
    start = 0 if part.start is None else part.start
    if isinstance(part.step, complex):
        return t.call_library("numpy.linspace", [start, part.stop, int(abs(part.step))], {})
    step = 1 if part.step is None else part.step
    return t.call_library("numpy.arange", [start, part.stop, step], {})


def _grid(t: Core, key: Value, *, sparse: bool) -> list[Value]:
    parts = key if isinstance(key, tuple) else (key,)
    axes = [to_array(t, _range(t, part)) for part in parts]
    dtype = np.result_type(*(axis.dtype.numpy() for axis in axes))
    axes = [cast(t, axis, ir.DataType.from_numpy(dtype)) for axis in axes]
    made = t.call_library("numpy.meshgrid", axes, {"indexing": "ij", "sparse": sparse})
    return t.sequence(made)  # type: ignore[return-value]


@NUMPY.function("mgrid.__getitem__")
def dense_grid(t: Core, key: Value) -> Value:
    """Return the coordinates of a grid, one array of them along the first axis for each slice."""
    grid = _grid(t, key, sparse=False)
    return t.call_library("numpy.stack", [tuple(grid)], {}) if isinstance(key, tuple) else grid[0]


@NUMPY.function("ogrid.__getitem__")
def open_grid(t: Core, key: Value) -> Value:
    """Return the coordinates of a grid, each of size 1 along the axes of the others."""
    grid = _grid(t, key, sparse=True)
    return tuple(grid) if isinstance(key, tuple) else grid[0]


@NUMPY.function("s_.__getitem__")
def index_expression(t: Core, item: Value) -> Value:
    """Return an index itself."""
    return item


@NUMPY.function("index_exp.__getitem__")
def index_tuple(t: Core, item: Value) -> Value:
    """Return an index as a tuple."""
    return item if isinstance(item, tuple) else (item,)


@NUMPY.function("logaddexp.reduce")
def log_sum_exp(
    t: Core, array: Value, axis: Value = 0, dtype: Value = None, out: Value = None,
    keepdims: Value = False, initial: Value = MISSING, where: Value = True,
) -> Value:  # fmt: skip
    """Return the logarithm of the sum of exponentials along an axis, the first one by default."""
    if dtype is not None or out is not None or initial is not MISSING or where is not True:
        t.fail("call", "np.logaddexp.reduce with more than 'axis' and 'keepdims'")

    def call(name: str, *arguments: Value, **keywords: Value) -> Value:
        return t.call_library(f"numpy.{name}", list(arguments), keywords)

    greatest = call("max", array, axis=axis, keepdims=True)
    offset = call("where", call("isfinite", greatest), greatest, 0.0)
    parts = call("exp", call("subtract", array, offset))
    total = call("log", call("sum", parts, axis=axis, keepdims=True))
    made = call("add", total, offset)
    return made if keepdims else call("squeeze", made, axis=axis)


def _over_axes(
    t: Core, name: str, a: Value, s: Value, axes: Value, norm: Value, last: str = ""
) -> Value:
    """Transform along several axes, the last one by another function (``last``) if there is one."""
    x = to_array(t, a)
    rank = len(shape_of(t, x))
    if axes is None:
        axes = tuple(range(-rank if s is None else -len(s), 0))
    counts = (None,) * len(axes) if s is None else tuple(s)
    if len(counts) != len(axes):
        t.fail("value", f"ValueError: expected as many sizes as axes ({len(axes)}), got {counts}")
    steps = [(name, n, axis) for n, axis in zip(counts, axes, strict=True)]
    if last:
        steps[-1] = (last, *steps[-1][1:])
    made: Value = x
    for own, n, axis in reversed(steps) if last != "irfft" else steps:
        made = t.call_library(f"numpy.fft.{own}", [made, n, axis, norm])
    return made


def _transforms(name: str, one: str, last: str) -> None:
    def of_two(
        t: Core, a: Value, s: Value = None, axes: Value = (-2, -1), norm: Value = None
    ) -> Value:
        return _over_axes(t, one, a, s, axes, norm, last)

    def of_all(t: Core, a: Value, s: Value = None, axes: Value = None, norm: Value = None) -> Value:
        return _over_axes(t, one, a, s, axes, norm, last)

    NUMPY.function(f"fft.{name}2")(of_two)
    NUMPY.function(f"fft.{name}n")(of_all)


_TRANSFORMS = {"fft": ("fft", ""), "ifft": ("ifft", ""), "rfft": ("fft", "rfft"),
               "irfft": ("ifft", "irfft")}  # fmt: skip
for _name, (_one, _last) in _TRANSFORMS.items():
    _transforms(_name, _one, _last)


@NUMPY.function("linalg.multi_dot")
def multi_dot(t: Core, arrays: Value, *, out: Value = None) -> Value:
    """Return the product of several matrices."""
    made, *rest = arrays
    for other in rest:
        made = t.call_library("numpy.dot", [made, other])
    return made


# All of them are composed of functions that have their values.
COMPOSED = frozenset(
    {
        *(f"numpy.{name}.reduce" for name in _REDUCED),
        *(f"numpy.{name}.accumulate" for name in (*_ACCUMULATED, *_FOLDED)),
        *(f"numpy.{name}.reduceat" for name in _REDUCED),
        *(f"numpy.{name}" for name in _PROGRAMS),
        *(f"numpy.{name}.outer" for name in _OUTER),
        *(
            f"numpy.{name}.__getitem__"
            for name in ("r_", "c_", "s_", "index_exp", "mgrid", "ogrid")
        ),
        *("numpy.trapezoid", "numpy.trapz", "numpy.logaddexp.reduce", "numpy.linalg.multi_dot"),
    }
)
