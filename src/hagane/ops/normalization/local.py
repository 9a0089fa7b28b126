"""LRN and LpNormalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import add, div, mul, square, where
from hagane.ops.functions.tensors.shapes import reshape_like
from hagane.ops.precision import widened
from hagane.ops.rules import same_shape
from hagane.ops.vjp import through


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


def _composed_lrn(x: Any, *, size: int, alpha: float, beta: float, bias: float) -> Any:
    batch, channels, *spatial = shape_of(x)
    planes = op("Reshape", square(x), [batch, 1, channels, math.prod(spatial)], allowzero=1)
    pads = [(size - 1) // 2, 0, size // 2, 0]
    means = op("AveragePool", planes, kernel_shape=[size, 1], pads=pads, count_include_pad=1)
    scale = add(mul(reshape_like(means, x), alpha), bias)
    return div(x, op("Pow", scale, beta))


def _composed_lp(x: Any, *, axis: int, p: int) -> Any:
    norm = op(f"ReduceL{p}", x, [axis], keepdims=1)
    zero = op("Equal", norm, 0)
    return where(zero, 0, div(x, where(zero, 1, norm)))


def _infer_lp(ctx: InferContext) -> Sequence[Any]:
    ctx.axis(ctx.attr("axis"), len(ctx.shape(0)))
    if ctx.attr("p") not in (1, 2):
        ctx.fail(f"expected a norm of p=1 or p=2, got p={ctx.attr('p')}")
    return same_shape(ctx)


OPERATORS = (
    OpDef("LRN", same_shape, _lrn, compose=_composed_lrn),
    OpDef("LpNormalization", _infer_lp, _lp_normalization, vjp=through(_composed_lp)),
)
