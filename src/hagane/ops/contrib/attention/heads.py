"""Heads, masks and attention of arrays, for the kernels of this room."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.ops.attention.rotary import rotate
from hagane.ops.context import InferContext
from hagane.ops.definition import Array
from hagane.ops.normalization.softmax import softmax
from hagane.symbolic import Dim

# Hides keys behind a query.
LEAST = np.finfo(np.float32).min


def heads_of(x: Array, count: int) -> Array:
    """Split the last axis: (batch, length, heads · size) to (batch, heads, length, size)."""
    return x.reshape(*x.shape[:2], count, x.shape[2] // max(count, 1)).transpose(0, 2, 1, 3)


def joined(x: Array) -> Array:
    """Undo ``heads_of``."""
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


def scored(q: Array, k: Array, bias: Array | None, scale: float | None) -> Array:
    """Return q kᵀ · scale + bias, with (batch, heads, length, size) each."""
    factor = scale or 1 / np.sqrt(q.shape[-1])
    scores = np.matmul(q, k.transpose(0, 1, 3, 2)) * np.asarray(factor, dtype=q.dtype)
    return scores if bias is None else scores + bias


def attend(q: Array, k: Array, v: Array, bias: Array | None, scale: float | None) -> Array:
    """Return softmax(q kᵀ · scale + bias) v."""
    return np.matmul(softmax(scored(q, k, bias, scale)).astype(v.dtype), v)


def causal_mask(length: int, total: int, dtype: Any, past: int | None = None) -> Array:
    """Return an additive mask that lets query i see keys up to i + past.

    Without a number of its own, as many are past as there are more keys than queries.

    Later ones get the least number, whatever ``mask_filter_value`` hides padding with.
    """
    past = total - length if past is None else past
    allowed = np.arange(total)[None] <= np.arange(length)[:, None] + past
    return np.where(allowed, 0, LEAST).astype(dtype)


def padding_mask(mask: Array, batch: int, total: int, dtype: Any, filler: float) -> Array:
    """Return a key mask as an additive bias, (batch, 1, 1 or length, total).

    The mask is (batch,) key lengths, (2 · batch,) ends and starts, (batch, total) zeros and
    ones, or (batch, length, total); a negative number hides a key as 0 does.
    """
    if mask.ndim == 1:
        ends = mask[:batch, None]
        starts = mask[batch : 2 * batch, None] if len(mask) == 2 * batch else 0
        positions = np.arange(total)[None]
        keep = (positions < ends) & (positions >= starts)
        return np.where(keep, 0, filler).astype(dtype)[:, None, None]
    bias = np.where(mask > 0, 0, filler).astype(dtype)
    return bias[:, None, None] if mask.ndim == 2 else bias[:, None]


def fit_mask(ctx: InferContext, index: int, batch: Dim, length: Dim, total: Dim) -> None:
    """Fail unless input ``index`` is a mask as ``padding_mask`` takes it, if it is there."""
    if not ctx.has(index) or (rank := ctx.known_rank(index)) is None:
        return
    if rank == 1:
        (count,) = ctx.shape(index)
        told = isinstance(count, int) and isinstance(batch, int)
        if told and count not in (batch, batch * 2):
            ctx.fail(f"expected ends of {batch} sequences, or ends and starts, got {count}")
        return
    ctx.fit(index, (batch, total), (batch, length, total))


def fit_bias(
    ctx: InferContext, index: int, batch: Dim, heads: Dim, length: Dim, total: Dim
) -> None:
    """Fail unless input ``index`` is a summand of the scores, (batch or 1, heads or 1, ...)."""
    if ctx.has(index) and ctx.known_rank(index) is not None:
        ctx.shape(index, rank=4)
        rows, columns = ctx.one_or(index, 0, batch), ctx.one_or(index, 1, heads)
        ctx.fit(index, (rows, columns, length, total))


def sum_of(*biases: Array | None) -> Array | None:
    """Return the sum of the biases that are there, None for none."""
    total: Array | None = None
    for bias in biases:
        if bias is not None:
            total = bias if total is None else total + bias
    return total


def rotated(x: Array, cos: Array, sin: Array, at: Array, interleaved: bool) -> Array:
    """Rotate the first features of each head of x by the caches' rows at (batch, length)."""
    size = 2 * cos.shape[-1]
    lead = x.transpose(0, 2, 1, 3)
    turned = rotate(lead[..., :size], cos[at][:, :, None], sin[at][:, :, None], interleaved)
    return np.concatenate([turned, lead[..., size:]], axis=-1).transpose(0, 2, 1, 3)
