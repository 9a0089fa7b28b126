"""Matrix products and linear algebra of NumPy."""

from __future__ import annotations

import re

import onnx_ir as ir

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.numpy.operands import (
    DOUBLE,
    FLOAT,
    FLOATS,
    axes,
    broadcast_shape,
    cast,
    promoted,
    shape_of,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.reducing import reduced
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Fields, Tensor, Value
from hagane.ops.functions import distances
from hagane.symbolic import Dim, minimum, product


def _real(x: Tensor) -> ir.DataType:
    """Return the element type that linear algebra computes with."""
    if x.dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return ir.DataType.FLOAT if x.dtype == ir.DataType.COMPLEX64 else DOUBLE
    return x.dtype if x.dtype == FLOAT else DOUBLE


def _pair(t: Core, a: Value, b: Value) -> tuple[Tensor, Tensor, ir.DataType]:
    left, right = to_array(t, a), to_array(t, b)
    return left, right, promoted(t, [left, right])


def multiplied(t: Core, left: Tensor, right: Tensor, dtype: ir.DataType) -> Tensor:
    """Return the matrix product by the rule of the operator, whatever the element type."""
    if dtype in FLOATS:
        product_: Tensor = t.op("MatMul", *(cast(t, x, dtype) for x in (left, right)))
        return product_
    floats = [t.emit.like(x, FLOAT) for x in (left, right)]
    made: Tensor = t.op("MatMul", *floats)
    return made if made.dtype == dtype else t.emit.like(made, dtype)


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
        return typed(t, "Mul", [left, right], dtype, (*first, *second))
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
    return typed(t, "Dot", [left, right], dtype, (*first[:-1], *second[:-2], second[-1]))


@NUMPY.function("inner")
def inner(t: Core, a: Value, b: Value) -> Tensor:
    """Return the sum of products over the last axes."""
    left, right, dtype = _pair(t, a, b)
    first, second = shape_of(t, left), shape_of(t, right)
    if not first or not second:
        return typed(t, "Mul", [left, right], dtype, (*first, *second))
    if t.emit.differ(first[-1], second[-1]):
        t.fail(
            "shape-mismatch",
            f"expected equal last axes, got {t.show(left)} and {t.show(right)}",
            left,
            right,
        )
    return typed(t, "Inner", [left, right], dtype, (*first[:-1], *second[:-1]))


@NUMPY.function("vdot", "linalg.vecdot", "vecdot")
def vdot(t: Core, a: Value, b: Value, *, axis: Value = -1) -> Tensor:
    """Return the sum of the products of all elements (vdot), or along an axis (vecdot)."""
    left, right, dtype = _pair(t, a, b)
    if t.emit.label.endswith("vecdot"):
        made = t.call_library("numpy.multiply", [left, right])
        return reduced(t, "", made, axis, False, made.dtype)
    counts = [product(shape_of(t, x)) for x in (left, right)]
    if t.emit.differ(*counts):
        t.fail(
            "shape-mismatch",
            f"expected as many elements, got {t.show(left)} and {t.show(right)}",
            left,
            right,
        )
    return typed(t, "VDot", [left, right], dtype, ())


@NUMPY.function("outer", "linalg.outer")
def outer(t: Core, a: Value, b: Value, out: Value = None) -> Tensor:
    """Return all products of elements."""
    left, right, dtype = _pair(t, a, b)
    shape = (product(shape_of(t, left)), product(shape_of(t, right)))
    return typed(t, "Outer", [left, right], dtype, shape)


@NUMPY.function("kron")
def kron(t: Core, a: Value, b: Value) -> Tensor:
    """Return the Kronecker product."""
    left, right, dtype = _pair(t, a, b)
    first, second = list(shape_of(t, left)), list(shape_of(t, right))
    rank = max(len(first), len(second))
    first = [*[1] * (rank - len(first)), *first]
    second = [*[1] * (rank - len(second)), *second]
    shape = tuple(x * y for x, y in zip(first, second, strict=True))
    return typed(t, "Kron", [left, right], dtype, shape)


@NUMPY.function("einsum")
def einsum(t: Core, subscripts: Value, *operands: Value, **_: Value) -> Tensor:
    """Return a sum of products over the indices of an equation."""
    if not isinstance(subscripts, str):
        t.fail("type", "einsum takes its equation as a text first")
    tensors = [to_array(t, x) for x in operands]
    dtype = promoted(t, tensors)
    floats = [t.emit.like(x, FLOAT) for x in tensors]
    made: Tensor = t.op("Einsum", *floats, equation=re.sub(r"\s", "", subscripts))
    return made if made.dtype == dtype else t.emit.like(made, dtype)


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
    return typed(t, "TensorDot", [left, right], dtype, tuple(rest))


@NUMPY.function("cross", "linalg.cross")
def cross(t: Core, a: Value, b: Value, *_: Value, axis: Value = -1) -> Tensor:
    """Return the cross product of vectors of 3."""
    from hagane.frontends.libraries.numpy.operands import axis as checked

    left, right, dtype = _pair(t, a, b)
    place = checked(t, axis, len(shape_of(t, left)), left)
    if t.emit.differ(shape_of(t, left)[place], 3):
        t.fail("shape-mismatch", f"expected 3 elements along axis {place}: {t.show(left)}", left)
    shape = broadcast_shape(t, left, right)
    operands = [cast(t, x, dtype) for x in (left, right)]
    if len(shape_of(t, right)) != len(shape_of(t, left)):
        return typed(t, "Cross", operands, dtype, shape)
    return computed(t, (dtype, shape), distances.cross, *operands, place)


@NUMPY.function("linalg.norm", "linalg.vector_norm", "linalg.matrix_norm")
def norm(
    t: Core, x: Value, ord: Value = None, axis: Value = None, keepdims: Value = False
) -> Tensor:
    """Return a norm over axes."""
    found = to_array(t, x)
    places = axes(t, axis, len(shape_of(t, found)), found)
    if axis is not None and len(places) > 2:
        t.fail("axis", f"a norm is over one axis or two, got {axis}", found)
    dtype = found.dtype if found.dtype.numpy().kind == "f" else _real(found)
    return reduced(t, "", found, axis, keepdims, dtype)


def _square(t: Core, a: Value, name: str) -> tuple[Tensor, tuple[Dim, ...]]:
    x = to_array(t, a)
    shape = shape_of(t, x)
    if len(shape) < 2 or t.emit.differ(shape[-1], shape[-2]):
        t.fail("shape-mismatch", f"{name} takes square matrices, got {t.show(x)}", x)
    if x.dtype == ir.DataType.FLOAT16:
        t.fail("dtype-mismatch", f"{name} does not take float16: {t.show(x)}", x)
    return x, shape


def _matrix(name: str) -> None:
    def function(t: Core, a: Value, *_: Value, **__: Value) -> Value:
        x, shape = _square(t, a, name)
        dtype = _real(x) if x.dtype.numpy().kind != "c" else x.dtype
        if name == "det":
            return typed(t, "Det", [x], dtype, shape[:-2])
        if name == "slogdet":
            return Fields(
                (
                    typed(t, "Det", [x], dtype, shape[:-2]),
                    typed(t, "Det", [x], _real(x), shape[:-2]),
                ),
                ("sign", "logabsdet"),
            )
        if name == "eigvalsh":
            return typed(t, "Eig", [x], _real(x), shape[:-1])
        if name == "eigh":
            values, vectors = typed(t, "Eig", [x], _real(x), shape[:-1]), None
            vectors = typed(t, "Eig", [x], dtype, shape)
            return Fields((values, vectors), ("eigenvalues", "eigenvectors"))
        if name == "matrix_power":
            return typed(t, "Power", [x], x.dtype, shape)
        return typed(t, name, [x], dtype, shape)

    NUMPY.function(f"linalg.{name}")(function)


for _name in ("inv", "det", "slogdet", "cholesky", "eigvalsh", "eigh", "matrix_power"):
    _matrix(_name)


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
    return typed(t, "Solve", [x, right], dtype, own)


@NUMPY.function("linalg.svd", "linalg.svdvals")
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
    values = typed(t, "Svd", [x], x.dtype, (*lead, small))
    if not compute_uv or t.emit.label.endswith("svdvals"):
        return values
    u = typed(t, "Svd", [x], x.dtype, (*lead, rows, rows if full_matrices else small))
    vh = typed(t, "Svd", [x], x.dtype, (*lead, columns if full_matrices else small, columns))
    return Fields((u, values, vh), ("U", "S", "Vh"))


@NUMPY.function("linalg.qr")
def qr(t: Core, a: Value, mode: Value = "reduced") -> Value:
    """Return an orthogonal and a triangular factor."""
    x = cast(t, to_array(t, a), _real(to_array(t, a)))
    *lead, rows, columns = shape_of(t, x)
    inner_ = rows if mode == "complete" else minimum(rows, columns)
    q = typed(t, "Qr", [x], x.dtype, (*lead, rows, inner_))
    return Fields((q, typed(t, "Qr", [x], x.dtype, (*lead, inner_, columns))), ("Q", "R"))


@NUMPY.function("linalg.pinv")
def pinv(t: Core, a: Value, *_: Value, **__: Value) -> Tensor:
    """Return the pseudo-inverse."""
    x = to_array(t, a)
    *lead, rows, columns = shape_of(t, x)
    return typed(t, "Pinv", [x], _real(x), (*lead, columns, rows))


@NUMPY.function("linalg.matrix_rank")
def matrix_rank(t: Core, A: Value, *_: Value, **__: Value) -> Tensor:
    """Return the rank of matrices."""
    x = to_array(t, A)
    return typed(t, "Rank", [x], ir.DataType.INT64, shape_of(t, x)[:-2])
