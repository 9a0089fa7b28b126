"""NumPy's treatment of operands before it computes: element types, axes, sizes, content."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built, zero_is_a_size
from hagane.frontends.libraries.numpy.table import DTYPES, NUMPY
from hagane.frontends.libraries.stacking import listed_array, row_of
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import OPEN, CheckError
from hagane.frontends.python.values.content import as_array
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.printing import show_dims
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DType,
    Host,
    Library,
    Many,
    Range,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
    alternatives,
    is_size,
)
from hagane.ops.builder import op
from hagane.symbolic import Dim, Expr, product

BOOL, INT64, FLOAT, DOUBLE = (
    ir.DataType.BOOL,
    ir.DataType.INT64,
    ir.DataType.FLOAT,
    ir.DataType.DOUBLE,
)
KIND = "numpy.ndarray"
MAX_CONTENT = 256
_PYTHON_TYPES = {int: INT64, float: DOUBLE, bool: BOOL, complex: ir.DataType.COMPLEX128}
# An operator exists for these in ``ops/``; others only have their type.
FLOATS = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)


def is_number(value: Value) -> bool:
    """Whether ``value`` is a number of Python, known or not."""
    return isinstance(value, int | float | complex | Expr | Real | Truth)


def weak(value: Value) -> Any:
    """Return a number of the type that an unknown number of Python has."""
    if isinstance(value, bool | Truth):
        return False
    if isinstance(value, complex):
        return 0j
    return 0 if is_size(value) else 0.0


def dtype_of(t: Core, value: Value, default: ir.DataType) -> ir.DataType:
    """Return the element type that an argument ``dtype`` names."""
    if value is None:
        return default
    if isinstance(value, DType):
        return value.dtype
    if isinstance(value, Library):
        value = NUMPY.constants.get(value.name, value)
        if isinstance(value, DType):
            return value.dtype
    if isinstance(value, Host) and isinstance(value.object, type) and value.object in _PYTHON_TYPES:
        return _PYTHON_TYPES[value.object]
    if isinstance(value, Host) and value.object in (str, bytes, object):
        t.fail(OPEN, f"an array whose items are of the class '{value.object.__name__}'")
    if isinstance(value, str):
        if value in DTYPES:
            return DTYPES[value]
        try:
            return ir.DataType.from_numpy(np.dtype(value))
        except TypeError as error:
            t.fail("value", f"TypeError: {error}")
    t.fail("type", f"expected an element type, got {t.show(t.wrap(value))}")
    return None


def promoted(t: Core, values: Sequence[Value]) -> ir.DataType:
    """Return the common element type (``numpy.result_type``); numbers of Python are weak."""
    parts = [v.dtype.numpy() if isinstance(v, Tensor) else weak(v) for v in values]
    try:
        found = _result_types(t, values, parts)
    except TypeError as error:
        t.fail("dtype-mismatch", str(error), *[v for v in values if isinstance(v, Tensor)])
    return ir.DataType.from_numpy(agreed(t, values, found))


def readings(
    t: Core, values: Sequence[Value], own: Sequence[Any], whole: Any = 0
) -> Iterator[Sequence[Any]]:
    """Yield the types that values have together, on each path that the data may take.

    Args:
        t: The interpreter.
        values: Arrays and numbers.
        own: What NumPy is to be asked about each, as if it had its own type.
        whole: What it is to be asked about an integer of Python.
    """
    return itertools.product(*_choices(t, values, own, whole))


def _choices(t: Core, values: Sequence[Value], own: Sequence[Any], whole: Any) -> list[list[Any]]:
    """Return the types that each value may have, its own first."""
    return [
        [mine, *(k.numpy() if isinstance(k, ir.DataType) else whole for k in t.emit.also(value))]
        for value, mine in zip(values, own, strict=True)
    ]


def _result_types(
    t: Core, values: Sequence[Value], own: Sequence[Any], whole: Any = 0
) -> list[Any]:
    """Return the common types of values on each path that the data may take, the own ones' first.

    Of many values that may be of several types, it matters which types there are together.
    """
    sets: dict[tuple[Any, ...], tuple[Any, ...]] = {(): ()}
    for choice in _choices(t, values, own, whole):
        longer: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for key, types in sets.items():
            for one in choice:
                name = f"{type(one).__name__} {one}"
                if name in key:
                    longer.setdefault(key, types)
                else:
                    longer.setdefault(tuple(sorted((*key, name))), (*types, one))
        sets = longer
    return [np.result_type(*types) for types in sets.values()]


def agreed(t: Core, values: Sequence[Value], found: Sequence[Any]) -> Any:
    """Return the one result of all readings.

    Raises:
        CheckError: The data decide which it is.
    """
    if all(one == found[0] for one in found):
        return found[0]
    mixed = next(value for value in values if t.emit.also(value))
    kinds = [k.numpy().name if isinstance(k, ir.DataType) else "int" for k in t.emit.also(mixed)]
    own = "float" if isinstance(mixed, Real) else "int"
    names = " or ".join((own, *sorted(set(kinds))))
    t.fail(
        "dtype-mismatch",
        f"the data decide whether a number is of type {names}, and so which element type the "
        f"result has; give it one type on all paths, as in {own}(x)",
        *[value for value in values if isinstance(value, Tensor)],
    )
    return None


def new(t: Core, dtype: ir.DataType, shape: Sequence[Dim], known: Any = None) -> Tensor:
    """Return an array that nothing in the program made it from; small content is kept."""
    for size in shape:
        if isinstance(size, int) and size < 0:
            t.fail("value", f"ValueError: negative dimensions are not allowed: {size}")
    if known is not None and np.size(known) > MAX_CONTENT:
        content = np.asarray(known)
        if t.emit.builds and content.dtype.kind in "biuf":
            numbers = ir.tensor(content.astype(dtype.numpy()))
            whole: Tensor = t.op("Constant", value=numbers, kind=KIND)
            whole.known = None
            return whole
        known = None
    x = t.emit.new(dtype, tuple(shape), kind=KIND, known=known)
    if known is not None:  # an array, not a number of the program
        x.value = t.emit.typed("Constant", [x], dtype, x.shape).value
    return x


def typed(
    t: Core, name: str, inputs: Sequence[Tensor], dtype: ir.DataType, shape: Any,
    known: Any = None, rule: Callable[..., Any] | None = None,
) -> Tensor:  # fmt: skip
    """Return the array that an operation makes.

    Args:
        t: The interpreter.
        name: Stands for the operation where nothing computes it.
        inputs: The operands.
        dtype: The element type of the result.
        shape: Its shape.
        known: Its content if that is known.
        rule: The function over the builder that computes it from the operands.
    """
    if rule is not None and known is None and shape is not None:
        return built(t, (dtype, shape), rule, *inputs)
    made = t.emit.typed(name, inputs, dtype, shape)
    if known is not None and np.size(known) <= MAX_CONTENT:
        made.known = np.asarray(known)
    return made


def content(x: Tensor) -> Any:
    """Return the known content with whole numbers as Python's, so that sizes mix with them."""
    if x.known is None:
        return None
    return x.known if x.known.dtype != object else x.known.astype(object)


