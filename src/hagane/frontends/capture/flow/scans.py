"""Lists that a loop only appends to, as scan outputs of the Loop.

A list in a loop is a state to which each iteration concatenates its items: the whole list is copied
in each. Where nothing in the body reads the list and every iteration appends equally many items,
the Loop stacks them by itself. Where some iterations append an item (the last one often does not,
as in decoding until an end token), it stacks an item and a truth value of each; the length of the
list, which the body may ask for, is a number that it hands on.
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
        chosen: How it is decided whether an iteration appends; None where all do.
    """

    place: int
    items: tuple[ir.Value, ...]
    nodes: tuple[ir.Node, ...]
    chosen: _Chosen | None = None


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A branch of which one side appends an item.

    Attributes:
        branch: The If.
        place: The place of the list among its results.
        when: Whether the side of a true condition appends.
        moved: The nodes of that side which make the item, in order: all that they read is outside.
        lengths: The nodes of the body that ask for the length of the list.
    """

    branch: ir.Node
    place: int
    when: bool
    moved: tuple[ir.Node, ...]
    lengths: tuple[ir.Node, ...]


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
            grown = [
                g
                for place in states
                if (g := _grown(body, place, root.types) or _sometimes(body, place, root.types))
            ]
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


def _sometimes(body: ir.Graph, place: int, types: GraphTypes) -> _Grown | None:
    """Return the item that some iterations append to a state; None for other uses."""
    state, value = body.inputs[2 + place], body.outputs[1 + place]
    node = value.producer()
    if node is None or node.op_type != "If" or node.graph is not body:
        return None
    if sum(out is value for out in body.outputs) > 1 or value.uses():
        return None
    at = node.outputs.index(value)
    sides = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    yes, no = (side.outputs[at].producer() for side in sides)
    if yes is None or no is None:
        return None
    readers = {use.node for use in state.uses()}
    for when, adds, keeps in ((True, yes, no), (False, no, yes)):
        if adds.op_type != "Concat" or keeps.op_type != "Identity" or len(adds.inputs) != 2:
            continue
        before, item = adds.inputs
        if before is not state or keeps.inputs[0] is not state or item is None:
            continue
        if any(one.outputs[0].uses() for one in (adds, keeps)):  # as by ``kept[-1]``
            continue
        if adds.attributes["axis"].as_int() != 0 or not _is_single(item, types):
            continue
        moved, lengths = _moved(item, adds.graph), tuple(readers - {adds, keeps})
        if moved is not None and all(_asks_length(one, body) for one in lengths):
            chosen = _Chosen(node, at, when, moved, lengths)
            return _Grown(place, (item,), (adds, keeps), chosen)
    return None


def _moved(item: ir.Value, side: ir.Graph | None) -> tuple[ir.Node, ...] | None:
    """Return the nodes of a side that make an item of values from outside; None for many."""
    node = item.producer()
    if node is None or node.graph is not side:
        return ()
    if node.op_type not in ("Unsqueeze", "Identity", "Cast"):
        return None
    before = [_moved(value, side) for value in node.inputs if value is not None]
    if any(one is None for one in before):
        return None
    return (*(n for one in before if one for n in one), node)


def _asks_length(node: ir.Node, body: ir.Graph) -> bool:
    ends = [node.attributes[name].as_int() for name in ("start", "end") if name in node.attributes]
    return node.op_type == "Shape" and node.graph is body and ends == [0, 1]


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
    limit = node.inputs[0] or _limit(graph, node, body, grown, root)
    given[0] = limit
    results = list(body.outputs)
    body.outputs.clear()
    flags = {one.place: _settled(body, one, root) for one in grown if one.chosen is not None}
    counts = [
        _counted(graph, node, body, one, flags[one.place], root)
        for one in grown
        if one.chosen is not None and one.chosen.lengths
    ]
    scanned = [_scanned(body, one, results[1 + one.place], types) for one in grown]
    body.outputs.extend(
        [
            results[0],
            *(results[1 + place] for place in kept),
            *(after for _, after in counts),
            *(results[1 + place] for place in others),
            *scanned,
            *flags.values(),
        ]
    )
    given += [before for before, _ in counts]
    for one in grown:
        for spent in one.nodes:
            assert spent.graph is not None
            spent.graph.remove(spent, safe=True)
    for place in sorted(away, reverse=True):
        body.inputs.pop(2 + place)
    length = len(kept) + len(counts) + len(others) + len(grown) + len(flags)
    made = node_of(operators()["", "Loop"], given, {"body": body}, length)
    made.metadata_props.update(node.metadata_props)
    graph.insert_before(node, made)
    for place, old in enumerate(kept):
        _take_over(node.outputs[old], made.outputs[place], types)
    for number in range(len(kept), len(kept) + len(counts)):
        _set_type(made.outputs[number], TensorType(ir.DataType.INT64, (1,)), types)
    for place, old in enumerate(others, len(kept) + len(counts)):
        _take_over(node.outputs[old], made.outputs[place], types)
    stacks = made.outputs[length - len(grown) - len(flags) :]
    told = dict(zip(flags, stacks[len(grown) :], strict=True))
    for one, first, stack in zip(grown, firsts, stacks, strict=False):
        assert first is not None
        turns = fresh("turns")
        _set_type(stack, _stacked(node.outputs[one.place], len(one.items), turns, types), types)
        if one.place in told:
            _set_type(told[one.place], TensorType(ir.DataType.BOOL, (turns,)), types)
        whole = _whole(
            Nodes(graph, types, before=node), root, first, stack, len(one.items),
            told.get(one.place),
        )  # fmt: skip
        _take_over(node.outputs[one.place], whole, types)
    graph.remove(node, safe=True)


def _settled(body: ir.Graph, one: _Grown, root: Nodes) -> ir.Value:
    """Let a body make the item in each iteration; return whether it belongs to the list."""
    chosen = one.chosen
    assert chosen is not None
    branch, (item,) = chosen.branch, one.items
    for node in chosen.moved:
        assert node.graph is not None
        node.graph.remove(node)
        body.insert_before(branch, node)
    for name in ("then_branch", "else_branch"):  # a result that nothing reads any more
        side = branch.attributes[name].as_graph()
        side.outputs[chosen.place] = Nodes(side, root.types)._node("Identity", item)
    condition = branch.inputs[0]
    assert condition is not None
    nodes = Nodes(body, root.types)
    return nodes._node("Identity" if chosen.when else "Not", condition)


def _counted(
    graph: ir.Graph, node: ir.Node, body: ir.Graph, one: _Grown, flag: ir.Value, root: Nodes
) -> tuple[ir.Value, ir.Value]:
    """Hand on the length of a list; return it before the loop, and after an iteration."""
    chosen, first = one.chosen, node.inputs[2 + one.place]
    assert chosen is not None
    assert first is not None
    now = ir.Value(name=None)
    _set_type(now, TensorType(ir.DataType.INT64, (1,)), root.types)
    body.inputs.append(now)
    for asked in chosen.lengths:
        ir.convenience.replace_all_uses_with(asked.outputs[0], now, replace_graph_outputs=True)
        body.remove(asked, safe=True)
    nodes = Nodes(body, root.types)
    added = nodes._node("Cast", flag, to=int(ir.DataType.INT64))
    before = Nodes(graph, root.types, before=node)._node("Shape", first, start=0, end=1)
    return before, nodes._node("Add", now, added)


def _limit(
    graph: ir.Graph, node: ir.Node, body: ir.Graph, grown: list[_Grown], root: Nodes
) -> ir.Value | None:
    """Return the most iterations of a loop without a limit, from a length that it stops at.

    An iteration goes on where it appended an item and the list was shorter than a number of the
    outside. None where that is not what the condition says.
    """
    going = _parts_of(body.outputs[0])
    for one in grown:
        chosen, first = one.chosen, node.inputs[2 + one.place]
        if chosen is None or first is None:
            continue
        condition = _written(chosen.branch.inputs[0])
        appends = condition if chosen.when else ("Not", (condition,))
        if appends not in [_written(part) for part in going]:
            continue
        lengths = [asked.outputs[0] for asked in chosen.lengths]
        for part in going:
            less = part.producer()
            if less is None or less.op_type != "Less":
                continue
            length, most = less.inputs
            maker = None if length is None else length.producer()
            plain = maker is not None and maker.op_type == "Squeeze" and maker.inputs[0] in lengths
            if plain and most is not None and _is_outside(most, body):
                nodes = Nodes(graph, root.types, before=node)
                axis = root.initializer(np.array([0]), "axis 0")
                sized = nodes._node("Shape", first, start=0, end=1)
                left = nodes._node("Sub", most, nodes._node("Squeeze", sized, axis))
                unit = root.initializer(np.array(1), "one")
                return nodes._node("Max", nodes._node("Add", left, unit), unit)
    return None


def _parts_of(value: ir.Value) -> list[ir.Value]:
    """Return the conditions that all have to hold."""
    node = value.producer()
    if node is None or node.op_type != "And":
        return [value]
    return [part for item in node.inputs if item is not None for part in _parts_of(item)]


def _written(value: ir.Value | None) -> object:
    """Return how a condition is computed, equal for nodes that compute the same."""
    node = None if value is None else value.producer()
    if node is None or node.op_type not in ("Not", "And", "Or", "Equal", "Less", "Greater"):
        return value
    return node.op_type, tuple(map(_written, node.inputs))


def _is_outside(value: ir.Value, body: ir.Graph) -> bool:
    node = value.producer()
    graph = value.graph if node is None else node.graph
    return graph is not body


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


def _whole(
    nodes: Nodes,
    root: Nodes,
    first: ir.Value,
    stack: ir.Value,
    several: int,
    chosen: ir.Value | None,
) -> ir.Value:
    """Return the items before the loop and those of all or of chosen iterations, on one axis."""
    # The sizes of an item come from the list before the loop: of no iterations, runtimes know
    # none that the data decide.
    count = nodes._node("Shape", stack, start=0, end=1)
    if several > 1:
        count = nodes._node("Mul", count, root.initializer(np.array([several]), "items"))
    sizes = nodes._node("Shape", first, start=1)
    target = nodes._node("Concat", count, sizes, axis=0)
    flat = nodes._node("Reshape", stack, target, allowzero=1)
    if chosen is not None:
        flat = nodes._node("Compress", flat, chosen, axis=0)
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
