"""Lists that a loop only appends to, as scan outputs of the Loop.

A list in a loop is a state to which each iteration concatenates its items: the whole list is copied
in each. Where nothing in the body reads the list and every iteration appends equally many items,
the Loop stacks them by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType, to_ir_shape, to_ir_type
from hagane.graph.walk import bodies
from hagane.ops.builder.node import node_of
from hagane.ops.builder.nodes import Nodes
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import operators
from hagane.symbolic import Dim


@dataclass(frozen=True, slots=True)
class _Grown:
    """A state of a Loop that each iteration appends to.

    Attributes:
        place: Its place among the states.
        items: The items that an iteration appends, each with a first axis of size 1, in order.
        nodes: The nodes that append, the last one first.
    """

    place: int
    items: tuple[ir.Value, ...]
    nodes: tuple[ir.Node, ...]


def scan_appended(graph: ir.Graph, types: GraphTypes, fresh: Callable[[str], Dim]) -> None:
    """Make scan outputs of the states that iterations only append to, in all loops of a graph.

    Args:
        graph: The main graph, changed in place.
        types: The types of its values; those of new ones are added.
        fresh: Makes names of sizes.
    """
    _scan_within(graph, Nodes(graph, types), fresh)


def _scan_within(graph: ir.Graph, root: Nodes, fresh: Callable[[str], Dim]) -> None:
    for node in list(graph):
        for body in bodies(node):
            _scan_within(body, root, fresh)
        if node.op_type == "Loop" and node.domain == "":
            (body,) = bodies(node)
            states = range(len(node.inputs) - 2)
            grown = [g for place in states if (g := _grown(body, place, root.types)) is not None]
            if grown:
                _rewrite(graph, node, body, grown, root, fresh)


def _grown(body: ir.Graph, place: int, types: GraphTypes) -> _Grown | None:
    """Return the items that iterations append to a state; None for other uses."""
    state, value = body.inputs[2 + place], body.outputs[1 + place]
    if value is state or sum(out is value for out in body.outputs) > 1 or value.uses():
        return None
    items: list[ir.Value] = []
    nodes: list[ir.Node] = []
    while value is not state:
        node = value.producer()
        if node is None or node.graph is not body or (nodes and not _is_read_once(value)):
            return None
        before, *added = node.inputs
        if node.op_type not in ("Concat", "Identity") or before is None:
            return None
        if added and node.attributes["axis"].as_int() != 0:
            return None
        found = [item for item in added if item is not None and _is_single(item, types)]
        if len(found) < len(added):
            return None
        items[:0] = found
        nodes.append(node)
        value = before
    if not items or not _is_read_once(state):
        return None
    return _Grown(place, tuple(items), tuple(nodes))


def _is_read_once(value: ir.Value) -> bool:
    return len(tuple(value.uses())) == 1 and not value.is_graph_output()


def _is_single(value: ir.Value, types: GraphTypes) -> bool:
    found = types.types.get(value)
    shape = found.shape if isinstance(found, TensorType) else None
    return bool(shape is not None and len(shape) > 0 and shape[0] == 1)


def _rewrite(
    graph: ir.Graph,
    node: ir.Node,
    body: ir.Graph,
    grown: list[_Grown],
    root: Nodes,
    fresh: Callable[[str], Dim],
) -> None:
    """Put a Loop with scan outputs in place of one with lists among its states."""
    types = root.types
    away = {one.place for one in grown}
    count = len(node.inputs) - 2
    kept = [place for place in range(count) if place not in away]
    others = range(count, len(node.outputs))
    given = [node.inputs[0], node.inputs[1], *(node.inputs[2 + place] for place in kept)]
    firsts = [node.inputs[2 + one.place] for one in grown]
    results = list(body.outputs)
    body.outputs.clear()
    scanned = [_scanned(body, one, results[1 + one.place], types) for one in grown]
    body.outputs.extend([results[0], *(results[1 + place] for place in (*kept, *others)), *scanned])
    for one in grown:
        for spent in one.nodes:
            body.remove(spent, safe=True)
    for place in sorted(away, reverse=True):
        body.inputs.pop(2 + place)
    length = len(kept) + len(others) + len(grown)
    made = node_of(operators()["", "Loop"], given, {"body": body}, length)
    made.metadata_props.update(node.metadata_props)
    graph.insert_before(node, made)
    for place, old in enumerate((*kept, *others)):
        _take_over(node.outputs[old], made.outputs[place], types)
    for one, first, stack in zip(grown, firsts, made.outputs[length - len(grown) :], strict=True):
        assert first is not None
        _set_type(
            stack, _stacked(node.outputs[one.place], len(one.items), fresh("turns"), types), types
        )
        whole = _whole(Nodes(graph, types, before=node), root, first, stack, len(one.items))
        _take_over(node.outputs[one.place], whole, types)
    graph.remove(node, safe=True)


def _scanned(body: ir.Graph, one: _Grown, old: ir.Value, types: GraphTypes) -> ir.Value:
    """Return an iteration's items, stacked."""
    made = Nodes(body, types)._node("Concat", *one.items, axis=0)
    made.name = old.name
    return made


def _stacked(old: ir.Value, several: int, count: Dim, types: GraphTypes) -> TensorType:
    """Return the type of the items of all iterations, given the value of the whole list."""
    whole = types.types[old]
    assert isinstance(whole, TensorType)
    assert whole.shape is not None
    return TensorType(whole.dtype, (count, several, *whole.shape[1:]))


def _whole(nodes: Nodes, root: Nodes, first: ir.Value, stack: ir.Value, several: int) -> ir.Value:
    """Return the items before the loop and those of all iterations, on one first axis."""
    # The sizes of an item come from the list before the loop: of no iterations, runtimes know
    # none that the data decide.
    count = nodes._node("Shape", stack, start=0, end=1)
    if several > 1:
        count = nodes._node("Mul", count, root.initializer(np.array([several]), "items"))
    sizes = nodes._node("Shape", first, start=1)
    target = nodes._node("Concat", count, sizes, axis=0)
    flat = nodes._node("Reshape", stack, target, allowzero=1)
    before = nodes.types.types[first]
    assert isinstance(before, TensorType)
    if before.shape and before.shape[0] == 0:
        return flat
    return nodes._node("Concat", first, flat, axis=0)


def _set_type(value: ir.Value, type_: TensorType, types: GraphTypes) -> None:
    types.types[value] = type_
    value.type = to_ir_type(type_)
    value.shape = to_ir_shape(type_.shape)


def _take_over(old: ir.Value, new: ir.Value, types: GraphTypes) -> None:
    """Let a value stand wherever another one does, with its type."""
    type_ = types.types[old]
    assert isinstance(type_, TensorType)
    _set_type(new, type_, types)
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)


__all__ = ["scan_appended"]
