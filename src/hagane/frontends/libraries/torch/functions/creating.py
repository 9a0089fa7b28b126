"""Functions of PyTorch that make tensors, and items of tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.indexing import item, set_item
from hagane.frontends.libraries.torch.operands import (
    BOOL,
    FLOAT,
    INT64,
    cast,
    category,
    device_of,
    dims_input,
    dtype_of,
    is_scalar,
    need_tensor,
    promote,
    result_dtype,
    scalar_dtype,
    shape_of,
    sizes,
    to_tensor,
)
from hagane.frontends.libraries.torch.operands import size as size_of
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.content import as_array
from hagane.frontends.python.values.values import (
    DType,
    Many,
    Real,
    Tensor,
    Truth,
    Value,
    is_plain,
    is_size,
)
from hagane.ops.builder import op
from hagane.ops.functions.tensors import filling
from hagane.symbolic import Dim, Expr, ceildiv, floordiv, maximum


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
_MAX_CONTENT = 64


def made(t: Core, dtype: ir.DataType, shape: list[Dim], device: str, fill: Value = None) -> Tensor:
    """Return a new tensor; small ones filled with one number keep their content."""
    for dim in shape:
        if isinstance(dim, int) and dim < 0:
            t.fail("value", f"expected sizes that are not negative, got {shape}")
    known = None
    numbers = [dim for dim in shape if isinstance(dim, int)]
    plain_fill = is_plain(fill) and fill is not None
    plain = plain_fill and len(numbers) == len(shape)
    if plain and int(np.prod(numbers)) <= _MAX_CONTENT and category(dtype) < 3:
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
        t: Core, self: Value, *size: Value, dtype: Value = None, device: Value = None, **_: Value
    ) -> Tensor:
        return made(
            t, dtype_of(dtype, self.dtype), sizes(t, size), device_of(device, self.device), fill
        )

    TORCH.function(name)(function)
    TORCH.function(f"{name}_like")(like)
    if not name.startswith("rand"):
        TORCH.method(f"new_{name}")(new)


# Of ``empty`` any content is right.
for _name, _fill in (("zeros", 0), ("ones", 1), ("empty", 0), ("rand", None), ("randn", None)):
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
        operands: What that is called with.
        known: Gives the content, asked for where all sizes are known and small.
    """
    numbers = [dim for dim in shape if isinstance(dim, int)]
    small = len(numbers) == len(shape) and int(np.prod(numbers)) <= _MAX_CONTENT
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
    default = fill_value.dtype if isinstance(fill_value, Tensor) else scalar_dtype(fill_value)
    return _full(t, fill_value, dtype_of(dtype, default), sizes(t, (size,)), device_of(device))


def _full(t: Core, value: Value, dtype: ir.DataType, shape: list[Dim], device: str) -> Tensor:
    """Return a tensor filled with a number, which only the run may know."""
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


@TORCH.function("randint")
def randint(
    t: Core, *arguments: Value, dtype: Value = None, device: Value = None, **keywords: Value
) -> Tensor:
    """Return random integers: ``randint(low=0, high, size)``."""
    size = keywords.get("size", arguments[-1] if arguments else None)
    if not isinstance(size, tuple | list):
        t.fail("type", f"randint takes its size as a tuple, got {t.show(t.wrap(size))}",
               remedy="write randint(low, high, (n,))")  # fmt: skip
    return made(t, dtype_of(dtype, INT64), sizes(t, (size,)), device_of(device))


@TORCH.function("randint_like")
def randint_like(t: Core, input: Value, *_: Value, dtype: Value = None, **__: Value) -> Tensor:
    """Return random integers in the shape of another tensor."""
    x = need_tensor(t, input, "input")
    return made(t, dtype_of(dtype, x.dtype), list(shape_of(t, x)), x.device)


@TORCH.function("randperm")
def randperm(t: Core, n: Value, *, device: Value = None, dtype: Value = None, **_: Value) -> Tensor:
    """Return the numbers below ``n`` in random order."""
    return made(t, dtype_of(dtype, INT64), [n], device_of(device))


