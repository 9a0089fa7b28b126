"""Pass over nodes that return their input."""

from __future__ import annotations

import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.passes.edit import constant, name_of, remove, replace_value


def remove_identity(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Let readers of Identity, and of Dropout while not training, read its input.

    An Identity between an input and an output of the graph stays: the two need names of their own.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.domain != "" or not _is_identity(node, types):
            continue
        source, out = node.inputs[0], node.outputs[0]
        if source is None or (out.is_graph_output() and not _may_be_renamed(graph, source)):
            continue
        changed.append(name_of(node))
        replace_value(graph, out, source)
        remove(graph, [node])
    return changed


def _may_be_renamed(graph: ir.Graph, value: ir.Value) -> bool:
    producer = value.producer()
    return producer is not None and producer.graph is graph and not value.is_graph_output()


def _is_identity(node: ir.Node, types: GraphTypes) -> bool:
    if node.op_type == "Identity":
        return True
    if node.op_type != "Dropout" or any(out.uses() for out in node.outputs[1:]):
        return False
    if any(out.is_graph_output() for out in node.outputs[1:]):
        return False
    training = node.inputs[2] if len(node.inputs) > 2 else None
    known = constant(training, types)
    return training is None or (known is not None and not bool(known))
