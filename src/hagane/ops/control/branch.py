"""If."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.errors import TypeInferenceError
from hagane.ops.builder import Call, branch
from hagane.ops.context import InferContext
from hagane.ops.control.join import join, same_kind
from hagane.ops.definition import Array, OpDef, RuntimeValue
from hagane.ops.functions.tensors.shapes import zeros_like
from hagane.ops.traits import Trait


def _if(
    condition: Array,
    *,
    then_branch: Callable[[], list[RuntimeValue]],
    else_branch: Callable[[], list[RuntimeValue]],
) -> tuple[RuntimeValue, ...]:
    return tuple(then_branch() if truth(condition) else else_branch())


def truth(condition: Array) -> bool:
    """Return the one truth value of an array."""
    if condition.size != 1:
        raise ValueError(f"expected one truth value, got {condition.size}")
    return bool(condition.item())


def _infer_if(ctx: InferContext) -> Sequence[Any]:
    known = ctx.constant(0)
    taken = None if known is None else "then_branch" if known.ravel()[0] else "else_branch"
    results = {}
    for name in ("then_branch", "else_branch"):
        graph = ctx.attr(name)
        if graph.inputs:
            ctx.fail(
                f"expected {name} to have no inputs, got {len(graph.inputs)}; "
                "branches take values of the graphs around them by name"
            )
        try:
            types, _ = ctx.infer_graph(graph, [], [])
        except TypeInferenceError:
            if taken in (None, name):
                raise
            continue  # a branch that no run takes may be wrong for the sizes of the inputs
        if len(types) != ctx.n_outputs:
            ctx.fail(f"{name} has {len(types)} outputs, expected {ctx.n_outputs}")
        results[name] = types
    if taken is not None:
        return results[taken]
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


def _if_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Choose between the gradients of both branches."""
    from hagane.ops.gradient import accumulate, recording
    from hagane.ops.gradient.reach import as_value, both, watched

    reach, sure = watched(), [True] * len(call.captured)

    def back(name: str) -> Callable[[], Sequence[Any]]:
        def run() -> Sequence[Any]:
            with recording() as recorder:
                results = call.attributes[name]()
            found = accumulate(recorder.calls, results, gradients, call.captured)
            pairs = zip(found, call.captured, strict=True)
            full = [zeros_like(value) if g is None else g for g, value in pairs]
            if reach is None:
                return full
            come = [reach.comes(g) for g in found]
            sure[:] = [known and one is True for known, one in zip(sure, come, strict=True)]
            return [*full, *map(as_value, come)]

        return run

    count = len(call.captured)
    outputs = count if reach is None else 2 * count
    made = branch(call.inputs[0], back("then_branch"), back("else_branch"), outputs)
    found, come = made[:count], made[count:]
    if reach is not None:
        before = reach.any_of(gradients)
        for known, g, one in zip(sure, found, come, strict=True):
            reach.note(g, before if known else both(before, one))
    return [None, *found]


OPERATORS = (OpDef("If", _infer_if, _if, data=_if_data, vjp=_if_vjp, traits=Trait.FREE),)
