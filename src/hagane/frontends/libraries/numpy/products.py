"""Matrix products and linear algebra of NumPy."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built, several
from hagane.frontends.libraries.indexing import broadcast_shapes
from hagane.frontends.libraries.numpy import fitting
from hagane.frontends.libraries.numpy.operands import (
    DOUBLE,
    FLOAT,
    FLOATS,
    axes,
    broadcast_shape,
    cast,
    promoted,
    reshape,
    shape_of,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.reducing import reduced
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.libraries.numpy.ufuncs import elementwise
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.values.values import (
    Fields,
    Tensor,
    Value,
    is_plain,
)
from hagane.ops.functions.sums import distances, factors, linalg, products, statistics
from hagane.symbolic import Dim, minimum, product
from hagane.symbolic.logic import negate


def _real(x: Tensor) -> ir.DataType:
    """Return the element type that linear algebra computes with."""
    if x.dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return ir.DataType.FLOAT if x.dtype == ir.DataType.COMPLEX64 else DOUBLE
    return x.dtype if x.dtype == FLOAT else DOUBLE


def _pair(t: Core, a: Value, b: Value) -> tuple[Tensor, Tensor, ir.DataType]:
    left, right = to_array(t, a), to_array(t, b)
    return left, right, promoted(t, [left, right])


def multiplied(t: Core, left: Tensor, right: Tensor, dtype: ir.DataType) -> Tensor:
    """Return the matrix product by the rule of the operator, for any element type."""
    if dtype in FLOATS:
        product_: Tensor = t.op("MatMul", *(cast(t, x, dtype) for x in (left, right)))
        return product_
    with t.emit.types_only():
        floats = [t.emit.like(x, FLOAT) for x in (left, right)]
        made: Tensor = t.op("MatMul", *floats)
    operands = [cast(t, x, dtype) for x in (left, right)]
    return built(t, (dtype, made.shape), products.matrix_product, *operands)


@NUMPY.function("matmul", "linalg.matmul", methods=("__matmul__",))
def matmul(t: Core, x1: Value, x2: Value, out: Value = None, **_: Value) -> Tensor:
    """Return the matrix product, broadcast over leading axes."""
    left, right, dtype = _pair(t, x1, x2)
    for x in (left, right):
        if not shape_of(t, x):
            t.fail("rank", f"matmul takes no numbers: {t.show(left)} and {t.show(right)}", x)
    return multiplied(t, left, right, dtype)


@NUMPY.function("dot", methods=("dot",))
def dot(t: Core, a: Value, b: Value, out: Value = None) -> Tensor:
    """Return the sum of products over the last axis of a and the last but one of b."""
    left, right, dtype = _pair(t, a, b)
    first, second = shape_of(t, left), shape_of(t, right)
    if not first or not second:
        return elementwise(t, "multiply", left, right)
    if len(second) == 1 or len(first) <= 2 >= len(second):
        return multiplied(t, left, right, dtype)
    if t.emit.differ(first[-1], second[-2]):
        t.fail(
            "shape-mismatch",
            f"expected the last axis of the first ({first[-1]}) to equal the last but one of the "
            f"second ({second[-2]}), got {t.show(left)} and {t.show(right)}",
            left,
            right,
        )
    shape = (*first[:-1], *second[:-2], second[-1])
    return _dotted(t, left, right, dtype, shape, [len(first) - 1], [len(second) - 2])


def _dotted(
    t: Core, left: Tensor, right: Tensor, dtype: ir.DataType, shape: tuple[Dim, ...],
    first: list[int], second: list[int],
) -> Tensor:  # fmt: skip
    """Return a sum of products over pairs of axes, of a type that is known."""
    operands = [cast(t, x, dtype) for x in (left, right)]
    return built(t, (dtype, shape), products.tensordot, *operands, first, second)


@NUMPY.function("inner")
def inner(t: Core, a: Value, b: Value) -> Tensor:
    """Return the sum of products over the last axes."""
    left, right, dtype = _pair(t, a, b)
    first, second = shape_of(t, left), shape_of(t, right)
    if not first or not second:
        return elementwise(t, "multiply", left, right)
    if t.emit.differ(first[-1], second[-1]):
        t.fail(
            "shape-mismatch",
            f"expected equal last axes, got {t.show(left)} and {t.show(right)}",
            left,
            right,
        )
    shape = (*first[:-1], *second[:-1])
    return _dotted(t, left, right, dtype, shape, [len(first) - 1], [len(second) - 1])


@NUMPY.function("linalg.vecdot", "vecdot")
def vecdot(t: Core, x1: Value, x2: Value, *, axis: Value = -1) -> Tensor:
    """Return the sum of the products along an axis."""
    made = elementwise(t, "multiply", x1, x2)
    return reduced(t, "ReduceSum", made, axis, False, made.dtype, statistics.total)


@NUMPY.function("vdot")
def vdot(t: Core, a: Value, b: Value) -> Tensor:
    """Return the sum of the products of all elements."""
    left, right, dtype = _pair(t, a, b)
    counts = [product(shape_of(t, x)) for x in (left, right)]
    if t.emit.differ(*counts):
        t.fail(
            "shape-mismatch",
            f"expected as many elements, got {t.show(left)} and {t.show(right)}",
            left,
            right,
        )
    flat = [cast(t, reshape(t, x, [-1]), dtype) for x in (left, right)]
    return built(t, (dtype, ()), products.matrix_product, *flat)


@NUMPY.function("outer", "linalg.outer")
def outer(t: Core, a: Value, b: Value, out: Value = None) -> Tensor:
    """Return all products of elements."""
    left, right, dtype = _pair(t, a, b)
    shape = (product(shape_of(t, left)), product(shape_of(t, right)))
    return built(t, (dtype, shape), products.outer, *(cast(t, x, dtype) for x in (left, right)))


@NUMPY.function("kron")
def kron(t: Core, a: Value, b: Value) -> Tensor:
    """Return the Kronecker product."""
    left, right, dtype = _pair(t, a, b)
    first, second = list(shape_of(t, left)), list(shape_of(t, right))
    rank = max(len(first), len(second))
    first = [*[1] * (rank - len(first)), *first]
    second = [*[1] * (rank - len(second)), *second]
    shape = tuple(x * y for x, y in zip(first, second, strict=True))
    return built(t, (dtype, shape), products.kronecker, *(cast(t, x, dtype) for x in (left, right)))


@NUMPY.function("einsum")
def einsum(t: Core, subscripts: Value, *operands: Value, **_: Value) -> Tensor:
    """Return a sum of products over the indices of an equation."""
    if not isinstance(subscripts, str):
        t.fail("type", "einsum takes its equation as a text first")
    tensors = [to_array(t, x) for x in operands]
    dtype = promoted(t, tensors)
    with t.emit.types_only():
        floats = [t.emit.like(x, FLOAT) for x in tensors]
        made: Tensor = t.op("Einsum", *floats, equation=re.sub(r"\s", "", subscripts))
    if made.shape is None:
        return t.emit.like(made, dtype)
    operands_ = [cast(t, x, dtype) for x in tensors]
    return built(t, (dtype, made.shape), partial(products.einsum, subscripts), *operands_)


@NUMPY.function("tensordot", "linalg.tensordot")
def tensordot_function(t: Core, a: Value, b: Value, axes: Value = 2) -> Tensor:
    """Return a sum of products over pairs of axes."""
    left, right, dtype = _pair(t, a, b)
    return tensordot(t, left, right, axes, dtype)


def tensordot(t: Core, left: Tensor, right: Tensor, pairs: Value, dtype: ir.DataType) -> Tensor:
    """Return a sum of products over pairs of axes, given as a count or as two lists."""
    a, b = shape_of(t, left), shape_of(t, right)
    if isinstance(pairs, int):
        if pairs > min(len(a), len(b)):
            t.fail("axis", f"{pairs} axes of {t.show(left)} and {t.show(right)}", left, right)
        first, second = list(range(len(a) - pairs, len(a))), list(range(pairs))
    else:
        first, second = axes(t, pairs[0], len(a), left), axes(t, pairs[1], len(b), right)
    if len(first) != len(second):
        t.fail("axis", f"expected as many axes of both, got {pairs}", left, right)
    for i, j in zip(first, second, strict=True):
        if t.emit.differ(a[i], b[j]):
            t.fail(
                "shape-mismatch",
                f"expected axis {i} of {t.show(left)} to equal axis {j} of {t.show(right)}",
                left,
                right,
            )
    rest = [d for i, d in enumerate(a) if i not in first]
    rest += [d for j, d in enumerate(b) if j not in second]
    return _dotted(t, left, right, dtype, tuple(rest), first, second)


@NUMPY.function("cross", "linalg.cross")
def cross(
    t: Core, a: Value, b: Value, axisa: Value = -1, axisb: Value = -1, axisc: Value = -1,
    axis: Value = None,
) -> Tensor:  # fmt: skip
    """Return the cross product of vectors of 3."""
    from hagane.frontends.libraries.numpy.operands import axis as checked

    if axis is None and (axisa, axisb, axisc) != (-1, -1, -1):
        moved = [t.call_library("numpy.moveaxis", [x, place, -1])
                 for x, place in ((a, axisa), (b, axisb))]  # fmt: skip
        found: Tensor = t.call_library("numpy.moveaxis", [cross(t, *moved), -1, axisc])
        return found
    axis = -1 if axis is None else axis
    left, right, dtype = _pair(t, a, b)
    place = checked(t, axis, len(shape_of(t, left)), left)
    if t.emit.differ(shape_of(t, left)[place], 3):
        t.fail("shape-mismatch", f"expected 3 elements along axis {place}: {t.show(left)}", left)
    shape = broadcast_shape(t, left, right)
    operands = [cast(t, x, dtype) for x in (left, right)]
    most = max(len(shape_of(t, x)) for x in operands)
    operands = [reshape(t, x, [1] * (most - len(shape_of(t, x))) + [*shape_of(t, x)])
                if len(shape_of(t, x)) < most else x for x in operands]  # fmt: skip
    place = place if axis != -1 else most - 1
    return built(t, (dtype, shape), distances.cross, *operands, place)


@NUMPY.function("linalg.norm")
def norm(
    t: Core, x: Value, ord: Value = None, axis: Value = None, keepdims: Value = False
) -> Tensor:
    """Return a norm over axes: of vectors along one, of matrices over two."""
    found = to_array(t, x)
    places = axes(t, axis, len(shape_of(t, found)), found)
    if axis is not None and len(places) > 2:
        t.fail("axis", f"a norm is over one axis or two, got {axis}", found)
    if axis is None and ord is not None and len(places) > 2:
        told = f"a norm of order {ord} is one of vectors or matrices, got {t.show(found)}"
        t.fail("rank", told, found)
    as_matrix = len(places) == 2 and ord is not None
    return _normed(t, found, 2 if ord is None else ord, axis, keepdims, matrix=as_matrix)


@NUMPY.function("linalg.vector_norm")
def vector_norm(
    t: Core, x: Value, /, *, axis: Value = None, keepdims: Value = False, ord: Value = 2
) -> Tensor:
    """Return the norm of vectors along axes, which count as one."""
    return _normed(t, to_array(t, x), ord, axis, keepdims, matrix=False)


@NUMPY.function("linalg.matrix_norm")
def matrix_norm(t: Core, x: Value, /, *, keepdims: Value = False, ord: Value = "fro") -> Tensor:
    """Return the norm of matrices."""
    return _normed(t, to_array(t, x), ord, (-2, -1), keepdims, matrix=True)


def _normed(
    t: Core, found: Tensor, order: Value, axis: Value, keepdims: Value, *, matrix: bool
) -> Tensor:
    dtype = found.dtype if found.dtype.numpy().kind == "f" else _real(found)
    if found.dtype.numpy().kind == "c":
        return reduced(t, "", found, axis, keepdims, dtype)
    x = cast(t, found, dtype)
    if matrix and is_plain(order) and order not in linalg.MATRIX_ORDERS:
        told = ", ".join(map(str, linalg.MATRIX_ORDERS))
        t.fail("value", f"expected one of {told} as order of a norm of matrices, got {order!r}", x)
    if not matrix and isinstance(order, int | float):
        return reduced(t, "", x, axis, keepdims, dtype, statistics.norm, float(order))
    if matrix and (isinstance(order, int | float) or order in ("fro", "nuc")):
        return reduced(t, "", x, axis, keepdims, dtype, linalg.matrix_norm, order)
    return reduced(t, "", x, axis, keepdims, dtype)


def _square(t: Core, a: Value, name: str) -> tuple[Tensor, tuple[Dim, ...]]:
    x = to_array(t, a)
    shape = shape_of(t, x)
    if len(shape) < 2 or t.emit.differ(shape[-1], shape[-2]):
        t.fail("shape-mismatch", f"{name} takes square matrices, got {t.show(x)}", x)
    if x.dtype == ir.DataType.FLOAT16:
        t.fail("dtype-mismatch", f"{name} does not take float16: {t.show(x)}", x)
    return x, shape


def _matrix(name: str) -> None:
    def function(t: Core, a: Value, *_: Value, **keywords: Value) -> Value:
        x, shape = _square(t, a, name)
        if x.dtype.numpy().kind == "c":
            return _of_complex(t, x, name, shape)
        dtype = _real(x)
        x = cast(t, x, dtype)
        if name == "det":
            return built(t, (dtype, shape[:-2]), linalg.determinant, x)
        if name == "slogdet":
            found = several(t, linalg.signed_logarithm, x, shape[:-2], shape[:-2])
            return Fields(found, ("sign", "logabsdet"))
        if name in ("eigvalsh", "eigh"):
            if _ or keywords:  # the other half of the matrices
                x = t.call_library("numpy.matrix_transpose", [x])
            found = several(t, factors.symmetric_values, x, shape[:-1], shape)
            return found[0] if name == "eigvalsh" else Fields(
                found, ("eigenvalues", "eigenvectors")
            )  # fmt: skip
        rule = linalg.inverse if name == "inv" else factors.cholesky
        _check_solvable(t, name, x)
        return built(t, (dtype, shape), rule, x)

    NUMPY.function(f"linalg.{name}")(function)


def _check_solvable(t: Core, name: str, x: Tensor) -> None:
    """Fail for a matrix of known numbers that has no inverse or factor."""
    if x.known is not None and x.known.dtype != object:
        try:
            getattr(np.linalg, name)(x.known)
        except np.linalg.LinAlgError as error:
            t.fail("value", f"LinAlgError: {error}: {t.show(x)}", x)


def _of_complex(t: Core, x: Tensor, name: str, shape: tuple[Dim, ...]) -> Value:
    """Return results for complex matrices, of which only the types are known."""
    if name == "det":
        return typed(t, "Det", [x], x.dtype, shape[:-2])
    if name == "slogdet":
        return Fields(
            (typed(t, "Det", [x], x.dtype, shape[:-2]), typed(t, "Det", [x], _real(x), shape[:-2])),
            ("sign", "logabsdet"),
        )
    values = typed(t, "Eig", [x], _real(x), shape[:-1])
    if name == "eigvalsh":
        return values
    whole = typed(t, name, [x], x.dtype, shape)
    return Fields((values, whole), ("eigenvalues", "eigenvectors")) if name == "eigh" else whole


for _name in ("inv", "det", "slogdet", "cholesky", "eigvalsh", "eigh"):
    _matrix(_name)


@NUMPY.function("linalg.matrix_power")
def matrix_power(t: Core, a: Value, n: Value) -> Tensor:
    """Return a power of square matrices."""
    x, shape = _square(t, a, "matrix_power")
    dtype = x.dtype if isinstance(n, int) and n >= 0 else _real(x)
    if not isinstance(n, int) or x.dtype.numpy().kind == "c":
        return typed(t, "Power", [x], x.dtype, shape)
    return built(t, (dtype, shape), linalg.power, cast(t, x, dtype), n)


@NUMPY.function("linalg.solve")
def solve(t: Core, a: Value, b: Value) -> Tensor:
    """Return the solution of linear equations."""
    x, shape = _square(t, a, "solve")
    right = to_array(t, b)
    own = shape_of(t, right)
    rows = own[0] if len(own) == 1 else own[-2]
    if t.emit.differ(rows, shape[-1]):
        t.fail("shape-mismatch", f"{t.show(x)} does not fit {t.show(right)}", x, right)
    dtype = FLOAT if x.dtype == FLOAT == right.dtype else DOUBLE
    if len(own) == 1:
        own = shape[:-1]
    elif shape[:-2] != own[:-2]:
        own = (*broadcast_shapes(t, [shape[:-2], own[:-2]], x), *own[-2:])
    if x.dtype.numpy().kind == "c" or right.dtype.numpy().kind == "c":
        return typed(t, "Solve", [x, right], dtype, own)
    operands = [cast(t, v, dtype) for v in (x, right)]
    _check_solvable(t, "inv", operands[0])
    return built(t, (dtype, own), linalg.solved_any, *operands)


@NUMPY.function("linalg.lstsq")
def lstsq(t: Core, a: Value, b: Value, rcond: Value = None) -> Value:
    """Return the solution of least squares, sums of squared errors, the rank, singular values."""
    x, right = to_array(t, a), to_array(t, b)
    shape, own = shape_of(t, x), shape_of(t, right)
    if len(shape) != 2:
        t.fail("rank-mismatch", f"lstsq: expected a matrix, got {t.show(x)}", x)
    if len(own) not in (1, 2):
        t.fail("rank-mismatch", f"lstsq: expected a vector or a matrix, got {t.show(right)}", right)
    if t.emit.differ(own[0], shape[0]):
        t.fail("shape-mismatch", f"{t.show(x)} does not fit {t.show(right)}", x, right)
    if t.emit.builds:
        return run_own(t, fitting.lstsq, [x, right, rcond], {})
    dtype = FLOAT if x.dtype == FLOAT == right.dtype else DOUBLE
    found = typed(t, "LeastSquares", [x, right], dtype, (shape[1], *own[1:]))
    errors = typed(t, "LeastSquares", [x, right], dtype, (t.emit.fresh("errors"),))
    least = minimum(shape[0], shape[1])
    values = typed(t, "SingularValues", [x], dtype, (least,))
    return (found, errors, t.emit.fresh("rank"), values)


@NUMPY.function("linalg.svdvals")
def svdvals(t: Core, x: Value, /) -> Value:
    """Return singular values."""
    return svd(t, x, False, False)


@NUMPY.function("linalg.svd")
def svd(
    t: Core,
    a: Value,
    full_matrices: Value = True,
    compute_uv: Value = True,
    hermitian: Value = False,
) -> Value:
    """Return singular vectors and values."""
    x = cast(t, to_array(t, a), _real(to_array(t, a)))
    shape = shape_of(t, x)
    if len(shape) < 2:
        t.fail("rank", f"svd takes matrices, got {t.show(x)}", x)
    *lead, rows, columns = shape
    small = minimum(rows, columns)
    is_square = not t.knowledge.possible(negate(t.knowledge.equal(rows, columns)))
    if not compute_uv:
        return built(t, (x.dtype, (*lead, small)), factors.singular_values, x)
    full = bool(full_matrices) and not is_square
    if not full or (isinstance(rows, int) and isinstance(columns, int)):
        up, down = (rows, columns) if full else (small, small)
        sizes = (*lead, rows, up), (*lead, small), (*lead, down, columns)
        rule = partial(factors.singular, full=full)
        return Fields(several(t, rule, x, *sizes), ("U", "S", "Vh"))
    values = built(t, (x.dtype, (*lead, small)), factors.singular_values, x)
    u = typed(t, "Svd", [x], x.dtype, (*lead, rows, rows if full_matrices else small))
    vh = typed(t, "Svd", [x], x.dtype, (*lead, columns if full_matrices else small, columns))
    return Fields((u, values, vh), ("U", "S", "Vh"))


@NUMPY.function("linalg.qr")
def qr(t: Core, a: Value, mode: Value = "reduced") -> Value:
    """Return an orthogonal and a triangular factor."""
    x = cast(t, to_array(t, a), _real(to_array(t, a)))
    *lead, rows, columns = shape_of(t, x)
    inner_ = rows if mode == "complete" else minimum(rows, columns)
    shapes = (*lead, rows, inner_), (*lead, inner_, columns)
    made = partial(factors.orthogonal_triangular, complete=mode == "complete")
    found = several(t, made, x, *shapes)
    return found[1] if mode == "r" else Fields(found, ("Q", "R"))


@NUMPY.function("linalg.pinv")
def pinv(t: Core, a: Value, rcond: Value = None, *_: Value, **__: Value) -> Tensor:
    """Return the pseudo-inverse."""
    x = to_array(t, a)
    *lead, rows, columns = shape_of(t, x)
    shape = (*lead, columns, rows)
    share = 1e-15 if rcond is None else rcond
    if x.dtype.numpy().kind == "c" or not isinstance(share, float):
        return typed(t, "Pinv", [x], _real(x), shape)
    x = cast(t, x, _real(x))
    return built(t, (x.dtype, shape), linalg.pseudo_inverse, x, share)


@NUMPY.function("linalg.matrix_rank")
def matrix_rank(t: Core, A: Value, *_: Value, **__: Value) -> Tensor:
    """Return the rank of matrices."""
    x = to_array(t, A)
    shape = shape_of(t, x)[:-2]
    if _ or __ or x.dtype.numpy().kind == "c" or len(shape_of(t, x)) < 2:
        return typed(t, "Rank", [x], ir.DataType.INT64, shape)
    x = cast(t, x, _real(x))
    return built(t, (ir.DataType.INT64, shape), linalg.numerical_rank, x, None)
