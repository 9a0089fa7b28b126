"""What passes share: reading constants and users, replacing values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.ops.values import tensor_to_array


def constant(value: ir.Value | None, types: GraphTypes) -> Array | None:
    """Return the content of a value that the model fixes."""
    if value is None:
        return None
    if value.const_value is not None:
        return tensor_to_array(value.const_value)
    producer = value.producer()
    if producer is not None and producer.op_type == "Constant" and producer.domain == "":
        attribute = producer.attributes.get("value")
        if attribute is not None and attribute.type == ir.AttributeType.TENSOR:
            return tensor_to_array(attribute.as_tensor())
    known = types.values.get(value)
    return known if known is not None and known.dtype != object else None


def scalar(value: ir.Value | None, types: GraphTypes) -> float | None:
    """Return the number that a constant of one element holds."""
    array = constant(value, types)
    if array is None or array.size != 1 or array.dtype.kind not in "fiu":
        return None
    return float(array.reshape(-1)[0])


def producer(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """Return the node that makes a value, if it is of this operator."""
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type == op_type and node.domain == "" else None


def other_input(node: ir.Node, value: ir.Value) -> ir.Value | None:
    """Return the other input of a node of two."""
    left, right = node.inputs
    return right if left is value else left


def replace_value(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    """Let everything that reads ``old`` read ``new``, outputs of the graph included."""
    for use in list(old.uses()):
        use.node.replace_input_with(use.idx, new)
    if any(output is old for output in graph.outputs):
        # The graph's outputs keep their names.
        name, old.name = old.name, None
        if new.is_graph_input() or new.is_initializer() or new.is_graph_output():
            node = ir.Node("", "Identity", [new], name=f"{name} output")
            anchor = new.producer()
            if anchor is not None and anchor.graph is graph:
                graph.insert_after(anchor, node)
            else:
                first = next(iter(graph), None)
                if first is None:
                    graph.append(node)
                else:
                    graph.insert_before(first, node)
            new = node.outputs[0]
        new.name = name
        for i, output in enumerate(graph.outputs):
            if output is old:
                graph.outputs[i] = new


def add_initializer(graph: ir.Graph, name: str, array: Array) -> ir.Value:
    """Return a new constant of the graph under a name that is free."""
    free, number = name, 0
    while free in graph.initializers:
        number += 1
        free = f"{name}_{number}"
    value = ir.Value(name=free, const_value=ir.tensor(np.ascontiguousarray(array), name=free))
    value.shape = ir.Shape(array.shape)
    value.type = ir.TensorType(ir.DataType.from_numpy(array.dtype))
    graph.register_initializer(value)
    return value


def remove(graph: ir.Graph, nodes: Sequence[ir.Node]) -> None:
    """Remove nodes whose outputs nobody reads any more."""
    graph.remove(nodes, safe=True)
