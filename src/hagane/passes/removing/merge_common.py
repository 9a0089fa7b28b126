"""Make one node of equal ones."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.graph.walk import has_bodies
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import find
from hagane.passes.edit import name_of, remove, replace_value

# Larger constants are rarely equal.
_MOST_BYTES = 1 << 12


def merge_common(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Let readers of a node read an earlier one of the same operator, attributes and inputs.

    Equal small constants become one before. Left alone are nodes that draw random numbers, hold
    subgraphs or tensors of text, or make outputs of the graph.
    """
    _merge_constants(graph, types)
    seen: dict[Any, ir.Node] = {}
    changed: list[str] = []
    for node in list(graph):
        key = _key(node)
        if key is None:
            continue
        first = seen.setdefault(key, node)
        if first is node or any(out.is_graph_output() for out in node.outputs):
            continue
        changed.append(name_of(node))
        for old, new in zip(node.outputs, first.outputs, strict=True):
            replace_value(graph, types, old, new)
        remove(graph, [node])
    return changed


def _merge_constants(graph: ir.Graph, types: GraphTypes) -> None:
    seen: dict[Any, ir.Value] = {}
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        if tensor is None or value.is_graph_input() or value.is_graph_output():
            continue
        if tensor.dtype == ir.DataType.STRING or tensor.nbytes > _MOST_BYTES:
            continue
        first = seen.setdefault((tensor.dtype, str(tensor.shape), tensor.tobytes()), value)
        if first is not value:
            replace_value(graph, types, value, first)


def _key(node: ir.Node) -> Any:
    if find(node).random or has_bodies(node):
        return None
    attributes = []
    for name, attribute in sorted(node.attributes.items()):
        if attribute.type == ir.AttributeType.TENSOR:
            tensor = attribute.value
            if tensor.dtype == ir.DataType.STRING:
                return None
            content: Any = (str(tensor.dtype), str(tensor.shape), tensor.tobytes())
        else:
            content = repr(attribute.value)
        attributes.append((name, content))
    return (
        node.domain,
        node.op_type,
        tuple(id(value) for value in node.inputs),
        tuple(attributes),
        len(node.outputs),
    )
