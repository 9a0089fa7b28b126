"""CumSum and CumProd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import div, mask_like, mul, where
from hagane.ops.precision import widened
from hagane.ops.rules import same_shape


def _cumulative(function: Callable[..., Any], neutral: int) -> Callable[..., Array]:
    @widened
    def reference(x: Array, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Array:
        along = int(np.asarray(axis).ravel()[0])
        y = np.flip(x, along) if reverse else x
        y = function(y, axis=along, dtype=x.dtype)
        if exclusive:
            # Shift by one: each element is left out of its own total.
            y = np.roll(y, 1, along)
            first: list[Any] = [slice(None)] * x.ndim
            first[along] = slice(0, 1)
            y[tuple(first)] = neutral
        return np.flip(y, along) if reverse else y

    return reference


def _sum_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    axis = call.inputs[1]
    flags = {"exclusive": call.attr("exclusive"), "reverse": 1 - call.attr("reverse")}
    return [op("CumSum", gradients[0], axis, **flags), None]


def _product_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Up to the first zero, divide totals by the element; behind it nothing counts.

    For the first zero itself, the totals are those without it.
    """
    (x, axis), (g,) = call.inputs, gradients
    flags = {"exclusive": call.attr("exclusive"), "reverse": call.attr("reverse")}
    back = {"exclusive": call.attr("exclusive"), "reverse": 1 - call.attr("reverse")}
    zero = op("Equal", x, 0)
    zeros = op("CumSum", mask_like(zero, x), axis, reverse=flags["reverse"])
    first = op("And", zero, op("Equal", zeros, 1))
    without = op("CumProd", where(first, 1, x), axis, **flags)
    before = div(op("CumSum", mul(g, call.outputs[0]), axis, **back), where(zero, 1, x))
    at = op("CumSum", mul(g, without), axis, **back)
    return [where(op("Equal", zeros, 0), before, where(first, at, 0)), None]


OPERATORS = (
    OpDef("CumProd", same_shape, _cumulative(np.cumprod, 1), vjp=_product_vjp),
    OpDef("CumSum", same_shape, _cumulative(np.cumsum, 0), vjp=_sum_vjp),
)
