"""Ceil, Floor, Round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.rules import exact, same_shape
from hagane.ops.traits import Trait
from hagane.ops.vjp import flat
from hagane.symbolic import Dim, floor


def _data(rule: Callable[[Dim], Dim]) -> Callable[[InferContext], Sequence[Array | None]]:
    def data(ctx: InferContext) -> Sequence[Array | None]:
        value = ctx.data(0)
        if value is None:
            return [None]
        result = np.empty(value.shape, dtype=object)
        result.ravel()[:] = [rule(item) for item in exact(value).ravel()]
        return [result]

    return data


def _ceil(value: Dim) -> Dim:
    return -floor(-value)


OPERATORS = (
    OpDef(
        "Ceil",
        same_shape,
        lambda x: np.ceil(x),
        data=_data(_ceil),
        vjp=flat,
        traits=Trait.ELEMENTWISE,
    ),
    OpDef(
        "Floor",
        same_shape,
        lambda x: np.floor(x),
        data=_data(floor),
        vjp=flat,
        traits=Trait.ELEMENTWISE,
    ),
    OpDef("Round", same_shape, lambda x: np.rint(x), vjp=flat, traits=Trait.ELEMENTWISE),
)
