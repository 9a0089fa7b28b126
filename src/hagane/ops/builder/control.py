"""Branches and loops over values: bodies are Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from hagane.errors import TypeInferenceError
from hagane.graph.types import SequenceType, TensorType, Type, to_ir_shape, to_ir_type
from hagane.graph.walk import all_nodes
from hagane.ops.builder.apply import op
from hagane.ops.builder.interpreter import Call, Interpreter, interpreting

if TYPE_CHECKING:
    from hagane.ops.builder.nodes import Nodes

Body = Callable[..., Sequence[Any]]


def branch(condition: Any, then: Body, otherwise: Body, outputs: int) -> tuple[Any, ...]:
    """Return the results of one of two functions without arguments.

    Args:
        condition: One truth value.
        then: Returns ``outputs`` values where the condition holds.
        otherwise: Returns as many where it does not.
        outputs: How many values each returns.
    """
    found = op("If", condition, then_branch=then, else_branch=otherwise, outputs=outputs)
    return found if isinstance(found, tuple) else (found,)


def loop(
    limit: Any, going: Any, states: Sequence[Any], body: Body, stacked: int = 0
) -> tuple[Any, ...]:
    """Return the last states of a loop, and the values that its iterations made, stacked.

    Args:
        limit: The most iterations, int64, or None.
        going: Whether to begin, or None.
        states: The values that iterations hand on.
        body: Called with the number of the iteration, whether it goes on, and the states; returns
            whether to go on, the new states, and ``stacked`` values.
        stacked: How many values of all iterations are stacked along a new first axis.
    """
    count = len(states) + stacked
    found = op("Loop", limit, going, *states, body=body, outputs=count)
    return found if isinstance(found, tuple) else (found,)


def scan(
    states: Sequence[Any],
    scanned: Sequence[Any],
    body: Body,
    stacked: int = 0,
    *,
    axis: int = 0,
    reverse: bool = False,
) -> tuple[Any, ...]:
    """Return the last states of a walk along an axis, and the values that it made, stacked.

    Args:
        states: The values that iterations hand on.
        scanned: Values of one size along the axis.
        body: Called with the states and one slice of each scanned value; returns the new states
            and ``stacked`` values.
        stacked: How many values of all iterations are stacked along a new first axis.
        axis: The axis of the scanned values.
        reverse: Whether to walk from the end; stacked values lie in the order of the axis.
    """
    found = op(
        "Scan",
        *states,
        *scanned,
        body=body,
        num_scan_inputs=len(scanned),
        scan_input_axes=[axis] * len(scanned),
        scan_input_directions=[int(reverse)] * len(scanned),
        scan_output_directions=[int(reverse)] * stacked,
        outputs=len(states) + stacked,
    )
    return found if isinstance(found, tuple) else (found,)


def trace_body(outer: Nodes, call: Call, name: str) -> ir.Graph:
    """Return a body of a call as a graph, for operands of the call's types."""
    from hagane.ops.builder.nodes import Nodes

    types = argument_types(outer, call)
    graph = ir.Graph([], [], nodes=[], name=f"{outer.name} {name}".strip())
    inner = Nodes(graph, outer.types, name=outer.name, outer=outer, typed=outer.typed)
    arguments = []
    settled = [outer.type_of(value) for value in getattr(call.attributes[name], "inputs", ())]
    for (label, start), later in zip_longest(types, settled[: len(types)]):
        type_ = _lasting(start, later) if call.op.name == "Loop" else start
        value = ir.Value(name=_free(inner, label))
        if type_ is not None:
            value.type = to_ir_type(type_)
            value.shape = to_ir_shape(type_.shape) if isinstance(type_, TensorType) else None
            inner.types.types[value] = type_
            inner.note_sizes(value)
        graph.inputs.append(value)
        arguments.append(value)
    with interpreting(inner):
        results = call.attributes[name](*arguments)
        for result in results:
            graph.outputs.append(op("Identity", result))
    if call.op.name == "Loop":  # sizes of the first iteration say nothing of later ones
        for node in all_nodes(graph):
            for value in node.outputs:
                value.shape = None
    return graph


def _lasting(start: Type | None, settled: Type | None) -> Type | None:
    """Return the type of a state in any iteration, given those in the first and of a like loop."""
    from hagane.ops.control.growth import CHANGING

    if not isinstance(start, TensorType) or not isinstance(settled, TensorType):
        return start
    known = None if start.shape is None else len(start.shape)
    if settled.shape is None or len(settled.shape) != known or start.dtype != settled.dtype:
        return start
    pairs = zip(start.shape or (), settled.shape, strict=True)
    return TensorType(start.dtype, tuple(b if str(b).startswith(CHANGING) else a for a, b in pairs))


def _free(inner: Nodes, label: str) -> str:
    name, number = label, 0
    while inner._is_taken(name):
        number += 1
        name = f"{label}_{number}"
    return name


def argument_types(outer: Interpreter, call: Call) -> list[tuple[str, Type | None]]:
    """Return the names and types of the arguments of a call's bodies."""
    given = [None if value is None else outer.type_of(value) for value in call.inputs]
    if call.op.name == "If":
        return []
    if call.op.name == "Loop":
        states = [(f"state_{i}", type_) for i, type_ in enumerate(given[2:])]
        number = ("iteration", TensorType(ir.DataType.INT64, ()))
        return [number, ("going", TensorType(ir.DataType.BOOL, ())), *states]
    if call.op.name == "Scan":
        scanned = call.attr("num_scan_inputs")
        count = len(given) - scanned
        axes = call.attr("scan_input_axes") or (0,) * scanned
        states = [(f"state_{i}", type_) for i, type_ in enumerate(given[:count])]
        parts = zip(given[count:], axes, strict=True)
        return [*states, *((f"item_{i}", _item(*part)) for i, part in enumerate(parts))]
    if call.op.name == "SequenceMap":
        items = [t.element if isinstance(t, SequenceType) else t for t in given]
        return [(f"item_{i}", type_) for i, type_ in enumerate(items)]
    if call.op.name == "OwnGradient":
        return [(f"gradient_{i}", type_) for i, type_ in enumerate(given[: call.attr("results")])]
    raise TypeInferenceError(f"{call.op.name}: its bodies have to be graphs")


def _item(type_: Type | None, axis: int) -> Type | None:
    """Return the type of one iteration's slice of a scanned value."""
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    axis %= len(type_.shape)
    return TensorType(type_.dtype, (*type_.shape[:axis], *type_.shape[axis + 1 :]))
