"""Functions of PyTorch that make tensors of numbers by their place."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.torch.functions.arrays.creating import MAX_CONTENT, made, placed
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    INT64,
    cast,
    category,
    device_of,
    dtype_of,
    need_tensor,
    same_dtype,
    shape_of,
    to_tensor,
)
from hagane.frontends.libraries.torch.operands import size as size_of
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.arithmetic import exact, round_up
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    DType,
    Real,
    Tensor,
    Value,
    is_plain,
    is_size,
)
from hagane.ops.functions.tensors import filling
from hagane.symbolic import Dim, Expr, ceildiv, floordiv, maximum
from hagane.symbolic.expression import multiply
from hagane.symbolic.questions import denominator


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
    if default == FLOAT and category(dtype_of(dtype, FLOAT)) == 1:
        return _cut_to_integers(t, start, end, step, dtype_of(dtype), device_of(device))
    if all(map(is_plain, (start, end, step))):
        if step == 0 or (end - start) * step < 0:
            t.fail("value", f"arange from {start} to {end} cannot be reached with step {step}")
        known = np.arange(start, end, step)
        if len(known) > MAX_CONTENT and category(dtype_of(dtype, default)) < 3:
            content = known.astype(dtype_of(dtype, default).numpy())
            return t.op("Identity", content, device=device_of(device))
        x = made(t, dtype_of(dtype, default), [len(known)], device_of(device))
        if len(known) <= MAX_CONTENT:
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
    formula, wanted = _length(start, end, step), dtype_of(dtype, FLOAT)
    first = start if isinstance(start, int | float) else exact(start)
    is_known = isinstance(first, int | float) or is_size(first)
    if formula is None or category(wanted) != 2 or not is_known:
        return made(t, wanted, [t.emit.fresh("arange") if formula is None else formula],
                    device_of(device))  # fmt: skip
    count = _not_negative(t, formula)
    return placed(t, wanted, [count], device_of(device), filling.paced, first, count, step, wanted)


def _cut_to_integers(
    t: Core, start: Value, end: Value, step: Value, dtype: ir.DataType, device: str
) -> Tensor:
    """Return the numbers between bounds that are no integers, as integers.

    PyTorch cuts the digits behind the point from the first number and the step, for int64 from the
    end too, before it counts; for other types it counts with them.
    """
    first, by = _cut(t, start), _cut(t, step)
    if dtype == INT64:
        last = _cut(t, end)
        count = None if None in (first, last, by) or by == 0 else _length(first, last, by)
        if by == 0:
            t.fail("value", f"expected a step of arange other than zero as int64, got {step}")
    else:
        count = _length(start, end, step)
    if count is None or first is None or by is None:
        return made(t, dtype, [t.emit.fresh("arange") if count is None else count], device)
    count = _not_negative(t, count)
    return placed(t, dtype, [count], device, filling.counted, first, count, by, dtype)


def _cut(t: Core, number: Value) -> Dim | None:
    """Return a number without the digits behind its point; None where it has no formula."""
    if isinstance(number, float):
        return int(number) if math.isfinite(number) else None
    formula = exact(number)
    if isinstance(formula, int | None):
        return formula
    scale = denominator(formula)
    top = multiply(formula, scale)
    if t.knowledge.is_nonnegative(top):
        return floordiv(top, scale)
    return -floordiv(-top, scale) if t.knowledge.is_nonnegative(-top) else None


def _not_negative(t: Core, length: Dim) -> Dim:
    if not isinstance(length, Expr):
        return max(0, length)
    from hagane.symbolic.path import Verdict

    found = t.knowledge.ask(t.knowledge.less(0, length, strict=False))
    return length if found.verdict is Verdict.PROVED else maximum(0, length)


def _length(start: Value, end: Value, step: Value) -> Dim | None:
    first, last, by = exact(start), exact(end), exact(step)
    if first is None or last is None or by is None or isinstance(by, Expr) or by == 0:
        return None
    return round_up(multiply(last - first, 1 / Fraction(by)))


@TORCH.function("linspace")
def linspace(
    t: Core, start: Value, end: Value, steps: Value, *, dtype: Value = None,
    device: Value = None, **_: Value,
) -> Tensor:  # fmt: skip
    """Return ``steps`` numbers from start to end, both included."""
    count, wanted = size_of(t, steps), dtype_of(dtype)
    for name, v in (("start", start), ("end", end)):
        if isinstance(v, Tensor) and v.kind == "torch.Tensor" and shape_of(t, v):
            t.fail("rank", f"expected a number or a tensor without axes as '{name}', got "
                   f"{t.show(v)}", v)  # fmt: skip
    start, end = (
        to_tensor(t, v, ir.DataType.DOUBLE) if isinstance(v, Real) and t.emit.builds else v
        for v in (start, end)
    )
    numbers = [isinstance(v, int | float | Tensor) for v in (start, end)]
    if not all(numbers):
        return made(t, wanted, [count], device_of(device))
    bounds = [
        cast(t, v.seen_as("torch.Tensor"), ir.DataType.DOUBLE)
        if isinstance(v, Tensor)
        else np.array(v, np.float64)
        for v in (start, end)
    ]
    return placed(t, wanted, [count], device_of(device), filling.spaced_as, *bounds, count,
                  wanted)  # fmt: skip


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
    found = [need_tensor(t, x, "tensors") for x in given]
    if not found:
        t.fail("value", "meshgrid: expected at least one tensor, got none")
    for x in found[1:]:
        same_dtype(t, found[0], x, "the tensors of meshgrid")
    lengths = [shape_of(t, x, 1)[0] if shape_of(t, x) else 1 for x in found]
    order = list(range(len(lengths)))
    if indexing == "xy" and len(lengths) > 1:
        order[0], order[1] = 1, 0
    full = tuple(lengths[axis] for axis in order)
    return tuple(
        built(t, (x.dtype, full), lambda x, place=place: filling.on_grid(
            x, lengths, place, order), x)
        for place, x in enumerate(found)
    )  # fmt: skip


def _triangle(name: str) -> None:
    upper = name == "triu_indices"

    def indices(
        t: Core, row: Value, col: Value, offset: Value = 0, dtype: Value = None, **_: Value
    ) -> Tensor:
        places = places_of(t, row, col, offset)
        wanted = INT64 if dtype is None else dtype_of(dtype)
        if wanted == INT64:
            return places
        made_: Tensor = t.op("Cast", places, to=int(wanted))
        return made_

    def places_of(t: Core, row: Value, col: Value, offset: Value) -> Tensor:
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
