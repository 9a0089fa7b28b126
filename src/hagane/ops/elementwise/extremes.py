"""Max, Min and Clip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import add, div, mask_like, mul, where
from hagane.ops.functions.tensors.shapes import unbroadcast
from hagane.ops.rules import broadcast, exact
from hagane.ops.traits import Trait
from hagane.symbolic import Dim, maximum, minimum


def _data(rule: Callable[..., Dim]) -> Callable[[InferContext], Sequence[Array | None]]:
    def data(ctx: InferContext) -> Sequence[Array | None]:
        values = [ctx.data(i) for i in range(ctx.n_inputs)]
        known = [exact(value) for value in values if value is not None]
        if len(known) != len(values):
            return [None]
        arrays = np.broadcast_arrays(*known)
        result = np.empty(arrays[0].shape, dtype=object)
        result.ravel()[:] = [
            rule(*items) for items in zip(*(a.ravel() for a in arrays), strict=True)
        ]
        return [result]

    return data


def _clip(x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """Bound from below first: where ``low > high``, the result is ``high`` everywhere."""
    if low is not None:
        x = np.maximum(x, low)
    if high is not None:
        x = np.minimum(x, high)
    return np.array(x)


def _clip_data(ctx: InferContext) -> Sequence[Array | None]:
    """Return the content, as sizes: padding that keeps an image's size is bounded by 0."""
    value, bounds = ctx.data(0), [ctx.data(i) if ctx.has(i) else None for i in (1, 2)]
    if value is None or any(
        ctx.has(i) and bound is None for i, bound in zip((1, 2), bounds, strict=True)
    ):
        return [None]
    low, high = (None if each is None else exact(each).ravel()[0] for each in bounds)
    result = np.empty(value.shape, dtype=object)
    items = [item if low is None else maximum(item, low) for item in exact(value).ravel()]
    result.ravel()[:] = [item if high is None else minimum(item, high) for item in items]
    return [result]


def _infer_clip(ctx: InferContext) -> Sequence[tuple[Dim, ...]]:
    for i in (1, 2):
        if ctx.has(i) and ctx.known_rank(i) not in (0, None) and ctx.shape(i) != (1,):
            ctx.fail(f"expected '{ctx.name(i)}' to be a scalar, got {ctx.tensor(i)}")
    return [ctx.shape(0)]


def _extreme_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Operands that reach the extreme share its gradient equally."""
    (y,), (g,) = call.outputs, gradients
    if len(call.inputs) == 1:
        return [g]
    hits = [mask_like(op("Equal", x, y), g) for x in call.inputs]
    share = div(g, add(*hits))
    return [unbroadcast(mul(share, hit), x) for hit, x in zip(hits, call.inputs, strict=True)]


def _clip_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Elements on a bound count as inside."""
    x, low, high = (*call.inputs, None, None)[:3]
    (g,) = gradients
    raised = x if low is None else op("Max", x, low)
    results = [g, None, None]
    if high is not None:
        over = op("Greater", raised, high)
        results[2] = unbroadcast(where(over, g, 0), high)
        g = where(over, 0, g)
    if low is not None:
        under = op("Less", x, low)
        results[1] = unbroadcast(where(under, g, 0), low)
        g = where(under, 0, g)
    results[0] = g
    return results[: len(call.inputs)]


OPERATORS = (
    OpDef("Clip", _infer_clip, _clip, data=_clip_data, vjp=_clip_vjp, traits=Trait.ELEMENTWISE),
    OpDef(
        "Max",
        broadcast,
        lambda *xs: np.asarray(reduce(np.maximum, xs)),
        data=_data(maximum),
        vjp=_extreme_vjp,
        traits=Trait.ELEMENTWISE | Trait.VARIADIC,
    ),
    OpDef(
        "Min",
        broadcast,
        lambda *xs: np.asarray(reduce(np.minimum, xs)),
        data=_data(minimum),
        vjp=_extreme_vjp,
        traits=Trait.ELEMENTWISE | Trait.VARIADIC,
    ),
)
