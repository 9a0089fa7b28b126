"""Heads of attention: split, joined, repeated; pairs that are turned by their positions."""

from __future__ import annotations

from typing import Any

from hagane.ops.builder import op, shape_of
from hagane.ops.functions.numbers.elementary import add, mul, sub, transpose, unsqueeze
from hagane.symbolic import Dim, floordiv


def split_heads(x: Any, count: Dim) -> Any:
    """Return (batch, heads, length, size) of (batch, length, heads · size)."""
    size = shape_of(x)[2]
    split = op("Reshape", x, [0, 0, count, floordiv(size, count)])
    return transpose(split, [0, 2, 1, 3])


def join_heads(x: Any) -> Any:
    """Undo ``split_heads``."""
    _, heads, _, size = shape_of(x)
    return op("Reshape", transpose(x, [0, 2, 1, 3]), [0, 0, heads * size])


def repeat_heads(x: Any, times: Dim) -> Any:
    """Return (..., heads · times, length, size), each head beside its copies."""
    if times == 1:
        return x
    *front, heads, length, size = shape_of(x)
    copies = op("Expand", unsqueeze(x, [len(front) + 1]), [*front, heads, times, length, size])
    return op("Reshape", copies, [*front, heads * times, length, size])


def rotate(x: Any, cos: Any, sin: Any, *, interleaved: bool) -> Any:
    """Return ``x`` rotated by position (Su et al., "RoFormer", 2021, equation 34).

    Args:
        x: (batch, heads, length, size).
        cos: (batch or 1, 1, length, size / 2), of the angle of each pair.
        sin: Likewise.
        interleaved: Whether pairs are neighbours, rather than elements of two halves.
    """
    if interleaved:
        size = shape_of(x)[3]
        pairs = op("Reshape", x, [0, 0, 0, floordiv(size, 2), 2])
        halves = op("Split", pairs, axis=-1, num_outputs=2, outputs=2)
        first, second = (op("Squeeze", half, [-1]) for half in halves)
    else:
        first, second = op("Split", x, axis=-1, num_outputs=2, outputs=2)
    turned = sub(mul(first, cos), mul(second, sin)), add(mul(first, sin), mul(second, cos))
    if not interleaved:
        return op("Concat", *turned, axis=-1)
    joined = op("Concat", *(unsqueeze(part, [4]) for part in turned), axis=-1)
    return op("Reshape", joined, [0, 0, 0, size])
