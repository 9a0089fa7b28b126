"""Factors of matrices (last two axes) as LAPACK packs them: LU with pivots, reflections and R.

Each is a loop of as many iterations as there are columns, so that sizes may be symbolic.

Source: Golub and Van Loan, Matrix Computations, 3.4 and 5.1; LAPACK's getrf and geqrf.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, loop, op, rank_of, shape_of
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    mul,
    neg,
    sqrt,
    square,
    sub,
    swapped,
    unsqueeze,
    where,
)
from hagane.ops.functions.sums.factors import (
    column_of,
    count_of,
    numbers_below,
    row_of,
    total_along,
)
from hagane.ops.functions.sums.products import matrix_product
from hagane.ops.functions.tensors.filling import identity
from hagane.ops.functions.tensors.parts import part
from hagane.symbolic import Dim, minimum


def _exchanged(x: Any, k: Any, pivot: Any, down: Any) -> Any:
    """Return matrices of which row ``k`` and the row of each pivot (..., 1, 1) have changed."""
    places = where(op("Equal", down, k), pivot, where(op("Equal", down, pivot), k, down))
    return op("GatherElements", x, op("Expand", places, list(shape_of(x))), axis=-2)


def _zeros(x: Any, axis: int, count: Dim, dtype: ir.DataType) -> Any:
    """Return zeros of the shape of matrices with one row or column, repeated ``count`` times."""
    one = op("ReduceSum", mul(x, number_like(0, x)), [rank_of(x) - 2, rank_of(x) - 1], keepdims=1)
    sizes = [*shape_of(x)[:-2], 1, 1]
    sizes[axis] = count
    return op("Expand", cast(where(op("IsNaN", one), number_like(0, x), one), dtype), sizes)


def triangular(x: Any) -> tuple[Any, Any]:
    """Return L below the diagonal and U from it on, and the pivots: int32, from 1 on.

    Rows are exchanged for the largest element of each column. A column of zeros stays as it is.

    Args:
        x: (..., rows, columns), floats.

    Returns:
        (..., rows, columns) and (..., k); k is the smaller of rows and columns.
    """
    rows, columns = shape_of(x)[-2:]
    count = minimum(rows, columns)
    kept = _zeros(x, -1, count, ir.DataType.INT64)
    if count == 0:
        return op("Identity", x), cast(op("Squeeze", kept, [-2]), ir.DataType.INT32)
    down = numbers_below(rows, down=True)
    across, places = (numbers_below(n, down=False) for n in (columns, count))
    zero, one = number_like(0, x), number_like(1, x)

    def step(k: Any, going: Any, a: Any, pivots: Any) -> list[Any]:
        size = where(op("Less", down, k), number_like(-1, x), op("Abs", column_of(a, k)))
        pivot = op("ArgMax", size, axis=-2, keepdims=1)
        a = _exchanged(a, k, pivot, down)
        top, column = row_of(a, k), column_of(a, k)
        chosen = row_of(column, k)
        none = op("Equal", chosen, zero)
        below = op("Greater", down, k)
        factor = where(below, div(column, where(none, one, chosen)), zero)
        rest = sub(a, mul(factor, where(op("Greater", across, k), top, zero)))
        a = where(op("And", below, op("Equal", across, k)), factor, rest)
        return [going, a, where(op("Equal", places, k), pivot, pivots)]

    a, pivots = loop(count_of(count), np.array(True), [x, kept], step)
    pivots = op("Squeeze", add(pivots, np.array(1)), [-2])
    return a, cast(pivots, ir.DataType.INT32)


def lower(packed: Any) -> Any:
    """Return L of packed factors (..., rows, columns): (..., rows, k)."""
    rows, columns = shape_of(packed)[-2:]
    least = minimum(rows, columns)
    below = op("Trilu", part(packed, rank_of(packed) - 1, 0, least), np.array(-1), upper=0)
    return add(below, identity(rows, least, 0, dtype_of(packed)))


def upper(packed: Any) -> Any:
    """Return U of packed factors (..., rows, columns): (..., k, columns)."""
    least = minimum(*shape_of(packed)[-2:])
    return op("Trilu", part(packed, rank_of(packed) - 2, 0, least), np.array(0), upper=1)


def permutation(pivots: Any, rows: Dim) -> Any:
    """Return the matrices P, bool, whose product with L and U is the factored matrix.

    Args:
        pivots: The rows that rows 0, 1, … were exchanged for, from 1 on: (..., count), int32.
        rows: The number of rows.
    """
    count = shape_of(pivots)[-1]
    chosen = sub(cast(unsqueeze(pivots, [-1]), ir.DataType.INT64), np.array(1))
    down = numbers_below(rows, down=True)
    across = numbers_below(rows, down=False)
    order = op("Expand", down, [*shape_of(pivots)[:-1], rows, 1])
    if count != 0:

        def step(k: Any, going: Any, order: Any) -> list[Any]:
            return [going, _exchanged(order, k, row_of(chosen, k), down)]

        order = loop(count_of(count), np.array(True), [order], step)[0]
    return swapped(op("Equal", order, across))


def failed(packed: Any) -> Any:
    """Return the place, from 1 on, of the first zero on the diagonal of U; 0 without one; int32."""
    rows, columns = shape_of(packed)[-2:]
    diagonal = op("Equal", numbers_below(rows, down=True), numbers_below(columns, down=False))
    bad = op("And", diagonal, op("Equal", packed, number_like(0, packed)))
    last = np.array(rank_of(packed) - 2)
    bad = op("ReduceSum", cast(bad, ir.DataType.INT64), [-2], keepdims=0)
    before = op("Equal", op("CumSum", bad, last), np.array(0))
    place = add(op("ReduceSum", cast(before, ir.DataType.INT64), [-1], keepdims=0), np.array(1))
    some = op("Greater", op("ReduceSum", bad, [-1], keepdims=0), np.array(0))
    return cast(op("Where", some, place, np.array(0)), ir.DataType.INT32)


def reflections(x: Any) -> tuple[Any, Any]:
    """Return R with the vectors of reflections below its diagonal, and their scales.

    Args:
        x: (..., rows, columns), floats.

    Returns:
        (..., rows, columns) and (..., k); k is the smaller of rows and columns.
    """
    rows, columns = shape_of(x)[-2:]
    count = minimum(rows, columns)
    kept = _zeros(x, -1, count, dtype_of(x))
    if count == 0:
        return op("Identity", x), op("Squeeze", kept, [-2])
    down = numbers_below(rows, down=True)
    across, places = (numbers_below(n, down=False) for n in (columns, count))
    zero, one = number_like(0, x), number_like(1, x)

    def step(k: Any, going: Any, a: Any, scales: Any) -> list[Any]:
        column = column_of(a, k)
        head = row_of(column, k)
        below = op("Greater", down, k)
        tail = total_along(square(where(below, column, zero)), -2)
        turns = op("Greater", tail, zero)
        length = sqrt(where(turns, add(square(head), tail), one))
        beta = where(op("Less", head, zero), length, neg(length))
        scale = where(turns, div(sub(beta, head), beta), zero)
        v = where(below, div(column, where(turns, sub(head, beta), one)), zero)
        v = where(op("Equal", down, k), one, v)
        turned = sub(a, mul(scale, mul(v, matrix_product(swapped(v), a))))
        a = where(op("Greater", across, k), turned, a)
        own = where(below, v, where(op("Equal", down, k), where(turns, beta, head), column))
        a = where(op("Equal", across, k), own, a)
        return [going, a, where(op("Equal", places, k), scale, scales)]

    a, scales = loop(count_of(count), np.array(True), [x, kept], step)
    return a, op("Squeeze", scales, [-2])


__all__ = ["failed", "lower", "permutation", "reflections", "triangular", "upper"]
