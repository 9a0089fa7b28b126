"""Factors of matrices (last two axes): triangular, orthogonal, eigenvalues and singular values.

Each is a loop of as many iterations as there are columns (or pairs of them), so that sizes may be
symbolic. Results that other libraries refuse, of matrices that are not positive definite, are NaN
here.
"""

from __future__ import annotations

from collections.abc import Callable
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
from hagane.ops.functions.sums.products import matrix_product
from hagane.ops.functions.tensors.filling import identity, steps
from hagane.ops.functions.tensors.parts import part
from hagane.ops.layout.stopping import stopped
from hagane.symbolic import Dim, minimum

_SWEEPS = 12  # of Jacobi's method, which converges quadratically after some


def row_of(x: Any, place: Any) -> Any:
    """Return a row of matrices, with its axis."""
    return op("Gather", x, unsqueeze(place, [0]), axis=-2)


def column_of(x: Any, place: Any) -> Any:
    """Return a column of matrices, with its axis."""
    return op("Gather", x, unsqueeze(place, [0]), axis=-1)


def numbers_below(count: Dim, *, down: bool) -> Any:
    """Return 0, 1, … as a column (count, 1) or as a row (1, count)."""
    return unsqueeze(steps(count), [1 if down else 0])


def total_along(x: Any, axis: int) -> Any:
    """Return sums along an axis, which stays."""
    return op("ReduceSum", x, [axis], keepdims=1)


def wide_identity(x: Any) -> Any:
    """Return an identity matrix for each square matrix."""
    side = shape_of(x)[-1]
    return add(mul(x, number_like(0, x)), identity(side, side, 0, dtype_of(x)))


def count_of(n: Dim) -> Any:
    """Return a size as the number of a loop's iterations."""
    return np.array(n) if isinstance(n, int) else op("Identity", n)


# Factors.


def _mirrored(x: Any) -> Any:
    """Return symmetric matrices of the lower halves, whose gradients go to both halves alike."""
    way = mul(add(x, swapped(x)), number_like(0.5, x))
    lower = op("Trilu", x, np.array(0), upper=0)
    whole = add(lower, swapped(op("Trilu", lower, np.array(-1), upper=0)))
    change = sub(way, stopped(way))
    return add(stopped(whole), where(op("IsNaN", change), number_like(0, x), change))


def cholesky(x: Any) -> Any:
    """Return the lower triangular L with ``L transposed(L) = x``, reading its lower half.

    Gradients go to both halves alike, as in PyTorch.
    """
    x = _mirrored(x)
    n = shape_of(x)[-1]
    down, across = numbers_below(n, down=True), numbers_below(n, down=False)

    def step(k: Any, going: Any, lower: Any) -> list[Any]:
        rest = sub(column_of(x, k), total_along(mul(lower, row_of(lower, k)), -1))
        corner = sqrt(row_of(rest, k))
        column = where(op("Less", down, k), number_like(0, x), div(rest, corner))
        return [going, where(op("Equal", across, k), column, lower)]

    return loop(count_of(n), np.array(True), [mul(x, number_like(0, x))], step)[0]


def orthogonal_triangular(x: Any, *, complete: bool) -> tuple[Any, Any]:
    """Return the factors Q and R of matrices (..., rows, columns), by Householder's reflections.

    Diagonal elements of R have the signs that LAPACK gives them.

    Args:
        x: Floats.
        complete: Whether Q is square; else Q has as many columns as R has rows.
    """
    rows, columns = shape_of(x)[-2:]
    count = minimum(rows, columns)
    down = numbers_below(rows, down=True)
    square_ = matrix_product(x, swapped(x))
    zero, one = number_like(0, x), number_like(1, x)

    def step(k: Any, going: Any, q: Any, r: Any) -> list[Any]:
        column = where(op("Less", down, k), zero, column_of(r, k))
        head = row_of(column, k)
        tail = total_along(square(where(op("Equal", down, k), zero, column)), -2)
        length = sqrt(add(square(head), tail))
        alpha = where(op("Less", head, zero), length, neg(length))
        v = sub(column, where(op("Equal", down, k), alpha, zero))
        turns = op("Greater", tail, zero)
        weight = total_along(square(v), -2)
        weight = where(turns, div(number_like(2, x), where(turns, weight, one)), zero)
        r = sub(r, mul(weight, mul(v, matrix_product(swapped(v), r))))
        q = sub(q, mul(weight, mul(matrix_product(q, v), swapped(v))))
        return [going, q, r]

    q, r = loop(count_of(count), np.array(True), [wide_identity(square_), x], step)
    r = op("Trilu", r, np.array(0), upper=1)
    if complete:
        return q, r
    rank = rank_of(x)
    return part(q, rank - 1, 0, count), part(r, rank - 2, 0, count)