def _one_of(t: Core, values: Sequence[Value]) -> Tensor:
    """Return an array that may be any of several, of one shape and the type that holds them all."""
    arrays = [value for value in values if isinstance(value, Tensor)]
    shape = arrays[0].shape if arrays else None
    alike = len(arrays) == len(values) and all(one.shape == shape for one in arrays)
    if shape is None or not alike:
        raise CheckError(OPEN, "an array that is another on other paths")
    return new(t, promoted(t, arrays), shape, None)


def to_array(t: Core, value: Value, dtype: ir.DataType | None = None) -> Tensor:
    """Return a number, an array or nested lists of both as an array (``numpy.asarray``)."""
    if isinstance(value, Tensor):
        if value.kind == KIND or value.kind.startswith("chainer") or not t.emit.builds:
            return _as_ndarray(value)
        t.fail("type", f"expected an array, got {t.show(value)}", value)
    if isinstance(value, Many):
        return _many_array(t, value, dtype)
    if isinstance(value, Range):
        t.fail("value", "a range whose length depends on sizes is not understood as an array")
    if isinstance(value, range):
        value = list(value)
    if isinstance(value, list | tuple):
        return _nested(t, value, dtype)
    if isinstance(value, Choice):
        return _one_of(t, alternatives(value))
    if isinstance(value, Instance) and (own := t.find_attribute(value, "__array__")) is not MISSING:
        made = t.call(own, [], {})
        if isinstance(made, Tensor):
            return _as_ndarray(made)
    if not is_number(value):
        raise CheckError("type", f"expected an array or a number, got {t.show(t.wrap(value))}")
    own = dtype or promoted(t, [value])
    if isinstance(value, Real | Truth):
        return _of_unknown(t, value, own)
    if not isinstance(value, Expr):
        return new(t, own, (), _numbers(t, value, own))
    held: Any = np.empty((), dtype=object)
    held[()] = value
    return new(t, own, (), held)


