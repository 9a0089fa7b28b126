"""Sums of products over chosen axes: outer and inner products, tensordot, einsum."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.numbers.elementary import cast, mul, squeeze, transpose, unsqueeze
from hagane.ops.functions.tensors import parts
from hagane.symbolic import Dim, product

_COMPUTED = (
    ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE,
    ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64,
)  # fmt: skip


def matrix_product(x: Any, y: Any) -> Any:
    """Return the matrix product of values of one element type, broadcast over first axes.

    Truth values give whether some pair of them is true; small integers wrap around.
    """
    dtype = dtype_of(x)
    if dtype in _COMPUTED:
        return op("MatMul", x, y)
    wide = ir.DataType.INT32
    found = op("MatMul", cast(x, wide), cast(y, wide))
    return op("Greater", found, 0) if dtype == ir.DataType.BOOL else cast(found, dtype)


def grouped(x: Any, y: Any, ends: Any, groups: int) -> Any:
    """Return the products of groups of rows, columns or both, as PyTorch's ``grouped_mm`` does.

    Args:
        x: Rows of all groups, (rows, inner), or a matrix for each group.
        y: A matrix for each group, (groups, inner, columns), or columns of all groups. If both
            have two axes, the groups part the inner one.
        ends: The place behind each group, (groups,), of int64. Rows and columns behind the last
            one are anything.
        groups: How many there are.
    """
    own_rows, own_columns = rank_of(x) == 3, rank_of(y) == 3
    if own_rows and own_columns:
        return op("MatMul", x, y)
    made: list[Any] = []
    start: Any = np.zeros(1, np.int64)
    for i in range(groups):
        end = op("Slice", ends, [i], [i + 1], [0])
        rows = parts.element(x, 0, i) if own_rows else op("Slice", x, start, end, [int(
            not own_columns)])  # fmt: skip
        columns = parts.element(y, 0, i) if own_columns else op("Slice", y, start, end, [int(
            own_rows)])  # fmt: skip
        made.append(op("MatMul", rows, columns))
        start = end
    if not own_rows and not own_columns:
        return op("Concat", *(unsqueeze(each, [0]) for each in made), axis=0)
    rest = np.array([2**63 - 1])
    if own_columns:
        made.append(op("MatMul", op("Slice", x, start, rest, [0]), columns))
    else:
        made.append(op("MatMul", rows, op("Slice", y, start, rest, [1])))
    return op("Concat", *made, axis=0 if own_columns else 1)


def outer(x: Any, y: Any) -> Any:
    """Return all products of elements; (elements of x, elements of y)."""
    return op("And" if dtype_of(x) == ir.DataType.BOOL else "Mul",
              op("Reshape", x, [-1, 1]), op("Reshape", y, [1, -1]))  # fmt: skip


def tensordot(x: Any, y: Any, first: Sequence[int], second: Sequence[int]) -> Any:
    """Return the sum of products over pairs of axes; other axes stay, those of x first.

    Args:
        x: A tensor.
        y: Of the same element type.
        first: The axes of ``x``.
        second: The axes of ``y``, in the same order.
    """
    left = [axis for axis in range(rank_of(x)) if axis not in first]
    right = [axis for axis in range(rank_of(y)) if axis not in second]
    a, b = shape_of(x), shape_of(y)
    size = product([a[axis] for axis in first])
    rows, columns = [a[axis] for axis in left], [b[axis] for axis in right]
    x = parts.resized(transpose(x, [*left, *first]), [product(rows), size])
    y = parts.resized(transpose(y, [*second, *right]), [size, product(columns)])
    return parts.resized(matrix_product(x, y), [*rows, *columns])


def kronecker(x: Any, y: Any) -> Any:
    """Return the Kronecker product; ones stand before the axes of the one that has fewer."""
    rank = max(rank_of(x), rank_of(y))
    x, y = (unsqueeze(v, range(rank - rank_of(v))) for v in (x, y))
    sizes = [a * b for a, b in zip(shape_of(x), shape_of(y), strict=True)]
    left, right = unsqueeze(x, range(1, 2 * rank, 2)), unsqueeze(y, range(0, 2 * rank, 2))
    return parts.resized(mul(left, right), sizes)


def vandermonde(x: Any, powers: Any) -> Any:
    """Return powers of numbers along a new last axis."""
    return op("Pow", unsqueeze(x, [rank_of(x)]), powers)


# Einstein's sums.


def einsum(equation: str, *operands: Any) -> Any:
    """Return a sum of products over the letters of an equation, as NumPy and PyTorch read it.

    A letter that an operand has twice stands for its diagonal, an ellipsis for axes that
    broadcast, as axes of size 1 do in general; without ``->`` the letters that occur once are left,
    in the order of the alphabet, after the ellipsis.

    Args:
        equation: For example ``"bij,bjk->bik"``.
        operands: One for each part, of one element type.

    Raises:
        ValueError: The equation has another number of operands, or not enough axes.
    """
    terms, result = _letters(equation, [rank_of(x) for x in operands])
    given = [_with_single_letters(x, term) for x, term in zip(operands, terms, strict=True)]
    sizes = [dict(zip(term, shape_of(x), strict=True)) for x, term in given]
    made = []
    for x, term in given:
        single = [
            axis
            for axis, letter in enumerate(term)
            if shape_of(x)[axis] == 1 and any(own.get(letter, 1) != 1 for own in sizes)
        ]
        left = "".join(letter for axis, letter in enumerate(term) if axis not in single)
        made.append((squeeze(x, single), left))
    dtype = dtype_of(operands[0])
    wide = dtype if dtype in _COMPUTED else ir.DataType.INT32
    text = f"{','.join(term for _, term in made)}->{result}"
    found = op("Einsum", *(cast(x, wide) for x, _ in made), equation=text)
    return cast(found, dtype)


def _letters(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the letters of the axes of operands and of the result, without ellipses."""
    text = re.sub(r"\s", "", equation)
    before, arrow, after = text.partition("->")
    terms = before.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum '{equation}': expected {len(terms)} operands, got {len(ranks)}")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in text]
    extra = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    for term, count, rank in zip(terms, extra, ranks, strict=True):
        if count < 0 or (count and "..." not in term):
            raise ValueError(
                f"einsum '{equation}': expected '{term}' to name {rank} axes, it names "
                f"{rank - count}"
            )
    most = max([0, *(n for term, n in zip(terms, extra, strict=True) if "..." in term)])
    spread = "".join(spare[:most])
    full = [
        term.replace("...", spread[most - count :] if count else "")
        for term, count in zip(terms, extra, strict=True)
    ]
    if not arrow:
        named = "".join(term.replace("...", "") for term in terms)
        after = "..." + "".join(sorted(c for c in set(named) if named.count(c) == 1))
    return full, after.replace("...", spread)


def _with_single_letters(x: Any, term: str) -> tuple[Any, str]:
    """Return an operand of which each letter stands for one axis."""
    while True:
        twice = next((c for c in term if term.count(c) > 1), None)
        if twice is None:
            return x, term
        first = term.index(twice)
        second = term.index(twice, first + 1)
        length: Dim = shape_of(x)[first]
        x = parts.diagonal(x, 0, first, second, length)
        rest = [c for axis, c in enumerate(term) if axis not in (first, second)]
        term = "".join(rest) + twice


def bilinear(x: Any, y: Any, weight: Any, bias: Any = None) -> Any:
    """Return ``x A y + b`` for each of several matrices A.

    Args:
        x: (..., first features).
        y: (..., second features).
        weight: (results, first features, second features).
        bias: (results,); or None.

    Returns:
        (..., results).
    """
    rank = rank_of(x)
    rows = tensordot(x, weight, [rank - 1], [1])  # (..., results, second features)
    found = op("ReduceSum", mul(rows, unsqueeze(y, [rank - 1])), [rank], keepdims=0)
    return found if bias is None else op("Add", found, bias)
