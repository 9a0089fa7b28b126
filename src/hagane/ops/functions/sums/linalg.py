"""Linear algebra of matrices (last two axes): elimination, powers, inverses, norms.

Each is a loop of as many iterations as there are columns, so that sizes may be symbolic. Results
that other libraries refuse, of singular matrices, are infinite or NaN here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    sub,
    swapped,
    transpose,
    unsqueeze,
    where,
)
from hagane.ops.functions.sums.factors import (
    column_of,
    count_of,
    numbers_below,
    orthogonal_triangular,
    row_of,
    singular,
    singular_values,
    wide_identity,
)
from hagane.ops.functions.sums.products import matrix_product

MATRIX_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


# Elimination.


def eliminated(x: Any, right: Any) -> tuple[Any, Any, Any]:
    """Return the solution of linear equations, and the determinant as a sign and a logarithm.

    By Gauss and Jordan with the largest pivot of each column (Golub and Van Loan, 3.4).

    Args:
        x: (..., n, n), floats.
        right: (..., n, m), with the same first axes.

    Returns:
        (..., n, m), (...) and (...).
    """
    n, rank = shape_of(x)[-1], rank_of(x)
    one = number_like(1, x)
    down = numbers_below(n, down=True)
    sign = add(mul(op("ReduceSum", mul(x, number_like(0, x)), [rank - 2, rank - 1], keepdims=1),
                   number_like(0, x)), one)  # fmt: skip
    size = sub(sign, one)

    def step(k: Any, going: Any, a: Any, b: Any, s: Any, log_size: Any) -> list[Any]:
        size_of = op("Abs", column_of(a, k))
        size_of = where(op("Less", down, k), number_like(-1, x), size_of)
        pivot = op("ArgMax", size_of, axis=-2, keepdims=1)
        places = where(op("Equal", down, k), pivot, where(op("Equal", down, pivot), k, down))
        swapped_ = op("Not", op("Equal", pivot, k))
        a, b = (
            op("GatherElements", v, op("Expand", places, list(shape_of(v))), axis=-2)
            for v in (a, b)
        )
        top, chosen = row_of(a, k), column_of(row_of(a, k), k)
        first, second = div(top, chosen), div(row_of(b, k), chosen)
        factor = column_of(a, k)
        own = op("Equal", down, k)
        a = where(own, first, sub(a, mul(factor, first)))
        b = where(own, second, sub(b, mul(factor, second)))
        s = mul(s, op("Sign", chosen))
        s = where(swapped_, neg(s), s)
        return [going, a, b, s, add(log_size, op("Log", op("Abs", chosen)))]

    found = right
    if n != 0:  # (rows of no elements have no largest one)
        _, found, sign, size = loop(count_of(n), np.array(True), [x, right, sign, size], step)
    last = [rank - 2, rank - 1]
    return found, op("Squeeze", sign, last), op("Squeeze", size, last)


def solved(x: Any, right: Any) -> Any:
    """Return the solution of linear equations with matrices (..., n, n) and (..., n, m)."""
    return eliminated(x, right)[0]


def inverse(x: Any) -> Any:
    """Return the inverse of matrices."""
    return solved(x, wide_identity(x))


def signed_logarithm(x: Any) -> tuple[Any, Any]:
    """Return the sign of determinants, and the logarithm of their size."""
    _, sign, size = eliminated(x, op("Slice", x, [0], [1], [rank_of(x) - 1]))
    return sign, size


def determinant(x: Any) -> Any:
    """Return determinants."""
    sign, size = signed_logarithm(x)
    singular = op("Equal", sign, number_like(0, x))
    none = op("Or", op("IsNaN", sign), singular)
    return where(none, number_like(0, x), mul(sign, op("Exp", size)))


def power(x: Any, exponent: int) -> Any:
    """Return a power of square matrices; negative ones of the inverse."""
    if exponent < 0:
        return power(inverse(x), -exponent)
    found = None
    while exponent:
        if exponent % 2:
            found = x if found is None else matrix_product(found, x)
        exponent //= 2
        x = matrix_product(x, x) if exponent else x
    return wide_identity(x) if found is None else found


def exponential(x: Any) -> Any:
    """Return the exponential of matrices, by scaling and squaring a series of 18 terms.

    The matrices are halved 12 times: their norm should stay below a thousand.
    """
    dtype = dtype_of(x)
    small = div(cast(x, ir.DataType.DOUBLE), 2.0**12)
    term = found = wide_identity(small)
    for k in range(1, 19):
        term = div(matrix_product(term, small), float(k))
        found = add(found, term)
    for _ in range(12):
        found = matrix_product(found, found)
    return cast(found, dtype)


def _bound(x: Any, values: Any, share: float | None) -> Any:
    """Return the size below which a singular value counts as zero.

    A share that is not given is the precision of the type times the longer side.
    """
    largest = op("ReduceMax", values, [-1], keepdims=1)
    if share is not None:
        return mul(largest, number_like(share, values))
    least = number_like(float(np.finfo(dtype_of(x).numpy()).eps), values)
    rows, columns = (count_of(n) for n in shape_of(x)[-2:])
    return mul(largest, mul(least, cast(op("Max", rows, columns), dtype_of(values))))


def pseudo_inverse(x: Any, share: float | None) -> Any:
    """Return the inverse of Moore and Penrose; smaller shares of the largest value count as 0."""
    u, s, v = singular(x, whole=False)
    some = op("Greater", s, _bound(x, s, share))
    one = number_like(1, s)
    back = where(some, div(one, where(some, s, one)), number_like(0, s))
    return matrix_product(mul(swapped(v), unsqueeze(back, [rank_of(back) - 1])), swapped(u))


def numerical_rank(x: Any, share: float | None) -> Any:
    """Return how many singular values are not zero; int64."""
    s = singular_values(x)
    return op("ReduceSum", op("Cast", op("Greater", s, _bound(x, s, share)), to=ir.DataType.INT64),
              [-1], keepdims=0)  # fmt: skip


def solved_any(x: Any, right: Any) -> Any:
    """Return the solution of linear equations whose right side is a vector or matrices.

    Args:
        x: (..., n, n), floats.
        right: (n,), or (..., n, m) whose first axes broadcast with those of ``x``.
    """
    if rank_of(right) == 1:
        return op("Squeeze", solved_any(x, unsqueeze(right, [1])), [-1])
    first, second = list(shape_of(x)), list(shape_of(right))
    if first[:-2] != second[:-2]:
        zero = number_like(0, x)
        lead = mul(_corner(x), zero), mul(_corner(right), zero)
        x, right = add(x, lead[1]), add(right, lead[0])
    return solved(x, right)


def _corner(x: Any) -> Any:
    """Return the first element of matrices, with their axes."""
    return op("Slice", x, [0, 0], [1, 1], [-2, -1])


def matrix_norm(x: Any, axes: Sequence[int], keepdims: bool, order: float | str) -> Any:
    """Return the norm of matrices.

    Args:
        x: Floats.
        axes: Those of rows and of columns.
        keepdims: Whether they stay with size 1.
        order: ``fro`` (root of squares), ``nuc`` (sum of singular values), 1 or infinity (largest
            sum of a column or row), 2 (largest singular value); negative ones take the smallest.
    """
    rows, columns = axes
    if order == "fro":
        return op("ReduceL2", x, [rows, columns], keepdims=int(keepdims))
    largest = "ReduceMax" if order == "nuc" or float(order) > 0 else "ReduceMin"
    if order == "nuc" or abs(float(order)) == 2:
        values = singular_values(joined_matrices(x, rows, columns))
        name = "ReduceSum" if order == "nuc" else largest
        found = op(name, values, [-1], keepdims=0)
    elif abs(float(order)) in (1, math.inf):
        inner, outer = (rows, columns) if abs(float(order)) == 1 else (columns, rows)
        sums = op("ReduceSum", op("Abs", x), [inner], keepdims=1)
        found = op("Squeeze", op(largest, sums, [outer], keepdims=1), [rows, columns])
    else:
        raise ValueError(f"a norm of matrices of order {order}")
    return unsqueeze(found, sorted(axes)) if keepdims else found


def joined_matrices(x: Any, rows: int, columns: int) -> Any:
    """Return ``x`` with the axes of rows and columns as the last ones."""
    rest = [axis for axis in range(rank_of(x)) if axis not in (rows, columns)]
    return transpose(x, [*rest, rows, columns])


def log_determinant(x: Any) -> Any:
    """Return the logarithm of determinants; NaN of negative ones."""
    sign, size = signed_logarithm(x)
    return where(op("Less", sign, 0), number_like(math.nan, x), size)


def triangle_of(x: Any, *, upper: bool, ones: bool = False, turned: bool = False) -> Any:
    """Return a triangle of matrices, with ones on the diagonal where asked for; transposed."""
    found = op("Trilu", x, np.array(0), upper=int(upper))
    if ones:
        inner = op("Trilu", x, np.array(1 if upper else -1), upper=int(upper))
        found = add(inner, wide_identity(x))
    return swapped(found) if turned else found


def of_factor(x: Any, *, upper: bool) -> Any:
    """Return the matrices of which triangular factors are given."""
    lower = swapped(triangle_of(x, upper=True)) if upper else triangle_of(x, upper=False)
    return matrix_product(lower, swapped(lower))


def least_squares(x: Any, right: Any) -> Any:
    """Return the solution of equations with the least squares of errors, of full rank.

    Args:
        x: (..., rows, columns), floats, with as many rows as columns at least.
        right: (..., rows, m).
    """
    q, r = orthogonal_triangular(x, complete=False)
    return solved_any(r, matrix_product(swapped(q), right))
