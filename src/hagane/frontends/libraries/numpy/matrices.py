"""Matrices, grids and their places of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.numpy.creating import made
from hagane.frontends.libraries.numpy.operands import (
    DOUBLE,
    INT64,
    MAX_CONTENT,
    dtype_of,
    new,
    shape_of,
    size,
    sizes,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    DType,
    Host,
    Tensor,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.tensors import filling, parts
from hagane.symbolic import Dim, maximum


@NUMPY.function("eye", "identity")
def eye(
    t: Core, N: Value, M: Value = None, k: Value = 0, dtype: Value = None, **_: Value
) -> Tensor:
    """Return an identity matrix."""
    if isinstance(M, DType | Host | str):  # identity(n, dtype)
        M, dtype = None, M
    rows = size(t, N)
    shape = (rows, rows if M is None else size(t, M))
    wanted = dtype_of(t, dtype, DOUBLE)
    if not isinstance(k, int) or wanted.numpy().kind == "c":
        return new(t, wanted, shape)
    return made(t, wanted, shape, lambda: np.eye(N, M, k), filling.identity, *shape, k, wanted)


@NUMPY.function("tri")
def tri(t: Core, N: Value, M: Value = None, k: Value = 0, dtype: Value = None) -> Tensor:
    """Return a triangle of ones."""
    rows = size(t, N)
    shape = (rows, rows if M is None else size(t, M))
    wanted = dtype_of(t, dtype, DOUBLE)
    if not isinstance(k, int) or wanted.numpy().kind == "c":
        return new(t, wanted, shape)
    return made(t, wanted, shape, lambda: np.tri(N, M, k), filling.triangle, *shape, k, wanted)


@NUMPY.function("tril")
def tril(t: Core, m: Value, k: Value = 0) -> Tensor:
    """Return the lower triangle of the last two axes."""
    return _triangle_of(t, m, k, upper=False)


@NUMPY.function("triu")
def triu(t: Core, m: Value, k: Value = 0) -> Tensor:
    """Return the upper triangle of the last two axes."""
    return _triangle_of(t, m, k, upper=True)


def _triangle_of(t: Core, m: Value, k: Value, *, upper: bool) -> Tensor:
    x = to_array(t, m)
    shape = shape_of(t, x)
    if not shape:
        t.fail("rank", f"expected at least one axis, got {t.show(x)}", x)
    if len(shape) == 1:
        shape = (*shape, *shape)
        x = typed(t, "Expand", [x], x.dtype, shape, None, lambda x: op("Expand", x, list(shape)))
    if not isinstance(k, int) or x.dtype.numpy().kind == "c":
        return typed(t, "Trilu", [x], x.dtype, shape)
    return built(t, (x.dtype, shape), partial(filling.cut_to_triangle, upper=upper), x, k)


@NUMPY.function("diag")
def diag(t: Core, v: Value, k: Value = 0) -> Tensor:
    """Return the diagonal of a matrix, or a matrix with a diagonal."""
    x = to_array(t, v)
    shape = shape_of(t, x)
    if len(shape) not in (1, 2):
        t.fail("rank", f"expected one or two axes, got {t.show(x)}", x)
    if len(shape) == 1:
        side = shape[0] + (abs(k) if isinstance(k, int) else t.emit.fresh("diagonal"))
        rule = partial(parts.diagonal_matrix, offset=k) if isinstance(k, int) else None
        return typed(t, "Diag", [x], x.dtype, (side, side), None, rule)
    return diagonal(t, x, k)


def _diagonal(t: Core, rows: Dim, columns: Dim, offset: Value) -> Dim:
    from hagane.symbolic import minimum

    if not isinstance(offset, int):
        return t.emit.fresh("diagonal")
    rows, columns = (rows, columns - offset) if offset >= 0 else (rows + offset, columns)
    return maximum(0, minimum(rows, columns))


@NUMPY.function("linalg.diagonal")
def matrix_diagonal(t: Core, x: Value, /, *, offset: Value = 0) -> Tensor:
    """Return the diagonals of matrices, the last two axes."""
    return diagonal(t, x, offset, -2, -1)


@NUMPY.function("diagonal", methods=("diagonal",))
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
    if not isinstance(offset, int):
        return typed(t, "Diagonal", [x], x.dtype, (*rest, count))
    return typed(t, "Diagonal", [x], x.dtype, (*rest, count), None,
                 lambda x: parts.diagonal(x, offset, first, second, count))  # fmt: skip


@NUMPY.function("diagflat")
def diagflat(t: Core, v: Value, k: Value = 0) -> Tensor:
    """Return a matrix with the flattened input on its diagonal."""
    from hagane.frontends.libraries.numpy.operands import elements

    x = to_array(t, v)
    side = elements(t, x) + (abs(k) if isinstance(k, int) else t.emit.fresh("diagonal"))
    if not isinstance(k, int):
        return typed(t, "Diag", [x], x.dtype, (side, side))
    return typed(t, "Diag", [x], x.dtype, (side, side), None,
                 lambda x: parts.diagonal_matrix(parts.flat(x), k))  # fmt: skip


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
        ones = [counts[i] if i == place else 1 for i in order]
        spread = partial(_on_grid, ones=ones, full=full)
        grids.append(typed(t, "MeshGrid", [x], x.dtype, tuple(full), None, spread))
    return tuple(grids)


def _on_grid(x: Any, ones: list[Dim], full: list[Dim]) -> Any:
    return op("Expand", parts.resized(x, ones), full)


def _flat(shape: tuple[Dim, ...]) -> Dim:
    from hagane.symbolic import product

    return product(shape)


@NUMPY.function("indices")
def indices(t: Core, dimensions: Value, dtype: Value = None, sparse: Value = False) -> Tensor:
    """Return the coordinates of a grid in one array."""
    counts = sizes(t, dimensions)
    wanted, shape = dtype_of(t, dtype, INT64), (len(counts), *counts)
    if sparse or not counts or wanted.numpy().kind == "c":
        return new(t, wanted, shape)
    return made(
        t, wanted, shape, lambda: np.indices(tuple(int(str(n)) for n in counts)),
        filling.coordinates, counts, wanted,
    )  # fmt: skip


@NUMPY.function("tril_indices")
def tril_indices(t: Core, n: Value, k: Value = 0, m: Value = None) -> Value:
    """Return the places of the lower triangle as two arrays."""
    return _triangle_indices(t, n, k, m, upper=False)


@NUMPY.function("triu_indices")
def triu_indices(t: Core, n: Value, k: Value = 0, m: Value = None) -> Value:
    """Return the places of the upper triangle as two arrays."""
    return _triangle_indices(t, n, k, m, upper=True)


def _triangle_indices(t: Core, n: Value, k: Value, m: Value, *, upper: bool) -> Value:
    rows = size(t, n)
    columns = rows if m is None else size(t, m)
    if not isinstance(k, int):
        count: Dim = t.emit.fresh("triangle")
        return tuple(new(t, INT64, (count,)) for _ in range(2))
    known: Sequence[Any]
    if isinstance(rows, int) and isinstance(columns, int):
        known = (np.triu_indices if upper else np.tril_indices)(rows, k, columns)
        count = len(known[0])
    else:
        known, count = (None, None), t.emit.fresh("triangle")
    found = []
    for place in range(2):
        content = known[place]
        if content is not None and content.size <= MAX_CONTENT:
            found.append(new(t, INT64, (count,), content))
        else:
            rule = partial(_triangle_row, rows, columns, k, upper, place)
            found.append(built(t, (INT64, (count,)), rule))
    return tuple(found)


def _triangle_row(rows: Dim, columns: Dim, offset: int, upper: bool, place: int) -> Any:
    places = filling.triangle_places(rows, columns, offset, upper=upper)
    return op("Gather", places, np.array(place), axis=0)
