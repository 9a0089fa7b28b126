"""Packed factors of matrices of PyTorch: LU with pivots, reflections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.computing import built, computed_parts
from hagane.frontends.libraries.torch.functions.arrays.creating import made
from hagane.frontends.libraries.torch.functions.numbers.linalg import matrices
from hagane.frontends.libraries.torch.operands import category, need_tensor, shape_of
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Fields,
    Tensor,
    Value,
)
from hagane.ops.functions.numbers.elementary import cast as to_dtype
from hagane.ops.functions.sums import packed
from hagane.symbolic import Dim, minimum

_INT32 = ir.DataType.INT32
_Type = tuple[ir.DataType, tuple[Dim, ...]]


def _parts(
    t: Core, x: Tensor, function: Callable[[Any], Sequence[Any]], *types: _Type
) -> list[Tensor]:
    """Return the several results of a function over the builder, where a graph is built."""
    if t.emit.builds and category(x.dtype) != 3:
        return computed_parts(t, types, function, x)
    return [t.emit.typed("Factors", [x], dtype, shape) for dtype, shape in types]


def _factored(t: Core, A: Value, pivot: Value) -> tuple[list[Tensor], Tensor]:
    x = matrices(t, A, "lu_factor")
    *lead, rows, columns = shape_of(t, x)
    if pivot is not True:
        t.fail("value", f"LU without pivots is not there on CPUs, got pivot={t.show(pivot)}", x,
               remedy="leave out pivot=False")  # fmt: skip
    found = _parts(t, x, packed.triangular, (x.dtype, shape_of(t, x)),
                   (_INT32, (*lead, minimum(rows, columns))))  # fmt: skip
    return found, x


@TORCH.function("linalg.lu_factor")
def lu_factor(t: Core, A: Value, *, pivot: Value = True) -> Value:
    """Return L and U in one matrix, and the pivots."""
    return Fields(_factored(t, A, pivot)[0], ("LU", "pivots"))


@TORCH.function("linalg.lu_factor_ex")
def lu_factor_ex(t: Core, A: Value, *, pivot: Value = True, check_errors: Value = False) -> Value:
    """Return L and U in one matrix, the pivots, and the place of the first zero in U, or 0."""
    found, x = _factored(t, A, pivot)
    info = built(t, (_INT32, shape_of(t, x)[:-2]), packed.failed, found[0])
    return Fields((*found, info), ("LU", "pivots", "info"))


@TORCH.function("lu_unpack")
def lu_unpack(
    t: Core, LU_data: Value, LU_pivots: Value, unpack_data: Value = True,
    unpack_pivots: Value = True,
) -> Value:  # fmt: skip
    """Return P, L and U, without elements where they are not asked for."""
    x, pivots = matrices(t, LU_data, "lu_unpack"), need_tensor(t, LU_pivots, "LU_pivots")
    if pivots.dtype != _INT32:
        t.fail("dtype-mismatch", f"lu_unpack: expected int32 as LU_pivots, got {t.show(pivots)}",
               pivots)  # fmt: skip
    *lead, rows, columns = shape_of(t, x)
    least = minimum(rows, columns)
    P = L = U = made(t, x.dtype, [0], "cpu", 0)
    if unpack_pivots:
        P = built(t, (x.dtype, (*lead, rows, rows)),
                  lambda p: to_dtype(packed.permutation(p, rows), x.dtype), pivots)  # fmt: skip
    if unpack_data:
        L = built(t, (x.dtype, (*lead, rows, least)), packed.lower, x)
        U = built(t, (x.dtype, (*lead, least, columns)), packed.upper, x)
    return Fields((P, L, U), ("P", "L", "U"))


@TORCH.function("geqrf", methods=("geqrf",))
def geqrf(t: Core, input: Value) -> Value:
    """Return R with the vectors of reflections below its diagonal, and their scales."""
    x = matrices(t, input, "geqrf")
    *lead, rows, columns = shape_of(t, x)
    found = _parts(t, x, packed.reflections, (x.dtype, shape_of(t, x)),
                   (x.dtype, (*lead, minimum(rows, columns))))  # fmt: skip
    return Fields(found, ("a", "tau"))
