"""Functions of NumPy that make arrays."""

from __future__ import annotations

import ast
import math
import numbers
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.numpy.operands import (
    BOOL,
    DOUBLE,
    INT64,
    KIND,
    MAX_CONTENT,
    broadcast_shape,
    cast,
    dtype_of,
    holds_text,
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
from hagane.frontends.python.values.memory import lies_in_order, note_contiguous
from hagane.frontends.python.values.values import (
    DType,
    Host,
    Tensor,
    Value,
    is_plain,
    is_size,
)
from hagane.ops.builder import op
from hagane.ops.functions.numbers import special
from hagane.ops.functions.tensors import filling, parts
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
    if known is not None or dtype.numpy().kind == "c" or any(n < 0 for n in counts):
        return new(t, dtype, shape, known)
    return built(t, (dtype, tuple(shape)), filling.filled, shape, value or 0, dtype)


def made(
    t: Core, dtype: ir.DataType, shape: Sequence[Dim], content: Callable[[], Any],
    function: Callable[..., Any], *operands: Any,
) -> Tensor:  # fmt: skip
    """Return an array of numbers by position: known while it is small, else computed.

    Args:
        t: The interpreter.
        dtype: Its element type.
        shape: Its shape.
        content: Gives its content, asked for where all sizes are known and small.
        function: The function over the builder that computes it.
        operands: Its arguments.
    """
    counts = [n for n in shape if isinstance(n, int)]
    if len(counts) == len(shape) and math.prod(counts) <= MAX_CONTENT:
        return new(t, dtype, shape, np.asarray(content()).astype(dtype.numpy()))
    return built(t, (dtype, tuple(shape)), function, *operands)


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
    if made.dtype.numpy().kind == "c":
        return made
    return _spread(t, cast(t, value, made.dtype), shape_of(t, made))


def _spread(t: Core, value: Tensor, shape: tuple[Dim, ...]) -> Tensor:
    """Return a value that fills a shape."""
    sizes_ = list(shape)
    return built(t, (value.dtype, shape), lambda x: op("Expand", x, sizes_), value)


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
    wanted = dtype_of(t, dtype, x.dtype)
    value = to_array(t, fill_value, wanted if is_number(fill_value) else None)
    if wanted.numpy().kind == "c" or value.dtype.numpy().kind == "c":
        return new(t, wanted, counts)
    return _spread(t, cast(t, value, wanted), tuple(counts))


@NUMPY.function("asarray", "asanyarray")
def asarray(t: Core, a: Value, dtype: Value = None, *_: Value, **keywords: Value) -> Value:
    """Return content as an array: an array of the element type asked for is returned itself."""
    made = array(t, a, dtype, **keywords)
    copies = keywords.get("copy") is True or t.tables.is_scalar(a)
    alike = isinstance(a, Tensor) and a.kind == KIND and not copies
    return a if alike and made.value is a.value else made


@NUMPY.function("array", "copy")
def array(
    t: Core, a: Value, dtype: Value = None, *_: Value, ndmin: Value = 0, **__: Value
) -> Value:
    """Return content as an array: numbers, nested lists, arrays."""
    if dtype is None and holds_text(a):
        return t.outside("an array of texts")
    if isinstance(a, str | dict) or a is None:
        t.fail("type", f"expected numbers or arrays, got {t.show(t.wrap(a))}")
    wanted = None if dtype is None else dtype_of(t, dtype, DOUBLE)
    if isinstance(a, Tensor) and a.kind == "torch.Tensor":
        a = t.tables.call_method(t, "torch.Tensor.numpy", [a], {})
    made = to_array(t, a, wanted)
    if wanted is not None:
        made = cast(t, made, wanted)
    if made is a:
        made = a.seen_as(KIND)
    if isinstance(ndmin, int) and made.shape is not None and len(made.shape) < ndmin:
        shape = (*[1] * (ndmin - len(made.shape)), *made.shape)
        made = typed(t, "Reshape", [made], made.dtype, shape, None,
                     lambda x: parts.resized(x, shape))  # fmt: skip
    return made


@NUMPY.function("ascontiguousarray", "asfortranarray")
def ascontiguousarray(t: Core, a: Value, dtype: Value = None, **keywords: Value) -> Value:
    """Return content as an array of one axis or more."""
    made = array(t, a, dtype, ndmin=1, **keywords)
    if isinstance(made, Tensor) and t.emit.builds and not lies_in_order(made.value):
        made = t.op("Identity", made)
        note_contiguous(made.value)
    return made


@NUMPY.function("ndarray")
def ndarray(t: Core, shape: Value, dtype: Value = None, *_: Value, **__: Value) -> Tensor:
    """Return an array that holds anything."""
    return new(t, dtype_of(t, dtype, DOUBLE), sizes(t, shape))


@NUMPY.function("arange")
def arange(
    t: Core, *bounds: Value, start: Value = None, stop: Value = None, step: Value = None,
    dtype: Value = None, **keywords: Value,
) -> Tensor:  # fmt: skip
    """Return the numbers from start to stop (exclusive).

    One number is the stop, by position or by name; with a stop by name it is the start.
    """
    if len(bounds) > 3:
        *bounds, dtype = bounds  # type: ignore[assignment]
    first, last, by = (*bounds, None, None, None)[:3]
    start, stop, step = (
        named if place is None else place
        for named, place in ((start, first), (stop, last), (step, by))
    )
    if stop is None and (bounds or start is None):
        start, stop = None, start
    if stop is None:
        t.fail("call", "TypeError: arange() requires stop to be specified")
    given = [x for x in (start, stop, step) if x is not None]
    begin, added = 0 if start is None else start, 1 if step is None else step
    start, stop, step = (
        t.tensor_number(b, whole=b.dtype.is_integer()) if isinstance(b, Tensor) else b
        for b in (0 if start is None else start, stop, 1 if step is None else step)
    )
    for value in (start, stop, step):
        if not is_number(value):
            t.fail("type", f"expected numbers, got {t.show(t.wrap(value))}")
    wanted = dtype_of(t, dtype, promoted(t, [*given, t.emit.new(INT64, (1,))]))
    if all(map(is_plain, (start, stop, step))):
        if step == 0:
            t.fail("value", "ZeroDivisionError: the step is zero")
        try:
            known = np.arange(start, stop, step, dtype=wanted.numpy())
        except (TypeError, ValueError, OverflowError) as error:
            t.fail("value", f"{type(error).__name__}: {error}")
        return new(t, wanted, (len(known),), known)
    if all(map(is_size, (start, stop, step))):
        if isinstance(step, int) and step < 0:
            length = ceildiv(start - stop, -step)
        else:
            length = ceildiv(stop - start, step)
        count_ = _not_negative(t, length)
        return built(t, (wanted, (count_,)), filling.counted, start, count_, step, wanted)
    if t.emit.builds and wanted.is_floating_point():
        return _stepping(t, (start, stop, step), t.binary(ast.Add, begin, added), wanted)
    first, last, by = exact(start), exact(stop), exact(step)
    count: Dim | None = None
    if first is not None and last is not None and by is not None and not isinstance(by, Expr):
        from fractions import Fraction

        count = round_up(multiply(last - first, 1 / Fraction(by))) if by > 0 else None
    return new(t, wanted, (t.emit.fresh("arange") if count is None else count,))


def _stepping(t: Core, numbers: Sequence[Value], second: Value, wanted: ir.DataType) -> Tensor:
    """Return numbers from start to stop (exclusive) by a step, whose count the data decide.

    The second number follows in the type of Python's sum, as NumPy computes it.
    """
    start, stop, step, after = (
        to_array(t, v, DOUBLE) if is_plain(v)
        else cast(t, v, DOUBLE) if isinstance(v, Tensor) else t.emit.real_tensor(v)
        for v in (*numbers, second)
    )  # fmt: skip
    found = built(t, (INT64, ()), lambda a, b, c: op(
        "Cast", op("Max", op("Ceil", op("Div", op("Sub", b, a), c)), np.float64(0)), to=INT64
    ), start, stop, step)  # fmt: skip
    count = t.tensor_number(found, whole=True)
    assert isinstance(count, int | Expr)
    return built(
        t, (wanted, (_not_negative(t, count),)), filling.stepping, start, after, count, wanted
    )


def _not_negative(t: Core, length: Dim) -> Dim:
    if not isinstance(length, Expr):
        return max(0, length)
    found = t.knowledge.ask(t.knowledge.less(0, length, strict=False))
    return length if found.verdict is Verdict.PROVED else maximum(0, length)


@NUMPY.function("logspace", "geomspace")
def logspace(
    t: Core, start: Value, stop: Value, num: Value = 50, endpoint: Value = True, *_: Value,
    dtype: Value = None, axis: Value = 0, **other: Value,
) -> Value:  # fmt: skip
    """Return ``num`` numbers whose logarithms are at equal distances."""
    given = (start, stop, num, endpoint)
    name = t.emit.label.rpartition(".")[2]
    if all(map(is_plain, given)) and name in ("logspace", "geomspace") and not other and not _:
        wanted = dtype_of(t, dtype, DOUBLE)
        known = getattr(np, name)(*given)
        return new(t, wanted, known.shape, known.astype(wanted.numpy()))
    return linspace(t, start, stop, num, endpoint, dtype=dtype, axis=axis, retstep=None)


@NUMPY.function("linspace")
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
    wanted = dtype_of(t, dtype, default)
    bounds = [cast(t, x, default) for x in arrays]
    if retstep:
        found = linspace(t, start, stop, num, endpoint, dtype=dtype, axis=axis)
        return found, _step(t, default, arrays, num, endpoint)
    if axis != 0 or retstep is not False or wanted.numpy().kind == "c":
        return new(t, wanted, shape)
    if all(is_plain(v) for v in (start, stop, num)):
        whole = bool(endpoint)
        return made(
            t, wanted, shape, lambda: np.linspace(start, stop, num, whole, dtype=wanted.numpy()),
            filling.stepped_as, *(np.array(v, np.float64) for v in (start, stop)), shape[0], wanted,
            whole,
        )  # fmt: skip
    return built(t, (wanted, shape), filling.stepped_as, *bounds, shape[0], wanted, bool(endpoint))


def _step(
    t: Core, dtype: ir.DataType, bounds: Sequence[Tensor], num: Value, endpoint: Value
) -> Value:
    """Return the distance of neighbours in ``linspace``, NaN of a single number."""
    if not is_plain(num) or dtype.numpy().kind == "c":
        return new(t, dtype, broadcast_shape(t, *bounds))
    apart = num - bool(endpoint)
    if apart <= 0:
        return filled(t, dtype, list(broadcast_shape(t, *bounds)), math.nan)
    start, stop = (cast(t, x, dtype) for x in bounds)
    whole = t.binary(ast.Sub, stop, start)
    return t.binary(ast.Div, whole, apart)


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

    left = _numpy_type(t, arg1)
    if isinstance(arg2, Library):
        return bool(np.issubdtype(left, getattr(np, arg2.name.rpartition(".")[2])))
    return bool(np.issubdtype(left, _numpy_type(t, arg2)))


def _numpy_type(t: Core, value: Value) -> Any:
    """Return the element type that an argument names, those of texts among them."""
    if isinstance(value, str):
        try:
            return np.dtype(value)
        except TypeError as error:
            t.fail("value", f"TypeError: {error}")
    return dtype_of(t, value, DOUBLE).numpy()


@NUMPY.function("can_cast")
def can_cast(t: Core, from_: Value, to: Value, casting: Value = "safe") -> Value:
    """Return whether one element type can become another."""
    left = from_.dtype.numpy() if isinstance(from_, Tensor) else _numpy_type(t, from_)
    return bool(np.can_cast(left, _numpy_type(t, to), casting))


@NUMPY.function("isscalar")
def isscalar(t: Core, element: Value) -> Value:
    """Return whether a value is a number."""
    scalar = t.emit.builds and t.tables.is_scalar(element)
    if scalar or is_number(element) or isinstance(element, str | bytes):
        return True
    return bool(t.tables.is_instance(t, element, Host(numbers.Number)))


def _window(name: str, coefficients: tuple[float, ...]) -> None:
    def function(t: Core, M: Value) -> Tensor:
        count = size(t, M)
        if not isinstance(count, int):
            return new(t, DOUBLE, (count,))
        return made(
            t, DOUBLE, (count,), lambda: getattr(np, name)(count), special.cosine_window, count,
            max(count - 1, 1), coefficients, DOUBLE,
        )  # fmt: skip

    NUMPY.function(name)(function)


_window("hanning", (0.5, -0.5))
_window("hamming", (0.54, -0.46))
_window("blackman", (0.42, -0.5, 0.08))


@NUMPY.function("bartlett")
def bartlett(t: Core, M: Value) -> Tensor:
    """Return a triangular window of ``M`` points."""
    count = size(t, M)
    if not isinstance(count, int):
        return new(t, DOUBLE, (count,))
    return made(t, DOUBLE, (count,), lambda: np.bartlett(count), special.triangular_window, count)


def _transform(name: str) -> None:
    def fft(t: Core, a: Value, n: Value = None, axis: Value = -1, norm: Value = None) -> Tensor:
        """Return a Fourier transform along an axis."""
        from hagane.frontends.libraries.numpy.operands import axis as checked

        x = to_array(t, a)
        shape = list(shape_of(t, x))
        place = checked(t, axis, len(shape), x)
        count = shape[place] if n is None else size(t, n)
        single = x.dtype in (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.COMPLEX64)
        dtype = ir.DataType.COMPLEX64 if single else ir.DataType.COMPLEX128
        if name in ("rfft", "ihfft"):
            count = floordiv(count, 2) + 1
        elif name in ("irfft", "hfft"):
            count = (count - 1) * 2 if n is None else count
            dtype = ir.DataType.FLOAT if single else DOUBLE
        shape[place] = count
        return typed(t, "DFT", [x], dtype, tuple(shape))

    NUMPY.function(f"fft.{name}")(fft)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _transform(_name)


def scalar(t: Core, dtype: ir.DataType, value: Value) -> Tensor:
    """Return ``numpy.float32(value)``: an array without axes, or one cast."""
    if isinstance(value, str):
        return new(t, dtype, ())
    return cast(t, to_array(t, value, dtype if is_number(value) else None), dtype)


@cache
def _scalar(dtype: ir.DataType) -> Callable[..., Tensor]:
    """Return the function behind all names of a scalar type: ``numpy.intc``, ``numpy.int32``."""

    def function(t: Core, value: Value = 0) -> Tensor:
        return scalar(t, dtype, value)

    return function


for _name, _value in list(NUMPY.constants.items()):
    if isinstance(_value, DType):
        NUMPY.function(_name.partition(".")[2])(_scalar(_value.dtype))

__all__ = ["BOOL", "arange", "filled", "made", "scalar"]
