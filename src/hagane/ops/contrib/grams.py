"""NGramRepeatBlock, UnfoldTensor: windows of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hagane.ops.builder import op, rank_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import ANY, DOMAIN, INT, declare
from hagane.ops.definition import Array, OpDef
from hagane.symbolic import floordiv


def _unfold(x: Array, *, dim: int = -1, size: int, step: int = 1) -> Array:
    axis = dim % x.ndim
    windows = sliding_window_view(x, size, axis=axis)
    return windows[(*(slice(None),) * axis, slice(None, None, step))].copy()


def _composed_unfold(x: Any, *, dim: int = -1, size: int, step: int = 1) -> Any:
    axis, rank = dim % rank_of(x), rank_of(x)
    starts = op("Unsqueeze", op("Range", 0, size_of(x, axis) - size + 1, step), [1])
    windows = op("Gather", x, op("Add", starts, op("Range", 0, size, 1)), axis=axis)
    order = [a for a in range(rank + 1) if a != axis + 1]
    return op("Transpose", windows, perm=[*order, axis + 1])


def _infer_unfold(ctx: InferContext) -> Sequence[Any]:
    shape, size, step = list(ctx.shape(0)), ctx.attr("size"), ctx.attr("step")
    axis = ctx.axis(ctx.attr("dim"), len(shape), "dim")
    found = shape[axis]
    if size < 1 or step < 1 or (isinstance(found, int) and size > found):
        ctx.fail(f"expected size from 1 to {found} and a positive step, got {size} and {step}")
    shape[axis] = floordiv(found - size, step) + 1
    return [(*shape, size)]


def _block_repeats(ids: Array, scores: Array, *, ngram_size: int) -> Array:
    count, blocked = ids.shape[1] - ngram_size + 1, scores.copy()
    for row, line in enumerate(ids):
        for start in range(max(count, 0)):
            before = line[start : start + ngram_size - 1]
            if np.array_equal(before, line[count:]):
                blocked[row, line[start + ngram_size - 1]] = -np.inf
    return blocked


def _composed_block(ids: Any, scores: Any, *, ngram_size: int) -> Any:
    """Each window whose first elements are the last ones of its row hides what came behind."""
    length, last = size_of(ids, 1), ngram_size - 1
    if not isinstance(length, int):
        return None
    count = length - last
    if count < 1:
        return op("Identity", scores)
    behind = op("Slice", ids, [last], [length], [1])
    same: Any = None
    for tap in range(last):
        window = op("Slice", ids, [tap], [tap + count], [1])
        end = op("Slice", ids, [count + tap], [count + tap + 1], [1])
        equal = op("Equal", window, end)
        same = equal if same is None else op("And", same, equal)
    hidden: Any = np.float32(-np.inf)
    if same is None:
        hidden = op("Expand", hidden, [size_of(ids, 0), count])
    else:
        hidden = op("Where", same, hidden, np.float32(np.inf))
    return op("ScatterElements", scores, behind, hidden, axis=1, reduction="min")


def _infer_block(ctx: InferContext) -> Sequence[Any]:
    batch, _ = ctx.shape(0, rank=2)
    shape = ctx.shape(1, rank=2)
    ctx.unify(shape[0], batch, "expected scores of each sequence")
    if ctx.attr("ngram_size") < 1:
        ctx.fail(f"expected a positive ngram_size, got {ctx.attr('ngram_size')}")
    return [shape]


OPERATORS = (
    OpDef("NGramRepeatBlock", _infer_block, _block_repeats, domain=DOMAIN, compose=_composed_block),
    OpDef("UnfoldTensor", _infer_unfold, _unfold, domain=DOMAIN, compose=_composed_unfold),
)

SCHEMAS = {
    (DOMAIN, "NGramRepeatBlock"): declare(
        "input_ids:int64, scores:float -> scores_out:float", {"ngram_size": INT}, ("ngram_size",)
    ),
    (DOMAIN, "UnfoldTensor"): declare(
        "input:T -> output:T", {"dim": -1, "size": INT, "step": 1}, ("size",), T=ANY
    ),
}