def reflected(x: Any, scales: Any) -> Any:
    """Return the first columns of products of Householder's reflections.

    Args:
        x: The reflections' vectors as columns below the diagonal, whose ones are not read:
            (..., rows, columns).
        scales: Their scales: (..., count), at most as many as there are columns.
    """
    rows, columns = shape_of(x)[-2:]
    count = shape_of(scales)[-1]
    down = numbers_below(rows, down=True)
    zero, one = number_like(0, x), number_like(1, x)
    diagonal = add(mul(x, zero), identity(rows, columns, 0, dtype_of(x)))
    last = op("Sub", count_of(count), np.array(1))

    def step(k: Any, going: Any, q: Any) -> list[Any]:
        k = op("Sub", last, k)
        column = where(op("Less", down, k), zero, column_of(x, k))
        v = where(op("Equal", down, k), one, column)
        scale = unsqueeze(column_of(scales, k), [-1])
        return [going, sub(q, mul(scale, mul(v, matrix_product(swapped(v), q))))]

    return loop(count_of(count), np.array(True), [diagonal], step)[0]


# Jacobi's rotations.


def _rounds(n: Dim) -> Dim:
    """Return in how many rounds all pairs of columns meet, in each round all columns at once."""
    odd = n - 2 * (n // 2)
    return n - 1 + odd


def _partners(n: Dim, k: Any) -> tuple[Any, Any]:
    """Return the column that each one meets in a round, and whether it is the earlier one.

    By the method of tournaments: the last of an even number of columns stays, the others turn
    around. One of an odd number of columns meets itself.
    """
    places, count = steps(n), count_of(_rounds(n))
    k = op("Mod", k, count)
    other = op("Mod", sub(add(k, k), places), count)
    alone = where(op("Less", count, count_of(n)), count, places)
    other = where(op("Equal", other, places), alone, other)
    other = where(op("Equal", places, count), k, other)
    return other, op("Less", places, other)


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


def _turns(apart: Any, cross: Any, other: Any, low: Any) -> tuple[Any, Any]:
    """Return the factors of each column and of the one that it meets.

    Args:
        apart: Elements (..., n) of the diagonal; the rotation depends on their differences.
        cross: The elements (..., n) that become zero; those of the earlier columns count.
        other: The column that each one meets.
        low: Whether a column is the earlier one.
    """
    last = rank_of(apart) - 1
    far = sub(op("Gather", apart, other, axis=last), apart)
    cosine, sine = _rotation(
        where(low, far, neg(far)), where(low, cross, op("Gather", cross, other, axis=last)), apart
    )
    alone = op("Equal", other, steps(shape_of(apart)[-1]))
    zero, one = number_like(0, sine), number_like(1, sine)
    return where(alone, one, cosine), where(alone, zero, where(low, neg(sine), sine))


def _turned(x: Any, other: Any, own: Any, across: Any) -> Any:
    """Return matrices with all columns rotated, each with the one that it meets."""
    rank = rank_of(x)
    own, across = (unsqueeze(factor, [rank - 2]) for factor in (own, across))
    return add(mul(x, own), mul(op("Gather", x, other, axis=rank - 1), across))


def symmetric_values(x: Any) -> tuple[Any, Any]:
    """Return the eigenvalues of symmetric matrices, the least first, and vectors as columns.

    The lower half of the matrices counts. By Jacobi's method (Golub and Van Loan, 8.5), in
    float64. Vectors have length 1; their signs are as they come. Gradients do not go through its
    rotations, which end where an element is 0, but through two steps of refinement behind them,
    which give first and second derivatives.
    """
    dtype = dtype_of(x)
    given = _mirrored(cast(x, ir.DataType.DOUBLE))
    whole = stopped(given)
    n = shape_of(x)[-1]
    eye = identity(n, n, 0, ir.DataType.DOUBLE)

    def step(k: Any, going: Any, a: Any, v: Any) -> list[Any]:
        other, low = _partners(n, k)
        met = op("Gather", a, other, axis=rank_of(a) - 1)
        values, cross = (op("ReduceSum", mul(m, eye), [-1], keepdims=0) for m in (a, met))
        own, across = _turns(values, cross, other, low)
        a = swapped(_turned(a, other, own, across))
        return [going, _turned(a, other, own, across), _turned(v, other, own, across)]

    limit = count_of(_rounds(n) * _SWEEPS)
    a, v = loop(limit, np.array(True), [whole, wide_identity(whole)], step)
    values = op("ReduceSum", mul(a, eye), [-1], keepdims=0)
    _, places = op("TopK", values, [n], axis=-1, largest=0, outputs=2)

    def products(v: Any) -> Any:
        return matrix_product(swapped(v), matrix_product(given, v))

    v = _differentiable(products, _ordered(v, places))
    return cast(_quotients(products(v), v)[0], dtype), cast(v, dtype)


def _quotients(products: Any, v: Any) -> tuple[Any, Any]:
    """Return Rayleigh's quotients of columns, and the products of all pairs of them."""
    n = shape_of(v)[-1]
    eye = identity(n, n, 0, ir.DataType.DOUBLE)
    lengths = matrix_product(swapped(v), v)
    above, below = (op("ReduceSum", mul(m, eye), [-1], keepdims=0) for m in (products, lengths))
    return div(above, below), lengths


def _differentiable(products: Callable[[Any], Any], found: Any) -> Any:
    """Return eigenvectors with the gradients of two steps of refinement, which change no value.

    Source: Ogita and Aishima, Iterative refinement for symmetric eigenvalue decomposition, 2018,
    algorithm 1.

    Args:
        products: Returns ``V* X V`` for symmetric matrices X, float64.
        found: The eigenvectors of X as columns.
    """
    v = found = stopped(found)
    n = shape_of(v)[-1]
    for _ in range(2):
        turned = products(v)
        values, lengths = _quotients(turned, v)
        last = rank_of(values)
        of_column, of_row = unsqueeze(values, [last - 1]), unsqueeze(values, [last])
        lack = sub(identity(n, n, 0, ir.DataType.DOUBLE), lengths)
        apart = sub(of_column, of_row)
        largest = op("Max", op("Abs", of_column), op("Abs", of_row))
        one = op("LessOrEqual", op("Abs", apart), mul(largest, number_like(1e-14, v)))
        turn = div(add(turned, mul(of_column, lack)), where(one, number_like(1, v), apart))
        v = add(v, matrix_product(v, where(one, mul(lack, number_like(0.5, v)), turn)))
    return add(found, sub(v, stopped(v)))


def _ordered(x: Any, places: Any) -> Any:
    """Return matrices with their columns in another order."""
    wide = op("Expand", unsqueeze(places, [rank_of(places) - 1]), _sizes(x, shape_of(places)[-1]))
    return op("GatherElements", x, wide, axis=-1)


def _sizes(x: Any, columns: Dim) -> list[Dim]:
    return [*shape_of(x)[:-1], columns]


def singular(x: Any, *, full: bool = False, whole: bool = True) -> tuple[Any, Any, Any]:
    """Return U, S and V transposed with ``x = U S V``, singular values in falling order.

    By rotations of columns (Hestenes' method, Golub and Van Loan, 8.6), in float64; vectors of
    values that are 0 by reflections. Signs of pairs of vectors are as they come.

    Args:
        x: (..., rows, columns), floats.
        full: Whether U and V are square; else only vectors with singular values come. Which of
            rows and columns are more is known then.
        whole: Whether vectors of values that are 0 are wanted; else these are of any length on the
            longer side.

    Returns:
        (..., rows, k), (..., k) and (..., k, columns); k is the smaller of rows and columns.
    """
    dtype = dtype_of(x)
    rows, columns = shape_of(x)[-2:]
    wide = cast(x, ir.DataType.DOUBLE)
    if not _is_tall(rows, columns):
        u, s, v = singular(swapped(wide), full=full, whole=whole)
        return cast(swapped(v), dtype), cast(s, dtype), cast(swapped(u), dtype)

    def step(k: Any, going: Any, a: Any, v: Any) -> list[Any]:
        other, low = _partners(columns, k)
        met = op("Gather", a, other, axis=rank_of(a) - 1)
        lengths, cross = (op("ReduceSum", mul(a, m), [-2], keepdims=0) for m in (a, met))
        own, across = _turns(lengths, cross, other, low)
        return [going, *(_turned(m, other, own, across) for m in (a, v))]

    given = stopped(wide)
    start = wide_identity(matrix_product(swapped(given), given))
    a, v = loop(count_of(_rounds(columns) * _SWEEPS), np.array(True), [given, start], step)
    values = op("ReduceSum", square(a), [-2], keepdims=0)
    _, places = op("TopK", values, [columns], axis=-1, largest=1, outputs=2)

    def products(v: Any) -> Any:
        turned = matrix_product(wide, v)
        return matrix_product(swapped(turned), turned)

    found = stopped(_ordered(a, places))
    v = _differentiable(products, _ordered(v, places))
    a = matrix_product(wide, v)
    a = add(found, sub(a, stopped(a)))
    values = sqrt(op("ReduceSum", square(a), [-2], keepdims=0))
    length = unsqueeze(values, [rank_of(values) - 1])
    none = op("Equal", length, number_like(0, a))
    u = div(a, where(none, number_like(1, a), length))
    least, rank = minimum(rows, columns), rank_of(u)
    values, length = part(values, rank - 2, 0, least), part(length, rank - 1, 0, least)
    u = part(u, rank - 1, 0, least)
    if whole or full:
        bound = mul(part(length, rank - 1, 0, 1), float(np.finfo(np.float64).eps))
        bound = mul(bound, cast(count_of(rows), ir.DataType.DOUBLE))
        u = _completed(u, op("LessOrEqual", length, bound), least, rows if full else least)
    found = u, values
    return (*(cast(w, dtype) for w in found), cast(part(swapped(v), rank - 2, 0, least), dtype))


def _completed(u: Any, none: Any, least: Dim, count: Dim) -> Any:
    """Return orthonormal columns (..., rows, count) with others in the place of some, the last."""
    q, _ = orthogonal_triangular(where(none, number_like(0, u), stopped(u)), complete=True)
    rank = rank_of(u)
    made = where(none, part(q, rank - 1, 0, least), u)
    if count is least:
        return made
    return op("Concat", made, part(q, rank - 1, least, count - least), axis=rank - 1)


def _is_tall(rows: Dim, columns: Dim) -> bool:
    return not (isinstance(rows, int) and isinstance(columns, int) and rows < columns)


def singular_values(x: Any) -> Any:
    """Return the singular values of matrices, the largest first."""
    return singular(x, whole=False)[1]


__all__ = [
    "cholesky",
    "column_of",
    "count_of",
    "numbers_below",
    "orthogonal_triangular",
    "row_of",
    "singular",
    "singular_values",
    "symmetric_values",
    "wide_identity",
]
