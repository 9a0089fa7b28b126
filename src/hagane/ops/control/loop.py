"""Loop."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType, Type
from hagane.ops.builder import Call, is_continuous, loop, op
from hagane.ops.context import InferContext
from hagane.ops.control.back import Iterations, changing, walk_back
from hagane.ops.control.growth import (
    CHANGING,
    Growth,
    Place,
    growths,
    shared_names,
    with_sizes,
)
from hagane.ops.control.join import join, same_kind
from hagane.ops.definition import Array, OpDef, RuntimeValue
from hagane.ops.functions.tensors.shapes import zeros_like
from hagane.ops.traits import Trait
from hagane.ops.values import strings
from hagane.symbolic import Dim, Expr, evaluate, symbols_of


def _loop(
    limit: Array | None,
    condition: Array | None,
    *state: RuntimeValue,
    body: Callable[..., list[RuntimeValue]],
    n_outputs: int,
) -> tuple[RuntimeValue, ...]:
    count = None if limit is None else int(limit.ravel()[0])
    going = True if condition is None else bool(condition.ravel()[0])
    scanned: list[list[RuntimeValue]] = [[] for _ in range(n_outputs - len(state))]
    step, first, on = 0, 1 + len(state), np.array(True)
    while going and (count is None or step < count):
        results = body(np.array(step, dtype=np.int64), on, *state)
        goes_on = results[0]
        if goes_on is not on:
            going = bool(np.asarray(goes_on).ravel()[0])
        state = tuple(results[1:first])
        if scanned:
            for items, item in zip(scanned, results[first:], strict=True):
                items.append(item)
        step += 1
    return (*state, *(stack(items, body, first + i) for i, items in enumerate(scanned)))


def stack(items: list[RuntimeValue], body: Callable[..., list[RuntimeValue]], index: int) -> Array:
    """Return the tensors of all iterations along a new first axis.

    Args:
        items: One an iteration.
        body: The interpreter that computed them; its ``nothing`` returns the stack of none of an
            output, if it has such a method.
        index: Which output of the body they were.
    """
    if not items:
        nothing: Callable[[int], Array] | None = getattr(body, "nothing", None)
        return np.zeros((0,), dtype=np.float32) if nothing is None else nothing(index)
    arrays = [np.asarray(item) for item in items]
    if arrays[0].dtype == object:
        flat = strings([text for array in arrays for text in array.ravel()])
        return flat.reshape(len(arrays), *arrays[0].shape)
    return np.stack(arrays)


def _infer_loop(ctx: InferContext) -> Sequence[Any]:
    body: ir.Graph = ctx.attr("body")
    n_state = ctx.n_inputs - 2
    if len(body.inputs) != n_state + 2:
        ctx.fail(f"expected the body to have {n_state + 2} inputs, got {len(body.inputs)}")
    if len(body.outputs) != ctx.n_outputs + 1:
        ctx.fail(f"expected the body to have {ctx.n_outputs + 1} outputs, got {len(body.outputs)}")
    step = TensorType(ir.DataType.INT64, ())
    going = TensorType(ir.DataType.BOOL, ())
    starts = [ctx.type(i + 2) if ctx.has(i + 2) else None for i in range(n_state)]

    def infer(state: Sequence[Type | None]) -> _Found:
        inputs = [step, going, *state]
        types, values = ctx.infer_graph(body, inputs, [None] * len(inputs))
        return _Found(types[1 : 1 + n_state], types[1 + n_state :], values[0])

    state, opened, found = _settle(ctx, starts, infer)
    count = _trip_count(ctx, found.goes_on)
    final = _final_sizes(growths(starts, state, found.states), count)
    final |= {name: ctx.fresh() for name in opened if name not in final}
    scanned = []
    for type_ in found.items:
        if isinstance(type_, TensorType):
            # An item of another shape in each iteration fits only where there is one.
            type_ = with_sizes(type_, {name: ctx.fresh() for name in opened})
            assert isinstance(type_, TensorType)
            inner = type_.shape
            size = ctx.fresh("steps") if count is None else count
            type_ = TensorType(type_.dtype, None if inner is None else (size, *inner))
        scanned.append(type_)
    return [*(with_sizes(type_, final) for type_ in state), *scanned]


@dataclass(frozen=True, slots=True)
class _Found:
    """Types and contents of a body's outputs, as far as they are known."""

    states: Sequence[Type | None]
    items: Sequence[Type | None]
    goes_on: Array | None


