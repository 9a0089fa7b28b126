"""Heads, masks and attention over the builder, for the compositions of this room."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op, rank_of, size_of
from hagane.ops.contrib.attention.heads import LEAST


def split_heads(x: Any, count: int) -> Any:
    """``heads_of`` over the builder."""
    width = size_of(x, 2)
    each = width // count if isinstance(width, int) else -1
    return op("Transpose", op("Reshape", x, [0, 0, count, each]), perm=[0, 2, 1, 3])


def join_heads(x: Any) -> Any:
    """``joined`` over the builder."""
    heads, each = size_of(x, 1), size_of(x, 3)
    width = heads * each if isinstance(heads, int) and isinstance(each, int) else -1
    return op("Reshape", op("Transpose", x, perm=[0, 2, 1, 3]), [0, 0, width])


def bias_of(
    mask: Any,
    attention_bias: Any,
    q: Any,
    k: Any,
    *,
    causal: bool,
    filler: float,
    past: Any = None,
) -> Any:
    """Return the summand of the scores, None for nothing; ``past`` as ``causal_mask`` has it."""
    batch, length, total = size_of(q, 0), size_of(q, 2), size_of(k, 2)
    found = [] if attention_bias is None else [attention_bias]
    if causal:
        rows = op("Add", op("Range", 0, length, 1), total - length if past is None else past)
        allowed = op("LessOrEqual", op("Range", 0, total, 1), op("Unsqueeze", rows, [1]))
        found.append(op("Where", allowed, np.float32(0), LEAST))
    if mask is not None and rank_of(mask) == 1:
        ends = op("Cast", mask, to=ir.DataType.INT64)
        positions = op("Unsqueeze", op("Range", 0, total, 1), [0])
        keep = op("Less", positions, op("Unsqueeze", op("Slice", ends, [0], [batch], [0]), [1]))
        if size_of(mask, 0) != batch:
            # (Where only a run knows whether there are starts, the zeros stand for them.)
            both = op("Concat", ends, op("Expand", np.zeros(1, np.int64), [batch]), axis=0)
            starts = op("Slice", both, [batch], [batch * 2], [0])
            late = op("GreaterOrEqual", positions, op("Unsqueeze", starts, [1]))
            keep = op("And", keep, late)
        bias = op("Where", keep, np.float32(0), np.float32(filler))
        found.append(op("Unsqueeze", bias, [1, 2]))
    elif mask is not None:
        bias = op("Where", op("Greater", mask, 0), np.float32(0), np.float32(filler))
        found.append(op("Unsqueeze", bias, [1, 2] if rank_of(mask) == 2 else [1]))
    if not found:
        return None
    return reduce(lambda a, b: op("Add", a, b), found)


def attended(q: Any, k: Any, v: Any, bias: Any, scale: float | None) -> Any:
    """``attend`` over the builder, heads joined."""
    if bias is not None and rank_of(bias) < 4:
        bias = op("Unsqueeze", bias, list(range(4 - rank_of(bias))))
    return join_heads(op("Attention", q, k, v, bias, scale=scale or None))


def composed_scores(q: Any, k: Any, bias: Any, scale: float | None) -> Any:
    """``scored`` over the builder."""
    size = size_of(q, 3)
    root = op("Sqrt", op("Cast", size, to=ir.DataType.FLOAT))
    scores = op("MatMul", q, op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = op("Mul", scores, np.float32(scale)) if scale else op("Div", scores, root)
    return scores if bias is None else op("Add", scores, bias)
