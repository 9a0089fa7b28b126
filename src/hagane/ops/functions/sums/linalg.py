"""Linear algebra of matrices (last two axes): elimination, factors, singular values.

Each is a loop of as many iterations as there are columns (or pairs of them), so that sizes may be
symbolic. Results that other libraries refuse, of matrices that are singular or not positive
definite, are infinite or NaN here.
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
    sqrt,
    square,
    sub,
    swapped,
    transpose,
    unsqueeze,
    where,
)
from hagane.ops.functions.sums.products import matrix_product
from hagane.ops.functions.tensors.filling import identity, steps, triangle_places
from hagane.ops.functions.tensors.parts import part
from hagane.symbolic import Dim, minimum

MATRIX_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
_SWEEPS = 12  # of Jacobi's method, which converges quadratically after some


def _row(x: Any, place: Any) -> Any:
    """Return a row of matrices, with its axis."""
    return op("Gather", x, unsqueeze(place, [0]), axis=-2)


def _column(x: Any, place: Any) -> Any:
    """Return a column of matrices, with its axis."""
    return op("Gather", x, unsqueeze(place, [0]), axis=-1)


def _numbers(count: Dim, *, down: bool) -> Any:
    """Return 0, 1, … as a column (count, 1) or as a row (1, count)."""
    return unsqueeze(steps(count), [1 if down else 0])


def _total(x: Any, axis: int) -> Any:
    return op("ReduceSum", x, [axis], keepdims=1)


def _wide_identity(x: Any) -> Any:
    """Return an identity matrix for each square matrix."""
    side = shape_of(x)[-1]
    return add(mul(x, number_like(0, x)), identity(side, side, 0, dtype_of(x)))


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
    down = _numbers(n, down=True)
    sign = add(mul(op("ReduceSum", mul(x, number_like(0, x)), [rank - 2, rank - 1], keepdims=1),
                   number_like(0, x)), one)  # fmt: skip
    size = sub(sign, one)

    def step(k: Any, going: Any, a: Any, b: Any, s: Any, log_size: Any) -> list[Any]:
        size_of = op("Abs", _column(a, k))
        size_of = where(op("Less", down, k), number_like(-1, x), size_of)
        pivot = op("ArgMax", size_of, axis=-2, keepdims=1)
        places = where(op("Equal", down, k), pivot, where(op("Equal", down, pivot), k, down))
        swapped_ = op("Not", op("Equal", pivot, k))
        a, b = (
            op("GatherElements", v, op("Expand", places, list(shape_of(v))), axis=-2)
            for v in (a, b)
        )
        top, chosen = _row(a, k), _column(_row(a, k), k)
        first, second = div(top, chosen), div(_row(b, k), chosen)
        factor = _column(a, k)
        own = op("Equal", down, k)
        a = where(own, first, sub(a, mul(factor, first)))
        b = where(own, second, sub(b, mul(factor, second)))
        s = mul(s, op("Sign", chosen))
        s = where(swapped_, neg(s), s)
        return [going, a, b, s, add(log_size, op("Log", op("Abs", chosen)))]

    _, found, sign, size = loop(_count(n), np.array(True), [x, right, sign, size], step)
    last = [rank - 2, rank - 1]
    return found, op("Squeeze", sign, last), op("Squeeze", size, last)


def _count(n: Dim) -> Any:
    return np.array(n) if isinstance(n, int) else op("Identity", n)


def solved(x: Any, right: Any) -> Any:
    """Return the solution of linear equations with matrices (..., n, n) and (..., n, m)."""
    return eliminated(x, right)[0]


def inverse(x: Any) -> Any:
    """Return the inverse of matrices."""
    return solved(x, _wide_identity(x))


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
    return _wide_identity(x) if found is None else found


def exponential(x: Any) -> Any:
    """Return the exponential of matrices, by scaling and squaring a series of 18 terms.

    The matrices are halved 12 times: their norm should stay below a thousand.
    """
    dtype = dtype_of(x)
    small = div(cast(x, ir.DataType.DOUBLE), 2.0**12)
    term = found = _wide_identity(small)
    for k in range(1, 19):
        term = div(matrix_product(term, small), float(k))
        found = add(found, term)
    for _ in range(12):
        found = matrix_product(found, found)
    return cast(found, dtype)


# Factors.


def cholesky(x: Any) -> Any:
    """Return the lower triangular L with ``L transposed(L) = x``, reading its lower half."""
    n = shape_of(x)[-1]
    down, across = _numbers(n, down=True), _numbers(n, down=False)

    def step(k: Any, going: Any, lower: Any) -> list[Any]:
        rest = sub(_column(x, k), _total(mul(lower, _row(lower, k)), -1))
        corner = sqrt(_row(rest, k))
        column = where(op("Less", down, k), number_like(0, x), div(rest, corner))
        return [going, where(op("Equal", across, k), column, lower)]

    return loop(_count(n), np.array(True), [mul(x, number_like(0, x))], step)[0]


def orthogonal_triangular(x: Any, *, complete: bool) -> tuple[Any, Any]:
    """Return the factors Q and R of matrices (..., rows, columns), by Householder's reflections.

    Diagonal elements of R have the signs that LAPACK gives them.

    Args:
        x: Floats.
        complete: Whether Q is square; else Q has as many columns as R has rows.
    """
    rows, columns = shape_of(x)[-2:]
    count = minimum(rows, columns)
    down = _numbers(rows, down=True)
    square_ = matrix_product(x, swapped(x))
    zero, one = number_like(0, x), number_like(1, x)

    def step(k: Any, going: Any, q: Any, r: Any) -> list[Any]:
        column = where(op("Less", down, k), zero, _column(r, k))
        head = _row(column, k)
        tail = _total(square(where(op("Equal", down, k), zero, column)), -2)
        length = sqrt(add(square(head), tail))
        alpha = where(op("Less", head, zero), length, neg(length))
        v = sub(column, where(op("Equal", down, k), alpha, zero))
        turns = op("Greater", tail, zero)
        weight = _total(square(v), -2)
        weight = where(turns, div(number_like(2, x), where(turns, weight, one)), zero)
        r = sub(r, mul(weight, mul(v, matrix_product(swapped(v), r))))
        q = sub(q, mul(weight, mul(matrix_product(q, v), swapped(v))))
        return [going, q, r]

    q, r = loop(_count(count), np.array(True), [_wide_identity(square_), x], step)
    r = op("Trilu", r, np.array(0), upper=1)
    if complete:
        return q, r
    rank = rank_of(x)
    return part(q, rank - 1, 0, count), part(r, rank - 2, 0, count)


# Jacobi's rotations.


def _pairs(n: Dim) -> tuple[Any, Dim]:
    """Return all pairs of numbers below n, (2, count), and their count."""
    return triangle_places(n, n, 1, upper=True), n * (n - 1) // 2


def _rotation(below: Any, cross: Any, x: Any) -> tuple[Any, Any]:
    """Return cosine and sine of the rotation that makes an element zero."""
    zero, one = number_like(0, x), number_like(1, x)
    some = op("Not", op("Equal", cross, zero))
    ratio = div(below, where(some, mul(cross, number_like(2, x)), one))
    sign = where(op("Less", ratio, zero), number_like(-1, x), one)
    tangent = div(sign, add(op("Abs", ratio), sqrt(add(square(ratio), one))))
    tangent = where(some, tangent, zero)
    cosine = div(one, sqrt(add(square(tangent), one)))
    return cosine, mul(tangent, cosine)


def _turned(x: Any, p: Any, q: Any, cosine: Any, sine: Any, across: Any) -> Any:
    """Return matrices with two columns rotated."""
    first, second = _column(x, p), _column(x, q)
    one = sub(mul(cosine, first), mul(sine, second))
    other = add(mul(sine, first), mul(cosine, second))
    return where(op("Equal", across, p), one, where(op("Equal", across, q), other, x))


def symmetric_values(x: Any) -> tuple[Any, Any]:
    """Return the eigenvalues of symmetric matrices, the least first, and vectors as columns.

    The lower half of the matrices counts. By Jacobi's method (Golub and Van Loan, 8.5), in
    float64. Vectors have length 1; their signs are as they come.
    """
    dtype = dtype_of(x)
    lower = op("Trilu", cast(x, ir.DataType.DOUBLE), np.array(0), upper=0)
    strict = op("Trilu", lower, np.array(-1), upper=0)
    whole = add(lower, swapped(strict))
    n = shape_of(x)[-1]
    across = _numbers(n, down=False)
    pairs, count = _pairs(n)

    def step(k: Any, going: Any, a: Any, v: Any) -> list[Any]:
        p, q = _pair(pairs, op("Mod", k, _count(count)))
        cross = _column(_row(a, p), q)
        apart = sub(_column(_row(a, q), q), _column(_row(a, p), p))
        cosine, sine = _rotation(apart, cross, a)
        a = _turned(a, p, q, cosine, sine, across)
        a = swapped(_turned(swapped(a), p, q, cosine, sine, across))
        return [going, a, _turned(v, p, q, cosine, sine, across)]

    limit = _count(count * _SWEEPS)
    a, v = loop(limit, np.array(True), [whole, _wide_identity(whole)], step)
    values = op("ReduceSum", mul(a, identity(n, n, 0, ir.DataType.DOUBLE)), [-1], keepdims=0)
    values, places = op("TopK", values, [n], axis=-1, largest=0, outputs=2)
    return cast(values, dtype), cast(_ordered(v, places), dtype)


def _pair(pairs: Any, k: Any) -> tuple[Any, Any]:
    chosen = op("Gather", pairs, k, axis=1)
    return op("Gather", chosen, np.array(0), axis=0), op("Gather", chosen, np.array(1), axis=0)


def _ordered(x: Any, places: Any) -> Any:
    """Return matrices with their columns in another order."""
    wide = op("Expand", unsqueeze(places, [rank_of(places) - 1]), _sizes(x, shape_of(places)[-1]))
    return op("GatherElements", x, wide, axis=-1)


def _sizes(x: Any, columns: Dim) -> list[Dim]:
    return [*shape_of(x)[:-1], columns]


def singular(x: Any) -> tuple[Any, Any, Any]:
    """Return U, S and V transposed with ``x = U S V``, singular values in falling order.

    By rotations of columns (Hestenes' method, Golub and Van Loan, 8.6), in float64. Of vectors
    only those with singular values come; their signs are as they come, those of values that are 0
    are 0 on the longer side.

    Args:
        x: (..., rows, columns), floats.

    Returns:
        (..., rows, k), (..., k) and (..., k, columns); k is the smaller of rows and columns.
    """
    dtype = dtype_of(x)
    rows, columns = shape_of(x)[-2:]
    wide = cast(x, ir.DataType.DOUBLE)
    if not _is_tall(rows, columns):
        u, s, v = singular(swapped(wide))
        return cast(swapped(v), dtype), cast(s, dtype), cast(swapped(u), dtype)
    across = _numbers(columns, down=False)
    pairs, count = _pairs(columns)

    def step(k: Any, going: Any, a: Any, v: Any) -> list[Any]:
        p, q = _pair(pairs, op("Mod", k, _count(count)))
        first, second = _column(a, p), _column(a, q)
        apart = sub(_total(square(second), -2), _total(square(first), -2))
        cosine, sine = _rotation(apart, _total(mul(first, second), -2), a)
        return [going, *(_turned(m, p, q, cosine, sine, across) for m in (a, v))]

    start = _wide_identity(matrix_product(swapped(wide), wide))
    a, v = loop(_count(count * _SWEEPS), np.array(True), [wide, start], step)
    values = sqrt(op("ReduceSum", square(a), [-2], keepdims=0))
    values, places = op("TopK", values, [columns], axis=-1, largest=1, outputs=2)
    a, v = _ordered(a, places), _ordered(v, places)
    length = unsqueeze(values, [rank_of(values) - 1])
    none = op("Equal", length, number_like(0, a))
    u = div(a, where(none, number_like(1, a), length))
    least, rank = minimum(rows, columns), rank_of(u)
    found = part(u, rank - 1, 0, least), part(values, rank - 2, 0, least)
    return (*(cast(w, dtype) for w in found), cast(part(swapped(v), rank - 2, 0, least), dtype))


def _is_tall(rows: Dim, columns: Dim) -> bool:
    return not (isinstance(rows, int) and isinstance(columns, int) and rows < columns)


def singular_values(x: Any) -> Any:
    """Return the singular values of matrices, the largest first."""
    return singular(x)[1]


def _bound(x: Any, values: Any, share: float | None) -> Any:
    """Return the size below which a singular value counts as zero."""
    least = float(np.finfo(dtype_of(x).numpy()).eps) if share is None else share
    if share is None:
        sizes = shape_of(x)[-2:]
        most = max(int(str(n)) for n in sizes) if all(isinstance(n, int) for n in sizes) else 1
        least *= most
    return mul(op("ReduceMax", values, [-1], keepdims=1), number_like(least, values))


def pseudo_inverse(x: Any, share: float | None) -> Any:
    """Return the inverse of Moore and Penrose; smaller shares of the largest value count as 0."""
    u, s, v = singular(x)
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
        found = add(inner, _wide_identity(x))
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
