"""PyTorch's treatment of operands before it computes: element types, scalars, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import computed as computed
from hagane.frontends.libraries.computing import zero_is_a_size
from hagane.frontends.libraries.memory.seeing import seen_as
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import FOLLOWS, OPEN, CheckError
from hagane.frontends.python.values.strides import lie
from hagane.frontends.python.values.values import (
    Device,
    DType,
    Host,
    Library,
    Many,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
    alternatives,
    is_size,
)
from hagane.graph.types import dtype_name
from hagane.symbolic import Dim, Expr, product

FLOAT, INT64, BOOL = ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.BOOL
_COMPLEX = (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128)
_OF_PYTHON = {bool: BOOL, int: INT64, float: ir.DataType.DOUBLE, complex: ir.DataType.COMPLEX128}
# Classes of tensors (https://docs.pytorch.org/docs/stable/tensors.html).
TENSOR_CLASSES = {
    "FloatTensor": FLOAT, "DoubleTensor": ir.DataType.DOUBLE, "HalfTensor": ir.DataType.FLOAT16,
    "BFloat16Tensor": ir.DataType.BFLOAT16, "LongTensor": INT64, "IntTensor": ir.DataType.INT32,
    "ShortTensor": ir.DataType.INT16, "CharTensor": ir.DataType.INT8,
    "ByteTensor": ir.DataType.UINT8, "BoolTensor": BOOL,
}  # fmt: skip


def category(dtype: ir.DataType) -> int:
    """Return 0 for bool, 1 for integers, 2 for floats, 3 for complex numbers."""
    if dtype == BOOL:
        return 0
    return 3 if dtype in _COMPLEX else 1 if dtype.is_integer() else 2


def real_dtype(dtype: ir.DataType) -> ir.DataType:
    """Return the element type of the parts of complex numbers; real types stay."""
    return {ir.DataType.COMPLEX64: FLOAT, ir.DataType.COMPLEX128: ir.DataType.DOUBLE}.get(
        dtype, dtype
    )


def complex_dtype(dtype: ir.DataType) -> ir.DataType:
    """Return the element type of complex numbers with parts of a type."""
    double = (ir.DataType.DOUBLE, ir.DataType.COMPLEX128)
    return ir.DataType.COMPLEX128 if dtype in double else ir.DataType.COMPLEX64


def promoted(left: ir.DataType, right: ir.DataType) -> ir.DataType:
    """Return the element type that two tensors promote to (``torch.promote_types``)."""
    if left == right:
        return left
    low, high = sorted((left, right), key=category)
    if category(low) < category(high):
        if high == ir.DataType.COMPLEX64 and low == ir.DataType.DOUBLE:
            return ir.DataType.COMPLEX128
        return high
    if {left, right} == {ir.DataType.FLOAT16, ir.DataType.BFLOAT16}:
        return FLOAT
    if category(left) == 2:
        return left if left.itemsize > right.itemsize else right
    return ir.DataType.from_numpy(np.promote_types(left.numpy(), right.numpy()))


def is_scalar(value: Value) -> bool:
    """Whether ``value`` is a number of Python, known or not."""
    return isinstance(value, int | float | complex | Expr | Real | Truth)


def scalar_dtype(value: Value) -> ir.DataType:
    """Return the element type that a number of Python becomes by itself."""
    if isinstance(value, bool | Truth):
        return BOOL
    if isinstance(value, complex):
        return ir.DataType.COMPLEX64
    return INT64 if is_size(value) else FLOAT


def of_numpy(value: Value) -> Value:
    """Return an operand as PyTorch takes it: a scalar of NumPy as a number, its array as a tensor.

    PyTorch reads NumPy's truth values as floats.
    """
    if not isinstance(value, Tensor) or value.kind != "numpy.ndarray":
        return value
    if value.shape == () and (category(value.dtype) == 2 or value.dtype == BOOL):
        return Real(tensor=value)
    return value.seen_as("torch.Tensor")


def result_dtype(values: Sequence[Value]) -> ir.DataType:
    """Return the common element type of tensors and numbers (``torch.result_type``).

    Raises:
        CheckError: The data decide whether a number is an integer, and so which type it is.
    """
    found = _result_dtype(values)
    if any(isinstance(value, Real) and int in value.also for value in values):
        whole = [0 if isinstance(v, Real) and int in v.also else v for v in values]
        if _result_dtype(whole) != found:
            raise CheckError(
                "dtype-mismatch",
                "the data decide whether a number is of type int or float, and so which element "
                "type the result has; give it one type on all paths, as in float(x)",
            )
    return found


def _result_dtype(values: Sequence[Value]) -> ir.DataType:
    groups: list[ir.DataType | None] = [None, None, None]  # with axes, without axes, numbers
    for value in values:
        place = 2 if not isinstance(value, Tensor) else 1 if value.shape == () else 0
        dtype = value.dtype if isinstance(value, Tensor) else scalar_dtype(value)
        before = groups[place]
        groups[place] = dtype if before is None else promoted(before, dtype)
    result: ir.DataType | None = None
    for found in groups:
        if found is not None and (result is None or category(found) > category(result)):
            result = found if result is None or found in _COMPLEX else _of_category(result, found)
    assert result is not None
    return result


def _of_category(result: ir.DataType, dtype: ir.DataType) -> ir.DataType:
    # An integer tensor with a float of Python becomes float32, not float64.
    return dtype if category(dtype) > category(result) else result


def to_tensor(t: Core, value: Value, dtype: ir.DataType | None = None) -> Tensor:
    """Return a number or a tensor as a tensor."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Real):
        made = t.emit.real_scalar(value)
        return t.emit.new(dtype or FLOAT, ()) if made is None else cast(t, made, dtype or FLOAT)
    if isinstance(value, Truth):
        made = t.emit.truth_scalar(value)
        return t.emit.new(BOOL, ()) if made is None else made
    if isinstance(value, complex):
        return t.emit.new(ir.DataType.COMPLEX64, ())
    if is_scalar(value):
        wanted = dtype or scalar_dtype(value)
        made = t.emit.constant(value, INT64 if isinstance(value, Expr) else wanted)
        return made if made.dtype == wanted else cast(t, made, wanted)
    _refuse_unknown(value, "operand")
    raise CheckError("type", f"expected a tensor or a number, got {t.show(value)}")


