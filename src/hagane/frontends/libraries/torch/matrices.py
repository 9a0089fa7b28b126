"""Linear algebra of PyTorch as programs over its factors, solutions and norms.

https://docs.pytorch.org/docs/stable/linalg.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def lu(A: Any, *, pivot: bool = True) -> Any:
    """Return P, L and U."""
    import torch

    packed, pivots = torch.linalg.lu_factor(A, pivot=pivot)
    return torch.lu_unpack(packed, pivots)


def lu_compact(A: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """Return L and U in one matrix, the pivots, and where asked for which U has a zero."""
    import torch

    packed, pivots, info = torch.linalg.lu_factor_ex(A, pivot=pivot)
    return (packed, pivots, info) if get_infos else (packed, pivots)


def lu_solve(
    LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False
) -> Any:  # fmt: skip
    """Return X with A X = B (or X A = B), given the factors of A."""
    import torch

    P, L, U = torch.lu_unpack(LU, pivots)
    right = B if left else B.mT
    solve = torch.linalg.solve_triangular
    if left == adjoint:  # A transposed
        found = P @ solve(L.mT, solve(U.mT, right, upper=False), upper=True, unitriangular=True)
    else:
        found = solve(U, solve(L, P.mT @ right, upper=False, unitriangular=True), upper=True)
    return found if left else found.mT


def lu_solve_of(b: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """Return X with A X = b, given the factors of A."""
    return lu_solve(LU_data, LU_pivots, b)


def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Return the factor, and the order of the first minor that is not positive, 0 without one."""
    import torch

    found = torch.linalg.cholesky(A, upper=upper)
    wrong = found.diagonal(dim1=-2, dim2=-1).isnan()
    before = (wrong.cumsum(-1) == 0).sum(-1)
    return found, torch.where(wrong.any(-1), before + 1, 0).to(torch.int32)


def inv_ex(A: Any, *, check_errors: bool = False) -> Any:
    """Return the inverse, and the place of the first pivot that is zero, 0 without one."""
    import torch

    return torch.linalg.inv(A), torch.linalg.lu_factor_ex(A)[2]


def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """Return X with A X = B (or X A = B), and the place of the first pivot that is zero."""
    import torch

    return torch.linalg.solve(A, B, left=left), torch.linalg.lu_factor_ex(A)[2]


def tensorinv(A: Any, ind: int = 2) -> Any:
    """Return the inverse of a product of tensors over the last axes."""
    import torch

    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    front, back = A.shape[:ind], A.shape[ind:]
    rows, columns = math.prod(front), math.prod(back)
    if rows != columns:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    return torch.linalg.inv(A.reshape(rows, columns)).reshape((*back, *front))


def tensorsolve(A: Any, B: Any, dims: Any = None) -> Any:
    """Return X with A X = B, the product being one over the last axes of A."""
    import torch

    whole = A
    if dims is not None:
        ends = list(range(A.dim() - len(dims), A.dim()))
        whole = A.movedim(tuple(dims), tuple(ends))
    shape = whole.shape[B.dim() :]
    count = math.prod(shape)
    rows = B.numel()
    if count != rows:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {count} != {rows}"
        )
    return torch.linalg.solve(whole.reshape(rows, count), B.flatten()).reshape(shape)


def cond(A: Any, p: Any = None) -> Any:
    """Return how much matrices magnify errors: their norm times that of the inverse."""
    import torch

    if p is None or p in (2, -2):
        values = torch.linalg.svdvals(A)
        most, least = values[..., 0], values[..., -1]
        return least / most if p == -2 else most / least
    inverse, info = torch.linalg.inv_ex(A)
    whole = torch.linalg.matrix_norm(A, p) * torch.linalg.matrix_norm(inverse, p)
    return torch.where(info == 0, whole, math.inf)


def ormqr(
    input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False
) -> Any:  # fmt: skip
    """Return the product of another matrix with that of reflections."""
    import torch

    missing = input.shape[-2] - input.shape[-1]
    vectors = torch.nn.functional.pad(input, (0, missing)) if missing > 0 else input
    Q = torch.linalg.householder_product(vectors, tau)
    Q = Q.mT if transpose else Q
    return Q @ other if left else other @ Q


def _bound(A: Any, values: Any, atol: Any, rtol: Any) -> Any:
    """Return the size below which values of matrices count as zero."""
    import torch

    if rtol is None:
        wide = torch.finfo(values.dtype).eps * max(A.shape[-2], A.shape[-1])
        if atol is None:
            rtol = wide
        else:
            absolute = torch.as_tensor(atol, dtype=values.dtype)
            rtol = torch.where(absolute > 0, 0.0, wide)
    share = torch.as_tensor(rtol, dtype=values.dtype).unsqueeze(-1)
    bound = share * values.amax(-1, keepdim=True)
    if atol is None:
        return bound
    return torch.maximum(bound, torch.as_tensor(atol, dtype=values.dtype).unsqueeze(-1))


def matrix_rank(
    A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """Return how many singular values are not zero."""
    import torch

    values = torch.linalg.eigvalsh(A).abs() if hermitian else torch.linalg.svdvals(A)
    if tol is not None:
        atol, rtol = tol, 0.0
    if values.shape[-1] == 0:
        return torch.zeros(A.shape[:-2], dtype=torch.int64)
    return (values > _bound(A, values, atol, rtol)).sum(-1)


def pinv(
    A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """Return the pseudo-inverse."""
    import torch

    if rcond is not None:
        rtol = rcond
    if A.numel() == 0:
        return torch.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), dtype=A.dtype)
    if hermitian:
        given, vectors = torch.linalg.eigh(A)
        values, back = given.abs(), vectors.mT
    else:
        vectors, values, back = torch.linalg.svd(A, full_matrices=False)
        given = values
    some = values > _bound(A, values, atol, rtol)
    turned = torch.where(some, 1 / torch.where(some, given, 1), 0)
    return back.mT @ (turned.unsqueeze(-1) * vectors.mT)


def pinverse(input: Any, rcond: Any = 1e-15) -> Any:
    """Return the pseudo-inverse; shares of the largest singular value count as zero."""
    return pinv(input, rcond)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "linalg.lu": lu,
    "lu": lu_compact,
    "linalg.lu_solve": lu_solve,
    "lu_solve": lu_solve_of,
    "linalg.cholesky_ex": cholesky_ex,
    "linalg.inv_ex": inv_ex,
    "linalg.solve_ex": solve_ex,
    "linalg.tensorinv": tensorinv,
    "linalg.tensorsolve": tensorsolve,
    "linalg.cond": cond,
    "ormqr": ormqr,
    "linalg.matrix_rank": matrix_rank,
    "linalg.pinv": pinv,
    "pinverse": pinverse,
}
METHODS = ("lu", "lu_solve", "ormqr", "pinverse")
FIELDS = {
    "linalg.lu": ("P", "L", "U"),
    "linalg.cholesky_ex": ("L", "info"),
    "linalg.inv_ex": ("inverse", "info"),
    "linalg.solve_ex": ("result", "info"),
}
