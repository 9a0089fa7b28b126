"""MatMul, Gemm, MatMulInteger."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import Shape
from hagane.ops.builder import Call, dtype_of, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import cast, mul, squeeze, swapped, unsqueeze
from hagane.ops.functions.tensors.shapes import unbroadcast
from hagane.ops.precision import widened
from hagane.ops.traits import Trait
from hagane.ops.vjp import DISCRETE
from hagane.symbolic import Dim


def product_shape(ctx: InferContext, left: Shape, right: Shape) -> Shape:
    """Return the shape of ``numpy.matmul``, with one-dimensional operands promoted."""
    if not left or not right:
        ctx.fail(f"expected vectors, matrices or stacks of them, got {ctx.inputs_text()}")
    row = (1, *left) if len(left) == 1 else left
    column = (*right, 1) if len(right) == 1 else right
    ctx.unify(
        row[-1],
        column[-2],
        "expected the columns of the first to equal the rows of the second operand "
        f"({row[-1]} and {column[-2]})",
    )
    batch = ctx.broadcast(row[:-2], column[:-2])
    result = batch
    if len(left) > 1:
        result = (*result, row[-2])
    if len(right) > 1:
        result = (*result, column[-1])
    return result


def _infer_matmul(ctx: InferContext) -> Sequence[Any]:
    return [product_shape(ctx, ctx.shape(0), ctx.shape(1))]


@widened
def matmul(a: Array, b: Array) -> Array:
    """Return the matrix product of two stacks of matrices."""
    return np.asarray(np.matmul(a, b))


@widened
def _gemm(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    y = np.matmul(a.T if transA else a, b.T if transB else b)
    if alpha != 1.0:
        y = (y * alpha).astype(a.dtype)
    if c is not None:
        y = y + (c if beta == 1.0 else (c * beta).astype(a.dtype))
    return np.asarray(y)


def infer_gemm(ctx: InferContext, b: int = 1, c: int = 2) -> Sequence[Any]:
    """Infer a product of input 0 and input ``b``, and a summand, input ``c``."""
    left, right = ctx.shape(0, rank=2), ctx.shape(b, rank=2)
    m, k = left[::-1] if ctx.attr("transA") else left
    k2, n = right[::-1] if ctx.attr("transB") else right
    ctx.unify(k, k2, f"expected inner sizes to agree ({k} and {k2})")
    if ctx.has(c) and ctx.known_rank(c) is not None:
        summand = ctx.shape(c)
        if len(summand) > 2:
            ctx.fail(f"expected 'C' to broadcast to [{m}, {n}], got {ctx.tensor(c)}")
        for dim, size in zip(summand[::-1], (n, m), strict=False):
            if dim != 1:
                ctx.unify(dim, size, f"expected 'C' to broadcast to [{m}, {n}]")
    return [(m, n)]


def fit_columns(ctx: InferContext, index: int, columns: Dim) -> None:
    """Fail unless input ``index`` is a single number, or one a column."""
    if ctx.has(index) and ctx.known_rank(index) == 1 and ctx.shape(index) != (1,):
        ctx.fit(index, (columns,))


def composed_gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    """Return Gemm as MatMul, a product with ``alpha`` and a sum with ``beta · C``."""

    def scaled(x: Any, factor: float) -> Any:
        if factor == 1:
            return x
        dtype = dtype_of(x)
        if dtype.is_floating_point():
            return op("Mul", x, factor)
        return cast(op("Mul", cast(x, ir.DataType.DOUBLE), factor), dtype)

    left = op("Transpose", a, perm=[1, 0]) if transA else a
    right = op("Transpose", b, perm=[1, 0]) if transB else b
    y = scaled(op("MatMul", left, right), alpha)
    return y if c is None or not beta else op("Add", y, scaled(c, beta))


def _zero(value: Array | None, rows: bool) -> Array | int:
    """Return a zero point ready to subtract: one for all, or one a row or column."""
    if value is None:
        return 0
    value = value.astype(np.int32)
    if value.ndim == 1 and rows:
        return value[:, None]
    return value


def _matmul_integer(
    a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None
) -> Array:
    left = a.astype(np.int32) - _zero(a_zero, rows=a.ndim > 1)
    right = b.astype(np.int32) - _zero(b_zero, rows=False)
    return np.asarray(np.matmul(left, right))


def _matmul_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (a, b), (g,) = call.inputs, gradients
    left, right = rank_of(a) == 1, rank_of(b) == 1
    row, column = unsqueeze(a, [0] if left else []), unsqueeze(b, [1] if right else [])
    if left:
        g = unsqueeze(g, [rank_of(g) - (0 if right else 1)])
    if right:
        g = unsqueeze(g, [rank_of(g)])

    def of_left() -> Any:
        found = unbroadcast(op("MatMul", g, swapped(column)), row)
        return squeeze(found, [0]) if left else found

    def of_right() -> Any:
        if rank_of(column) == 2 < rank_of(row):
            # One product of all rows, in place of a stack of products that is summed.
            rows, gs = (op("Flatten", x, axis=-1) for x in (row, g))
            found = op("MatMul", swapped(rows), gs)
        else:
            found = unbroadcast(op("MatMul", swapped(row), g), column)
        return squeeze(found, [1]) if right else found

    return [of_left, of_right]


def _gemm_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (a, b, *rest), (g,) = call.inputs, gradients
    alpha, beta = call.attr("alpha"), call.attr("beta")
    turned_a, turned_b = call.attr("transA"), call.attr("transB")

    def product(x: Any, y: Any, turned_x: int, turned_y: int) -> Any:
        return op("Gemm", x, y, alpha=alpha, transA=turned_x, transB=turned_y)

    def of_left() -> Any:
        return product(b, g, turned_b, 1) if turned_a else product(g, b, 0, 1 - turned_b)

    def of_right() -> Any:
        return product(g, a, 1, turned_a) if turned_b else product(a, g, 1 - turned_a, 0)

    def of_added(c: Any) -> Any:
        return unbroadcast(g if beta == 1 else mul(g, beta), c)

    added = [None if c is None else partial(of_added, c) for c in rest]
    return [of_left, of_right, *added]


OPERATORS = (
    OpDef("Gemm", infer_gemm, _gemm, compose=composed_gemm, vjp=_gemm_vjp, traits=Trait.LINEAR),
    OpDef("MatMul", _infer_matmul, matmul, vjp=_matmul_vjp, traits=Trait.LINEAR),
    OpDef("MatMulInteger", _infer_matmul, _matmul_integer, vjp=DISCRETE),
)
