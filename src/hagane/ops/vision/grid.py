"""GridSample and AffineGrid."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import widened


def _reflect(x: Array, size: int, align_corners: bool) -> Array:
    """Fold coordinates back into the picture at its outermost centres or edges."""
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return np.zeros_like(x)
    folded = np.mod(np.abs(x - low), 2 * span)
    return np.clip(low + np.where(folded > span, 2 * span - folded, folded), 0, size - 1)


def _pad(x: Array, size: int, padding_mode: str, align_corners: bool) -> Array:
    if padding_mode == "border":
        return np.clip(x, 0, size - 1)
    return _reflect(x, size, align_corners) if padding_mode == "reflection" else x


def _cubic_weights(t: Array) -> list[Array]:
    """Return the weights of the taps -1, 0, 1, 2 (Keys, 1981, with a = -0.75)."""
    a = -0.75

    def near(d: Array) -> Array:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Array) -> Array:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


@widened
def _grid_sample(
    x: Array,
    grid: Array,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Array:
    sizes = x.shape[2:]
    rank = len(sizes)
    # The last axis of the grid counts from the innermost spatial axis outwards.
    places = []
    for axis, size in enumerate(sizes):
        normalised = grid[..., rank - 1 - axis].astype(np.float64)
        if align_corners:
            places.append((normalised + 1) / 2 * (size - 1))
        else:
            places.append(((normalised + 1) * size - 1) / 2)
    corners = [
        _corners(place, size, mode, padding_mode, bool(align_corners))
        for place, size in zip(places, sizes, strict=True)
    ]
    batch = np.arange(x.shape[0]).reshape(-1, *(1,) * rank)
    channels_last = np.moveaxis(x, 1, -1)
    result = np.zeros((*grid.shape[:-1], x.shape[1]), dtype=np.float64)
    for combination in product(*corners):
        weight = np.ones(grid.shape[:-1])
        index = []
        for (position, share), size in zip(combination, sizes, strict=True):
            whole = position
            if mode == "cubic" and padding_mode != "zeros":
                whole = np.rint(
                    _pad(position.astype(np.float64), size, padding_mode, bool(align_corners))
                )
            inside = (whole >= 0) & (whole < size)
            weight = weight * np.where(inside, share, 0)
            index.append(np.clip(whole, 0, size - 1).astype(np.int64))
        result += channels_last[(batch, *index)] * weight[..., None]
    return np.moveaxis(result, -1, 1).astype(x.dtype)


def _corners(
    place: Array, size: int, mode: str, padding_mode: str, align_corners: bool
) -> list[tuple[Array, Array]]:
    """Return the taps along one axis: positions and weights."""
    place = np.nan_to_num(place, nan=-1.0, posinf=-1.0, neginf=-1.0)
    if mode != "cubic":
        place = _pad(place, size, padding_mode, align_corners)
    if mode == "nearest":
        return [(np.rint(place), np.ones_like(place))]
    base = np.floor(place)
    t = place - base
    if mode == "linear":
        return [(base, 1 - t), (base + 1, t)]
    return [(base + tap - 1, weight) for tap, weight in enumerate(_cubic_weights(t))]


def _infer_grid_sample(ctx: InferContext) -> Sequence[Any]:
    shape, grid = ctx.shape(0), ctx.shape(1)
    rank = len(shape) - 2
    if rank < 1 or len(grid) != len(shape):
        ctx.fail(f"expected (batch, channels, *spatial) and a grid, got {ctx.inputs_text()}")
    ctx.unify(grid[-1], rank, f"expected {rank} coordinates in the grid's last axis")
    batch = ctx.unify(shape[0], grid[0], "expected one batch size")
    return [(batch, shape[1], *grid[1:-1])]


@widened
def _affine_grid(theta: Array, size: Array, *, align_corners: int = 0) -> Array:
    sizes = [int(n) for n in size[2:]]
    axes = []
    for n in sizes:
        if align_corners:
            axes.append(np.linspace(-1, 1, n) if n > 1 else np.zeros(1))
        else:
            axes.append((2 * np.arange(n) + 1) / n - 1)
    mesh = np.meshgrid(*axes, indexing="ij")
    points = np.stack([*mesh[::-1], np.ones(sizes)], axis=-1).astype(theta.dtype)
    flat = points.reshape(-1, len(sizes) + 1)
    return (flat @ theta.transpose(0, 2, 1)).reshape(theta.shape[0], *sizes, len(sizes))


def _infer_affine_grid(ctx: InferContext) -> Sequence[Any]:
    size = ctx.dims(1)
    theta = ctx.shape(0, rank=3)
    if size is None:
        return [None]
    return [(theta[0], *size[2:], len(size) - 2)]


OPERATORS = (
    OpDef("AffineGrid", _infer_affine_grid, _affine_grid),
    OpDef("GridSample", _infer_grid_sample, _grid_sample),
)