def _refuse_unknown(value: Value, name: str) -> None:
    """Say of a value that nobody knows that it is not known, which is no error of the program."""
    if isinstance(value, Unknown) and value.told:
        error = CheckError(FOLLOWS, f"'{name}' is unknown, of which an earlier message tells")
        error.is_open = not value.failed
        raise error
    if any(isinstance(v, Unknown) for v in alternatives(value)):
        raise CheckError(OPEN, f"'{name}' is not known on all paths")


def need_tensor(t: Core, value: Value, name: str) -> Tensor:
    """Return ``value``, which has to be a tensor."""
    _refuse_unknown(value, name)
    if not isinstance(value, Tensor):
        t.fail("type", f"expected a tensor as '{name}', got {t.show(t.wrap(value))}")
    return value


def shape_of(t: Core, x: Tensor, rank: int | None = None, name: str = "input") -> tuple[Dim, ...]:
    """Return the shape of a tensor, which has to have ``rank`` axes if given."""
    if x.shape is None:
        raise CheckError(OPEN, f"the number of axes of '{name}' is not known", tensors=(x,))
    if rank is not None and len(x.shape) != rank:
        t.fail("rank", f"expected '{name}' to have {rank} axes, got {t.show(x)}", x)
    return x.shape


def cast(t: Core, x: Tensor, dtype: ir.DataType) -> Tensor:
    """Return ``x`` with another element type."""
    if x.dtype == dtype:
        return x
    if x.dtype in _COMPLEX or dtype in _COMPLEX:
        return t.emit.typed("Cast", [x], dtype, x.shape)
    return t.op("Cast", x, to=int(dtype))


def as_float(t: Core, x: Tensor) -> Tensor:
    """Return ``x`` as PyTorch's functions of real numbers take it: integers become float32."""
    return x if category(x.dtype) >= 2 else cast(t, x, FLOAT)