def fits(value: Value, dtype: ir.DataType) -> bool:
    """Whether a whole number of Python lies in the range of an element type, or is none."""
    if type(value) is not int or not dtype.is_integer():
        return True
    limits = np.iinfo(dtype.numpy())
    return int(limits.min) <= value <= int(limits.max)


def _numbers(t: Core, value: Value, dtype: ir.DataType) -> Any:
    """Return numbers of Python in an element type, whose range they may not leave (NEP 50)."""
    if not dtype.is_integer():
        return np.array(value).astype(dtype.numpy())
    try:
        return np.array(value, dtype=dtype.numpy())
    except (OverflowError, ValueError, TypeError) as error:
        t.fail("value", f"{type(error).__name__}: {error}")
    return None


def _of_unknown(t: Core, value: Real | Truth, dtype: ir.DataType) -> Tensor:
    """Return a number that only the run knows as an array."""
    emit = t.emit
    found = emit.real_scalar(value) if isinstance(value, Real) else emit.truth_scalar(value)
    if found is None:
        return t.emit.new(dtype, (), kind=KIND)
    return cast(t, _as_ndarray(found), dtype)


def _as_ndarray(x: Tensor) -> Tensor:
    if x.kind == KIND:
        return x
    return x.seen_as(KIND)


def _many_array(t: Core, value: Many, dtype: ir.DataType | None) -> Tensor:
    if value.stacked is not None and value.stacked.shape is not None:
        given = {} if dtype is None else {"dtype": DType(dtype, "numpy")}
        return listed_array(t, value, value.stacked, "numpy.asarray", [value], given)
    item = row_of(t, value)
    if isinstance(item, Unknown):
        return t.emit.new(dtype or DOUBLE, None, kind=KIND)
    inner = to_array(t, item)
    if inner.shape is None:
        return t.emit.typed("Stack", [inner], dtype or inner.dtype, None)
    return new(t, dtype or inner.dtype, (value.length, *inner.shape))


def leaves(value: Value) -> list[Value]:
    """Return the contents of nested lists."""
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def holds_text(value: Value) -> bool:
    """Whether an array of this content is one of texts, which has no element type here."""
    return any(isinstance(leaf, str) for leaf in leaves(value))


