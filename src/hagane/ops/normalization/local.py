"""LRN and LpNormalization."""

from __future__ import annotations

import numpy as np

from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import widened
from hagane.ops.rules import same_shape


@widened
def _lrn(
    x: Array, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Array:
    """Divide by a power of the squares of neighbouring channels (Krizhevsky et al., 2012)."""
    before, after = (size - 1) // 2, size // 2
    padded = np.pad(x * x, [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, size, axis=1)
    total = windows.sum(axis=-1)
    return (x / (bias + alpha / size * total) ** beta).astype(x.dtype)


@widened
def _lp_normalization(x: Array, *, axis: int = -1, p: int = 2) -> Array:
    norm = np.linalg.norm(x, ord=p, axis=axis, keepdims=True)
    return np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)).astype(x.dtype)


OPERATORS = (
    OpDef("LRN", same_shape, _lrn),
    OpDef("LpNormalization", same_shape, _lp_normalization),
)
