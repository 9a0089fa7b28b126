"""Linear algebra of PyTorch."""

from __future__ import annotations

from hagane.frontends.libraries.torch.operands import (
    INT64,
    complex_dtype,
    need_float,
    need_tensor,
    real_dtype,
    same_dtype,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Fields, Tensor, Value
from hagane.symbolic import Dim, minimum


def _matrices(t: Core, value: Value, what: str, *, square: bool = False) -> Tensor:
    """Return an argument that has to hold matrices of floats."""
    x = need_tensor(t, value, "A")
    need_float(t, x, "A")
    shape = shape_of(t, x)
    if len(shape) < 2:
        t.fail("rank", f"{what} takes matrices, got {t.show(x)}", x)
    if square and t.emit.differ(shape[-1], shape[-2]):
        t.fail("shape-mismatch", f"{what} takes square matrices, got {t.show(x)}", x)
    return x


def _keeping(*names: str, square: bool = True) -> None:
    def function(t: Core, A: Value, *_: Value, **__: Value) -> Tensor:
        x = _matrices(t, A, names[0].rpartition(".")[2], square=square)
        return t.emit.typed("Linalg", [x], x.dtype, x.shape)

    methods = [name for name in names if "." not in name]
    TORCH.function(*names, methods=methods)(function)


for _names in (
    ("linalg.inv", "inverse"), ("linalg.cholesky", "cholesky"), ("linalg.matrix_power",
    "matrix_power"), ("linalg.matrix_exp", "matrix_exp"), ("cholesky_inverse",),
):  # fmt: skip
    _keeping(*_names)


def _reducing(*names: str) -> None:
    def function(t: Core, A: Value) -> Tensor:
        x = _matrices(t, A, names[0].rpartition(".")[2], square=True)
        return t.emit.typed("Det", [x], x.dtype, shape_of(t, x)[:-2])

    TORCH.function(*names, methods=[name for name in names if "." not in name])(function)


_reducing("linalg.det", "det")
_reducing("logdet")


@TORCH.function("linalg.slogdet", "slogdet", methods=("slogdet",))
def slogdet(t: Core, A: Value) -> Value:
    """Return sign and logarithm of determinants."""
    x = _matrices(t, A, "slogdet", square=True)
    shape = shape_of(t, x)[:-2]
    return Fields(
        (t.emit.typed("Det", [x], x.dtype, shape),
         t.emit.typed("Det", [x], real_dtype(x.dtype), shape)), ("sign", "logabsdet"),
    )  # fmt: skip


@TORCH.function("trace", methods=("trace",))
def trace(t: Core, input: Value) -> Tensor:
    """Return the sum of the diagonal of a matrix."""
    x = need_tensor(t, input, "input")
    shape_of(t, x, 2)
    return t.emit.typed("Trace", [x], x.dtype if not x.dtype.is_integer() else INT64, ())


@TORCH.function("linalg.matrix_rank")
def matrix_rank(t: Core, A: Value, *_: Value, **__: Value) -> Tensor:
    """Return the rank of matrices, int64."""
    x = _matrices(t, A, "matrix_rank")
    return t.emit.typed("Rank", [x], INT64, shape_of(t, x)[:-2])


@TORCH.function("linalg.pinv", "pinverse", methods=("pinverse",))
def pinv(t: Core, A: Value, *_: Value, **__: Value) -> Tensor:
    """Return the pseudo-inverse."""
    x = _matrices(t, A, "pinv")
    *lead, rows, columns = shape_of(t, x)
    return t.emit.typed("PInv", [x], x.dtype, (*lead, columns, rows))


def _svd(t: Core, x: Tensor, full: bool) -> tuple[Tensor, Tensor, tuple[Dim, ...], Dim, Dim]:
    *lead, rows, columns = shape_of(t, x)
    least = minimum(rows, columns)
    u = t.emit.typed("SVD", [x], x.dtype, (*lead, rows, rows if full else least))
    s = t.emit.typed("SVD", [x], real_dtype(x.dtype), (*lead, least))
    return u, s, tuple(lead), columns if full else least, columns


@TORCH.function("linalg.svd")
def linalg_svd(t: Core, A: Value, full_matrices: Value = True, **_: Value) -> Value:
    """Return U, S and V^H of the singular value decomposition."""
    x = _matrices(t, A, "svd")
    u, s, lead, count, columns = _svd(t, x, bool(full_matrices))
    return Fields((u, s, t.emit.typed("SVD", [x], x.dtype, (*lead, count, columns))),
                  ("U", "S", "Vh"))  # fmt: skip


@TORCH.function("svd", methods=("svd",))
def svd(t: Core, input: Value, some: Value = True, compute_uv: Value = True) -> Value:
    """Return U, S and V of the singular value decomposition."""
    x = _matrices(t, input, "svd")
    u, s, lead, count, columns = _svd(t, x, not some)
    v = t.emit.typed("SVD", [x], x.dtype, (*lead, columns, count))
    return Fields((u, s, v), ("U", "S", "V"))


@TORCH.function("linalg.svdvals")
def svdvals(t: Core, A: Value, **_: Value) -> Tensor:
    """Return the singular values."""
    return _svd(t, _matrices(t, A, "svdvals"), False)[1]


@TORCH.function("linalg.qr", "qr", methods=("qr",))
def qr(t: Core, A: Value, mode: Value = "reduced") -> Value:
    """Return Q and R."""
    x = _matrices(t, A, "qr")
    *lead, rows, columns = shape_of(t, x)
    inner = rows if mode == "complete" else minimum(rows, columns)
    q = t.emit.typed("QR", [x], x.dtype, (*lead, rows, inner))
    return Fields((q, t.emit.typed("QR", [x], x.dtype, (*lead, inner, columns))), ("Q", "R"))


def _eigen(name: str, values_complex: bool, vectors: bool) -> None:
    def function(t: Core, A: Value, *_: Value, **__: Value) -> Value:
        x = _matrices(t, A, name, square=True)
        dtype = complex_dtype(x.dtype) if values_complex else real_dtype(x.dtype)
        values = t.emit.typed("Eigen", [x], dtype, shape_of(t, x)[:-1])
        if not vectors:
            return values
        kind = complex_dtype(x.dtype) if values_complex else x.dtype
        found = t.emit.typed("Eigen", [x], kind, x.shape)
        return Fields((values, found), ("eigenvalues", "eigenvectors"))

    TORCH.function(f"linalg.{name}")(function)


_eigen("eigh", False, True)
_eigen("eigvalsh", False, False)
_eigen("eig", True, True)
_eigen("eigvals", True, False)


def _solution(t: Core, x: Tensor, b: Tensor, what: str) -> Tensor:
    """Return the type of X in A X = B; B holds vectors if it has an axis less than A."""
    same_dtype(t, x, b, f"A and B of {what}")
    left, right = shape_of(t, x), shape_of(t, b)
    vectors = len(right) == 1 or len(right) == len(left) - 1
    if t.emit.differ(left[-2], right[-1 if vectors else -2]):
        t.fail(
            "shape-mismatch",
            f"{what}: expected as many rows in A as in B, got {t.show(x)} and {t.show(b)}",
            x,
            b,
        )
    tail = right[-1:] if vectors else right[-2:]
    lead = t.emit.new(x.dtype, left[:-2]), t.emit.new(x.dtype, right[: len(right) - len(tail)])
    from hagane.frontends.libraries.torch.functions.elementwise import broadcast_shape

    front = broadcast_shape(t, *lead)
    rest = (left[-1],) if vectors else (left[-1], right[-1])
    return t.emit.typed("Solve", [x, b], x.dtype, (*front, *rest))


@TORCH.function("linalg.solve")
def solve(t: Core, A: Value, B: Value, *, left: Value = True) -> Tensor:
    """Return X with A X = B."""
    x = _matrices(t, A, "solve", square=True)
    return _solution(t, x, need_tensor(t, B, "B"), "solve")


@TORCH.function("linalg.solve_triangular")
def solve_triangular(t: Core, A: Value, B: Value, *, upper: Value, **_: Value) -> Tensor:
    """Return X with A X = B, A being triangular."""
    x = _matrices(t, A, "solve_triangular", square=True)
    return _solution(t, x, _matrices(t, B, "solve_triangular"), "solve_triangular")


@TORCH.function("triangular_solve", methods=("triangular_solve",))
def triangular_solve(t: Core, b: Value, A: Value, *_: Value, **__: Value) -> Value:
    """Return X with A X = b, and A."""
    x = _matrices(t, A, "triangular_solve", square=True)
    found = _solution(t, x, _matrices(t, b, "triangular_solve"), "triangular_solve")
    return Fields((found, x), ("solution", "cloned_coefficient"))


@TORCH.function("cholesky_solve", methods=("cholesky_solve",))
def cholesky_solve(t: Core, B: Value, L: Value, upper: Value = False) -> Tensor:
    """Return X with A X = B, given the Cholesky factor of A."""
    x = _matrices(t, L, "cholesky_solve", square=True)
    return _solution(t, x, _matrices(t, B, "cholesky_solve"), "cholesky_solve")


@TORCH.function("linalg.lstsq")
def lstsq(t: Core, A: Value, B: Value, *_: Value, **__: Value) -> Value:
    """Return X that minimises the distance of A X to B."""
    x = _matrices(t, A, "lstsq")
    found = _solution(t, x, need_tensor(t, B, "B"), "lstsq")
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


@TORCH.function("cov", "corrcoef", methods=("cov", "corrcoef"))
def cov(t: Core, input: Value, **_: Value) -> Tensor:
    """Return the covariance or correlation of variables, which are rows."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    if len(shape) > 2:
        t.fail("rank", f"expected one or two axes, got {t.show(x)}", x)
    if len(shape) < 2 or (isinstance(shape[0], int) and shape[0] == 1):
        return t.emit.typed("Cov", [x], x.dtype, ())
    t.emit.require_size(shape[0], 2, "number of variables, of which one gives a single number")
    return t.emit.typed("Cov", [x], x.dtype, (shape[0], shape[0]))