def _nested(t: Core, value: Value, dtype: ir.DataType | None) -> Tensor:
    items = leaves(value)
    for item in items:
        if item is None:
            raise CheckError(OPEN, "an array of objects is not followed")
        if not isinstance(item, Tensor | Many) and not is_number(item):
            t.fail("type", f"expected numbers in an array, got {t.show(t.wrap(item))}")
    shape = _extent(t, value)
    own = dtype or (_common(t, items) if items else DOUBLE)
    if any(isinstance(item, Many) for item in items) or own.numpy().kind == "c":
        return new(t, own, shape)
    sizes_within = any(isinstance(item, Expr) for item in items)
    sizes_in_floats = sizes_within and not own.is_integer()
    if any(isinstance(item, Real | Truth) for item in items) or (sizes_in_floats and t.emit.builds):
        return built(t, (own, shape), _stacked, t, value, own)
    if any(isinstance(item, Tensor) for item in items):
        tensors = [item for item in items if isinstance(item, Tensor)]
        known = None
        contents = [i.known if isinstance(i, Tensor) else np.asarray(i) for i in items]
        if all(c is not None and c.shape == () for c in contents):
            held: Any = np.empty(len(items), dtype=object)
            held[:] = [c[()] for c in contents if c is not None]
            known = held.reshape([int(str(n)) for n in shape])
            if not any(isinstance(c, Expr) for c in held):
                known = known.astype(own.numpy())
            elif not own.is_integer():
                known = None
        if known is None:
            return built(t, (own, shape), _stacked, t, value, own)
        return typed(t, "Stack", tensors, own, shape, known)
    array = as_array(value, own) if sizes_within else _numbers(t, value, own)
    return new(t, own, tuple(array.shape), array)


def _common(t: Core, items: Sequence[Value]) -> ir.DataType:
    """Return the element type of an array of items: numbers of Python count as their own type."""
    if all(isinstance(item, int) for item in items):
        own = np.array(items).dtype  # of numbers beyond int64 it is uint64, or float64
        if own.kind == "O":
            t.fail(OPEN, "an array of whole numbers that 64 bits don't hold is one of objects")
        return ir.DataType.from_numpy(own)
    if not any(isinstance(item, Tensor) for item in items):
        return promoted(t, items)
    kinds = {int: np.int64, float: np.float64, bool: np.bool_, complex: np.complex128}
    parts = [i.dtype.numpy() if isinstance(i, Tensor) else kinds[type(weak(i))] for i in items]
    found = _result_types(t, items, parts, np.int64)
    return ir.DataType.from_numpy(agreed(t, items, found))


def _stacked(t: Core, value: Value, dtype: ir.DataType) -> Tensor:
    """Return nested lists of arrays and numbers as one array."""
    if not isinstance(value, list | tuple):
        return cast(t, to_array(t, value, None if isinstance(value, Tensor) else dtype), dtype)
    found = [op("Unsqueeze", _stacked(t, part, dtype), [0]) for part in value]
    made: Tensor = op("Concat", *found, axis=0) if len(found) > 1 else found[0]
    return made


def _extent(t: Core, value: Value) -> tuple[Dim, ...]:
    """Return the shape of nested lists, of which all parts have to be alike."""
    if isinstance(value, Tensor):
        return shape_of(t, value)
    if isinstance(value, Many):
        return (value.length, *_extent(t, value.element))
    if not isinstance(value, list | tuple):
        return ()
    inner = [_extent(t, part) for part in value]
    for other in inner[1:]:
        if len(other) != len(inner[0]) or any(
            t.emit.differ(a, b) for a, b in zip(inner[0], other, strict=True)
        ):
            t.fail(
                "shape-mismatch",
                "ValueError: setting an array element with a sequence: the lists inside have "
                f"different shapes, {show_dims(inner[0])} and {show_dims(other)}",
            )
    return (len(value), *(inner[0] if inner else ()))


def shape_of(t: Core, x: Tensor, rank: int | None = None, name: str = "a") -> tuple[Dim, ...]:
    """Return the shape of an array, which has to have ``rank`` axes if given."""
    if x.shape is None:
        raise CheckError(OPEN, f"the number of axes of '{name}' is not known", tensors=(x,))
    if rank is not None and len(x.shape) != rank:
        t.fail("rank", f"expected '{name}' to have {rank} axes, got {t.show(x)}", x)
    return x.shape


