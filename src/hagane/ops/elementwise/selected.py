"""SelectGreater: one of two numbers by which of two others is greater, of hagane's own.

Comparison and choice are one operator because truth values do not lie in blocks of channels, where
gradients of rectifiers are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import where
from hagane.ops.functions.tensors.shapes import unbroadcast
from hagane.ops.own_schemas import DOMAIN, float_schema
from hagane.ops.precision import widened
from hagane.ops.traits import Trait

SELECT = "SelectGreater"


@widened
def _reference(a: Array, b: Array, x: Array, y: Array) -> Array:
    return np.where(a > b, x, y)


def _infer(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    for index in (1, 2, 3):
        shape = ctx.broadcast(shape, ctx.shape(index))
    return [shape]


def _composed(a: Any, b: Any, x: Any, y: Any) -> Any:
    return where(op("Greater", a, b), x, y)


def _vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (a, b, x, y), (g,) = call.inputs, gradients
    return [
        None,
        None,
        lambda: unbroadcast(op(SELECT, a, b, g, 0.0, domain=DOMAIN), x),
        lambda: unbroadcast(op(SELECT, a, b, 0.0, g, domain=DOMAIN), y),
    ]


OPERATORS = (
    OpDef(
        SELECT, _infer, _reference, domain=DOMAIN, vjp=_vjp, compose=_composed,
        traits=Trait.ELEMENTWISE,
    ),
)  # fmt: skip
SCHEMAS = {(DOMAIN, SELECT): float_schema("A B X Y", "Z", {})}
