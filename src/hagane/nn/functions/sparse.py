"""Sparse matrices by their entries, and products with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import function, promoted, shape_of
from hagane.ops.builder import op
from hagane.ops.functions.numbers.elementary import swapped


class CooMatrix:
    """A sparse matrix, or a row of them, by the places of its entries.

    Args:
        data: The entries, (entries,) or (batch, entries).
        row: Their rows, int32 of the same sizes; -1 for entries that are not there.
        col: Their columns.
        shape: Rows and columns of the whole matrix.
        order: ``C`` where rows are sorted, ``F`` where columns are, else ``other``; found if None.
        requires_grad: Whether the entries get a gradient.
    """

    def __init__(
        self,
        data: Any,
        row: Any,
        col: Any,
        shape: Any,
        order: str | None = None,
        requires_grad: bool = False,
    ):
        if not 1 <= data.ndim <= 2:
            raise ValueError(f"ndim of data must be 1 or 2, got {data.ndim}")
        if not data.ndim == row.ndim == col.ndim:
            raise ValueError("ndim of data, row and col must be the same.")
        if len(shape) != 2:
            raise ValueError(f"length of shape must be 2, got {shape}")
        if not (shape[0] > 0 and shape[1] > 0):
            raise ValueError(f"numbers in shape must be greater than 0, got {shape}")
        if order not in ("C", "F", "other", None):
            raise ValueError(f"order must be 'C', 'F', 'other' or None, got {order!r}")
        self.data = Variable(data, requires_grad=requires_grad)
        self.row, self.col, self.shape = row, col, shape
        self.order = get_order(row, col) if order is None else order

    def to_dense(self) -> Any:
        """Return the whole matrix, or the matrices (batch, rows, columns), as an array."""
        data, row, col = (np.atleast_2d(x) for x in (self.data.array, self.row, self.col))
        found = np.zeros((len(data), *self.shape), data.dtype)
        there = (row >= 0) & (col >= 0)
        samples = np.broadcast_to(np.arange(len(data))[:, None], row.shape)
        np.add.at(found, (samples[there], row[there], col[there]), data[there])
        return found if self.data.ndim == 2 else found[0]


def to_coo(x: Any, ldnz: int | None = None, requires_grad: bool = False) -> CooMatrix:
    """Return the entries of a matrix, or of matrices (batch, rows, columns), that are not zero.

    Args:
        x: The array.
        ldnz: The least number of entries that are made room for.
        requires_grad: Whether the entries get a gradient.
    """
    if x.ndim not in (2, 3):
        raise ValueError(f"ndim of x must be 2 or 3, got {x.ndim}")
    matrices = x if x.ndim == 3 else x[None]
    places = [np.nonzero(one) for one in matrices]
    room = max([ldnz or 0, *(len(rows) for rows, _ in places)])
    data = np.zeros((len(matrices), room), x.dtype)
    row, col = np.full((2, len(matrices), room), -1, np.int32)
    for i, (rows, columns) in enumerate(places):
        data[i, : len(rows)] = matrices[i][rows, columns]
        row[i, : len(rows)], col[i, : len(rows)] = rows, columns
    if x.ndim == 2:
        data, row, col = data[0], row[0], col[0]
    return CooMatrix(data, row, col, x.shape[-2:], requires_grad=requires_grad)


def get_order(row: Any, col: Any) -> str:
    """Return ``C`` if places are sorted by row and column, ``F`` by column and row, or ``other``.

    Raises:
        ValueError: Rows and columns don't belong together.
    """
    if _is_sorted(row, col):
        return "C"
    return "F" if _is_sorted(col, row) else "other"


def _is_sorted(first: Any, second: Any) -> bool:
    if first.shape != second.shape:
        raise ValueError("shape of row and col must be the same.")
    if first.ndim != 1:
        return all(_is_sorted(a, b) for a, b in zip(first, second, strict=True))
    if ((first < 0) != (second < 0)).any():
        raise ValueError("invalid index combination of row and col.")
    there = first >= 0
    major, minor = np.diff(first[there]), np.diff(second[there])
    return bool(((major > 0) | ((major == 0) & (minor >= 0))).all())


class CooMatMul:
    """The product of a sparse matrix, whose places are given, and a dense one.

    Args:
        sp_row: Rows of the entries.
        sp_col: Columns of the entries.
        sp_shape: Rows and columns of the sparse matrix.
        sp_order: Kept for programs that say it.
        transa: Whether the sparse matrix is transposed.
        transb: Whether the dense one is.
        transc: Whether the product is.
    """

    def __init__(
        self,
        sp_row: Any,
        sp_col: Any,
        sp_shape: Any,
        sp_order: str = "other",
        transa: bool = False,
        transb: bool = False,
        transc: bool = False,
    ):
        if sp_row.ndim != sp_col.ndim:
            raise ValueError("ndim of sp_row and sp_col must be the same.")
        if sp_row.ndim not in (1, 2):
            raise ValueError(f"ndim of sp_row and sp_col must be one or two, got {sp_row.ndim}")
        for i, one in enumerate(sp_row.shape):
            if one != sp_col.shape[i]:
                raise ValueError("shape of sp_row and sp_col must be the same.")
        if len(sp_shape) != 2:
            raise ValueError(f"len(sp_shape) must be two, got {sp_shape}")
        self.row, self.col = (sp_col, sp_row) if transa else (sp_row, sp_col)
        self.shape = tuple(sp_shape)[::-1] if transa else tuple(sp_shape)
        self.order, self.transb, self.transc = sp_order, transb, transc

    def apply(self, inputs: tuple[Any, Any]) -> tuple[Any]:
        """Return the product of the entries, at their places, and a dense matrix."""
        return (_product(*inputs, self._computed),)

    def _computed(self, data: Any, dense: Any) -> Any:
        data, dense = promoted("sparse_matmul", data, dense)
        sizes = tuple(shape_of(dense))
        if len(sizes) != self.row.ndim + 1 or tuple(shape_of(data)) != self.row.shape:
            raise type_check.refuse(
                "sparse_matmul",
                f"{self.row.ndim + 1} axes, and entries {self.row.shape}",
                f"{sizes} and {tuple(shape_of(data))}",
            )
        if self.transb:
            dense = swapped(dense)
        *batch, inner, columns = shape_of(dense)
        if inner != self.shape[1] or (batch and batch[0] != len(self.row)):
            raise type_check.refuse(
                "sparse_matmul",
                f"a dense matrix of {self.shape[1]} rows and a batch of {self.row.shape[:-1]}",
                f"{tuple(shape_of(dense))}",
            )
        there = (self.row >= 0) & (self.col >= 0)
        # The matrices of a batch lie below each other.
        sample = np.arange(batch[0])[:, None] if batch else 0
        chosen = np.where(there, self.col + sample * inner, 0).reshape(-1)
        target = np.where(there, self.row + sample * self.shape[0], 0).reshape(-1)
        rows = op("Gather", op("Reshape", dense, [-1, columns]), chosen.astype(np.int64), axis=0)
        entries = op("Mul", data, there.astype(data.dtype))
        parts = op("Mul", rows, op("Reshape", entries, [-1, 1]))
        zeros = np.zeros((int(np.prod(batch, dtype=np.int64)) * self.shape[0], columns), data.dtype)
        made = op("ScatterND", zeros, target.astype(np.int64)[:, None], parts, reduction="add")
        made = op("Reshape", made, [*batch, self.shape[0], columns])
        return swapped(made) if self.transc else made


@function("data", "dense", name="sparse_matmul")
def _product(data: Any, dense: Any, compute: Callable[[Any, Any], Any]) -> Any:
    return compute(data, dense)


def sparse_matmul(a: Any, b: Any, transa: bool = False, transb: bool = False) -> Any:
    """Return the product of a sparse and a dense matrix, or of stacks of them.

    Args:
        a: A ``CooMatrix``, or a variable if ``b`` is one.
        b: Likewise.
        transa: Whether the matrices of ``a`` are transposed first.
        transb: Whether those of ``b`` are.
    """
    if isinstance(a, CooMatrix) and isinstance(b, Variable | np.ndarray):
        product = CooMatMul(a.row, a.col, a.shape, a.order, transa, transb, False)
        return product.apply((a.data, b))[0]
    if isinstance(b, CooMatrix) and isinstance(a, Variable | np.ndarray):
        product = CooMatMul(b.row, b.col, b.shape, b.order, not transb, not transa, True)
        return product.apply((b.data, a))[0]
    raise ValueError(
        f"sparse_matmul: expected one CooMatrix and one dense array, got {type(a)} and {type(b)}"
    )
