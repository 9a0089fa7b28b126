"""What nodes read, and what is known of it before anything runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from hagane.ops.context import known_attributes
from hagane.ops.definition import Array, Unsupported
from hagane.ops.registry import find, schema_of

# Folding a constant may enlarge it by this much, in bytes, but not more.
_MOST_FOLDED = 64 << 20


def subgraphs(node: ir.Node) -> Iterator[ir.Graph]:
    """Yield the bodies of a node."""
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()


def with_nested(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """Yield nodes, and those of their bodies at any depth."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from with_nested(graph)


def read_values(node: ir.Node) -> Iterator[ir.Value]:
    """Yield the values that a node reads, those that its subgraphs capture included."""
    yield from (value for value in node.inputs if value is not None)
    for graph in subgraphs(node):
        yield from captured(graph)


def captured(graph: ir.Graph) -> Iterator[ir.Value]:
    """Yield the values from outside that a body reads or returns."""
    own = set(graph.inputs) | set(graph.initializers.values())
    for node in graph:
        own.update(node.outputs)
    for node in graph:
        yield from (value for value in read_values(node) if value not in own)
    yield from (value for value in graph.outputs if value not in own)


def fold_constants(
    nodes: Sequence[ir.Node], constants: Mapping[ir.Value, Array]
) -> dict[ir.Value, Array]:
    """Return the outputs of nodes whose inputs are all constant."""
    known = dict(constants)
    folded: dict[ir.Value, Array] = {}
    for node in nodes:
        op = find(node)
        inputs = [value for value in node.inputs if value is not None]
        if op.random or isinstance(op.reference, Unsupported) or not node.outputs:
            continue
        if any(value not in known for value in read_values(node)):
            continue
        if any(True for _ in subgraphs(node)):
            continue
        arguments = [None if value is None else known[value] for value in node.inputs]
        attributes = known_attributes(node, schema_of(node).defaults)
        with contextlib.suppress(Exception), np.errstate(all="ignore"):
            results = op(arguments, attributes, len(node.outputs))
            if not all(isinstance(result, np.ndarray | np.generic) for result in results):
                continue
            arrays = [np.asarray(result) for result in results]
            size = sum(array.nbytes for array in arrays)
            if size > _MOST_FOLDED + sum(known[value].nbytes for value in inputs):
                continue
            for value, array in zip(node.outputs, arrays, strict=False):
                known[value] = folded[value] = array
    return folded