def promote(t: Core, *values: Value) -> list[Tensor]:
    """Return tensors and numbers as tensors of their common element type."""
    dtype = result_dtype(values)
    return [cast(t, to_tensor(t, value, dtype), dtype) for value in values]


def dtype_of(value: Value, default: ir.DataType = FLOAT) -> ir.DataType:
    """Return the element type that an argument ``dtype`` names."""
    found = element_type(value)
    if found is None and isinstance(value, Host | Library | str):
        name = value.name if isinstance(value, Library) else repr(getattr(value, "object", value))
        raise CheckError("type", f"expected a torch.dtype as dtype, got {name}")
    return default if found is None else found


def element_type(value: Value) -> ir.DataType | None:
    """Return the element type that PyTorch takes a value for: of its own, or a class of numbers."""
    if isinstance(value, Host):
        found = value.object
        return _OF_PYTHON.get(found) if isinstance(found, type) else None
    return value.dtype if isinstance(value, DType) else None


def device_of(value: Value, default: str = "cpu") -> str:
    """Return the device that an argument ``device`` names; empty if it is not known."""
    if value is None:
        return default
    if isinstance(value, Device):
        return value.name
    if isinstance(value, str):
        return "cuda:0" if value == "cuda" else value
    return f"cuda:{value}" if isinstance(value, int) else ""


def sizes(t: Core, values: Sequence[Value]) -> list[Dim]:
    """Return sizes given one by one, or as one tuple, list or ``torch.Size``."""
    if len(values) == 1 and isinstance(values[0], tuple | list):
        values = values[0]
    if len(values) == 1 and isinstance(values[0], Many):
        told = isinstance(values[0].element, Unknown) and values[0].element.told
        raise CheckError(FOLLOWS if told else OPEN, "the number of sizes is not known")
    return [size(t, value) for value in values]


def size(t: Core, value: Value) -> Dim:
    """Return one size; tensors of one element count as their content."""
    if isinstance(value, Tensor):
        return t.tensor_number(value, whole=True)
    if isinstance(value, bool) or not is_size(value):
        t.fail("type", f"expected an integer as size, got {t.show(value)}")
    return value


def check_known(value: Value, what: str) -> None:
    """Say that a number is not known, which a result's type needs.

    Raises:
        CheckError: It is not: a question that the check leaves open, no error of the program.
    """
    if isinstance(value, Expr | Real) or (isinstance(value, Tensor) and value.shape == ()):
        raise CheckError(OPEN, f"{what} is a number that is not known")


def at_least(t: Core, value: Value, least: float, what: str) -> None:
    """Fail if a number that is known is below a bound."""
    if isinstance(value, int | float) and value < least:
        t.fail("value", f"expected {what} to be at least {least}, got {value}")


def axis(t: Core, value: Value, rank: int, x: Tensor, *, extra: int = 0, what: str = "dim") -> int:
    """Return an axis counted from the front, checked against ``rank`` (plus ``extra`` new ones)."""
    if isinstance(value, Tensor):
        value = t.tensor_number(value, whole=True)
    check_known(value, what)
    if not isinstance(value, int):
        t.fail("type", f"expected an integer as {what}, got {t.show(value)}", x)
    total = max(rank + extra, 1)
    if not -total <= value < total:
        t.fail(
            "axis",
            f"{what}={value} is out of range [{-total}, {total - 1}] for {t.show(x)}",
            x,
        )
    return value % total


def same_shape(t: Core, x: Tensor, wanted: Sequence[Dim], what: str) -> None:
    """Fail unless a tensor has a shape."""
    shape = shape_of(t, x)
    if len(shape) != len(wanted) or any(map(t.emit.differ, shape, wanted)):
        told = ", ".join(map(str, wanted))
        t.fail("shape-mismatch", f"expected {what}, [{told}]; got {t.show(x)}", x)


def own_axis(t: Core, value: Value, x: Tensor) -> int:
    """Return one of a tensor's axes, counted from the front, where a scalar has none to give."""
    expect_axes(t, x)
    return axis(t, value, len(shape_of(t, x)), x)


