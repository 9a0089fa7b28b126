"""If."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.control.join import join, same_kind
from hagane.ops.definition import Array, OpDef, RuntimeValue
from hagane.ops.traits import Trait


def _if(
    condition: Array,
    *,
    then_branch: Callable[[], list[RuntimeValue]],
    else_branch: Callable[[], list[RuntimeValue]],
) -> tuple[RuntimeValue, ...]:
    if condition.size != 1:
        raise ValueError(f"expected one truth value, got {condition.size}")
    return tuple(then_branch() if condition.ravel()[0] else else_branch())


def _infer_if(ctx: InferContext) -> Sequence[Any]:
    known = ctx.constant(0)
    results = {}
    for name in ("then_branch", "else_branch"):
        graph = ctx.attr(name)
        types, _ = ctx.infer_graph(graph, [], [])
        if len(types) != ctx.n_outputs:
            ctx.fail(f"{name} has {len(types)} outputs, expected {ctx.n_outputs}")
        results[name] = types
    if known is not None:
        return results["then_branch" if known.ravel()[0] else "else_branch"]
    joined = []
    for index, (left, right) in enumerate(zip(*results.values(), strict=True)):
        if not same_kind(left, right):
            ctx.fail(f"the branches give output {index} different types: {left} and {right}")
        joined.append(join(left, right, ctx.fresh))
    return joined


def _if_data(ctx: InferContext) -> Sequence[Array | None]:
    known = ctx.constant(0)
    if known is None:
        return [None] * ctx.n_outputs
    graph = ctx.attr("then_branch" if known.ravel()[0] else "else_branch")
    _, values = ctx.infer_graph(graph, [], [])
    return [None if value is None else np.asarray(value) for value in values]


OPERATORS = (OpDef("If", _infer_if, _if, data=_if_data, traits=Trait.FREE),)
