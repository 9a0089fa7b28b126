"""Slice, Trilu, CenterCropPad, Compress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.errors import NotDifferentiable
from hagane.ops.builder import Call, content_of, op, rank_of, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import add, squeeze, sub, where
from hagane.ops.functions.tensors.positions import extent, positions_along, put_along
from hagane.ops.functions.tensors.shapes import reshape_like, sizes_of
from hagane.ops.traits import Trait
from hagane.symbolic import (
    Dim,
    Expr,
    ceildiv,
    definitely_equal,
    lower_bound,
    maximum,
    minimum,
)


def _part(size: int, start: int, end: int, step: int) -> slice:
    """Return the Python slice that the operator means on an axis of ``size``.

    Forwards the two agree. Backwards Python reads bounds before the first element otherwise: the
    operator clamps the start to the first element and the end to just before it.
    """
    if step > 0:
        return slice(start, end, step)
    first = start + size if start < 0 else start
    stop = end + size if end < 0 else end
    return slice(max(first, 0), None if stop < 0 else stop, step)


def _slice(
    x: Array,
    starts: Array,
    ends: Array,
    axes: Array | None = None,
    steps: Array | None = None,
) -> Array:
    parts = [slice(None)] * x.ndim
    for other in (ends, axes, steps):
        if other is not None and len(other) != len(starts):
            raise ValueError(f"expected {len(starts)} ends, axes and steps, got {len(other)}")
    for i, start in enumerate(starts):
        axis = i if axes is None else int(axes[i])
        step = 1 if steps is None else int(steps[i])
        parts[axis] = _part(x.shape[axis], int(start), int(ends[i]), step)
    return x[tuple(parts)]


def _infer_slice(ctx: InferContext) -> Sequence[Any]:
    shape = list(ctx.shape(0))
    count = ctx.shape(1, rank=1)
    for index in (2, 3, 4):
        ctx.fit(index, count)
    starts, ends = ctx.data(1), ctx.data(2)
    axes = ctx.ints(3) if ctx.has(3) else None
    steps = ctx.ints(4) if ctx.has(4) else None
    if (ctx.has(3) and axes is None) or (starts is None and axes is None):
        if ctx.has(3) or not isinstance(count[0], int):
            return [tuple(ctx.fresh() for _ in shape)]
        axes = tuple(range(count[0]))
    if axes is None:
        assert starts is not None
        axes = tuple(range(len(starts)))
    for i, axis in enumerate(axes):
        where = ctx.axis(axis, len(shape))
        if starts is None or ends is None or (ctx.has(4) and steps is None):
            shape[where] = ctx.fresh()
            continue
        step = 1 if steps is None else steps[i]
        if step == 0:
            ctx.fail(f"expected a step other than 0 on axis {axis}")
        length = _length(shape[where], starts.ravel()[i], ends.ravel()[i], step)
        shape[where] = ctx.fresh() if length is None else length
    return [tuple(shape)]


def _length(size: Dim, start: Any, end: Any, step: int) -> Dim | None:
    """Return how many elements a slice takes, or None where that depends on unknown signs."""
    start, end = (v if isinstance(v, Expr) else int(v) for v in (start, end))
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        return len(range(size)[_part(size, start, end, step)])
    if step < 0:
        if start in (-1,) and isinstance(end, int) and end < -(2**30):
            return ceildiv(size, -step)
        return None
    low, high = _clamp(size, start), _clamp(size, end)
    if low is None or high is None:
        return None
    length = high - low
    if definitely_equal(low, 0) or _at_least(length, 0):
        return ceildiv(length, step)
    return ceildiv(maximum(length, 0), step)


def _clamp(size: Dim, bound: Dim) -> Dim | None:
    """Return the position in [0, size] that a bound of a forward slice means."""
    if isinstance(bound, int):
        if bound >= 10**9:  # how exporters write "to the end"; no axis is that long
            return size
        if bound < 0:
            return maximum(size + bound, 0) if not _at_least(size + bound, 0) else size + bound
        return minimum(size, bound)
    if _at_least(bound, 0):
        return minimum(size, bound)
    if _at_least(-bound, 1):
        return maximum(size + bound, 0)
    return None


def _at_least(value: Dim, bound: int) -> bool:
    lowest = lower_bound(value)
    return lowest is not None and lowest >= bound


def _slice_data(ctx: InferContext) -> Sequence[Array | None]:
    value = ctx.data(0)
    parts = [ctx.constant(i) if ctx.has(i) else None for i in range(1, 5)]
    if value is None or any(ctx.has(i + 1) and part is None for i, part in enumerate(parts)):
        return [None]
    return [_slice(value, *parts)]  # type: ignore[arg-type]


def _trilu(x: Array, k: Array | None = None, *, upper: int = 1) -> Array:
    offset = 0 if k is None else int(np.asarray(k).ravel()[0])
    return np.triu(x, offset) if upper else np.tril(x, offset)


def _center_crop_pad(x: Array, shape: Array, *, axes: Sequence[int] | None = None) -> Array:
    targets = range(x.ndim) if axes is None else axes
    source, place = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    size = list(x.shape)
    for axis, wanted in zip(targets, (int(dim) for dim in shape), strict=True):
        have = x.shape[axis]
        size[axis] = wanted
        if wanted < have:
            first = (have - wanted) // 2
            source[axis] = slice(first, first + wanted)
        else:
            first = (wanted - have) // 2
            place[axis] = slice(first, first + have)
    result = np.zeros(size, dtype=x.dtype)
    result[tuple(place)] = x[tuple(source)]
    return result


def _infer_center_crop_pad(ctx: InferContext) -> Sequence[Any]:
    shape = list(ctx.shape(0))
    axes = ctx.attr("axes")
    targets = range(len(shape)) if axes is None else axes
    wanted = ctx.dims(1)
    for i, axis in enumerate(targets):
        shape[ctx.axis(axis, len(shape))] = ctx.fresh() if wanted is None else wanted[i]
    return [tuple(shape)]


def _compress(x: Array, condition: Array, *, axis: int | None = None) -> Array:
    return np.compress(condition, x, axis)


def _infer_compress(ctx: InferContext) -> Sequence[Any]:
    condition = ctx.constant(1)
    count: Dim = ctx.fresh() if condition is None else int(np.count_nonzero(condition))
    if ctx.attr("axis") is None:
        return [(count,)]
    shape = list(ctx.shape(0))
    shape[ctx.axis(ctx.attr("axis"), len(shape))] = count
    return [tuple(shape)]


def _slice_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    x, starts, ends, axes, steps = (*call.inputs, None, None)[:5]
    (g,), rest = gradients, [None] * (len(call.inputs) - 1)
    if axes is None:
        count = shape_of(starts)[0]
        if not isinstance(count, int):
            raise NotDifferentiable("Slice has no gradient along an unknown number of axes")
        axes = op("Identity", list(range(count)))
    stride = None if steps is None else content_of(steps)
    if steps is None or (stride is not None and all(stride.ravel() == 1)):
        return [_padded_back(g, x, starts, axes), *rest]
    known = content_of(axes)
    if known is None:
        raise NotDifferentiable("Slice has no gradient with steps along axes that are computed")
    for number, axis in enumerate(int(axis) % rank_of(x) for axis in known):
        here = [op("Gather", bound, [number]) for bound in (starts, ends, steps)]
        taken = op("Slice", positions_along(x, axis), here[0], here[1], [0], here[2])
        g = put_along(g, taken, extent(x, axis), axis)
    return [g, *rest]


def _padded_back(g: Any, x: Any, starts: Any, axes: Any) -> Any:
    """Return a slice without gaps between the zeros in place of the elements left out."""
    sizes, lengths = (op("Gather", op("Identity", sizes_of(v)), axes) for v in (x, g))
    starts = op("Cast", starts, to=7)
    first = where(op("Less", starts, 0), add(starts, sizes), starts)
    before = op("Min", op("Max", first, 0), sizes)
    pads = op("Concat", before, sub(sub(sizes, before), lengths), axis=0)
    return op("Pad", g, pads, None, axes)


def _trilu_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    rest = call.inputs[1:]
    return [op("Trilu", gradients[0], *rest, **call.attributes), *(None for _ in rest)]


def _center_crop_pad_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    x, axes = call.inputs[0], call.attr("axes")
    sizes = op("Identity", sizes_of(x))
    if axes is not None:
        sizes = op("Gather", sizes, [axis % rank_of(x) for axis in axes])
    return [op("CenterCropPad", gradients[0], sizes, axes=axes), None]


def _compress_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x, condition), axis = call.inputs, call.attr("axis")
    taken = squeeze(op("NonZero", condition), [0])
    if axis is not None:
        axis %= rank_of(x)
        return [put_along(gradients[0], taken, extent(x, axis), axis), None]
    size = extent(op("Reshape", x, [-1]), 0)
    return [reshape_like(put_along(gradients[0], taken, size, 0), x), None]


OPERATORS = (
    OpDef("CenterCropPad", _infer_center_crop_pad, _center_crop_pad, vjp=_center_crop_pad_vjp),
    OpDef(
        "Compress", _infer_compress, _compress, vjp=_compress_vjp, traits=Trait.FREE | Trait.MOVING
    ),
    OpDef(
        "Slice",
        _infer_slice,
        _slice,
        data=_slice_data,
        vjp=_slice_vjp,
        traits=Trait.FREE | Trait.MOVING,
    ),
    OpDef("Trilu", lambda ctx: [ctx.shape(0)], _trilu, vjp=_trilu_vjp),
)
