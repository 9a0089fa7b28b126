"""Write out the iterations of short loops whose values change their ranks."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError
from hagane.ops.builder import op
from hagane.ops.control.loop import hands_on, is_true
from hagane.ops.inference import GraphTypes, infer_added
from hagane.passes.control.inline_branches import clear, hoist_initializers, move_in_front
from hagane.passes.edit import (
    add_initializer,
    building,
    constant,
    name_of,
    remove,
    replace_value,
    type_of,
)

# The most iterations that are written out.
_MOST = 16


def unroll_loops(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Put the iterations of a Loop one behind the other, and remove it; return where.

    The number of iterations must be known, 16 at most, and nothing but it may end the loop. Loops
    whose states have one rank in all iterations stay: they are compiled as they are. So do loops
    whose states are sequences.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "Loop" or node.domain != "":
            continue
        count = _iterations(node, types)
        if count and _changes_ranks(node, types):
            changed.append(name_of(node))
            _unroll(graph, node, count, types)
    return changed


def _iterations(node: ir.Node, types: GraphTypes) -> int | None:
    """Return the number of iterations, if it is known and small."""
    body = node.attributes["body"].as_graph()
    going, goes_on = node.inputs[1], hands_on(body.outputs[0])
    if going is not None and not is_true(constant(going, types)):
        return None
    if goes_on is not body.inputs[1] and not is_true(constant(goes_on, types)):
        return None
    limit = constant(node.inputs[0], types)
    if limit is None or limit.size != 1:
        return None
    count = int(limit.reshape(-1)[0])
    return count if count <= _MOST else None


def _changes_ranks(node: ir.Node, types: GraphTypes) -> bool:
    """Whether a state has a rank at first and, as inference found, none that holds for all."""
    body = node.attributes["body"].as_graph()
    states = list(zip(node.inputs[2:], body.inputs[2:], strict=True))
    tensors = all(isinstance(before.type, ir.TensorType) for _, before in states)
    return tensors and any(
        type_of(start, types) is not None and type_of(before, types) is None
        for start, before in states
    )


def _unroll(graph: ir.Graph, node: ir.Node, count: int, types: GraphTypes) -> None:
    states = list(node.inputs[2:])
    n = len(states)
    body = node.attributes["body"].as_graph()
    stacked: list[list[ir.Value]] = [[] for _ in node.outputs[n:]]
    hoist_initializers(graph, body)
    going = add_initializer(graph, f"{name_of(node)} goes on", np.array(True))
    for turn in range(count):
        made = body.clone(allow_outer_scope_values=True)
        number = add_initializer(graph, f"{name_of(node)} {turn}", np.array(turn))
        given = dict(zip(made.inputs, (number, going, *states), strict=True))
        for before, now in given.items():
            for use in list(before.uses()):
                use.node.replace_input_with(use.idx, now)
        nodes = list(made)
        results = [given.get(v, v) for v in move_in_front(graph, node, made)]
        for inner in nodes:
            inner.name = f"{inner.name} {turn}" if inner.name else None
            with suppress(TypeInferenceError):  # inference of the whole says it
                infer_added(inner, types)
        states = list(results[1 : 1 + n])
        for items, item in zip(stacked, results[1 + n :], strict=True):
            assert item is not None
            items.append(item)
    with building(graph, types, node, node.name or ""):
        rows = [
            op("Concat", *(op("Unsqueeze", item, [0]) for item in items), axis=0)
            for items in stacked
        ]
    for old, new in zip(node.outputs, [*states, *rows], strict=True):
        assert new is not None
        replace_value(graph, types, old, new)
    remove(graph, [node])
    clear(body)