def cast(t: Core, x: Tensor, dtype: ir.DataType) -> Tensor:
    """Return ``x`` with another element type."""
    if x.dtype == dtype:
        return x
    known = None
    if x.known is not None:
        held = x.known
        known = held if held.dtype == object else held.astype(dtype.numpy())
        if held.dtype == object and not dtype.is_integer():
            known = None
    return typed(t, "Cast", [x], dtype, x.shape, known, lambda x: op("Cast", x, to=int(dtype)))


def size(t: Core, value: Value) -> Dim:
    """Return one size; arrays of one element count as their content."""
    if isinstance(value, Tensor):
        value = t.tensor_number(value, whole=True)
    if isinstance(value, bool) or not isinstance(value, int | Expr):
        t.fail("type", f"expected an integer as size, got {t.show(t.wrap(value))}")
    return value


def sizes(t: Core, values: Value) -> list[Dim]:
    """Return sizes given as one, or as a tuple, a list or an array of them."""
    if isinstance(values, Tensor) and values.shape != ():
        if values.known is None:
            raise CheckError(OPEN, "sizes from an array whose content is not known")
        return [item if isinstance(item, Expr) else int(item) for item in values.known.ravel()]
    if isinstance(values, Many):
        raise CheckError(OPEN, "the number of sizes is not known")
    if isinstance(values, tuple | list):
        return [size(t, value) for value in values]
    return [size(t, values)]


def axis(t: Core, value: Value, rank: int, x: Tensor, *, extra: int = 0) -> int:
    """Return an axis counted from the front, checked against ``rank`` (plus ``extra`` new ones)."""
    if isinstance(value, Tensor):
        value = t.tensor_number(value, whole=True)
    if isinstance(value, Expr | Real):
        raise CheckError(OPEN, "axis is a number that is not known")
    if not isinstance(value, int) or isinstance(value, bool):
        t.fail("type", f"expected an integer as axis, got {t.show(t.wrap(value))}", x)
    total = rank + extra
    if not -total <= value < total:
        t.fail("axis", f"axis {value} is out of bounds for the {total} axes of {t.show(x)}", x)
    return value % total


def axes(t: Core, value: Value, rank: int, x: Tensor) -> list[int]:
    """Return axes given as one or several; None means all."""
    if value is None:
        return list(range(rank))
    listed = list(value) if isinstance(value, tuple | list) else [value]
    found = [axis(t, item, rank, x) for item in listed]
    if len(set(found)) != len(found):
        t.fail("axis", f"axis={value} names an axis twice for {t.show(x)}", x)
    return found


def dims_input(dims: Sequence[Dim]) -> Any:
    """Return sizes as the input of an operator."""
    if all(isinstance(dim, int) for dim in dims):
        return np.array([int(str(dim)) for dim in dims], dtype=np.int64)
    result = np.empty(len(dims), dtype=object)
    result[:] = list(dims)
    return result


def elements(t: Core, x: Tensor) -> Dim:
    """Return the number of elements."""
    return product(shape_of(t, x))


def reshape(t: Core, x: Tensor, dims: Sequence[Dim]) -> Tensor:
    """Return ``x`` with another shape; -1 stands for the rest."""
    made: Tensor = t.op("Reshape", x, dims_input(dims), allowzero=zero_is_a_size(x, dims))
    return made


def broadcast_shape(t: Core, *tensors: Tensor, name: str = "Sum") -> Any:
    """Return the shape that arrays broadcast to, by the rule of an operator, which errors name."""
    with t.emit.types_only():
        floats = [t.emit.like(x, FLOAT) for x in tensors]
        return t.op(name, *floats).shape if len(floats) > 1 else floats[0].shape
