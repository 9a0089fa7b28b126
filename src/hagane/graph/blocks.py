"""The blocks of a graph: runs of nodes that belong together, in the order of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from hagane.graph.walk import read_values

# A page of blocks is read at a glance when it has about so many.
_FEWEST, _MOST, _CHAIN = 3, 40, 10
# A value that lives longer than this share of the graph, such as a mask, joins no block.
_LONG = 0.25


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes that follow each other, with a name: that of their scope, or their place."""

    name: str
    nodes: tuple[ir.Node, ...]


def blocks_of(graph: ir.Graph) -> list[Block]:
    """Return the nodes of a graph in blocks, constants left out.

    They are the scopes in the nodes' names where exporters wrote these (``/layer1/layer1.0/Conv``),
    else the nodes between places that a single value passes.
    """
    nodes = [node for node in graph if (node.domain, node.op_type) != ("", "Constant")]
    return _by_scope(nodes) or _by_passage(nodes)


def _by_scope(nodes: Sequence[ir.Node]) -> list[Block]:
    scopes = [[part for part in (node.name or "").split("/") if part][:-1] for node in nodes]
    if not nodes or sum(bool(scope) for scope in scopes) < 0.8 * len(nodes):
        return []
    best: list[Block] = []
    for depth in range(1, max(map(len, scopes)) + 1):
        found: list[tuple[str, list[ir.Node]]] = []
        for node, scope in zip(nodes, scopes, strict=True):
            name = "/".join(scope[:depth]) or (found[-1][0] if found else "input")
            if not found or found[-1][0] != name:
                found.append((name, []))
            found[-1][1].append(node)
        if len(found) > _MOST and best:
            break
        best = [Block(name, tuple(members)) for name, members in found]
    return _shortened(best) if len(best) >= _FEWEST else []


def _shortened(blocks: Sequence[Block]) -> list[Block]:
    """Leave out the common beginning of all names."""
    names = [block.name.split("/") for block in blocks]
    shared = 0
    while all(len(name) > shared + 1 and name[shared] == names[0][shared] for name in names):
        shared += 1
    return [
        Block("/".join(name[shared:]), block.nodes)
        for name, block in zip(names, blocks, strict=True)
    ]


def _by_passage(nodes: Sequence[ir.Node]) -> list[Block]:
    place = {node: i for i, node in enumerate(nodes)}
    last: dict[ir.Value, int] = {}
    for i, node in enumerate(nodes):
        for value in read_values(node):
            last[value] = i
    crossing = [0] * (len(nodes) + 1)
    for value, end in last.items():
        producer = value.producer()
        start = place.get(producer) if producer is not None else None
        if start is not None and end - start <= max(_CHAIN, _LONG * len(nodes)):
            for i in range(start + 1, end + 1):
                crossing[i] += 1
    cuts = [i for i in range(1, len(nodes)) if crossing[i] <= 1]
    pieces = [nodes[a:b] for a, b in zip([0, *cuts], [*cuts, len(nodes)], strict=True)]
    groups: list[list[ir.Node]] = []
    for piece in pieces:
        branches = len(piece) > 1
        if not groups or branches or len(groups[-1]) >= _CHAIN:
            groups.append([])
        groups[-1] += piece
    return [Block(f"{i}", tuple(group)) for i, group in enumerate(groups, 1) if group]
