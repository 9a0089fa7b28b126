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
    return (*state, *map(stack, scanned))


def stack(items: list[RuntimeValue]) -> Array:
    """Return the tensors of all iterations along a new first axis."""
    if not items:
        # Neither rank nor element type of what was never computed is known here.
        return np.zeros((0,), dtype=np.float32)
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
    # A state that changes is widened, then the body is looked at again with the wider type: each
    # pass can only lose dimensions or a rank, so this ends.
    for _ in range(8):
        inputs = [step, going, *state]
        outputs, _ = ctx.infer_graph(body, inputs, [None] * len(inputs))
        wider = _widen(ctx, state, outputs[1 : 1 + n_state])
        if wider == state:
            break
        state = wider
    count = _trip_count(ctx)
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


def _trip_count(ctx: InferContext) -> Any:
    """Return the number of iterations if the limit is known and no condition can stop early."""
    limit = ctx.dims(0) if ctx.has(0) and ctx.data(0) is not None else None
    body: ir.Graph = ctx.attr("body")
    outcome = body.outputs[0]
    passed = outcome is body.inputs[1]
    producer = outcome.producer()
    while producer is not None and producer.op_type == "Identity":
        source = producer.inputs[0]
        passed = source is body.inputs[1]
        producer = None if source is None else source.producer()
    constant = producer is not None and producer.op_type == "Constant"
    starts = not ctx.has(1) or ((known := ctx.constant(1)) is not None and bool(known.ravel()[0]))
    return limit[0] if limit and starts and (passed or constant) else None


OPERATORS = (OpDef("Loop", _infer_loop, _loop),)
