"""GridSample and AffineGrid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from hagane.ops.builder import content_of, dtype_of, op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.images.sampling import Tap, linear_taps, sample
from hagane.ops.functions.numbers.elementary import add, div, mul, sub, where
from hagane.ops.functions.tensors.shapes import size_as_number
from hagane.ops.precision import widened
from hagane.ops.vjp import through


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
    if grid.shape[-1] != rank:
        raise ValueError(f"expected {rank} coordinates in the grid's last axis, got {grid.shape}")
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
    if len(theta) != size[0]:
        raise ValueError(f"expected a matrix for each of {size[0]} images, got {len(theta)}")
    sizes = [int(n) for n in size[2:]]
    points = _points(sizes, align_corners).astype(theta.dtype)
    flat = points.reshape(-1, len(sizes) + 1)
    return (flat @ theta.transpose(0, 2, 1)).reshape(theta.shape[0], *sizes, len(sizes))


def _points(sizes: Sequence[int], align_corners: int) -> Array:
    """Return the normalised coordinates of all pixels, the innermost axis first, and a 1."""
    axes = []
    for n in sizes:
        if align_corners:
            axes.append(np.linspace(-1, 1, n) if n > 1 else np.zeros(1))
        else:
            axes.append((2 * np.arange(n) + 1) / n - 1)
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([*mesh[::-1], np.ones(sizes)], axis=-1)


def _infer_affine_grid(ctx: InferContext) -> Sequence[Any]:
    size = ctx.dims(1)
    theta = ctx.shape(0, rank=3)
    if size is None:
        given = ctx.tensor(1).shape
        count = given[0] if given else None
        if not isinstance(count, int) or count < 3:
            return [None]
        size = (theta[0], 0, *(ctx.fresh() for _ in range(count - 2)))
    rank = len(size) - 2
    message = f"expected matrices of {rank} x {rank + 1} numbers"
    ctx.unify(theta[0], size[0], "expected a matrix an image")
    ctx.unify(theta[1], rank, message)
    ctx.unify(theta[2], rank + 1, message)
    return [(theta[0], *size[2:], rank)]


def composed_affine_grid(theta: Any, size: Any, *, align_corners: int = 0) -> Any:
    """Return the operator's output, over the builder."""
    known = content_of(size)
    if known is None or known.dtype == object:
        return _open_affine_grid(theta, size, align_corners)
    sizes = [int(n) for n in known[2:]]
    points = _points(sizes, align_corners).reshape(-1, len(sizes) + 1)
    rows = op("Transpose", theta, perm=[0, 2, 1])
    flat = op("MatMul", points.astype(dtype_of(theta).numpy()), rows)
    return op("Reshape", flat, [int(known[0]), *sizes, len(sizes)], allowzero=1)


def _open_affine_grid(theta: Any, size: Any, align_corners: int) -> Any:
    """Return the grid of sizes that only a run knows: a sum over the axes, which broadcast."""
    known, rank, dtype = content_of(size), int(shape_of(theta)[1]), dtype_of(theta)
    batch = shape_of(theta)[0]

    def column(place: int) -> Any:
        found = op("Gather", theta, np.array(place), axis=2)
        return op("Reshape", found, [batch, *[1] * rank, rank], allowzero=1)

    total = column(rank)
    for axis in range(rank):
        n = op("Gather", size, np.array(axis + 2)) if known is None else known[axis + 2]
        count = op("Cast", n, to=dtype)
        place = op("Cast", op("Range", 0, n, 1), to=dtype)
        one, two = (np.array(number, dtype.numpy()) for number in (1, 2))
        last = op("Sub", count, one)
        over = op("Max", last, one) if align_corners else count
        numbers = op("Div", op("Sub", op("Mul", place, two), last), over)
        around = [i for i in range(rank + 2) if i != axis + 1]
        part = op("Mul", op("Unsqueeze", numbers, around), column(rank - 1 - axis))
        total = op("Add", total, part)
    return total


def composed_grid_sample(
    x: Any, grid: Any, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Any:
    """Return the operator's output, over the builder."""
    batch, *outputs, _ = shape_of(grid)
    rank = len(outputs)
    flat = op("Reshape", grid, [batch, math.prod(outputs), rank], allowzero=1)

    def pad(place: Any, axis: int) -> Any:
        size = size_as_number(x, 2 + axis, place)
        if padding_mode == "border":
            return op("Min", op("Max", place, 0), sub(size, 1))
        if padding_mode == "reflection":
            return _composed_reflect(place, size, align_corners)
        return place

    def taps(axis: int) -> list[Tap]:
        size = size_as_number(x, 2 + axis, flat)
        at = op("Gather", flat, rank - 1 - axis, axis=2)
        if align_corners:
            place = mul(div(add(at, 1), 2), sub(size, 1))
        else:
            place = div(sub(mul(add(at, 1), size), 1), 2)
        if mode == "cubic":
            base = op("Floor", place)
            weights = _composed_cubic(sub(place, base))
            return [(add(base, tap - 1), weight) for tap, weight in enumerate(weights)]
        place = pad(place, axis)
        if mode == "nearest":
            whole = op("Round", place)
            return [(whole, op("Sub", add(whole, 1), whole))]
        return linear_taps(place)

    def moved(position: Any, axis: int) -> Any:
        return op("Round", pad(position, axis))

    follows = moved if mode == "cubic" and padding_mode != "zeros" else None
    y = sample(x, [taps(axis) for axis in range(rank)], follows)
    return op("Reshape", y, [batch, shape_of(x)[1], *outputs], allowzero=1)


def _composed_reflect(x: Any, size: Any, align_corners: int) -> Any:
    low: Any = 0.0 if align_corners else -0.5
    span = sub(size, 1) if align_corners else size
    folded = op("Mod", op("Abs", sub(x, low)), mul(span, 2), fmod=1)
    back = where(op("Greater", folded, span), sub(mul(span, 2), folded), folded)
    return op("Min", op("Max", add(back, low), 0), sub(size, 1))


def _composed_cubic(t: Any) -> list[Any]:
    """Return the weights of the taps -1, 0, 1, 2, as ``_cubic_weights`` does."""
    a = -0.75

    def near(d: Any) -> Any:
        return add(mul(sub(mul(d, a + 2), a + 3), d, d), 1)

    def far(d: Any) -> Any:
        return sub(mul(add(mul(sub(mul(d, a), 5 * a), d), 8 * a), d), 4 * a)

    return [far(add(t, 1)), near(t), near(sub(1, t)), far(sub(2, t))]


OPERATORS = (
    OpDef(
        "AffineGrid",
        _infer_affine_grid,
        _affine_grid,
        compose=composed_affine_grid,
        vjp=through(composed_affine_grid),
    ),
    OpDef(
        "GridSample",
        _infer_grid_sample,
        _grid_sample,
        compose=composed_grid_sample,
        vjp=through(composed_grid_sample),
    ),
)
