"""RotaryEmbedding."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.ops.builder import op, rank_of, shape_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.layers.heads import join_heads, split_heads
from hagane.ops.functions.layers.heads import rotate as composed_rotate
from hagane.ops.functions.numbers.elementary import unsqueeze, where
from hagane.ops.precision import widened
from hagane.ops.vjp import through
from hagane.symbolic import floordiv, minimum


def rotate(x: Array, cos: Array, sin: Array, interleaved: bool) -> Array:
    """Return ``x`` rotated by position (Su et al., "RoFormer", 2021, equation 34).

    Args:
        x: (batch, sequence, heads, size).
        cos: (batch or 1, sequence, 1, size / 2), of the angle of each pair.
        sin: Likewise.
        interleaved: Whether pairs are neighbours, rather than elements of two halves.
    """
    if interleaved:
        first, second = x[..., 0::2], x[..., 1::2]
    else:
        first, second = np.split(x, 2, axis=-1)
    rotated = (first * cos - second * sin, first * sin + second * cos)
    if interleaved:
        return np.stack(rotated, axis=-1).reshape(x.shape)
    return np.concatenate(rotated, axis=-1)


def check_positions(positions: Array, batch: int, length: int, rows: int) -> None:
    """Refuse positions that are not one a row of the sequences, or outside the tables."""
    if positions.shape != (batch, length):
        raise ValueError(
            f"expected positions of shape [{batch}, {length}], got {list(positions.shape)}"
        )
    outside = positions[(positions < 0) | (positions >= rows)]
    if outside.size:
        raise ValueError(f"position {outside[0]} is out of range, the tables have {rows} rows")


@widened
def _rotary_embedding(
    x: Array,
    cos_cache: Array,
    sin_cache: Array,
    position_ids: Array | None = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Array:
    shape = x.shape
    x = x.transpose(0, 2, 1, 3) if x.ndim == 4 else x.reshape(*shape[:2], num_heads, -1)
    size = rotary_embedding_dim or x.shape[3]
    if position_ids is not None:
        check_positions(position_ids, x.shape[0], x.shape[1], len(cos_cache))
    cos, sin = (
        (cache if position_ids is None else cache[position_ids])[..., : size // 2]
        for cache in (cos_cache, sin_cache)
    )
    turned = rotate(x[..., :size], cos[:, :, None], sin[:, :, None], bool(interleaved))
    y = np.concatenate([turned, x[..., size:]], axis=-1)
    return y.transpose(0, 2, 1, 3) if len(shape) == 4 else y.reshape(shape)


def _infer_rotary(ctx: InferContext) -> list[tuple[object, ...]]:
    shape = ctx.shape(0)
    if len(shape) not in (3, 4):
        ctx.fail(f"expected 3 or 4 axes, got {ctx.inputs_text()}")
    if len(shape) == 3 and not ctx.attr("num_heads"):
        ctx.fail("an input of 3 axes needs the attribute num_heads")
    head = shape[3] if len(shape) == 4 else floordiv(shape[2], ctx.attr("num_heads"))
    turned = ctx.attr("rotary_embedding_dim") or head
    half = floordiv(turned, 2)
    ctx.unify(turned, half * 2, "expected an even number of elements to turn")
    for i in (1, 2):
        if ctx.known_rank(i):
            there = minimum(half, ctx.shape(i)[-1])
            ctx.unify(half, there, f"expected '{ctx.name(i)}' to have {half} columns")
    return [shape]


def from_the_front(positions: Any, rows: Any) -> Any:
    """Return positions of which those below 0 are beyond the table, where Gather refuses them."""
    return where(op("Less", positions, 0), rows, positions)


def composed_rotary(
    x: Any,
    cos_cache: Any,
    sin_cache: Any,
    position_ids: Any = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Any:
    """Return the operator's output, over the builder."""
    split = x if rank_of(x) == 4 else split_heads(x, num_heads)
    whole = shape_of(split)[3]
    size = rotary_embedding_dim or whole
    parts = []
    for cache in (cos_cache, sin_cache):
        chosen = cache
        if position_ids is not None:
            chosen = op("Gather", cache, from_the_front(position_ids, size_of(cache, 0)), axis=0)
        parts.append(unsqueeze(op("Slice", chosen, [0], [floordiv(size, 2)], [-1]), [1]))
    turned = op("Slice", split, [0], [size], [-1]) if size != whole else split
    turned = composed_rotate(turned, *parts, interleaved=bool(interleaved))
    if size != whole:
        turned = op("Concat", turned, op("Slice", split, [size], [whole], [-1]), axis=-1)
    return turned if rank_of(x) == 4 else join_heads(turned)


OPERATORS = (
    OpDef(
        "RotaryEmbedding",
        _infer_rotary,  # type: ignore[arg-type]
        _rotary_embedding,
        compose=composed_rotary,
        vjp=through(composed_rotary),
    ),
)
