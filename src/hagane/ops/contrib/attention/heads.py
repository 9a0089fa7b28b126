"""Heads, masks and attention of arrays, for the kernels of this room."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.ops.attention.rotary import rotate
from hagane.ops.definition import Array
from hagane.ops.normalization.softmax import softmax

# Hides keys behind a query.
LEAST = np.finfo(np.float32).min


def heads_of(x: Array, count: int) -> Array:
    """Split the last axis: (batch, length, heads · size) to (batch, heads, length, size)."""
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def joined(x: Array) -> Array:
    """Undo ``heads_of``."""
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def attend(q: Array, k: Array, v: Array, bias: Array | None, scale: float | None) -> Array:
    """Return softmax(q kᵀ · scale + bias) v, with (batch, heads, length, size) each."""
    factor = scale or 1 / np.sqrt(q.shape[-1])
    scores = np.matmul(q, k.transpose(0, 1, 3, 2)) * np.asarray(factor, dtype=q.dtype)
    if bias is not None:
        scores = scores + bias
    return np.matmul(softmax(scores).astype(v.dtype), v)


def causal_mask(length: int, total: int, dtype: Any) -> Array:
    """Return an additive mask that lets query i see keys up to i + (total - length).

    Later ones get the least number, whatever ``mask_filter_value`` hides padding with.
    """
    allowed = np.arange(total)[None] <= np.arange(length)[:, None] + (total - length)
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