def expect_axes(t: Core, x: Tensor, least: int = 1) -> None:
    """Fail unless a tensor has so many axes."""
    if len(shape_of(t, x)) < least:
        count = "one axis" if least == 1 else f"{least} axes"
        t.fail("rank", f"expected a tensor of at least {count}, got {t.show(x)}", x)


def axes(t: Core, value: Value, rank: int, x: Tensor) -> list[int]:
    """Return axes given as one or several; None and () mean all."""
    if value is None or value in ((), []):
        return list(range(rank))
    listed = list(value) if isinstance(value, tuple | list) else [value]
    found = [axis(t, item, rank, x) for item in listed]
    if len(set(found)) != len(found):
        t.fail("axis", f"dim={value} names an axis twice for {t.show(x)}", x)
    return found


def per_axis(t: Core, value: Value, count: int, what: str) -> list[int]:
    """Return ``count`` numbers, given one for all or one each."""
    if isinstance(value, int) and not isinstance(value, bool):
        return [value] * count
    if isinstance(value, tuple | list):
        if len(value) == 1:
            return [int(value[0])] * count
        if len(value) == count and all(isinstance(item, int) for item in value):
            return [int(item) for item in value]
    check_known(value, what)
    t.fail(
        "value", f"expected {what} to be an integer or {count} of them, got {t.show(t.wrap(value))}"
    )
    raise AssertionError


def dims_input(dims: Sequence[Dim]) -> Any:
    """Return sizes as the input of an operator."""
    result = np.empty(len(dims), dtype=object)
    result[:] = list(dims)
    if all(isinstance(dim, int) for dim in dims):
        return np.array([int(str(dim)) for dim in dims], dtype=np.int64)
    return result


def size_input(dim: Dim) -> Any:
    """Return a size as an input of an operator that has no axes."""
    if isinstance(dim, int):
        return np.array(int(dim), dtype=np.int64)
    result = np.empty((), dtype=object)
    result[()] = dim
    return result


def reshape(t: Core, x: Tensor, dims: Sequence[Dim]) -> Tensor:
    """Return ``x`` with another shape; -1 stands for the rest."""
    _need_rest(t, x, dims)
    made: Tensor = t.op("Reshape", x, dims_input(dims), allowzero=zero_is_a_size(x, dims))
    if x.strides is not None and x.shape is not None and made.shape is not None:
        strides, _ = seen_as(t, x, made.shape)
        if strides is not None:  # else it is a copy
            lie(made, strides)
    return made


def _need_rest(t: Core, x: Tensor, dims: Sequence[Dim]) -> None:
    """Refuse -1 beside sizes that are 0, and rule out sizes for which they are."""
    others = [dim for dim in dims if not (isinstance(dim, int) and dim == -1)]
    if t.emit.builds or len(others) == len(dims):
        return
    for dim in others:
        if not t.emit.may_reach(0, dim, "a size beside -1"):
            t.fail(
                "value",
                f"expected sizes beside -1 that are not 0, got ({', '.join(map(str, dims))}): the "
                "size that -1 stands for is ambiguous",
                x,
                remedy="give all sizes, or use flatten()",
            )


def elements(x: Tensor) -> Dim:
    """Return the number of elements."""
    assert x.shape is not None
    return product(x.shape)


def name_dtype(x: Tensor) -> str:
    """Return the name of a tensor's element type."""
    return dtype_name(x.dtype)


def need_float(t: Core, x: Tensor, what: str) -> None:
    """Fail unless ``x`` holds floats."""
    if category(x.dtype) < 2:
        t.fail(
            "dtype-mismatch",
            f"expected a floating-point tensor as '{what}', got {t.show(x)}",
            x,
            remedy="convert it with .float()",
        )


def same_dtype(t: Core, x: Tensor, w: Tensor, what: str) -> None:
    """Fail unless both have one element type."""
    if x.dtype != w.dtype:
        remedy = f"convert one of them, as in .to(torch.{dtype_name(w.dtype)})"
        t.fail(
            "dtype-mismatch",
            f"expected {what} to have one element type, got {dtype_name(x.dtype)} and "
            f"{dtype_name(w.dtype)}",
            x,
            w,
            remedy=remedy,
        )
