"""Which backend computes which nodes of a graph, and which of these together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from hagane.graph.walk import all_nodes, read_values
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.runtime.port import Backend, Function, Part, Planned, Refusal, Region

Refusals = Mapping[ir.Node, Refusal]


@dataclass(frozen=True, slots=True)
class Placement:
    """The parts of a graph in order of execution.

    Attributes:
        parts: Together they compute the graph.
        refused: Nodes that a backend claimed and did not take, with the reason of the first.
    """

    parts: tuple[Part, ...]
    refused: Refusals


def place_nodes(
    graph: ir.Graph,
    nodes: Sequence[ir.Node],
    types: GraphTypes,
    constants: Mapping[ir.Value, Array],
    backends: Sequence[Backend],
    function: Callable[[ir.Graph], Function],
) -> Placement:
    """Return the parts of some nodes of a graph.

    Each node goes to the first backend that claims it. Nodes that it refuses on closer look go to
    the next one, and all are grouped anew: a part depends on its neighbours.

    Args:
        graph: A graph or body.
        nodes: Its nodes that are to be computed, in order.
        types: Types and shapes of all values.
        constants: Arrays that are known ahead.
        backends: In order of preference; the last one takes every node.
        function: Compiles a body of a node.
    """
    *preferred, last = backends
    refusals: list[dict[ir.Node, Refusal]] = [{} for _ in preferred]

    def owner(node: ir.Node) -> int:
        for index, backend in enumerate(preferred):
            if node not in refusals[index] and backend.claims(node, types):
                return index
        return len(preferred)

    while True:
        owners = {node: owner(node) for node in nodes}
        late = {value for node in nodes for value in backends[owners[node]].late(node, types)}
        clusters = _clusters(nodes, owners, late, constants, len(backends))
        planned: list[Planned | list[ir.Node]] = []
        changed = False
        for index, members in clusters:
            if index == len(preferred):
                planned.append(members)  # bodies compile when all others are settled
                continue
            found = backends[index].plan(_region(graph, members, types, constants, function))
            refusals[index].update(found.refused)
            changed = changed or bool(found.refused)
            planned.append(found)
        if not changed:
            break
    parts: list[Part] = []
    for item in planned:
        if isinstance(item, list):
            item = last.plan(_region(graph, item, types, constants, function))
        parts += item.parts
    refused: dict[ir.Node, Refusal] = {}
    for found_by in reversed(refusals):
        refused.update(found_by)
    return Placement(tuple(parts), refused)


def _region(
    graph: ir.Graph,
    members: Sequence[ir.Node],
    types: GraphTypes,
    constants: Mapping[ir.Value, Array],
    function: Callable[[ir.Graph], Function],
) -> Region:
    inside = frozenset(all_nodes(members))
    graph_outputs = set(graph.outputs)
    outputs = frozenset(
        value
        for node in members
        for value in node.outputs
        if value in graph_outputs or any(use.node not in inside for use in value.uses())
    )
    return Region(graph, tuple(members), outputs, types, constants, function)


def _clusters(
    nodes: Sequence[ir.Node],
    owners: Mapping[ir.Node, int],
    late: set[ir.Value],
    known: Mapping[ir.Value, Array],
    count: int,
) -> list[tuple[int, list[ir.Node]]]:
    """Group nodes in an order that keeps those of one owner together.

    Args:
        nodes: In an order of execution.
        owners: The backend of each.
        late: Values that no node of the part that computes them may read.
        known: Constants, which nobody waits for.
        count: Number of backends.
    """
    produced = {value for node in nodes for value in node.outputs}
    waiting = {
        node: {value for value in read_values(node) if value in produced and value not in known}
        for node in nodes
    }
    done: set[ir.Value] = set()
    left = list(nodes)
    clusters: list[tuple[int, list[ir.Node]]] = []
    turn = 0
    while left:
        members: list[ir.Node] = []
        rest: list[ir.Node] = []
        after: set[ir.Value] = set()
        for node in left:
            if owners[node] == turn and waiting[node] <= done:
                members.append(node)
                done.update(value for value in node.outputs if value not in late)
                after.update(value for value in node.outputs if value in late)
            else:
                rest.append(node)
        done |= after
        left = rest
        if members:
            clusters.append((turn, members))
        turn = (turn + 1) % count
    return clusters
