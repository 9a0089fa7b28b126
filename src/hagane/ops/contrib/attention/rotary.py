"""RotaryEmbedding: positions turn pairs of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.attention.rotary import check_positions, rotate
from hagane.ops.builder import op, rank_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.attention.heads import (
    heads_of,
    joined,
    rotated,
)
from hagane.ops.contrib.declare import DOMAIN, FLOATS, INT_LIST, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import composed_wide, widened
from hagane.symbolic import Dim, floordiv, maximum


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
    split = x if x.ndim == 4 else heads_of(x, num_heads or _counted(x, cos_cache))
    batch, length = split.shape[0], split.shape[2]
    at = position_ids
    if at.ndim < 2 and at.size == 1:
        at = np.broadcast_to(at.ravel()[0] + np.arange(length), (batch, length))
    check_positions(at, batch, length, len(cos_cache))
    turned = rotated(split, cos_cache, sin_cache, at, bool(interleaved))
    return joined(turned) if x.ndim == 3 else turned


def _counted(x: Array, cache: Array) -> int:
    """Return the heads of (batch, sequence, features) where the angles of a head tell their size.

    Raises:
        ValueError: The features are not those of whole heads.
    """
    width, size = x.shape[2], 2 * cache.shape[1]
    if not size or width % size:
        raise ValueError(f"expected heads of one size: {width} features are not heads of {size}")
    return int(width // size)


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
    size = shape[3] if len(shape) == 4 else _fit_heads(ctx, shape[2], heads, half)
    ctx.unify(half, floordiv(turned or size, 2), "expected an angle for each pair of a head")
    return [shape]


@widened
def _sectioned_rotary(
    x: Array,
    position_ids: Array,
    cos_cache: Array,
    sin_cache: Array,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    mrope_layout: int = 0,
    mrope_section: Sequence[int],
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Array:
    half = cos_cache.shape[1]
    split = x if x.ndim == 4 else heads_of(x, num_heads or _counted(x, cos_cache))
    streams, at = _streams(half, mrope_section, mrope_layout), np.arange(half)
    for stream in position_ids:
        check_positions(stream, split.shape[0], split.shape[2], len(cos_cache))
    place = np.moveaxis(position_ids, 0, -1)[..., streams]  # (batch, length, half)
    cos, sin = (cache[place, at][:, :, None] for cache in (cos_cache, sin_cache))
    lead = split.transpose(0, 2, 1, 3)
    turned = rotate(lead[..., : 2 * half], cos, sin, bool(interleaved))
    y = np.concatenate([turned, lead[..., 2 * half :]], axis=-1).transpose(0, 2, 1, 3)
    return joined(y) if x.ndim == 3 else y


def _streams(half: int, sections: Sequence[int], layout: int) -> Array:
    """Return which of the three positions turns each pair of a head."""
    if layout == 0:
        return np.repeat([0, 1, 2], sections)
    found, at = np.zeros(half, np.int64), np.arange(half)
    for stream in (1, 2):
        found[(at % 3 == stream) & (at < 3 * sections[stream])] = stream
    return found


@composed_wide
def _composed_sectioned(
    x: Any,
    position_ids: Any,
    cos_cache: Any,
    sin_cache: Any,
    *,
    interleaved: int = 0,
    mrope_layout: int = 0,
    mrope_section: Sequence[int],
    num_heads: int = 0,
) -> Any:
    half, width = size_of(cos_cache, 1), size_of(x, rank_of(x) - 1)
    if not isinstance(half, int) or not isinstance(width, int):
        return None
    flat = rank_of(x) == 3
    heads = num_heads or (width // (2 * half) if flat else 0)
    size = width // heads if flat else width
    streams = _streams(half, mrope_section, mrope_layout)
    # Rows of the caches at each of the three positions; of each column, the one that it belongs to.
    angles = []
    for cache in (cos_cache, sin_cache):
        parts = op("Split", op("Gather", cache, position_ids), axis=0, num_outputs=3, outputs=3)
        chosen: Any = op("Squeeze", parts[0], [0])
        for stream in (1, 2):
            chosen = op("Where", streams == stream, op("Squeeze", parts[stream], [0]), chosen)
        angles.append(chosen)
    return op(
        "RotaryEmbedding", x, *angles, interleaved=interleaved, num_heads=heads if flat else None,
        rotary_embedding_dim=None if size == 2 * half else 2 * half,
    )  # fmt: skip


def _infer_sectioned(ctx: InferContext) -> Sequence[Any]:
    shape, sections = ctx.shape(0), ctx.attr("mrope_section")
    rows, half = ctx.shape(2, rank=2)
    ctx.fit(3, (rows, half))
    if len(shape) not in (3, 4):
        ctx.fail(f"expected an input of 3 or 4 axes, got {ctx.inputs_text()}")
    if len(sections) != 3 or min(sections) < 0:
        ctx.fail(f"expected three sections of 0 or more pairs, got {list(sections)}")
    ctx.unify(half, sum(sections), f"expected sections of all pairs, got {list(sections)}")
    if ctx.attr("mrope_layout") not in (0, 1):
        ctx.fail(f"expected mrope_layout to be 0 or 1, got {ctx.attr('mrope_layout')}")
    ctx.fit(1, (3, shape[0], shape[1 if len(shape) == 3 else 2]))
    heads = ctx.attr("num_heads")
    if len(shape) == 3:
        _fit_heads(ctx, shape[2], heads, half)
    return [shape]


def _fit_heads(ctx: InferContext, width: Dim, heads: int, half: Dim) -> Dim:
    """Return the size of a head, and fail unless so many features are those of whole heads."""
    size = floordiv(width, heads) if heads else 2 * half
    count = heads or floordiv(width, maximum(size, 1))
    ctx.unify(width, count * size, "expected heads of one size")
    return size


OPERATORS = (
    OpDef(
        "MRotaryEmbedding",
        _infer_sectioned,
        _sectioned_rotary,
        domain=DOMAIN,
        compose=_composed_sectioned,
    ),
    OpDef(
        "RotaryEmbedding",
        _infer_rotary,
        _rotary_embedding,
        domain=DOMAIN,
        compose=_composed_rotary,
    ),
)

SCHEMAS = {
    (DOMAIN, "MRotaryEmbedding"): declare(
        "input:T, position_ids:I, cos_cache:T, sin_cache:T -> output:T",
        {
            "interleaved": 0,
            "is_packed_batching": 0,
            "mrope_layout": 0,
            "mrope_section": INT_LIST,
            "num_heads": 0,
            "rotary_embedding_dim": 0,
            "scale": 1.0,
        },
        required=("mrope_section",),
        T=FLOATS,
        I="int64",
    ),
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
