"""Functions of NumPy that make arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.numpy.operands import (
    BOOL,
    DOUBLE,
    INT64,
    KIND,
    MAX_CONTENT,
    broadcast_shape,
    cast,
    dtype_of,
    is_number,
    new,
    promoted,
    shape_of,
    size,
    sizes,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.arithmetic import exact, round_up
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import DType, Host, Tensor, Value, is_plain, is_size
from hagane.symbolic import Dim, Expr, ceildiv, floordiv, maximum
from hagane.symbolic.expression import multiply
from hagane.symbolic.path import Verdict

_FILL = {"zeros": 0, "ones": 1, "empty": None, "full": None}


def filled(t: Core, dtype: ir.DataType, shape: list[Dim], value: Any) -> Tensor:
    """Return an array full of one number, whose content is known while it is small."""
    known = None
    counts = [n for n in shape if isinstance(n, int)]
    fits = len(counts) == len(shape) and min(counts, default=0) >= 0
    if value is not None and fits and math.prod(counts) <= MAX_CONTENT:
        known = np.full(counts, value, dtype=dtype.numpy())
    if known is None and value is not None and t.emit.builds:
        return spread(t, t.emit.constant(np.array(value, dtype.numpy())), dtype, shape)
    return new(t, dtype, shape, known)


def spread(t: Core, value: Tensor, dtype: ir.DataType, shape: list[Dim]) -> Tensor:
    """Return an array full of the only element of a tensor."""
    made: Tensor = t.op(
        "Expand", t.op("Cast", value, to=dtype), t.emit.constant(shape, INT64), kind=KIND
    )
    t.emit.show_sizes(made, tuple(shape))
    return made


def _filler(name: str) -> None:
    value = _FILL[name]

    def function(
        t: Core, shape: Value, dtype: Value = None, order: Value = "C", **_: Value
    ) -> Tensor:
        return filled(t, dtype_of(t, dtype, DOUBLE), sizes(t, shape), value)

    def like(
        t: Core, a: Value, dtype: Value = None, order: Value = "K", subok: Value = True,
        shape: Value = None, **_: Value,
    ) -> Tensor:  # fmt: skip
        x = to_array(t, a)
        if x.shape is None and shape is None:
            return t.emit.typed("FillLike", [x], dtype_of(t, dtype, x.dtype), None)
        counts = list(shape_of(t, x)) if shape is None else sizes(t, shape)
        return filled(t, dtype_of(t, dtype, x.dtype), counts, value)

    NUMPY.function(name)(function)
    NUMPY.function(f"{name}_like")(like)


for _name in ("zeros", "ones", "empty"):
    _filler(_name)


@NUMPY.function("full")
def full(
    t: Core, shape: Value, fill_value: Value, dtype: Value = None, order: Value = "C", **_: Value
) -> Tensor:
    """Return an array full of one value, which gives the element type."""
    value = to_array(t, fill_value)
    made = new(t, dtype_of(t, dtype, value.dtype), sizes(t, shape))
    _check_fits(t, value, made)
    if isinstance(fill_value, int | float) and all(isinstance(n, int) for n in shape_of(t, made)):
        return filled(t, made.dtype, list(shape_of(t, made)), fill_value)
    if t.emit.builds:
        return spread(t, value, made.dtype, list(shape_of(t, made)))
    return made


def _check_fits(t: Core, value: Tensor, made: Tensor) -> None:
    if value.shape != ():
        both = broadcast_shape(t, value, made)
        if len(both) != len(shape_of(t, made)):
            t.fail("shape-mismatch", f"{t.show(value)} does not fill {t.show(made)}", value)


@NUMPY.function("full_like")
def full_like(t: Core, a: Value, fill_value: Value, dtype: Value = None, *_: Value,
              shape: Value = None, **__: Value) -> Tensor:  # fmt: skip
    """Return an array like another, full of one value."""
    x = to_array(t, a)
    counts = list(shape_of(t, x)) if shape is None else sizes(t, shape)
    made = dtype_of(t, dtype, x.dtype)
    return (
        spread(t, to_array(t, fill_value), made, counts) if t.emit.builds else new(t, made, counts)
    )


@NUMPY.function("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "copy")
def array(
    t: Core, a: Value, dtype: Value = None, *_: Value, ndmin: Value = 0, **__: Value
) -> Tensor:
    """Return content as an array: numbers, nested lists, arrays."""
    if isinstance(a, str | dict) or a is None:
        t.fail("type", f"expected numbers or arrays, got {t.show(t.wrap(a))}")
    wanted = None if dtype is None else dtype_of(t, dtype, DOUBLE)
    made = to_array(t, a, wanted)
    if wanted is not None:
        made = cast(t, made, wanted)
    if made is a:
        made = a.seen_as(KIND)
    if isinstance(ndmin, int) and made.shape is not None and len(made.shape) < ndmin:
        shape = (*[1] * (ndmin - len(made.shape)), *made.shape)
        made = typed(t, "Reshape", [made], made.dtype, shape)
    return made


@NUMPY.function("ndarray")
def ndarray(t: Core, shape: Value, dtype: Value = None, *_: Value, **__: Value) -> Tensor:
    """Return an array that holds anything."""
    return new(t, dtype_of(t, dtype, DOUBLE), sizes(t, shape))


@NUMPY.function("arange")
def arange(t: Core, *bounds: Value, dtype: Value = None, **keywords: Value) -> Tensor:
    """Return the numbers from start to stop (exclusive)."""
    given = [*bounds, *(keywords[k] for k in ("start", "stop", "step") if k in keywords)]
    if len(given) > 3:
        dtype = given.pop()
    if not given:
        t.fail("call", "arange() requires stop to be specified")
    values = [
        t.tensor_number(b, whole=b.dtype.is_integer()) if isinstance(b, Tensor) else b
        for b in given
    ]
    for value in values:
        if not is_number(value):
            t.fail("type", f"expected numbers, got {t.show(t.wrap(value))}")
    start, stop, step = (0, values[0], 1) if len(values) == 1 else (*values, 1)[:3]
    wanted = dtype_of(t, dtype, promoted(t, given))
    if all(map(is_plain, (start, stop, step))):
        if step == 0:
            t.fail("value", "ZeroDivisionError: the step is zero")
        known = np.arange(start, stop, step)
        return new(t, wanted, (len(known),), known.astype(wanted.numpy()))
    if all(map(is_size, (start, stop, step))):
        if isinstance(step, int) and step < 0:
            length = ceildiv(start - stop, -step)
        else:
            length = ceildiv(stop - start, step)
        return new(t, wanted, (_not_negative(t, length),))
    first, last, by = exact(start), exact(stop), exact(step)
    count: Dim | None = None
    if first is not None and last is not None and by is not None and not isinstance(by, Expr):
        from fractions import Fraction

        count = round_up(multiply(last - first, 1 / Fraction(by))) if by > 0 else None
    return new(t, wanted, (t.emit.fresh("arange") if count is None else count,))


def _not_negative(t: Core, length: Dim) -> Dim:
    if not isinstance(length, Expr):
        return max(0, length)
    found = t.knowledge.ask(t.knowledge.less(0, length, strict=False))
    return length if found.verdict is Verdict.PROVED else maximum(0, length)


@NUMPY.function("linspace", "logspace", "geomspace")
def linspace(
    t: Core, start: Value, stop: Value, num: Value = 50, endpoint: Value = True, *_: Value,
    retstep: Value = False, dtype: Value = None, axis: Value = 0, **__: Value,
) -> Value:  # fmt: skip
    """Return ``num`` numbers from start to stop along a new first axis."""
    parts = [v if is_number(v) else to_array(t, v) for v in (start, stop)]
    arrays = [to_array(t, v) for v in parts]
    default = promoted(t, [*parts, 0.0])
    default = DOUBLE if not any(isinstance(v, Tensor) for v in parts) else default
    shape = (size(t, num), *broadcast_shape(t, *arrays))
    made = new(t, dtype_of(t, dtype, default), shape)
    return (made, t.emit.new(DOUBLE, (), kind=KIND)) if retstep else made


@NUMPY.function("eye", "identity")
def eye(
    t: Core, N: Value, M: Value = None, k: Value = 0, dtype: Value = None, **_: Value
) -> Tensor:
    """Return an identity matrix."""
    if isinstance(M, DType | Host | str):  # identity(n, dtype)
        M, dtype = None, M
    rows = size(t, N)
    made, shape = dtype_of(t, dtype, DOUBLE), [rows, rows if M is None else size(t, M)]
    if not t.emit.builds:
        return new(t, made, tuple(shape))
    zeros = spread(t, t.emit.constant(np.array(0)), made, shape)
    return t.op("EyeLike", zeros, dtype=made, k=k)


@NUMPY.function("tri")
def tri(t: Core, N: Value, M: Value = None, k: Value = 0, dtype: Value = None) -> Tensor:
    """Return a triangle of ones."""
    rows = size(t, N)
    return new(t, dtype_of(t, dtype, DOUBLE), (rows, rows if M is None else size(t, M)))


@NUMPY.function("tril", "triu")
def tril(t: Core, m: Value, k: Value = 0) -> Tensor:
    """Return a triangle of the last two axes."""
    x = to_array(t, m)
    shape = shape_of(t, x)
    if not shape:
        t.fail("rank", f"expected at least one axis, got {t.show(x)}", x)
    if len(shape) == 1:
        shape = (*shape, *shape)
    return typed(t, "Trilu", [x], x.dtype, shape)


@NUMPY.function("diag")
def diag(t: Core, v: Value, k: Value = 0) -> Tensor:
    """Return the diagonal of a matrix, or a matrix with a diagonal."""
    x = to_array(t, v)
    shape = shape_of(t, x)
    if len(shape) not in (1, 2):
        t.fail("rank", f"expected one or two axes, got {t.show(x)}", x)
    if len(shape) == 1:
        side = shape[0] + (abs(k) if isinstance(k, int) else t.emit.fresh("diagonal"))
        return typed(t, "Diag", [x], x.dtype, (side, side))
    return typed(t, "Diag", [x], x.dtype, (_diagonal(t, shape[0], shape[1], k),))


def _diagonal(t: Core, rows: Dim, columns: Dim, offset: Value) -> Dim:
    from hagane.symbolic import minimum

    if not isinstance(offset, int):
        return t.emit.fresh("diagonal")
    rows, columns = (rows, columns - offset) if offset >= 0 else (rows + offset, columns)
    return maximum(0, minimum(rows, columns))


@NUMPY.function("diagonal", "linalg.diagonal", methods=("diagonal",))
def diagonal(t: Core, a: Value, offset: Value = 0, axis1: Value = 0, axis2: Value = 1) -> Tensor:
    """Return a diagonal of two axes as a new last axis."""
    from hagane.frontends.libraries.numpy.operands import axis

    x = to_array(t, a)
    shape = shape_of(t, x)
    first, second = axis(t, axis1, len(shape), x), axis(t, axis2, len(shape), x)
    if first == second:
        t.fail("axis", f"axis1 and axis2 cannot be the same: {t.show(x)}", x)
    rest = tuple(n for i, n in enumerate(shape) if i not in (first, second))
    count = _diagonal(t, shape[first], shape[second], offset)
    return typed(t, "Diagonal", [x], x.dtype, (*rest, count))


@NUMPY.function("diagflat")
def diagflat(t: Core, v: Value, k: Value = 0) -> Tensor:
    """Return a matrix with the flattened input on its diagonal."""
    from hagane.frontends.libraries.numpy.operands import elements

    x = to_array(t, v)
    side = elements(t, x) + (abs(k) if isinstance(k, int) else t.emit.fresh("diagonal"))
    return typed(t, "Diag", [x], x.dtype, (side, side))


@NUMPY.function("meshgrid")
def meshgrid(
    t: Core, *xi: Value, indexing: Value = "xy", sparse: Value = False, **_: Value
) -> Value:
    """Return coordinates of a grid over one-dimensional arrays."""
    arrays = [to_array(t, x) for x in xi]
    counts: list[Dim] = []
    for x in arrays:
        shape = shape_of(t, x)
        counts.append(1 if not shape else _flat(shape))
    order = list(range(len(counts)))
    if indexing == "xy" and len(counts) > 1:
        order[0], order[1] = 1, 0
    grids = []
    for place, x in enumerate(arrays):
        full = [counts[i] if not sparse or i == place else 1 for i in order]
        grids.append(typed(t, "MeshGrid", [x], x.dtype, tuple(full)))
    return tuple(grids)


def _flat(shape: tuple[Dim, ...]) -> Dim:
    from hagane.symbolic import product

    return product(shape)


@NUMPY.function("indices")
def indices(t: Core, dimensions: Value, dtype: Value = None, sparse: Value = False) -> Tensor:
    """Return the coordinates of a grid in one array."""
    counts = sizes(t, dimensions)
    return new(t, dtype_of(t, dtype, INT64), (len(counts), *counts))


@NUMPY.function("tril_indices", "triu_indices")
def tril_indices(t: Core, n: Value, k: Value = 0, m: Value = None) -> Value:
    """Return the places of a triangle as two arrays."""
    count = t.emit.fresh("triangle")
    return tuple(new(t, INT64, (count,)) for _ in range(2))


@NUMPY.function("dtype")
def dtype(t: Core, dtype: Value, *_: Value, **__: Value) -> Value:
    """Return an element type."""
    return DType(dtype_of(t, dtype, DOUBLE), "numpy")


@NUMPY.function("finfo", "iinfo")
def finfo(t: Core, dtype: Value) -> Value:
    """Return the limits of an element type."""
    found = dtype.dtype if isinstance(dtype, Tensor) else dtype_of(t, dtype, DOUBLE)
    return Host(np.iinfo(found.numpy()) if found.is_integer() else np.finfo(found.numpy()))


@NUMPY.function("result_type", "promote_types")
def result_type(t: Core, *arrays_and_dtypes: Value) -> Value:
    """Return the element type that operands promote to."""
    values = [
        new(t, dtype_of(t, v, DOUBLE), ()) if isinstance(v, DType | Host | str) else v
        for v in arrays_and_dtypes
    ]
    return DType(promoted(t, values), "numpy")


@NUMPY.function("issubdtype")
def issubdtype(t: Core, arg1: Value, arg2: Value) -> Value:
    """Return whether an element type is of a kind."""
    from hagane.frontends.python.values.values import Library

    left = dtype_of(t, arg1, DOUBLE).numpy()
    if isinstance(arg2, Library):
        return bool(np.issubdtype(left, getattr(np, arg2.name.rpartition(".")[2])))
    return bool(np.issubdtype(left, dtype_of(t, arg2, DOUBLE).numpy()))


@NUMPY.function("can_cast")
def can_cast(t: Core, from_: Value, to: Value, casting: Value = "safe") -> Value:
    """Return whether one element type can become another."""
    left = from_.dtype if isinstance(from_, Tensor) else dtype_of(t, from_, DOUBLE)
    return bool(np.can_cast(left.numpy(), dtype_of(t, to, DOUBLE).numpy(), casting))


@NUMPY.function("isscalar")
def isscalar(t: Core, element: Value) -> Value:
    """Return whether a value is a number."""
    return is_number(element) or isinstance(element, str)


@NUMPY.function("hanning", "hamming", "blackman", "bartlett")
def window(t: Core, M: Value) -> Tensor:
    """Return a window of ``M`` points."""
    return new(t, DOUBLE, (size(t, M),))


@NUMPY.function("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft")
def fft(t: Core, a: Value, n: Value = None, axis: Value = -1, norm: Value = None) -> Tensor:
    """Return a Fourier transform along an axis."""
    from hagane.frontends.libraries.numpy.operands import axis as checked

    x = to_array(t, a)
    shape = list(shape_of(t, x))
    place = checked(t, axis, len(shape), x)
    name = t.emit.label.rpartition(".")[2]
    count = shape[place] if n is None else size(t, n)
    single = x.dtype in (ir.DataType.FLOAT, ir.DataType.COMPLEX64)
    dtype = ir.DataType.COMPLEX64 if single else ir.DataType.COMPLEX128
    if name == "rfft":
        count = floordiv(count, 2) + 1
    elif name == "irfft":
        count = (count - 1) * 2 if n is None else count
        dtype = ir.DataType.FLOAT if single else DOUBLE
    shape[place] = count
    return typed(t, "DFT", [x], dtype, tuple(shape))


def scalar(t: Core, dtype: ir.DataType, value: Value) -> Tensor:
    """Return ``numpy.float32(value)``: an array without axes, or one cast."""
    if isinstance(value, str):
        return new(t, dtype, ())
    return cast(t, to_array(t, value, dtype if is_number(value) else None), dtype)


def _scalar(name: str, dtype: ir.DataType) -> None:
    def function(t: Core, value: Value = 0) -> Tensor:
        return scalar(t, dtype, value)

    NUMPY.function(name)(function)


for _name, _value in list(NUMPY.constants.items()):
    if isinstance(_value, DType):
        _scalar(_name.partition(".")[2], _value.dtype)

__all__ = ["BOOL", "arange", "filled", "scalar"]
