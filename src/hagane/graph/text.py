"""Print a graph as text, one line a node, with the types that are known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from hagane.graph.types import dtype_name
from hagane.graph.walk import PLACE


def to_text(model: ir.Model) -> str:
    """Return ``model`` as text: inputs, initializers, then ``outputs = Operator(inputs)``."""
    opsets = ", ".join(f"{domain or 'ai.onnx'} {v}" for domain, v in model.opset_imports.items())
    return "\n".join([f"# opsets: {opsets}", *_graph_lines(model.graph, "")])


def _graph_lines(graph: ir.Graph, indent: str) -> Iterator[str]:
    inputs = ", ".join(f"{value.name}: {_type(value)}" for value in graph.inputs)
    yield f"{indent}graph {graph.name or '(unnamed)'}({inputs}) {{"
    for name, value in graph.initializers.items():
        yield f"{indent}  {name}: {_type(value)} = {_content(value.const_value)}"
    for node in graph:
        yield from _node_lines(node, indent + "  ")
    outputs = ", ".join(f"{value.name}: {_type(value)}" for value in graph.outputs)
    yield f"{indent}  return {outputs}"
    yield f"{indent}}}"


def _node_lines(node: ir.Node, indent: str) -> Iterator[str]:
    outputs = ", ".join(f"{value.name}: {_type(value)}" for value in node.outputs if value.name)
    inputs = ["_" if value is None else str(value.name) for value in node.inputs]
    bodies: list[tuple[str, ir.Graph]] = []
    for name, attribute in node.attributes.items():
        if attribute.type == ir.AttributeType.GRAPH:
            bodies.append((name, attribute.as_graph()))
        else:
            inputs.append(f"{name}={_attribute(attribute)}")
    domain = f"{node.domain}." if node.domain else ""
    place = node.metadata_props.get(PLACE, "").rpartition(":")[0]
    where = f"  # {place}" if place else ""
    yield f"{indent}{outputs} = {domain}{node.op_type}({', '.join(inputs)}){where}"
    for name, body in bodies:
        yield f"{indent}  {name}:"
        yield from _graph_lines(body, indent + "    ")


def _attribute(attribute: ir.Attr) -> str:
    if attribute.type == ir.AttributeType.TENSOR:
        return _content(attribute.as_tensor())
    return repr(attribute.value)


def _content(tensor: ir.TensorProtocol | None) -> str:
    if tensor is None:
        return "?"
    if tensor.size > 8:
        return f"<{tensor.nbytes} bytes>"
    return np.array2string(tensor.numpy(), separator=", ")


def _type(value: ir.Value) -> str:
    if value.type is None:
        return "?"
    dims = "..." if value.shape is None else ", ".join(map(str, value.shape))
    if isinstance(value.type, ir.TensorType):
        return f"{dtype_name(value.type.dtype)}[{dims}]"
    return str(value.type)
