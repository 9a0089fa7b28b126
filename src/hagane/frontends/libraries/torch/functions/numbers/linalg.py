"""Linear algebra of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hagane.frontends.libraries.computing import built, several
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    INT64,
    cast,
    category,
    complex_dtype,
    need_float,
    need_tensor,
    promoted,
    real_dtype,
    same_dtype,
    same_shape,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Fields,
    Tensor,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.numbers.elementary import cast as to_dtype
from hagane.ops.functions.numbers.elementary import swapped
from hagane.ops.functions.sums import factors, linalg, statistics
from hagane.ops.functions.tensors import parts
from hagane.symbolic import Dim, definitely_equal, minimum
from hagane.symbolic.logic import both, negate
from hagane.symbolic.path import Verdict


def matrices(t: Core, value: Value, what: str, *, square: bool = False) -> Tensor:
    """Return an argument that has to hold matrices of floats."""
    x = need_tensor(t, value, "A")
    need_float(t, x, "A")
    shape = shape_of(t, x)
    if len(shape) < 2:
        t.fail("rank", f"{what} takes matrices, got {t.show(x)}", x)
    if square and t.emit.differ(shape[-1], shape[-2]):
        t.fail("shape-mismatch", f"{what} takes square matrices, got {t.show(x)}", x)
    return x


def _keeping(*names: str, rule: Callable[[Any], Any]) -> None:
    def function(t: Core, A: Value) -> Tensor:
        x = matrices(t, A, names[0].rpartition(".")[2], square=True)
        if category(x.dtype) == 3:
            return t.emit.typed("Linalg", [x], x.dtype, x.shape)
        return built(t, x, rule, x)

    methods = [name for name in names if "." not in name]
    TORCH.function(*names, methods=methods)(function)


_keeping("linalg.inv", "inverse", rule=linalg.inverse)
_keeping("linalg.matrix_exp", "matrix_exp", rule=linalg.exponential)


@TORCH.function("linalg.cholesky", "cholesky", methods=("cholesky",))
def cholesky(t: Core, A: Value, upper: Value = False) -> Tensor:
    """Return the triangular factor of positive definite matrices."""
    x = matrices(t, A, "cholesky", square=True)
    if category(x.dtype) == 3 or not isinstance(upper, bool):
        return t.emit.typed("Linalg", [x], x.dtype, x.shape)
    return built(t, x, lambda x: swapped(factors.cholesky(swapped(x))) if upper
                    else factors.cholesky(x), x)  # fmt: skip


@TORCH.function("linalg.matrix_power", "matrix_power", methods=("matrix_power",))
def matrix_power(t: Core, A: Value, n: Value) -> Tensor:
    """Return a power of square matrices."""
    x = matrices(t, A, "matrix_power", square=True)
    if category(x.dtype) == 3 or not isinstance(n, int):
        return t.emit.typed("Linalg", [x], x.dtype, x.shape)
    return built(t, x, linalg.power, x, n)


@TORCH.function("cholesky_inverse", methods=("cholesky_inverse",))
def cholesky_inverse(t: Core, L: Value, upper: Value = False) -> Tensor:
    """Return the inverse of matrices, given their triangular factors."""
    x = matrices(t, L, "cholesky_inverse", square=True)
    if category(x.dtype) == 3 or not isinstance(upper, bool):
        return t.emit.typed("Linalg", [x], x.dtype, x.shape)
    return built(t, x, lambda x: linalg.inverse(linalg.of_factor(x, upper=upper)), x)


def _reducing(*names: str, rule: Callable[[Any], Any]) -> None:
    def function(t: Core, A: Value) -> Tensor:
        x = matrices(t, A, names[0].rpartition(".")[2], square=True)
        if category(x.dtype) == 3:
            return t.emit.typed("Det", [x], x.dtype, shape_of(t, x)[:-2])
        return built(t, (x.dtype, shape_of(t, x)[:-2]), rule, x)

    TORCH.function(*names, methods=[name for name in names if "." not in name])(function)


_reducing("linalg.det", "det", rule=linalg.determinant)
_reducing("logdet", rule=linalg.log_determinant)


@TORCH.function("linalg.slogdet", "slogdet", methods=("slogdet",))
def slogdet(t: Core, A: Value) -> Value:
    """Return sign and logarithm of determinants."""
    x = matrices(t, A, "slogdet", square=True)
    shape = shape_of(t, x)[:-2]
    if category(x.dtype) != 3:
        found = several(t, linalg.signed_logarithm, x, shape, shape)
        return Fields(found, ("sign", "logabsdet"))
    return Fields(
        (t.emit.typed("Det", [x], x.dtype, shape),
         t.emit.typed("Det", [x], real_dtype(x.dtype), shape)), ("sign", "logabsdet"),
    )  # fmt: skip


@TORCH.function("trace", methods=("trace",))
def trace(t: Core, input: Value) -> Tensor:
    """Return the sum of the diagonal of a matrix."""
    x = need_tensor(t, input, "input")
    rows, columns = shape_of(t, x, 2)
    dtype = x.dtype if category(x.dtype) >= 2 else INT64
    if category(x.dtype) == 3:
        return t.emit.typed("Trace", [x], dtype, ())
    length = minimum(rows, columns)
    return built(t, (dtype, ()), lambda x: op("ReduceSum", parts.diagonal(
        to_dtype(x, dtype), 0, 0, 1, length), [0], keepdims=0), x)  # fmt: skip


def _vectors(t: Core, x: Tensor, full: bool) -> tuple[Tensor, ...] | None:
    """Return U, S and V transposed; None where all are asked for, of a matrix of open sizes."""
    *lead, rows, columns = shape_of(t, x)
    least = minimum(rows, columns)
    is_square = not t.knowledge.possible(negate(t.knowledge.equal(rows, columns)))
    is_known = isinstance(rows, int) and isinstance(columns, int)
    if category(x.dtype) == 3 or (full and not (is_square or is_known)):
        return None
    full = full and not is_square
    up, down = (rows, columns) if full else (least, least)
    shapes = (*lead, rows, up), (*lead, least), (*lead, down, columns)
    return several(t, partial(factors.singular, full=full), x, *shapes)


def _svd(t: Core, x: Tensor, full: bool) -> tuple[Tensor, Tensor, tuple[Dim, ...], Dim, Dim]:
    *lead, rows, columns = shape_of(t, x)
    least = minimum(rows, columns)
    u = t.emit.typed("SVD", [x], x.dtype, (*lead, rows, rows if full else least))
    s = t.emit.typed("SVD", [x], real_dtype(x.dtype), (*lead, least))
    return u, s, tuple(lead), columns if full else least, columns


@TORCH.function("linalg.svd")
def linalg_svd(t: Core, A: Value, full_matrices: Value = True, **_: Value) -> Value:
    """Return U, S and V^H of the singular value decomposition."""
    x = matrices(t, A, "svd")
    vectors = _vectors(t, x, bool(full_matrices))
    if vectors is not None:
        return Fields(vectors, ("U", "S", "Vh"))
    u, s, lead, count, columns = _svd(t, x, bool(full_matrices))
    return Fields((u, s, t.emit.typed("SVD", [x], x.dtype, (*lead, count, columns))),
                  ("U", "S", "Vh"))  # fmt: skip


@TORCH.function("svd", methods=("svd",))
def svd(t: Core, input: Value, some: Value = True, compute_uv: Value = True) -> Value:
    """Return U, S and V of the singular value decomposition."""
    x = matrices(t, input, "svd")
    vectors = _vectors(t, x, not some)
    if vectors is not None and compute_uv is True:
        turned = t.call_library("torch.transpose", [vectors[2], -2, -1])
        return Fields((*vectors[:2], turned), ("U", "S", "V"))
    u, s, lead, count, columns = _svd(t, x, not some)
    v = t.emit.typed("SVD", [x], x.dtype, (*lead, columns, count))
    return Fields((u, s, v), ("U", "S", "V"))


@TORCH.function("linalg.svdvals")
def svdvals(t: Core, A: Value, **_: Value) -> Tensor:
    """Return the singular values."""
    x = matrices(t, A, "svdvals")
    if category(x.dtype) == 3:
        return _svd(t, x, False)[1]
    *lead, rows, columns = shape_of(t, x)
    return built(t, (x.dtype, (*lead, minimum(rows, columns))), factors.singular_values, x)


@TORCH.function("linalg.qr", "qr", methods=("qr",))
def qr(t: Core, A: Value, mode: Value = "reduced") -> Value:
    """Return Q and R."""
    x = matrices(t, A, "qr")
    *lead, rows, columns = shape_of(t, x)
    inner = rows if mode == "complete" else minimum(rows, columns)
    if mode in ("reduced", "complete") and category(x.dtype) != 3:
        made = partial(factors.orthogonal_triangular, complete=mode == "complete")
        return Fields(
            several(t, made, x, (*lead, rows, inner), (*lead, inner, columns)), ("Q", "R")
        )
    q = t.emit.typed("QR", [x], x.dtype, (*lead, rows, inner))
    return Fields((q, t.emit.typed("QR", [x], x.dtype, (*lead, inner, columns))), ("Q", "R"))


@TORCH.function("linalg.householder_product", "orgqr", methods=("orgqr",))
def householder_product(t: Core, A: Value, tau: Value) -> Tensor:
    """Return the first columns of products of reflections."""
    x, scales = matrices(t, A, "householder_product"), need_tensor(t, tau, "tau")
    same_dtype(t, x, scales, "A and tau")
    if category(x.dtype) == 3:
        return t.emit.typed("Linalg", [x], x.dtype, x.shape)
    return built(t, x, factors.reflected, x, scales)


def _eigen(name: str, vectors: bool) -> None:
    def function(t: Core, A: Value) -> Value:
        x = matrices(t, A, name, square=True)
        dtype = complex_dtype(x.dtype)
        values = t.emit.typed("Eigen", [x], dtype, shape_of(t, x)[:-1])
        if not vectors:
            return values
        found = t.emit.typed("Eigen", [x], dtype, x.shape)
        return Fields((values, found), ("eigenvalues", "eigenvectors"))

    TORCH.function(f"linalg.{name}")(function)


def _symmetric(name: str, vectors: bool) -> None:
    def function(t: Core, A: Value, UPLO: Value = "L") -> Value:
        x = matrices(t, A, name, square=True)
        if not isinstance(UPLO, str) or UPLO not in ("L", "U", "l", "u"):
            t.fail("value", f"{name}: expected 'L' or 'U' as UPLO, got {t.show(t.wrap(UPLO))}", x)
        if category(x.dtype) != 3:
            if UPLO in ("U", "u"):  # the upper half of the matrices
                x = t.call_library("torch.transpose", [x, -2, -1])
            pair = several(t, factors.symmetric_values, x, shape_of(t, x)[:-1], shape_of(t, x))
            return Fields(pair, ("eigenvalues", "eigenvectors")) if vectors else pair[0]
        values = t.emit.typed("Eigen", [x], real_dtype(x.dtype), shape_of(t, x)[:-1])
        found = t.emit.typed("Eigen", [x], x.dtype, x.shape)
        return Fields((values, found), ("eigenvalues", "eigenvectors")) if vectors else values

    TORCH.function(f"linalg.{name}")(function)


_symmetric("eigh", vectors=True)
_symmetric("eigvalsh", vectors=False)
_eigen("eig", vectors=True)
_eigen("eigvals", vectors=False)


def _solution(
    t: Core, x: Tensor, b: Tensor, what: str,
    matrix: Callable[[Any], Any] | None = lambda x: x, *, vectors: bool = False,
) -> Tensor:  # fmt: skip
    """Return the type of X in A X = B, where B holds matrices or vectors."""
    same_dtype(t, x, b, f"A and B of {what}")
    left, right = shape_of(t, x), shape_of(t, b)
    if t.emit.differ(left[-2], right[-1 if vectors else -2]):
        t.fail(
            "shape-mismatch",
            f"{what}: expected as many rows in A as in B, got {t.show(x)} and {t.show(b)}",
            x,
            b,
        )
    tail = right[-1:] if vectors else right[-2:]
    lead = t.emit.new(x.dtype, left[:-2]), t.emit.new(x.dtype, right[: len(right) - len(tail)])
    from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape

    front = broadcast_shape(t, *lead)
    rest = (left[-1],) if vectors else (left[-1], right[-1])
    made = (x.dtype, (*front, *rest))
    if category(x.dtype) == 3 or matrix is None:
        return t.emit.typed("Solve", [x, b], *made)

    def solved(x: Any, b: Any) -> Any:
        if not vectors:
            return linalg.solved_any(matrix(x), b)
        found = linalg.solved_any(matrix(x), op("Unsqueeze", b, [-1]))
        return op("Squeeze", found, [-1])

    return built(t, made, solved, x, b)


def _turned_solution(
    t: Core, x: Tensor, b: Tensor, what: str, matrix: Callable[[Any], Any] | None = lambda x: x
) -> Tensor:
    """Return the type of X in X A = B, where B holds matrices; ``matrix`` is of A transposed."""
    x, b = (t.call_library("torch.transpose", [one, -2, -1]) for one in (x, b))
    made: Tensor = t.call_library("torch.transpose", [_solution(t, x, b, what, matrix), -2, -1])
    return made


def _are_vectors(t: Core, x: Tensor, b: Tensor, *, left: bool = True) -> bool:
    """Whether B holds vectors for PyTorch: by one axis, or A's shape without its columns.

    Where sizes leave that open, B holds matrices if they fit A, and sizes of vectors are ruled out.
    """
    rows, right, known = shape_of(t, x)[:-1], shape_of(t, b), t.knowledge
    if len(right) < 2 or len(right) != len(rows):
        return len(right) == 1
    pairs = [(a, c) for a, c in zip(rows, right, strict=True) if not definitely_equal(a, c)]
    alike = both(*(known.equal(a, c) for a, c in pairs))
    if not pairs or not known.possible(alike):
        return not pairs
    if known.same(rows[-1], right[-2 if left else -1]).verdict is not Verdict.PROVED:
        return t.emit.restrict(alike, " and ".join(f"{a} == {c}" for a, c in pairs))
    text = " or ".join(f"{a} != {c}" for a, c in pairs)
    return not t.emit.restrict(negate(alike), f"{text} (B holds matrices)")


@TORCH.function("linalg.solve")
def solve(t: Core, A: Value, B: Value, *, left: Value = True) -> Tensor:
    """Return X with A X = B, or X A = B."""
    x, b = matrices(t, A, "solve", square=True), need_tensor(t, B, "B")
    vectors = _are_vectors(t, x, b, left=left is not False)
    if left is not False:
        rule = (lambda x: x) if left is True else None
        return _solution(t, x, b, "solve", rule, vectors=vectors)
    if vectors:
        t.fail(
            "rank",
            f"solve: expected matrices in B where left=False, got {t.show(x)} and {t.show(b)}",
            x,
            b,
            remedy="a row more: B.unsqueeze(-2)",
        )
    return _turned_solution(t, x, b, "solve")


@TORCH.function("linalg.solve_triangular")
def solve_triangular(
    t: Core, A: Value, B: Value, *, upper: Value, left: Value = True, unitriangular: Value = False
) -> Tensor:
    """Return X with A X = B, or X A = B, A being triangular."""
    x, b = (matrices(t, A, "solve_triangular", square=True),
            matrices(t, B, "solve_triangular"))  # fmt: skip
    rule = None
    if all(isinstance(v, bool) for v in (left, upper, unitriangular)):
        rule = partial(linalg.triangle_of, upper=upper is left, ones=unitriangular)
    solution = _turned_solution if left is False else _solution
    return solution(t, x, b, "solve_triangular", rule)


@TORCH.function("triangular_solve", methods=("triangular_solve",))
def triangular_solve(
    t: Core, b: Value, A: Value, upper: Value = True, transpose: Value = False,
    unitriangular: Value = False,
) -> Value:  # fmt: skip
    """Return X with A X = b, and A."""
    x = matrices(t, A, "triangular_solve", square=True)
    rule = None
    if all(isinstance(v, bool) for v in (upper, transpose, unitriangular)):
        rule = partial(linalg.triangle_of, upper=upper, ones=unitriangular, turned=transpose)
    right = matrices(t, b, "triangular_solve")
    return Fields(
        (_solution(t, x, right, "triangular_solve", rule), x), ("solution", "cloned_coefficient")
    )


@TORCH.function("cholesky_solve", methods=("cholesky_solve",))
def cholesky_solve(t: Core, B: Value, L: Value, upper: Value = False) -> Tensor:
    """Return X with A X = B, given the Cholesky factor of A."""
    x = matrices(t, L, "cholesky_solve", square=True)
    rule = partial(linalg.of_factor, upper=upper) if isinstance(upper, bool) else None
    return _solution(t, x, matrices(t, B, "cholesky_solve"), "cholesky_solve", rule)


@TORCH.function("linalg.lstsq")
def lstsq(t: Core, A: Value, B: Value, *_: Value, **__: Value) -> Value:
    """Return X that minimises the distance of A X to B."""
    x = matrices(t, A, "lstsq")
    right = need_tensor(t, B, "B")
    found = _solution(t, x, right, "lstsq", None, vectors=_are_vectors(t, x, right))
    if category(x.dtype) != 3 and len(shape_of(t, right)) == len(shape_of(t, x)):
        rows, columns = shape_of(t, x)[-2:]
        if t.knowledge.possible(t.knowledge.less(rows, columns)):  # the solution of least norm
            inverse = t.call_library("torch.linalg.pinv", [x])
            found = t.call_library("torch.matmul", [inverse, right])
        else:
            found = built(t, found, linalg.least_squares, x, right)
    lead = shape_of(t, x)[:-2]
    empty = t.emit.new(x.dtype, (t.emit.fresh("residuals"),))
    rank = t.emit.new(INT64, lead)
    return Fields((found, empty, rank, empty),
                  ("solution", "residuals", "rank", "singular_values"))  # fmt: skip


@TORCH.function("linalg.multi_dot", "chain_matmul")
def multi_dot(t: Core, *tensors: Value) -> Value:
    """Return the product of several matrices."""
    given = list(tensors[0]) if len(tensors) == 1 else list(tensors)
    found = given[0]
    for x in given[1:]:
        found = t.call_library("torch.matmul", [found, x])
    return found


def _together(name: str, function: Callable[..., Any]) -> None:
    def made(t: Core, input: Value, **keywords: Value) -> Tensor:
        return _of_rows(t, input, function, keywords)

    TORCH.function(name, methods=(name,))(made)


_together("cov", statistics.covariance)
_together("corrcoef", statistics.correlation)


def _of_rows(
    t: Core, input: Value, function: Callable[..., Any], keywords: Mapping[str, Value]
) -> Tensor:
    """Return the covariance or correlation of variables, which are rows."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    if len(shape) > 2:
        t.fail("rank", f"expected one or two axes, got {t.show(x)}", x)
    lone = len(shape) < 2 or (isinstance(shape[0], int) and shape[0] == 1)
    if not lone and shape[0] != 0:
        t.emit.suppose_not_one(shape[0], "number of variables, of which one gives a single number")
    dtype = FLOAT if category(x.dtype) < 2 else x.dtype
    shares = keywords.get("aweights")
    dtype = promoted(dtype, shares.dtype) if isinstance(shares, Tensor) else dtype
    made = (dtype, () if lone else (shape[0], shape[0]))
    correction = keywords.get("correction", 1)
    weights = [keywords.get("fweights"), keywords.get("aweights")]
    given = [need_tensor(t, one, "weights") for one in weights if one is not None]
    for what, kind, named in (("fweights", 1, "integers"), ("aweights", 2, "floats")):
        one = keywords.get(what)
        if one is None:
            continue
        if category(one.dtype) != kind:
            t.fail("dtype-mismatch", f"expected {named} as {what}, got {t.show(one)}", one)
        count = () if not shape else shape[-1:]
        same_shape(t, one, count, f"as many {what} as observations")
    plain = not {*keywords} - {"correction", "fweights", "aweights"} and isinstance(correction, int)
    if not plain or category(x.dtype) != 2 or not shape:
        return t.emit.typed("Cov", [x], *made)
    x = cast(t, x, dtype)

    def rows(x: Value, *given: Value) -> Value:
        found = iter(given)
        kinds = [next(found) if one is not None else None for one in weights if given]
        return function(op("Reshape", x, [-1]) if lone else x, correction, *kinds)

    return built(t, made, rows, x, *given)
