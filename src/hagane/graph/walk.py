"""The one walk over a graph and its subgraphs: bodies of loops, branches and scans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir

PLACE = "hagane.place"  # of a node's metadata: where in a program it came from (places.py)


def bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """Yield the subgraphs that a node holds."""
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def has_bodies(node: ir.Node) -> bool:
    """Whether a node holds subgraphs."""
    return next(bodies(node), None) is not None


def all_graphs(graph: ir.Graph) -> Iterator[ir.Graph]:
    """Yield a graph, and then the bodies of its nodes at any depth, outer ones first."""
    yield graph
    for node in graph:
        for body in bodies(node):
            yield from all_graphs(body)


def all_nodes(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """Yield nodes, each followed by those of its bodies at any depth."""
    for node in nodes:
        yield node
        for body in bodies(node):
            yield from all_nodes(body)


def read_values(node: ir.Node) -> Iterator[ir.Value]:
    """Yield the values that a node reads, captures of its bodies included."""
    yield from (value for value in node.inputs if value is not None)
    for body in bodies(node):
        yield from captured(body)


def captured(body: ir.Graph) -> Iterator[ir.Value]:
    """Yield the values from outside that a body reads or returns."""
    own = set(body.inputs) | set(body.initializers.values())
    for node in body:
        own.update(node.outputs)
    for node in body:
        yield from (value for value in read_values(node) if value not in own)
    yield from (value for value in body.outputs if value not in own)
