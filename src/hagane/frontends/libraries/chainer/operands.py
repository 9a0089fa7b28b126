"""Chainer's treatment of operands before it computes, and its type checks of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries import computing
from hagane.frontends.libraries.chainer.table import VARIABLE
from hagane.frontends.libraries.numpy.operands import (
    axes,
    axis,
    broadcast_shape,
    dtype_of,
    shape_of,
    size,
    sizes,
)
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import OPEN, CheckError
from hagane.frontends.python.values.values import (
    Many,
    Tensor,
    Value,
    is_size,
)
from hagane.graph.types import dtype_name
from hagane.symbolic import Dim

FLOAT, INT32, BOOL = ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.BOOL
ARRAYS = ("numpy.ndarray", VARIABLE)


def variable(t: Core, value: Value, name: str = "x") -> Tensor:
    """Return an array or a variable as a variable; numbers are neither."""
    if not isinstance(value, Tensor) or value.kind not in ARRAYS:
        t.fail("type", f"expected a Variable or an array as '{name}', got {t.show(t.wrap(value))}")
    if value.shape is None and value.parameter:
        t.fail("value", f"the parameter '{name}' is not initialised yet", value)
    if value.kind == VARIABLE:
        return value
    return value.seen_as(VARIABLE)


def of_torch(t: Core, name: str, x: Tensor) -> Tensor:
    """Return what PyTorch's function makes of a variable, as a variable."""
    found = t.call_library(f"torch.{name}", [x.seen_as("torch.Tensor")])
    assert isinstance(found, Tensor)
    return found.seen_as(VARIABLE)


def variables(t: Core, values: Value, name: str) -> list[Tensor]:
    """Return the arrays and variables of a list, of which there has to be one at least."""
    if isinstance(values, Many):
        raise CheckError(OPEN, f"'{name}' has a number of variables that is not known")
    if not isinstance(values, tuple | list):
        t.fail("type", f"expected a list of variables as '{name}', got {t.show(t.wrap(values))}")
    if not values:
        t.fail("value", f"expected at least one variable in '{name}'")
    return [variable(t, value, f"{name}[{i}]") for i, value in enumerate(values)]


def kind_of(x: Tensor) -> str:
    """Return NumPy's letter for the kind of elements: f, i, u, b."""
    return str(x.dtype.numpy().kind)


def floating(t: Core, value: Value, name: str = "x") -> Tensor:
    """Return a variable, which has to hold floats."""
    x = variable(t, value, name)
    if kind_of(x) != "f":
        t.fail(
            "dtype-mismatch",
            f"expected floating-point elements in '{name}', got {t.show(x)}",
            x,
            remedy="convert it with F.cast or .astype",
        )
    return x


def same_dtype(t: Core, x: Tensor, y: Tensor, what: str) -> None:
    """Fail unless both have one element type."""
    if x.dtype != y.dtype:
        t.fail(
            "dtype-mismatch",
            f"expected {what} to have one element type, got {dtype_name(x.dtype)} and "
            f"{dtype_name(y.dtype)}",
            x,
            y,
            remedy="convert one of them with F.cast or .astype",
        )


def same_shape(t: Core, x: Tensor, y: Tensor, what: str) -> None:
    """Fail unless both have one shape."""
    a, b = shape_of(t, x), shape_of(t, y)
    if len(a) != len(b) or any(t.emit.differ(i, j) for i, j in zip(a, b, strict=True)):
        t.fail(
            "shape-mismatch", f"expected {what} of one shape, got {t.show(x)} and {t.show(y)}", x, y
        )


def made(t: Core, name: str, inputs: Sequence[Tensor], dtype: ir.DataType, shape: Any) -> Tensor:
    """Return the variable that a function makes of variables."""
    return t.emit.typed(name, [variable(t, x) for x in inputs], dtype, shape)


def computed(
    t: Core, promised: tuple[ir.DataType, Any] | Tensor, function: Callable[..., Any],
    *operands: Any,
) -> Tensor:  # fmt: skip
    """Return the variable that a function over the builder makes of variables."""
    (found,) = computed_parts(t, [promised], lambda *given: (function(*given),), *operands)
    return found


def computed_parts(
    t: Core,
    promised: Sequence[tuple[ir.DataType, Any] | Tensor],
    function: Callable[..., Sequence[Any]],
    *operands: Any,
) -> list[Tensor]:
    """Return the variables that a function over the builder makes of variables."""
    given = [_seen(item) for item in operands]
    found = computing.computed_parts(t, promised, function, *given)
    return [x if x.kind == VARIABLE else x.seen_as(VARIABLE) for x in found]


def _seen(item: Any) -> Any:
    if isinstance(item, Tensor) and item.kind != VARIABLE:
        return item.seen_as(VARIABLE)
    return [_seen(one) for one in item] if isinstance(item, list | tuple) else item


def numbers(values: Sequence[Any]) -> list[int] | None:
    """Return sizes as numbers; None where one of them is a formula."""
    if all(isinstance(value, int) for value in values):
        return [int(str(value)) for value in values]
    return None


def parameter(t: Core, *shape: Value, dtype: ir.DataType = FLOAT) -> Tensor:
    """Return a new parameter."""
    return new_parameter(t, dtype, tuple(size(t, n) for n in shape))


def lazy_parameter(t: Core) -> Tensor:
    """Return a parameter whose shape the first input will tell."""
    return new_parameter(t, FLOAT, None)


def new_parameter(t: Core, dtype: ir.DataType, shape: tuple[Dim, ...] | None) -> Tensor:
    """Return a new parameter; in a graph, where its content would be drawn anew, it has none."""
    if t.emit.builds and shape is not None:
        told = "a parameter that the call makes; call the link once before it is captured"
        made = t.emit.typed(told, [], dtype, shape)
        x: Tensor = made.seen_as(VARIABLE)
    else:
        x = t.emit.new(dtype, shape, kind=VARIABLE)
    x.parameter = True
    return x


def is_lazy(value: Value) -> bool:
    """Whether a parameter has no shape yet."""
    return isinstance(value, Tensor) and value.parameter and value.shape is None


def per_axis(t: Core, value: Value, count: int, what: str) -> list[Dim]:
    """Return ``count`` sizes, given one for all or one each."""
    if isinstance(value, Tensor):
        value = size(t, value)
    if is_size(value) and not isinstance(value, bool):
        return [value] * count
    if isinstance(value, tuple | list) and len(value) == count:
        return [size(t, item) for item in value]
    t.fail(
        "value", f"expected {what} to be an integer or {count} of them, got {t.show(t.wrap(value))}"
    )
    return None


def need_rank(t: Core, x: Tensor, rank: int, what: str) -> tuple[Dim, ...]:
    """Return the shape, which has to have ``rank`` axes."""
    shape = shape_of(t, x, name=what)
    if len(shape) != rank:
        t.fail("rank", f"expected '{what}' to have {rank} axes, got {t.show(x)}", x)
    return shape


__all__ = [
    "BOOL", "FLOAT", "INT32", "axes", "axis", "broadcast_shape", "computed", "computed_parts",
    "dtype_of", "floating", "is_lazy", "kind_of", "lazy_parameter", "made", "need_rank",
    "new_parameter", "numbers", "parameter", "per_axis", "same_dtype", "same_shape", "shape_of",
    "size", "sizes", "variable", "variables",
]  # fmt: skip