def _settle(
    ctx: InferContext,
    starts: Sequence[Type | None],
    infer: Callable[[Sequence[Type | None]], _Found],
) -> tuple[Sequence[Type | None], list[str], _Found]:
    """Return types of states that hold in every iteration, names in them, and the body's outputs.

    A state that changes is widened, then the body is looked at again with the wider type: each time
    can only lose dimensions or a rank, so this ends.
    """
    opened: list[Dim] = []

    def fresh() -> Expr:
        opened.append(made := ctx.fresh(CHANGING))
        return made

    state, found = starts, infer(starts)
    for _ in range(8):
        wider = _widen(ctx, state, found.states, fresh, opened)
        if wider == list(state):
            break
        state = wider
        found = infer(state)
    grown = growths(starts, state, found.states)
    if shared := shared_names(grown):
        closer = [with_sizes(type_, shared) for type_ in state]
        again = infer(closer)
        after = growths(starts, closer, again.states)
        if all(
            place in after and after[place].after == evaluate(grown[place].after, shared)
            for place in grown
        ):
            state, found = closer, again
        else:
            found = infer(state)
    return state, [str(dim) for dim in opened], found


def _widen(
    ctx: InferContext,
    before: Sequence[Type | None],
    after: Sequence[Type | None],
    fresh: Callable[[], Expr],
    opened: Container[Dim],
) -> list[Type | None]:
    result: list[Type | None] = []
    for index, (left, right) in enumerate(zip(before, after, strict=True)):
        if not same_kind(left, right):
            ctx.fail(f"loop state {index} begins as {left} and becomes {right}")
        result.append(join(left, right, fresh, opened))
    return result


def _final_sizes(grown: Mapping[Place, Growth], count: Dim | None) -> dict[str, Dim]:
    """Return sizes after the last iteration, by the names that they have before one."""
    if count is None or (isinstance(count, Expr) and {str(count)} != symbols_of(count)):
        return {}  # (an expression might be negative)
    return {
        str(growth.before): growth.start + growth.step * count
        for growth in grown.values()
        if isinstance(growth.step, int) and {str(growth.before)} == symbols_of(growth.before)
    }


def _trip_count(ctx: InferContext, goes_on: Array | None) -> Dim | None:
    """Return the number of iterations if the limit is known and no condition can stop early."""
    limit = ctx.dims(0) if ctx.has(0) and ctx.data(0) is not None else None
    starts = not ctx.has(1) or is_true(ctx.constant(1))
    always = is_true(goes_on) or hands_on(ctx.attr("body").outputs[0]) is ctx.attr("body").inputs[1]
    if not (limit and starts and always):
        return None
    return limit[0] if isinstance(limit[0], Expr) else max(0, limit[0])


def is_true(known: Array | None) -> bool:
    """Whether a value is known to be true."""
    return known is not None and known.dtype != object and bool(known.ravel()[0])


def hands_on(value: ir.Value) -> ir.Value:
    """Return the value that a chain of Identity nodes hands on."""
    while (node := value.producer()) is not None and node.op_type == "Identity":
        (source,) = node.inputs
        if source is None:
            break
        value = source
    return value


def _loop_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Run the loop again for the states of each iteration, then walk back over the iterations."""
    from hagane.ops.gradient.reach import watched

    limit, going, *states = call.inputs
    count, body = len(states), call.attributes["body"]

    def noting(i: Any, on: Any, *before: Any) -> Sequence[Any]:
        results = body(i, on, *before)
        return [*results[: 1 + count], *before, i]

    def listing(i: Any, on: Any, *before: Any) -> Sequence[Any]:
        now, lists = before[:count], before[count:]
        results = body(i, on, *now)
        ends = [results[1 + place] for place in apart]
        longer = [op("SequenceInsert", *pair) for pair in zip(lists, ends, strict=True)]
        stacked = [state for place, state in enumerate(now) if place not in apart]
        return [*results[: 1 + count], *longer, *stacked, i]

    vars(noting)["inputs"] = vars(listing)["inputs"] = getattr(body, "inputs", ())
    noted = loop(limit, going, states, noting, stacked=count + 1)
    apart = changing(call, noted[count:-1], states)
    if apart:  # no stack holds them
        lists = [op("SequenceConstruct", states[place]) for place in apart]
        stacked = count - len(apart) + 1
        noted = loop(limit, going, [*states, *lists], listing, stacked=stacked)
    reach = watched()
    comes = True if reach is None else reach.any_of(gradients)
    kept = [*noted[count:-1]]
    order = [*apart, *(place for place in range(count) if place not in apart)]
    iterations = Iterations(
        lambda t, now, _: _parts(body(t, np.array(True), *now), count),
        op("Squeeze", op("Shape", noted[-1]), [0]),
        [kept[order.index(place)] for place in range(count)],
        (),
        call.captured,
        reach is not None and reach.is_positive(noted[-1]),
    )
    last = [
        zeros_like(state) if g is None and is_continuous(state) else g
        for g, state in zip(gradients[:count], noted[:count], strict=True)
    ]
    of_states, _, of_captured = walk_back(iterations, last, gradients[count:], comes)
    return [None, None, *of_states, *of_captured]


def _parts(results: Sequence[Any], count: int) -> tuple[Sequence[Any], Sequence[Any]]:
    return results[1 : 1 + count], results[1 + count :]


OPERATORS = (OpDef("Loop", _infer_loop, _loop, traits=Trait.FREE, vjp=_loop_vjp),)
