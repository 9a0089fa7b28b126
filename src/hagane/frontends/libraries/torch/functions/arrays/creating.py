"""Functions of PyTorch that make tensors, and items of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.indexing import item, set_item
from hagane.frontends.libraries.stacking import row_of, stacked
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    TENSOR_CLASSES,
    cast,
    category,
    complex_dtype,
    device_of,
    dims_input,
    dtype_of,
    is_scalar,
    need_tensor,
    of_numpy,
    real_dtype,
    result_dtype,
    scalar_dtype,
    shape_of,
    sizes,
    to_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.content import as_array
from hagane.frontends.python.values.values import (
    DType,
    Many,
    Range,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_plain,
    is_size,
)
from hagane.ops.builder import op
from hagane.symbolic import Dim, Expr


def _as_tuple(index: Value) -> Value:
    """Return a list that holds more than numbers as a tuple, as PyTorch reads it."""
    parts = (list, tuple, Tensor, slice, type(None), type(Ellipsis))
    if isinstance(index, list) and any(isinstance(part, parts) for part in index):
        return tuple(index)
    return index


def torch_item(t: Core, x: Tensor, index: Value) -> Value:
    """Return ``x[index]``."""
    return item(t, x, _as_tuple(index))


def set_torch_item(t: Core, x: Tensor, index: Value, value: Value) -> None:
    """Do ``x[index] = value``."""
    set_item(t, x, _as_tuple(index), value)


TORCH.item = torch_item
TORCH.set_item = set_torch_item
MAX_CONTENT = 64


def made(t: Core, dtype: ir.DataType, shape: list[Dim], device: str, fill: Value = None) -> Tensor:
    """Return a new tensor; small ones filled with one number keep their content."""
    for dim in shape:
        if isinstance(dim, int) and dim < 0:
            t.fail("value", f"expected sizes that are not negative, got {shape}")
        if isinstance(dim, int) and dim >= 2**63:
            t.fail("value", f"RuntimeError: a size of {dim:.1e} is beyond 64 bits")
    known = None
    numbers = [dim for dim in shape if isinstance(dim, int)]
    plain_fill = is_plain(fill) and fill is not None
    plain = plain_fill and len(numbers) == len(shape)
    if plain and int(np.prod(numbers)) <= MAX_CONTENT and category(dtype) < 3:
        known = np.full(numbers, fill).astype(dtype.numpy())
    if known is None and plain_fill and category(dtype) < 3:
        content = np.full(1, fill).astype(dtype.numpy())
        filled = t.op("ConstantOfShape", dims_input(shape), value=content, device=device)
        t.emit.show_sizes(filled, tuple(shape))
        return filled
    x = t.emit.new(dtype, tuple(shape), kind="torch.Tensor", device=device)
    x.known = known
    if known is not None:
        x.value = t.op("Identity", x).value
    return x


def _filled(name: str, fill: Value) -> None:
    def function(
        t: Core, *size: Value, dtype: Value = None, device: Value = None, **keywords: Value
    ) -> Tensor:
        given = (keywords["size"],) if "size" in keywords else size
        return made(t, dtype_of(dtype), sizes(t, given), device_of(device), fill)

    def like(
        t: Core, input: Value, *, dtype: Value = None, device: Value = None, **_: Value
    ) -> Tensor:
        x = need_tensor(t, input, "input")
        return made(
            t, dtype_of(dtype, x.dtype), list(shape_of(t, x)), device_of(device, x.device), fill
        )

    def new(
        t: Core, self: Value, *size: Value, dtype: Value = None, device: Value = None,
        **keywords: Value,
    ) -> Tensor:  # fmt: skip
        given = (keywords["size"],) if "size" in keywords else size
        place = device_of(device, self.device)
        return made(t, dtype_of(dtype, self.dtype), sizes(t, given), place, fill)

    TORCH.function(name)(function)
    TORCH.function(f"{name}_like")(like)
    TORCH.method(f"new_{name}")(new)


# Of ``empty`` any content is right.
for _name, _fill in (("zeros", 0), ("ones", 1), ("empty", 0)):
    _filled(_name, _fill)


def placed(
    t: Core, dtype: ir.DataType, shape: list[Dim], device: str, function: Callable[..., Any],
    *operands: Any, known: Callable[[], Any] | None = None,
) -> Tensor:  # fmt: skip
    """Return a tensor of numbers by their place; small ones keep their content.

    Args:
        t: The interpreter.
        dtype: The element type.
        shape: The shape.
        device: Where it lies.
        function: The function over the builder that computes it.
        operands: Its arguments.
        known: Gives the content, asked for where all sizes are known and small.
    """
    numbers = [dim for dim in shape if isinstance(dim, int)]
    small = len(numbers) == len(shape) and int(np.prod(numbers)) <= MAX_CONTENT
    if known is not None and small and category(dtype) < 3:
        x = made(t, dtype, shape, device)
        x.known = np.asarray(known()).astype(dtype.numpy())
        x.value = t.op("Identity", x).value
        return x
    if category(dtype) == 3 or any(n < 0 for n in numbers):
        return made(t, dtype, shape, device)
    return t.emit.on(built(t, (dtype, tuple(shape)), function, *operands), device)


@TORCH.function("full")
def full(
    t: Core,
    size: Value,
    fill_value: Value,
    *,
    dtype: Value = None,
    device: Value = None,
    **_: Value,
) -> Tensor:
    """Return a tensor filled with one number."""
    number = of_numpy(fill_value)
    default = number.dtype if isinstance(number, Tensor) else scalar_dtype(number)
    return _full(t, number, dtype_of(dtype, default), sizes(t, (size,)), device_of(device))


def _full(t: Core, value: Value, dtype: ir.DataType, shape: list[Dim], device: str) -> Tensor:
    """Return a tensor filled with a number, which only the run may know."""
    value = of_numpy(value)
    if is_plain(value) or not (isinstance(value, Tensor) or is_scalar(value)):
        return made(t, dtype, shape, device, value if is_plain(value) else None)
    if category(dtype) == 3:
        return made(t, dtype, shape, device)
    one = cast(t, to_tensor(t, value), dtype)
    return t.emit.on(
        built(t, (dtype, tuple(shape)), lambda x: op("Expand", x, list(shape)), one), device
    )


@TORCH.function("full_like")
def full_like(
    t: Core,
    input: Value,
    fill_value: Value,
    *,
    dtype: Value = None,
    device: Value = None,
    **_: Value,
) -> Tensor:
    """Return a tensor like another, filled with one number."""
    x = need_tensor(t, input, "input")
    shape = list(shape_of(t, x))
    return _full(t, fill_value, dtype_of(dtype, x.dtype), shape, device_of(device, x.device))


@TORCH.method("new_full")
def new_full(
    t: Core,
    self: Value,
    size: Value,
    fill_value: Value,
    *,
    dtype: Value = None,
    device: Value = None,
    **_: Value,
) -> Tensor:
    """Return a tensor with the element type and device of another, filled with one number."""
    shape, place = sizes(t, (size,)), device_of(device, self.device)
    return _full(t, fill_value, dtype_of(dtype, self.dtype), shape, place)


@TORCH.function(
    "tensor",
    "as_tensor",
    "asarray",
    "from_numpy",
)
def tensor(
    t: Core,
    *data: Value,
    dtype: Value = None,
    device: Value = None,
    requires_grad: Value = False,
    **_: Value,
) -> Value:
    """Return known content as a tensor; nested lists may hold sizes and scalars."""
    content = data[0] if len(data) == 1 else list(data)
    if isinstance(content, range | Range):
        content = _as_number(t, content)
    if isinstance(content, Tensor):
        moved = t.emit.on(content, device_of(device, content.device))
        x = moved.seen_as("torch.Tensor")
        return cast(t, x, dtype_of(dtype, x.dtype))
    if isinstance(content, Many):
        listed = stacked(t, "torch.tensor", [content, dtype], {}) if t.emit.builds else None
        if listed is not None:
            return t.emit.on(listed, device_of(device))
        element = _as_number(t, row_of(t, content))
        if isinstance(element, list | tuple | Many):
            element = tensor(t, element)
        if isinstance(element, Unknown):
            return element
        inner = shape_of(t, element) if isinstance(element, Tensor) else ()
        default = element.dtype if isinstance(element, Tensor) else scalar_dtype(element)
        return made(t, dtype_of(dtype, default), [content.length, *inner], device_of(device))
    content = _as_number(t, content)
    _need_even(t, content)
    items = _flat(content)
    default = result_dtype(items) if items else FLOAT
    sizes_in_floats = category(default) == 2 and any(isinstance(i, Expr) for i in items)
    if any(isinstance(i, Many | Tensor | Real | Truth) for i in items) or (
        sizes_in_floats and t.emit.builds
    ):
        shape, wanted = _extent(content), dtype_of(dtype, default)
        if any(isinstance(i, Many) for i in items) or category(wanted) == 3:
            return made(t, wanted, list(shape), device_of(device))
        whole = built(t, (wanted, shape), lambda: _stacked(t, content, wanted))
        return t.emit.on(whole, device_of(device))
    array = as_array(content, default)
    if array.size > MAX_CONTENT and array.dtype != object and t.emit.builds:
        whole = t.op(
            "Constant", value=ir.tensor(array.astype(default.numpy())), kind="torch.Tensor"
        )
        whole.known = None
        return cast(t, t.emit.on(whole, device_of(device)), dtype_of(dtype, default))
    x = made(t, default, list(array.shape), device_of(device))
    if array.size <= MAX_CONTENT:
        x.known = array if array.dtype == object else array.astype(default.numpy())
        x.value = t.op("Identity", x).value
    return cast(t, x, dtype_of(dtype, default))


def _stacked(t: Core, content: Value, dtype: ir.DataType) -> Tensor:
    """Return nested lists of tensors and numbers as one tensor."""
    if not isinstance(content, list | tuple):
        return cast(t, to_tensor(t, content, dtype), dtype)
    found = [op("Unsqueeze", _stacked(t, part, dtype), [0]) for part in content]
    return op("Concat", *found, axis=0) if len(found) > 1 else found[0]


def _as_number(t: Core, content: Value) -> Value:
    """Return nested lists with tensors in them as the numbers that PyTorch makes of them."""
    if isinstance(content, range | Range):
        items = t.sequence(content)
        return items if isinstance(items, Many) else list(items)
    if isinstance(content, list | tuple):
        return [_as_number(t, part) for part in content]
    if not isinstance(content, Tensor) or content.kind != "torch.Tensor" or not content.shape:
        return content
    if any(t.emit.differ(size, 1) for size in content.shape):
        t.fail("value", "ValueError: only tensors of one element can be converted to numbers, got "
               f"{t.show(content)}", content, remedy="torch.stack joins tensors")  # fmt: skip
    return t.call_library("torch.reshape", [content, ()])


def _flat(content: Value) -> list[Value]:
    if isinstance(content, list | tuple):
        return [leaf for part in content for leaf in _flat(part)]
    return [content]


def _need_even(t: Core, content: Value) -> None:
    """Refuse nested lists of uneven lengths, and texts, of which no tensor can be made."""
    if isinstance(content, str | bytes):
        t.fail("value", f"ValueError: torch.tensor takes no texts, got {t.show(content)}")
    rows = [row for row in content if isinstance(row, list | tuple)] if isinstance(
        content, list | tuple) else []  # fmt: skip
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1 or (rows and len(rows) < len(content)):
        told = " and ".join(map(str, lengths)) if len(lengths) > 1 else f"{lengths[0]}, and numbers"
        t.fail("value", f"ValueError: torch.tensor expects rows of one length, got rows of {told}",
               remedy="pad them to one length")  # fmt: skip
    for row in content if isinstance(content, list | tuple) else ():
        _need_even(t, row)


def _extent(content: Value) -> tuple[Dim, ...]:
    if isinstance(content, Tensor):
        return content.shape or ()
    if isinstance(content, Many):
        return (content.length,)
    if not isinstance(content, list | tuple):
        return ()
    return (len(content), *(_extent(content[0]) if content else ()))


@TORCH.function("scalar_tensor")
def scalar_tensor(t: Core, s: Value, *, dtype: Value = None, **keywords: Value) -> Value:
    """Return a number as a tensor, float32 if nothing else is said."""
    return tensor(t, s, dtype=dtype or DType(FLOAT), **keywords)


def _class(name: str, dtype: ir.DataType) -> None:
    def function(t: Core, *arguments: Value, **keywords: Value) -> Value:
        if len(arguments) == 1 and not is_size(arguments[0]):
            return tensor(t, arguments[0], dtype=DType(dtype), **keywords)
        return made(t, dtype, sizes(t, arguments), "cpu", 0)

    TORCH.function(name)(function)


for _name, _dtype in {"Tensor": FLOAT, **TENSOR_CLASSES}.items():
    _class(_name, _dtype)


@TORCH.function("empty_strided")
def empty_strided(
    t: Core, size: Value, stride: Value, *, dtype: Value = None, device: Value = None, **_: Value
) -> Tensor:
    """Return a tensor of any content."""
    return made(t, dtype_of(dtype), sizes(t, (size,)), device_of(device), 0)


@TORCH.method("new_tensor")
def new_tensor(
    t: Core, self: Value, data: Value, *, dtype: Value = None, device: Value = None, **_: Value
) -> Value:
    """Return known content with the element type and device of a tensor."""
    x = tensor(t, data, dtype=dtype or DType(self.dtype))
    return t.emit.on(x, device_of(device, self.device)) if isinstance(x, Tensor) else x


@TORCH.method("new")
def new(t: Core, self: Value, *data: Value, device: Value = None, **keywords: Value) -> Value:
    """Return a tensor with the element type and device of a tensor: of sizes, or of content."""
    given = (keywords["size"],) if "size" in keywords else data
    if len(given) == 1 and not is_size(given[0]) and "size" not in keywords:
        return new_tensor(t, self, given[0], device=device)
    shape: list[Dim] = sizes(t, given) if given else [0]
    return made(t, self.dtype, shape, device_of(device, self.device), 0)


_PARTS = (FLOAT, ir.DataType.DOUBLE)  # of complex numbers


@TORCH.function("complex", "polar")
def complex_(t: Core, real: Value, imag: Value) -> Tensor:
    """Return a complex tensor from two real ones of one element type."""
    a, b = need_tensor(t, real, "real"), need_tensor(t, imag, "imag")
    if a.dtype != b.dtype or a.dtype not in _PARTS:
        t.fail(
            "dtype-mismatch",
            f"expected both parts as float32 or both as float64, got {t.show(a)} and {t.show(b)}",
            a, b, remedy="convert them, as in .to(torch.float32)",
        )  # fmt: skip
    from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_typed

    return broadcast_typed(t, "Complex", a, b, complex_dtype(a.dtype))


@TORCH.function("view_as_real")
def view_as_real(t: Core, input: Value) -> Tensor:
    """Return real and imaginary parts in a last axis of 2."""
    return t.emit.typed("ViewAsReal", [input], real_dtype(input.dtype), (*shape_of(t, input), 2))


@TORCH.function("view_as_complex")
def view_as_complex(t: Core, input: Value) -> Tensor:
    """Return a complex tensor from a last axis of 2."""
    shape = shape_of(t, input)
    if not shape or t.emit.differ(shape[-1], 2):
        t.fail("shape-mismatch", f"expected a last axis of 2, got {t.show(input)}", input)
    if input.dtype not in _PARTS:
        t.fail("dtype-mismatch", f"expected float32 or float64, got {t.show(input)}", input,
               remedy="convert it, as in .to(torch.float32)")  # fmt: skip
    return t.emit.typed("ViewAsComplex", [input], complex_dtype(input.dtype), shape[:-1])
