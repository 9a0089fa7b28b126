"""Caches of fixed room that a run fills, and the beams whose keys and values they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op, size_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array
from hagane.symbolic import Dim


def appended(cache: Array, new: Array, past: int) -> Array:
    """Return (batch, heads, room, size) with ``new`` behind the first ``past`` positions."""
    room, length = cache.shape[2], new.shape[2]
    if not 0 <= past <= room - length:
        raise ValueError(
            f"expected 'past_sequence_length' of 0 to {room - length}, which leaves room for "
            f"{length} of {room} positions, got {past}"
        )
    filled = cache.copy()
    filled[:, :, past : past + length] = new
    return filled


def of_beams(cache: Array, beams: Array, past: int) -> Array:
    """Return (batch · width, heads, total, size) with past positions from where they came.

    ``beams``, (batch, width, room), names the beam of the same sequence that holds each.
    """
    count, width = beams.shape[:2]
    rows = beams[:, :, :past].astype(np.int64)
    if ((rows < 0) | (rows >= width)).any():
        raise ValueError(
            f"expected beams of 0 to {width - 1} in 'cache_indirection', got {rows.min()} to "
            f"{rows.max()}"
        )
    rows = (rows + np.arange(count)[:, None, None] * width).reshape(count * width, 1, past)
    heads = np.arange(cache.shape[1])[:, None]
    found = cache.copy()
    found[:, :, :past] = cache[rows, heads, np.arange(past)]
    return found


def composed_appended(cache: Any, new: Any, past: Any) -> Any:
    """``appended`` over the builder; ``past`` holds one number of 64 bits."""
    return op("TensorScatter", cache, new, op("Expand", past, [size_of(cache, 0)]), axis=2)


def composed_of_beams(cache: Any, beams: Any, past: Any) -> Any:
    """``of_beams`` over the builder."""
    width, total = size_of(beams, 1), size_of(cache, 2)
    heads, size = size_of(cache, 1), size_of(cache, 3)
    at = op("Range", 0, total, 1)
    given = op("Cast", op("Slice", beams, [0], [total], [2]), to=ir.DataType.INT64)
    own = op("Unsqueeze", op("Range", 0, width, 1), [1])
    rows = op("Where", op("Less", at, past), given, own)
    pairs = op("Concat", *(op("Unsqueeze", x, [3]) for x in (rows, op("Expand", at, op(
        "Shape", rows)))), axis=3)  # fmt: skip
    positions = op("Transpose", op("Reshape", cache, [-1, width, heads, total, size]), perm=[
        0, 1, 3, 2, 4])  # fmt: skip
    found = op("Transpose", op("GatherND", positions, pairs, batch_dims=1), perm=[0, 1, 3, 2, 4])
    return op("Reshape", found, [-1, heads, total, size])


def fit_beams(ctx: InferContext, index: int, batch: Dim, room: Dim) -> None:
    """Fail unless input ``index`` names beams of a cache, (batch / width, width, room)."""
    if ctx.has(index):
        count, width, positions = ctx.shape(index, rank=3)
        ctx.unify(count * width, batch, f"expected '{ctx.name(index)}' of as many rows as queries")
        ctx.unify(
            positions, room, f"expected '{ctx.name(index)}' of as many positions as the cache"
        )


def filled_to(ctx: InferContext, index: int, length: Dim) -> Dim:
    """Return how many positions are filled once ``length`` stand behind those of ``index``."""
    given = ctx.dims(index) if ctx.data(index) is not None else None
    return length + (ctx.fresh("past") if given is None else given[0])
