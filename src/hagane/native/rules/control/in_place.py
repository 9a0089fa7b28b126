"""States of loops that iterations write a part of: they stay where they are.

An iteration that sets some elements of a state, by ScatterND or ScatterElements, on both sides of a
branch or in a loop of its own, copies nothing where all that reads the old state comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from hagane.graph.walk import bodies, captured
from hagane.native.rules.control.bodies import WRITERS
from hagane.ops.control.loop import hands_on
from hagane.ops.registry import operators
from hagane.ops.traits import Trait
from hagane.symbolic import Dim

# Operators whose results may lie in the memory of their input.
_VIEWS = frozenset(
    {"BitCast", "Reshape", "Transpose", "Slice", "Squeeze", "Unsqueeze", "Expand", "Identity",
     "Split", "Flatten", "SplitToSequence", "SequenceAt", "SequenceConstruct", "Optional",
     "OptionalGetElement"}
)  # fmt: skip


def is_written_in_place(graph: ir.Graph, before: ir.Value, after: ir.Value) -> bool:
    """Whether iterations may write the next state over the one before.

    Args:
        graph: The body.
        before: The state before an iteration.
        after: The state behind it.
    """
    written = False
    for node, old, place in _steps(graph, after):
        if old is None or not _is_read_first(graph, old, node, place):
            return False
        written |= node.op_type != "Identity"
        if old is before:
            return written
    return False


def is_appended_to(
    graph: ir.Graph, before: ir.Value, after: ir.Value, shape: Sequence[Dim]
) -> bool:
    """Whether iterations only add to the end of a state, so that what it has may stay where it is.

    Args:
        graph: The body.
        before: The state before an iteration.
        after: The state behind it.
        shape: Of the state before an iteration.
    """
    node = after.producer()
    if node is None or node.graph is not graph or node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type != "Concat" or len(node.inputs) != 2 or node.inputs[0] is not before:
        return False
    axis = node.attributes["axis"].as_int() % len(shape)
    returned = sum(value is after for value in graph.outputs)
    return returned == 1 and all(dim == 1 for dim in shape[:axis])


def _steps(
    graph: ir.Graph, value: ir.Value
) -> Iterator[tuple[ir.Node, ir.Value | None, int | None]]:
    """Yield the nodes that write a value, the last first; the value and input that each writes into.

    A branch has no input for it.
    """
    while True:
        node = value.producer()
        if node is None or node.graph is not graph:
            return
        old, place = _written_by(node, value)
        yield node, old, place
        if old is None:
            return
        value = old


def _written_by(node: ir.Node, value: ir.Value) -> tuple[ir.Value | None, int | None]:
    """Return the value that a node writes into, None if it makes a new one, and the input that it is."""
    if node.domain not in ("", "ai.onnx"):
        return None, None
    place = node.outputs.index(value)
    if node.op_type in WRITERS or node.op_type == "Identity":
        return node.inputs[0], 0
    if node.op_type == "If":
        graphs = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        ends = [_outside(graph, graph.outputs[place]) for graph in graphs]
        return (ends[0] if ends[0] is ends[1] else None), None
    if node.op_type == "Loop" and place < len(node.inputs) - 2:
        body = node.attributes["body"].as_graph()
        before, after = body.inputs[2 + place], body.outputs[1 + place]
        if hands_on(after) is not before and is_written_in_place(body, before, after):
            return node.inputs[2 + place], 2 + place
    return None, None


def _outside(graph: ir.Graph, value: ir.Value) -> ir.Value | None:
    """Return the value from outside that a branch writes into, or hands on."""
    for node, old, place in _steps(graph, value):
        if old is None or not _is_read_first(graph, old, node, place):
            return None
        value = old
    return None if value.graph is graph and value.producer() is None else value


def _is_read_first(graph: ir.Graph, old: ir.Value, writer: ir.Node, place: int | None) -> bool:
    """Whether all that reads a value in a graph comes before the node that writes into it.

    Args:
        graph: The graph.
        old: The value.
        writer: The node.
        place: The input of the node that is the value; None if its bodies write what they capture.
    """
    order = {node: number for number, node in enumerate(graph)}
    reading = _reading(graph)
    waiting, seen = [(old, True)], {old}
    while waiting:
        value, is_view = waiting.pop()
        if value in graph.outputs:
            return False
        for node in reading.get(value, ()):
            # (Branches that write a value were asked themselves; iterations write it for the next one.)
            asked = node is writer and ((place is None and value is old) or not is_view)
            if order[node] > order[writer] or (node is writer and not asked):
                return False
        for use in value.uses():
            node = use.node
            if node not in order:
                continue
            if node is writer:
                if is_view and not (value is old and use.idx == place):
                    return False
            elif order[node] > order[writer]:
                return False
            else:
                for made in node.outputs:
                    aliased = is_view and _is_view(node, use.idx, made)
                    if made not in seen and (aliased or _is_elementwise(node)):
                        waiting.append((made, aliased))
                        seen.add(made)
    return True


def _reading(graph: ir.Graph) -> dict[ir.Value, list[ir.Node]]:
    """Return the nodes of a graph whose bodies read a value from outside."""
    found: dict[ir.Value, list[ir.Node]] = {}
    for node in graph:
        for body in bodies(node):
            for value in dict.fromkeys(captured(body)):
                found.setdefault(value, []).append(node)
    return found


def _is_elementwise(node: ir.Node) -> bool:
    """Whether the kernel of a later node may compute a node."""
    found = operators().get((node.domain, node.op_type))
    return found is not None and Trait.ELEMENTWISE in found.traits


def _is_view(node: ir.Node, place: int, made: ir.Value) -> bool:
    """Whether a result may lie in the memory of an input; an item at a place that varies is a copy."""
    if node.op_type in ("Loop", "Scan"):
        first, skipped = (2, 1) if node.op_type == "Loop" else (0, 0)
        body, number = node.attributes["body"].as_graph(), node.outputs.index(made)
        inputs, outputs = body.inputs[first:], body.outputs[skipped:]
        return place == first + number and hands_on(outputs[number]) is inputs[number]
    if node.op_type == "Gather":
        return place == 0 and not _varies(node.inputs[1])
    return node.op_type in _VIEWS


def _varies(value: ir.Value | None) -> bool:
    """Whether a value depends on the number of the iteration, or on a state that changes."""
    waiting, seen = [value], set[ir.Value | None]()
    while waiting:
        one = waiting.pop()
        if one is None or one in seen:
            continue
        seen.add(one)
        node = one.producer()
        if node is not None:
            waiting += node.inputs
        elif one.is_graph_input() and isinstance(one.graph, ir.Graph):
            inputs, outputs = list(one.graph.inputs), one.graph.outputs
            place = inputs.index(one)
            numbered = len(inputs) > 1 and inputs[1].dtype == ir.DataType.BOOL  # as those of Loop
            if numbered and place == 0 and one.dtype == ir.DataType.INT64:
                return True
            if numbered and place > 1 and hands_on(outputs[place - 1]) is not one:
                return True
    return False


__all__ = ["is_appended_to", "is_written_in_place"]
