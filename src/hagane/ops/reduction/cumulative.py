"""CumSum and CumProd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.ops.definition import Array, OpDef
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


OPERATORS = (
    OpDef("CumProd", same_shape, _cumulative(np.cumprod, 1)),
    OpDef("CumSum", same_shape, _cumulative(np.cumsum, 0)),
)
