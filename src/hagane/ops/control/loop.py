"""Loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType, Type
from hagane.ops.context import InferContext
from hagane.ops.control.join import join, same_kind
from hagane.ops.definition import Array, OpDef, RuntimeValue
from hagane.ops.values import strings
from hagane.symbolic import Dim


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
    step = 0
    while going and (count is None or step < count):
        results = body(np.array(step, dtype=np.int64), np.array(going), *state)
        going = bool(np.asarray(results[0]).ravel()[0])
        state = tuple(results[1 : 1 + len(state)])
        for items, item in zip(scanned, results[1 + len(state) :], strict=True):
            items.append(item)
        step += 1
    first = 1 + len(state)
    return (*state, *(stack(items, body, first + i) for i, items in enumerate(scanned)))


def stack(items: list[RuntimeValue], body: Callable[..., list[RuntimeValue]], index: int) -> Array:
    """Return the tensors of all iterations along a new first axis.

    Args:
        items: One an iteration.
        body: What computed them; its ``nothing`` returns the stack of none of an output, if it
            has such a method.
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
    state: list[Type | None] = [ctx.type(i + 2) if ctx.has(i + 2) else None for i in range(n_state)]
    outputs: list[Type | None] = []
    known: list[Array | None] = []
    # A state that changes is widened, then the body is looked at again with the wider type: each
    # pass can only lose dimensions or a rank, so this ends.
    for _ in range(8):
        inputs = [step, going, *state]
        outputs, known = ctx.infer_graph(body, inputs, [None] * len(inputs))
        wider = _widen(ctx, state, outputs[1 : 1 + n_state])
        if wider == state:
            break
        state = wider
    count = _trip_count(ctx, known[0])
    scanned = []
    for found in outputs[1 + n_state :]:
        if isinstance(found, TensorType):
            inner = found.shape
            size = ctx.fresh("steps") if count is None else count
            found = TensorType(found.dtype, None if inner is None else (size, *inner))
        scanned.append(found)
    return [*state, *scanned]


def _widen(
    ctx: InferContext, before: Sequence[Type | None], after: Sequence[Type | None]
) -> list[Type | None]:
    result: list[Type | None] = []
    for index, (left, right) in enumerate(zip(before, after, strict=True)):
        if not same_kind(left, right):
            ctx.fail(f"loop state {index} begins as {left} and becomes {right}")
        result.append(join(left, right, ctx.fresh))
    return result


def _trip_count(ctx: InferContext, goes_on: Array | None) -> Dim | None:
    """Return the number of iterations if the limit is known and no condition can stop early."""
    limit = ctx.dims(0) if ctx.has(0) and ctx.data(0) is not None else None
    starts = not ctx.has(1) or is_true(ctx.constant(1))
    always = is_true(goes_on) or hands_on(ctx.attr("body").outputs[0]) is ctx.attr("body").inputs[1]
    return limit[0] if limit and starts and always else None


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


OPERATORS = (OpDef("Loop", _infer_loop, _loop),)
