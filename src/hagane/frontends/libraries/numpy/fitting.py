"""NumPy's polynomials and least squares as programs.

https://numpy.org/doc/stable/reference/routines.polynomials.html
"""

from __future__ import annotations

from typing import Any

import numpy as np


def poly(seq_of_zeros: Any) -> Any:
    """Return the coefficients of the polynomial with some roots, the highest first."""
    zeros = np.asarray(seq_of_zeros)
    if zeros.ndim != 1:
        raise ValueError("np.poly: expected the roots in one axis, got a matrix or a number")
    found = np.ones(1, dtype=zeros.dtype if zeros.dtype.kind in "fc" else float)
    for place in range(zeros.shape[0]):
        root = found * zeros[place]
        none = np.zeros(1, dtype=found.dtype)
        found = np.concatenate([found, none]) - np.concatenate([none, root])
    return found


def polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False
) -> Any:
    """Return the coefficients of the polynomial nearest to points, the highest first."""
    if full or cov or rcond is not None:
        raise NotImplementedError("np.polyfit with rcond, full or cov; compute the residuals apart")
    places, values = np.asarray(x) + 0.0, np.asarray(y) + 0.0
    if places.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if values.ndim < 1 or values.ndim > 2:
        raise TypeError("expected 1D or 2D array for y")
    if places.shape[0] != values.shape[0]:
        raise TypeError("expected x and y to have same length")
    powers = np.vander(places, deg + 1)
    if w is not None:
        weights = np.asarray(w) + 0.0
        powers = powers * weights[:, None]
        values = values * (weights if values.ndim == 1 else weights[:, None])
    scale = np.sqrt((powers * powers).sum(axis=0))
    turned, triangle = np.linalg.qr(powers / scale)
    found = np.linalg.solve(triangle, turned.T @ values)
    return found / (scale if values.ndim == 1 else scale[:, None])


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Return the shortest solution of least squares, residuals, rank and singular values."""
    matrix, values = np.asarray(a) + 0.0, np.asarray(b) + 0.0
    rows, columns = matrix.shape
    sizes = np.linalg.svdvals(matrix)
    share = float(np.finfo(matrix.dtype).eps) * max(rows, columns) if rcond is None else rcond
    rank = np.sum(sizes > sizes[0] * share).astype(np.int32)
    found = np.linalg.pinv(matrix, share) @ values
    apart = np.sum((values - matrix @ found) ** 2, axis=0)
    sums = np.reshape(apart, (-1,))
    told = sums[: int(rank == columns) * sums.shape[0]] if rows > columns else sums[:0]
    return found, told, rank, sizes
