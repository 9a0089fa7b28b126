"""Products of a computed matrix and a vector, written as products of matrices.

ONNX Runtime merges a Transpose into the MatMul behind it, and then multiplies wrongly where the
right operand has one axis (1.32: ``x.T @ v``). The product with a matrix of one column is right.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.graph.walk import bodies
from hagane.ops.builder.nodes import Nodes
from hagane.ops.inference import GraphTypes


def multiply_columns(graph: ir.Graph, types: GraphTypes) -> None:
    """Write products whose right operand is a vector, and whose left one nodes compute, as columns.

    Args:
        graph: The main graph, changed in place.
        types: The types of its values; those of new ones are added.
    """
    _within(graph, Nodes(graph, types))


def _within(graph: ir.Graph, root: Nodes) -> None:
    for node in list(graph):
        for body in bodies(node):
            _within(body, root)
        if node.op_type == "MatMul" and node.domain == "":
            left, right = node.inputs
            assert left is not None
            if left.producer() is not None and right is not None and _rank(right, root.types) == 1:
                _rewrite(graph, node, left, right, root)


def _rank(value: ir.Value, types: GraphTypes) -> int | None:
    found = types.types.get(value)
    shape = found.shape if isinstance(found, TensorType) else None
    return None if shape is None else len(shape)


def _rewrite(graph: ir.Graph, node: ir.Node, left: ir.Value, right: ir.Value, root: Nodes) -> None:
    nodes = Nodes(graph, root.types, before=node)
    axis = root.initializer(np.array([-1]), "axis")
    product = nodes._node("MatMul", left, nodes._node("Unsqueeze", right, axis))
    made = nodes._node("Squeeze", product, axis)
    (old,) = node.outputs
    for one in (product, made):
        producer = one.producer()
        assert producer is not None
        producer.metadata_props.update(node.metadata_props)
    root.types.types[made] = root.types.types[old]
    made.type, made.shape = old.type, old.shape
    ir.convenience.replace_all_uses_with(old, made, replace_graph_outputs=True)
    graph.remove(node, safe=True)


__all__ = ["multiply_columns"]
