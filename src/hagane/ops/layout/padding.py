"""Pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.errors import NotDifferentiable
from hagane.ops.builder import Call, content_of, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import neg, sub, sum_over
from hagane.ops.functions.tensors.positions import extent, positions_along, put_along
from hagane.ops.functions.tensors.shapes import reshape_like
from hagane.ops.traits import Trait
from hagane.symbolic import definitely_different

_NUMPY_MODES = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}


def _pad(
    x: Array,
    pads: Array,
    value: Array | None = None,
    axes: Array | None = None,
    *,
    mode: str = "constant",
) -> Array:
    """Pad; a negative amount cuts elements off, before the others are added.

    A constant is also laid where more is cut off at one end than there is, if the other end makes
    up for it, as ONNX Runtime has it.
    """
    targets = list(range(x.ndim)) if axes is None else [int(a) % x.ndim for a in axes]
    amounts = [(0, 0)] * x.ndim
    for i, axis in enumerate(targets):
        amounts[axis] = (int(pads[i]), int(pads[i + len(targets)]))
    for axis, ((before, after), size) in enumerate(zip(amounts, x.shape, strict=True)):
        left = size + min(0, before) + min(0, after)
        if mode == "constant":
            left = min(0, size + before + after)
        if left < 0 or (left == 0 < size and mode != "constant"):
            raise ValueError(
                f"pads {before} and {after} leave nothing of axis {axis} of size {size}"
                + ("" if left < 0 else f" to take for mode '{mode}'")
            )
    cut = tuple(
        slice(max(0, -before), max(0, size - max(0, -after)))
        for (before, after), size in zip(amounts, x.shape, strict=True)
    )
    added = [(max(0, before), max(0, after)) for before, after in amounts]
    if x.ndim == 0:  # NumPy refuses to pad no axes
        return x.copy()
    if mode == "constant":
        fill = np.zeros((), x.dtype)[()] if value is None else np.asarray(value).ravel()[0]
        if x.dtype == object and value is None:
            fill = ""
        sizes = [n + sum(ends) for n, ends in zip(x.shape, amounts, strict=True)]
        result = np.full(sizes, fill, dtype=x.dtype)
        place = tuple(
            slice(min(before, n), min(before, n) + taken)
            for (before, _), n, taken in zip(added, sizes, x[cut].shape, strict=True)
        )
        result[place] = x[cut]
        return result
    return np.pad(x[cut], added, mode=_NUMPY_MODES[mode])  # type: ignore[call-overload]


def _infer_pad(ctx: InferContext) -> Sequence[Any]:
    shape = list(ctx.shape(0))
    if ctx.attr("mode") not in ("constant", *_NUMPY_MODES):
        ctx.fail(
            f"expected mode to be constant, {', '.join(_NUMPY_MODES)}, got '{ctx.attr('mode')}'"
        )
    axes = ctx.ints(3) if ctx.has(3) else tuple(range(len(shape)))
    pads = ctx.dims(1)
    if axes is None or pads is None:
        return [tuple(ctx.fresh() for _ in shape)]
    if definitely_different(len(pads), 2 * len(axes)):
        ctx.fail(
            f"expected two amounts an axis ({2 * len(axes)} for {ctx.tensor(0)}), got {len(pads)}"
        )
    for i, axis in enumerate(axes):
        where = ctx.axis(axis, len(shape))
        if ctx.data(1) is None:
            shape[where] = ctx.fresh()
        else:
            shape[where] = shape[where] + pads[i] + pads[i + len(axes)]
            size, ends = ctx.shape(0)[where], (pads[i], pads[i + len(axes)])
            if not isinstance(size, int) or not all(isinstance(end, int) for end in ends):
                continue
            left = size + sum(min(0, int(end)) for end in ends)
            if ctx.attr("mode") == "constant":
                left = min(0, size + sum(map(int, ends)))
            if left < 0:
                ctx.fail(f"pads cut more than axis {axis} of {ctx.tensor(0)} holds")
            if left == 0 < size and ctx.attr("mode") != "constant":
                ctx.fail(
                    f"pads leave nothing of axis {axis} of {ctx.tensor(0)} to take for mode "
                    f"'{ctx.attr('mode')}'"
                )
    return [tuple(shape)]


def _pad_data(ctx: InferContext) -> Sequence[Array | None]:
    """Pad sizes by numbers: what frameworks make of margins of some axes is one for all."""
    content, pads = ctx.data(0), ctx.ints(1)
    fill = ctx.constant(2) if ctx.has(2) else np.array(0)
    axes = ctx.ints(3) if ctx.has(3) else None
    if content is None or pads is None or fill is None or (ctx.has(3) and axes is None):
        return [None]
    if not ctx.dtype(0).is_integer() or ctx.attr("mode") != "constant":
        return [None]
    return [_pad(content, np.array(pads), fill, None if axes is None else np.array(axes))]


def _pad_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    x, pads, value, axes = (*call.inputs, None, None)[:4]
    (g,), mode, rank = gradients, call.attr("mode"), rank_of(call.inputs[0])
    rest: list[Any] = [None] * (len(call.inputs) - 1)
    if mode == "constant":
        inner = op("Pad", g, neg(pads), None, axes)
        if value is not None:

            def of_value() -> Any:
                every = list(range(rank))
                outside = sub(
                    sum_over(g, every, keepdims=False), sum_over(inner, every, keepdims=False)
                )
                return reshape_like(outside, value)

            rest[1] = of_value
        return [inner, *rest]
    targets = range(rank) if axes is None else _known_axes(call, axes, rank)
    for number, axis in enumerate(targets):
        here = op("Gather", pads, [number, number + len(targets)])
        taken = op("Pad", positions_along(x, axis), here, mode=mode)
        g = put_along(g, taken, extent(x, axis), axis)
    return [g, *rest]


def _known_axes(call: Call, axes: Any, rank: int) -> Sequence[int]:
    known = content_of(axes)
    if known is None:
        raise NotDifferentiable(
            f"Pad has no gradient in mode '{call.attr('mode')}' along axes that are computed"
        )
    return [int(axis) % rank for axis in known]


OPERATORS = (
    OpDef(
        "Pad",
        _infer_pad,
        _pad,
        data=_pad_data,
        vjp=_pad_vjp,
        traits=Trait.EXPANDING | Trait.FREE,
    ),
)
