"""RotaryEmbedding: positions turn pairs of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.attention.rotary import check_positions
from hagane.ops.builder import op, rank_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.attention.heads import (
    heads_of,
    joined,
    rotated,
)
from hagane.ops.contrib.declare import DOMAIN, FLOATS, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import composed_wide, widened
from hagane.symbolic import Dim, floordiv


@widened
def _rotary_embedding(
    x: Array,
    position_ids: Array,
    cos_cache: Array,
    sin_cache: Array,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Array:
    if x.ndim == 3:
        size = 2 * cos_cache.shape[1]
        heads = num_heads or x.shape[2] // size
        split = heads_of(x, heads)
    else:
        split = x
    batch, length = split.shape[0], split.shape[2]
    at = position_ids
    if at.ndim < 2 and at.size == 1:
        at = np.broadcast_to(at.ravel()[0] + np.arange(length), (batch, length))
    check_positions(at, batch, length)
    turned = rotated(split, cos_cache, sin_cache, at, bool(interleaved))
    return joined(turned) if x.ndim == 3 else turned


@composed_wide
def _composed_rotary(
    x: Any,
    position_ids: Any,
    cos_cache: Any,
    sin_cache: Any,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
) -> Any:
    half = size_of(cos_cache, 1)
    flat = rank_of(x) == 3
    if rank_of(position_ids) < 2:
        batch, length = size_of(x, 0), size_of(x, 1 if flat else 2)
        first = op("Reshape", position_ids, [1, 1])
        steps = op("Unsqueeze", op("Range", 0, length, 1), [0])
        position_ids = op("Expand", op("Add", steps, first), [batch, length])
    width = size_of(x, 2) if flat else size_of(x, 3)
    heads = num_heads
    if not isinstance(half, int) or (flat and not heads and not isinstance(width, int)):
        cos, sin = (op("Gather", each, position_ids, axis=0) for each in (cos_cache, sin_cache))
        return _turned(x, cos, sin, half, heads, bool(interleaved))
    if flat and not heads:
        assert isinstance(width, int)
        heads = width // (2 * half)
    size = floordiv(width, heads) if flat else width
    return op(
        "RotaryEmbedding", x, cos_cache, sin_cache, position_ids, interleaved=interleaved,
        num_heads=heads if flat else None,
        rotary_embedding_dim=None if size == 2 * half else 2 * half,
    )  # fmt: skip


def _turned(x: Any, cos: Any, sin: Any, half: Dim, heads: int, interleaved: bool) -> Any:
    """Return all of ``x`` turned, whose features are pairs in each head; sizes may be open.

    Args:
        x: (batch, sequence, heads and features) or (batch, heads, sequence, features).
        cos: (batch, sequence, half), of the angle of each pair.
        sin: Likewise.
        half: The pairs of a head.
        heads: How many there are, 0 where features tell; read of three axes alone.
        interleaved: Whether pairs are neighbours, rather than elements of two halves.
    """
    pair = [half, 2] if interleaved else [2, half]
    axis, flat = 4 if interleaved else 3, rank_of(x) == 3
    first, second = op(
        "Split", op("Reshape", x, [0, 0, heads or -1, *pair] if flat else [0, 0, 0, *pair]),
        axis=axis, num_outputs=2, outputs=2,
    )  # fmt: skip
    cos, sin = (op("Unsqueeze", each, [2 if flat else 1, axis]) for each in (cos, sin))
    turned = op(
        "Concat",
        op("Sub", op("Mul", first, cos), op("Mul", second, sin)),
        op("Add", op("Mul", first, sin), op("Mul", second, cos)),
        axis=axis,
    )
    width = size_of(x, 2 if flat else 3)
    return op("Reshape", turned, [0, 0, width] if flat else [0, 0, 0, width])


def _infer_rotary(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    if len(shape) not in (3, 4):
        ctx.fail(f"expected an input of 3 or 4 axes, got {ctx.inputs_text()}")
    rows, half = ctx.shape(2, rank=2)
    ctx.fit(3, (rows, half))
    batch, length = shape[0], shape[1 if len(shape) == 3 else 2]
    if ctx.known_rank(1) == 2:
        ctx.fit(1, (ctx.one_or(1, 0, batch), ctx.one_or(1, 1, length)))
    else:
        ctx.fit(1, (1,), (batch, length))
    heads, turned = ctx.attr("num_heads"), ctx.attr("rotary_embedding_dim")
    if heads < 0 or (turned and not heads):
        ctx.fail(f"expected num_heads beside rotary_embedding_dim={turned}, got {heads}")
    size: Dim = shape[3] if len(shape) == 4 else 2 * half
    if len(shape) == 3:
        size = floordiv(shape[2], heads) if heads else size
        whole = floordiv(shape[2], size) * size if isinstance(size, int) and size else shape[2]
        ctx.unify(shape[2], heads * size if heads else whole, "expected heads of one size")
    ctx.unify(half, floordiv(turned or size, 2), "expected an angle for each pair of a head")
    return [shape]


OPERATORS = (
    OpDef(
        "RotaryEmbedding",
        _infer_rotary,
        _rotary_embedding,
        domain=DOMAIN,
        compose=_composed_rotary,
    ),
)

SCHEMAS = {
    (DOMAIN, "RotaryEmbedding"): declare(
        "input:T, position_ids:I, cos_cache:T, sin_cache:T -> output:T",
        {
            "interleaved": 0,
            "is_packed_batching": 0,
            "num_heads": 0,
            "rotary_embedding_dim": 0,
            "scale": 1.0,
        },
        T=FLOATS,
        I="int64",
    ),
}
