"""States of loops that iterations write a part of: they stay where they are.

An iteration that sets some elements of a state, by ScatterND or ScatterElements, on both sides of a
branch or in a loop of its own, copies nothing where all that reads the old state comes first.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from hagane.graph.walk import all_nodes, bodies
from hagane.native.rules.control.bodies import WRITERS
from hagane.ops.control.loop import hands_on
from hagane.ops.registry import operators
from hagane.ops.traits import Trait

# Operators whose results may lie in the memory of their input.
_VIEWS = frozenset(
    {"Reshape", "Transpose", "Slice", "Squeeze", "Unsqueeze", "Expand", "Identity", "Split",
     "Flatten", "Gather"}
)  # fmt: skip


def is_written_in_place(graph: ir.Graph, before: ir.Value, after: ir.Value) -> bool:
    """Whether iterations may write the next state over the one before.

    Args:
        graph: The body.
        before: The state before an iteration.
        after: The state behind it.
    """
    written = False
    for node, old in _steps(graph, after):
        if old is None or not _is_read_first(graph, old, node):
            return False
        written |= node.op_type != "Identity"
        if old is before:
            return written
    return False


def _steps(graph: ir.Graph, value: ir.Value) -> Iterator[tuple[ir.Node, ir.Value | None]]:
    """Yield the nodes that write a value, the last first, and the value that each writes into."""
    while True:
        node = value.producer()
        if node is None or node.graph is not graph:
            return
        old = _written_by(node, value)
        yield node, old
        if old is None:
            return
        value = old


def _written_by(node: ir.Node, value: ir.Value) -> ir.Value | None:
    """Return the value that a node writes into; None if it makes a new one."""
    if node.domain not in ("", "ai.onnx"):
        return None
    place = node.outputs.index(value)
    if node.op_type in WRITERS or node.op_type == "Identity":
        return node.inputs[0]
    if node.op_type == "If":
        graphs = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        ends = [_outside(graph, graph.outputs[place]) for graph in graphs]
        return ends[0] if ends[0] is ends[1] else None
    if node.op_type == "Loop" and place < len(node.inputs) - 2:
        body = node.attributes["body"].as_graph()
        before, after = body.inputs[2 + place], body.outputs[1 + place]
        if hands_on(after) is not before and is_written_in_place(body, before, after):
            return node.inputs[2 + place]
    return None


def _outside(graph: ir.Graph, value: ir.Value) -> ir.Value | None:
    """Return the value from outside that a branch writes into, or hands on."""
    for node, old in _steps(graph, value):
        if old is None or not _is_read_first(graph, old, node):
            return None
        value = old
    return None if value.graph is graph and value.producer() is None else value


def _is_read_first(graph: ir.Graph, old: ir.Value, writer: ir.Node) -> bool:
    """Whether all nodes of a graph that read a value come before the one that writes into it."""
    order = dict(_numbered(graph))
    waiting, seen = [(old, True)], {old}
    while waiting:
        value, is_view = waiting.pop()
        if value in graph.outputs:
            return False
        for use in value.uses():
            number = order.get(use.node)
            if use.node is writer:
                if is_view and not (value is old and _writes_into(writer, use.idx)):
                    return False
            elif number is not None and number > order[writer]:
                return False
            elif use.node.graph is graph and _is_late(use.node):
                views = is_view and _is_view(use.node)
                waiting += [(made, views) for made in use.node.outputs if made not in seen]
                seen.update(use.node.outputs)
    return True


def _numbered(graph: ir.Graph) -> Iterator[tuple[ir.Node, int]]:
    """Yield the nodes of a graph and those of their bodies, with the place of the former."""
    for number, node in enumerate(graph):
        yield node, number
        for body in bodies(node):
            yield from ((inner, number) for inner in all_nodes(body))


def _writes_into(node: ir.Node, place: int) -> bool:
    """Whether a node writes into an input, or hands it on to its body, which is asked apart."""
    return place == 0 if node.op_type != "Loop" else place > 1


def _is_late(node: ir.Node) -> bool:
    """Whether the kernel of a later node may read what a node reads: a view, or part of a chain."""
    found = operators().get((node.domain, node.op_type))
    return _is_view(node) or (found is not None and Trait.ELEMENTWISE in found.traits)


def _is_view(node: ir.Node) -> bool:
    """Whether a result may lie in the memory of the first input; one at a place that varies is a copy."""
    return node.op_type in _VIEWS and not (node.op_type == "Gather" and _varies(node.inputs[1]))


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


__all__ = ["is_written_in_place"]
