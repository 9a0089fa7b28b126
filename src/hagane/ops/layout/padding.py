"""Pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
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
    """Pad; a negative amount cuts elements off, before the others are added."""
    targets = list(range(x.ndim)) if axes is None else [int(a) % x.ndim for a in axes]
    amounts = [(0, 0)] * x.ndim
    for i, axis in enumerate(targets):
        amounts[axis] = (int(pads[i]), int(pads[i + len(targets)]))
    cut = tuple(
        slice(max(0, -before), size - max(0, -after))
        for (before, after), size in zip(amounts, x.shape, strict=True)
    )
    added = [(max(0, before), max(0, after)) for before, after in amounts]
    if x.ndim == 0:  # NumPy refuses to pad no axes
        return x.copy()
    if mode == "constant":
        fill = np.zeros((), x.dtype)[()] if value is None else np.asarray(value).ravel()[0]
        if x.dtype == object and value is None:
            fill = ""
        return np.pad(x[cut], added, mode="constant", constant_values=fill)
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
            if isinstance(shape[where], int) and shape[where] < 0:  # type: ignore[operator]
                ctx.fail(f"pads cut more than axis {axis} of {ctx.tensor(0)} holds")
    return [tuple(shape)]


OPERATORS = (OpDef("Pad", _infer_pad, _pad, traits=Trait.EXPANDING | Trait.FREE),)
