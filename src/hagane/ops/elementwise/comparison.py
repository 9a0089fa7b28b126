"""Comparisons and Where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import where
from hagane.ops.rules import broadcast, exact
from hagane.ops.traits import Trait
from hagane.ops.vjp import DISCRETE, broadcasting
from hagane.symbolic import definitely_different, definitely_equal


def _equal_data(ctx: InferContext) -> Sequence[Array | None]:
    left, right = ctx.data(0), ctx.data(1)
    if left is None or right is None:
        return [None]
    a, b = np.broadcast_arrays(exact(left), exact(right))
    answers = []
    for x, y in zip(a.ravel(), b.ravel(), strict=True):
        if definitely_equal(x, y):
            answers.append(True)
        elif definitely_different(x, y) or _is_sentinel(x) or _is_sentinel(y):
            answers.append(False)
        else:
            return [None]
    return [np.array(answers, dtype=bool).reshape(a.shape)]


def _is_sentinel(value: Any) -> bool:
    """Whether ``value`` is negative, which no dimension is: exporters compare sizes with -1."""
    return isinstance(value, int) and value < 0


def _where_data(ctx: InferContext) -> Sequence[Array | None]:
    condition, x, y = ctx.constant(0), ctx.data(1), ctx.data(2)
    if condition is None or x is None or y is None:
        return [None]
    return [np.where(condition, exact(x), exact(y))]


def _infer_where(ctx: InferContext) -> Sequence[Any]:
    return [ctx.broadcast(ctx.shape(0), ctx.shape(1), ctx.shape(2))]


def _compare(name: str, function: Any, **facets: Any) -> OpDef:
    return OpDef(
        name,
        broadcast,
        lambda x, y: np.asarray(function(x, y), dtype=bool),
        vjp=DISCRETE,
        **facets,
        traits=Trait.ELEMENTWISE,
    )


OPERATORS = (
    _compare("Equal", np.equal, data=_equal_data),
    _compare("Greater", np.greater),
    _compare("GreaterOrEqual", np.greater_equal),
    _compare("Less", np.less),
    _compare("LessOrEqual", np.less_equal),
    OpDef(
        "Where",
        _infer_where,
        lambda c, x, y: np.where(c, x, y),
        data=_where_data,
        vjp=broadcasting(
            None,
            lambda g, call: where(call.inputs[0], g, 0),
            lambda g, call: where(call.inputs[0], 0, g),
        ),
        traits=Trait.ELEMENTWISE | Trait.FREE,
    ),
)