@TORCH.function("normal", "bernoulli", "poisson")
def normal(
    t: Core,
    mean: Value,
    *arguments: Value,
    size: Value = None,
    generator: Value = None,
    device: Value = None,
    **_: Value,
) -> Tensor:
    """Return random numbers in the shape of the parameters, or of ``size``."""
    shape = size if size is not None else next((a for a in arguments if isinstance(a, tuple)), None)
    if shape is not None:
        return made(t, FLOAT, sizes(t, (shape,)), device_of(device))
    tensors = [v for v in (mean, *arguments) if isinstance(v, Tensor)]
    x = tensors[0] if len(tensors) == 1 else promote(t, *tensors)[0]
    return t.emit.typed("RandomNormal", tensors, x.dtype, x.shape)


@TORCH.function("multinomial", methods=("multinomial",))
def multinomial(
    t: Core, input: Value, num_samples: Value, replacement: Value = False, **_: Value
) -> Tensor:
    """Return drawn categories: (..., num_samples)."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    if len(shape) not in (1, 2):
        t.fail("rank", f"multinomial takes one or two axes, got {t.show(x)}", x)
    return t.emit.typed("Multinomial", [x], INT64, (*shape[:-1], num_samples))


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
) -> Tensor:
    """Return known content as a tensor; nested lists may hold sizes and scalars."""
    content = data[0] if len(data) == 1 else list(data)
    if isinstance(content, Tensor):
        moved = t.emit.on(content, device_of(device, content.device))
        x = moved.seen_as("torch.Tensor")
        return cast(t, x, dtype_of(dtype, x.dtype))
    if isinstance(content, Many):
        element = content.element
        inner = shape_of(t, element) if isinstance(element, Tensor) else ()
        default = element.dtype if isinstance(element, Tensor) else scalar_dtype(element)
        return made(t, dtype_of(dtype, default), [content.length, *inner], device_of(device))
    items = _flat(content)
    default = result_dtype(items) if items else FLOAT
    if any(isinstance(i, Many | Tensor | Real | Truth) for i in items):
        shape, wanted = _extent(content), dtype_of(dtype, default)
        if any(isinstance(i, Many) for i in items) or category(wanted) == 3:
            return made(t, wanted, list(shape), device_of(device))
        stacked = built(t, (wanted, shape), lambda: _stacked(t, content, wanted))
        return t.emit.on(stacked, device_of(device))
    array = as_array(content, default)
    x = made(t, default, list(array.shape), device_of(device))
    if array.size <= _MAX_CONTENT:
        x.known = array if array.dtype == object else array.astype(default.numpy())
        x.value = t.op("Identity", x).value
    return cast(t, x, dtype_of(dtype, default))


def _stacked(t: Core, content: Value, dtype: ir.DataType) -> Tensor:
    """Return nested lists of tensors and numbers as one tensor."""
    if not isinstance(content, list | tuple):
        return cast(t, to_tensor(t, content), dtype)
    found = [op("Unsqueeze", _stacked(t, part, dtype), [0]) for part in content]
    return op("Concat", *found, axis=0) if len(found) > 1 else found[0]


def _flat(content: Value) -> list[Value]:
    if isinstance(content, list | tuple):
        return [leaf for part in content for leaf in _flat(part)]
    return [content]


def _extent(content: Value) -> tuple[Dim, ...]:
    if isinstance(content, Tensor):
        return content.shape or ()
    if isinstance(content, Many):
        return (content.length,)
    if not isinstance(content, list | tuple):
        return ()
    return (len(content), *(_extent(content[0]) if content else ()))


@TORCH.function("scalar_tensor")
def scalar_tensor(t: Core, s: Value, *, dtype: Value = None, **keywords: Value) -> Tensor:
    """Return a number as a tensor, float32 if nothing else is said."""
    return tensor(t, s, dtype=dtype or DType(FLOAT), **keywords)


def _class(name: str, dtype: ir.DataType) -> None:
    def function(t: Core, *arguments: Value, **keywords: Value) -> Tensor:
        if len(arguments) == 1 and not is_size(arguments[0]):
            return tensor(t, arguments[0], dtype=DType(dtype), **keywords)
        return made(t, dtype, sizes(t, arguments), "cpu", 0)

    TORCH.function(name)(function)


for _name, _dtype in (
    ("Tensor", FLOAT), ("FloatTensor", FLOAT), ("DoubleTensor", ir.DataType.DOUBLE),
    ("HalfTensor", ir.DataType.FLOAT16), ("LongTensor", INT64), ("IntTensor", ir.DataType.INT32),
    ("BoolTensor", BOOL), ("ByteTensor", ir.DataType.UINT8),
):  # fmt: skip
    _class(_name, _dtype)


@TORCH.function("empty_strided")
def empty_strided(
    t: Core, size: Value, stride: Value, *, dtype: Value = None, device: Value = None, **_: Value
) -> Tensor:
    """Return a tensor of any content."""
    return made(t, dtype_of(dtype), sizes(t, (size,)), device_of(device), 0)


@TORCH.function("range")
def inclusive_range(
    t: Core, start: Value, end: Value, step: Value = 1, *, dtype: Value = None,
    device: Value = None, **_: Value,
) -> Tensor:  # fmt: skip
    """Return the numbers from start to end (inclusive), float32."""
    length = floordiv(end - start, step) + 1
    wanted = dtype_of(dtype)
    return placed(
        t, wanted, [length], device_of(device), filling.counted, start, length, step, wanted
    )


@TORCH.method("new_tensor")
def new_tensor(
    t: Core, self: Value, data: Value, *, dtype: Value = None, device: Value = None, **_: Value
) -> Tensor:
    """Return known content with the element type and device of a tensor."""
    return t.emit.on(
        tensor(t, data, dtype=dtype or DType(self.dtype)), device_of(device, self.device)
    )


@TORCH.function("arange")
def arange(
    t: Core, *bounds: Value, dtype: Value = None, device: Value = None, **keywords: Value
) -> Tensor:
    """Return the numbers from start to end (exclusive)."""
    given = [*bounds, *(keywords[k] for k in ("start", "end", "step") if k in keywords)]
    values = [
        t.tensor_number(b, whole=b.dtype.is_integer()) if isinstance(b, Tensor) else b
        for b in given
    ]
    start, end, step = (0, values[0], 1) if len(values) == 1 else (*values, 1)[:3]
    default = INT64 if all(map(is_size, (start, end, step))) else FLOAT
    if all(map(is_plain, (start, end, step))):
        if step == 0 or (end - start) * step < 0:
            t.fail("value", f"arange from {start} to {end} cannot be reached with step {step}")
        known = np.arange(start, end, step)
        if len(known) > _MAX_CONTENT and category(dtype_of(dtype, default)) < 3:
            content = known.astype(dtype_of(dtype, default).numpy())
            return t.op("Identity", content, device=device_of(device))
        x = made(t, dtype_of(dtype, default), [len(known)], device_of(device))
        if len(known) <= _MAX_CONTENT:
            x.known = known.astype(x.dtype.numpy())
            x.value = t.op("Identity", x).value
        return x
    if default == INT64:
        if isinstance(step, int) and step < 0:
            length = ceildiv(start - end, -step)
        else:
            length = ceildiv(end - start, step)
        count = _not_negative(t, length)
        wanted = dtype_of(dtype, INT64)
        return placed(
            t, wanted, [count], device_of(device), filling.counted, start, count, step, wanted
        )
    formula = _length(start, end, step)
    return made(
        t,
        dtype_of(dtype, FLOAT),
        [formula if formula is not None else t.emit.fresh("arange")],
        device_of(device),
    )


def _not_negative(t: Core, length: Dim) -> Dim:
    if not isinstance(length, Expr):
        return max(0, length)
    from hagane.symbolic.path import Verdict

    found = t.knowledge.ask(t.knowledge.less(0, length, strict=False))
    return length if found.verdict is Verdict.PROVED else maximum(0, length)


def _length(start: Value, end: Value, step: Value) -> Dim | None:
    from hagane.frontends.python.interpret.arithmetic import exact, round_up
    from hagane.symbolic.expression import multiply

    first, last, by = exact(start), exact(end), exact(step)
    if first is None or last is None or by is None or isinstance(by, Expr) or by <= 0:
        return None
    from fractions import Fraction

    return round_up(multiply(last - first, 1 / Fraction(by)))


@TORCH.function("linspace")
def linspace(
    t: Core, start: Value, end: Value, steps: Value, *, dtype: Value = None,
    device: Value = None, **_: Value,
) -> Tensor:  # fmt: skip
    """Return ``steps`` numbers from start to end, both included."""
    count, wanted = size_of(t, steps), dtype_of(dtype)
    numbers = [isinstance(v, int | float | Tensor) for v in (start, end)]
    if not all(numbers):
        return made(t, wanted, [count], device_of(device))
    bounds = [
        cast(t, v, ir.DataType.DOUBLE) if isinstance(v, Tensor) else np.array(v, np.float64)
        for v in (start, end)
    ]
    return placed(t, wanted, [count], device_of(device), filling.spaced_as, *bounds, count,
                  wanted, True)  # fmt: skip


@TORCH.function("logspace")
def logspace(
    t: Core, start: Value, end: Value, steps: Value, base: Value = 10.0, *, dtype: Value = None,
    device: Value = None, **_: Value,
) -> Tensor:  # fmt: skip
    """Return powers of a base whose exponents are ``steps`` numbers from start to end."""
    wanted = dtype_of(dtype)
    exponents = linspace(t, start, end, steps, dtype=DType(ir.DataType.DOUBLE))
    powers: Tensor = t.call_library("torch.pow", [base, exponents])
    return t.emit.on(cast(t, powers, wanted), device_of(device))


@TORCH.function("eye")
def eye(
    t: Core, n: Value, m: Value = None, *, dtype: Value = None, device: Value = None, **_: Value
) -> Tensor:
    """Return an identity matrix."""
    rows = size_of(t, n)
    shape, wanted = [rows, rows if m is None else size_of(t, m)], dtype_of(dtype)
    return placed(
        t, wanted, shape, device_of(device), filling.identity, *shape, 0, wanted,
        known=lambda: np.eye(int(str(shape[0])), int(str(shape[1]))),
    )  # fmt: skip


@TORCH.function("meshgrid")
def meshgrid(t: Core, *tensors: Value, indexing: Value = "ij") -> Value:
    """Return coordinates of a grid over one-dimensional tensors."""
    given = (
        list(tensors[0])
        if len(tensors) == 1 and isinstance(tensors[0], list | tuple)
        else list(tensors)
    )
    lengths = [shape_of(t, need_tensor(t, x, "tensors"), 1)[0] if x.shape else 1 for x in given]
    order = list(range(len(lengths)))
    if indexing == "xy" and len(lengths) > 1:
        order[0], order[1] = 1, 0
    full = tuple(lengths[axis] for axis in order)
    return tuple(
        built(t, (x.dtype, full), lambda x, place=place: filling.on_grid(
            x, lengths, place, order), x)
        for place, x in enumerate(given)
    )  # fmt: skip


def _triangle(name: str) -> None:
    upper = name == "triu_indices"

    def indices(t: Core, row: Value, col: Value, offset: Value = 0, **_: Value) -> Tensor:
        rows, columns = size_of(t, row), size_of(t, col)
        if is_plain((rows, columns, offset)):
            count: Dim = len(getattr(np, name)(rows, offset, columns)[0])
        else:
            count = t.emit.fresh("triangle")
        if not isinstance(offset, int):
            return made(t, INT64, [2, count], "cpu")
        rule = partial(filling.triangle_places, upper=upper)
        return placed(t, INT64, [2, count], "cpu", rule, rows, columns, offset)

    TORCH.function(name)(indices)


_triangle("tril_indices")
_triangle("triu_indices")


@TORCH.function("complex", "polar")
def complex_(t: Core, real: Value, imag: Value) -> Tensor:
    """Return a complex tensor from two real ones."""
    a, b = promote(t, real, imag)
    from hagane.frontends.libraries.torch.functions.elementwise import broadcast_typed

    return broadcast_typed(t, "Complex", a, b, ir.DataType.COMPLEX64)


@TORCH.function("view_as_real")
def view_as_real(t: Core, input: Value) -> Tensor:
    """Return real and imaginary parts in a last axis of 2."""
    return t.emit.typed("ViewAsReal", [input], FLOAT, (*shape_of(t, input), 2))


@TORCH.function("view_as_complex")
def view_as_complex(t: Core, input: Value) -> Tensor:
    """Return a complex tensor from a last axis of 2."""
    shape = shape_of(t, input)
    if not shape or t.emit.differ(shape[-1], 2):
        t.fail("shape-mismatch", f"expected a last axis of 2, got {t.show(input)}", input)
    return t.emit.typed("ViewAsComplex", [input], ir.DataType.COMPLEX64, shape[:-1])
