"""Give results of branches that have different ranks one rank, and their shape beside them."""

from __future__ import annotations

import onnx_ir as ir

from hagane.graph.types import TensorType, Type
from hagane.ops.builder import Nodes, interpreting, op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import building, given, name_of, remove, replace_value


def flatten_branches(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Let branches return outputs of the graph that differ in rank as rows; return which nodes.

    A value of unknown rank has no place in a compiled program, so that the branches, which compute
    it, would run node by node. Each returns its elements in a row and its shape instead; a Reshape
    behind makes the output of them. Values that other nodes read stay as they are.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "If" or node.domain != "":
            continue
        branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        differing = [
            index
            for index, value in enumerate(node.outputs)
            if _is_open(types.types.get(value))
            and value.is_graph_output()
            and not value.uses()
            and all(_has_rank(types.types.get(each.outputs[index])) for each in branches)
        ]
        if differing:
            changed.append(name_of(node))
            _flatten(graph, node, branches, differing, types)
    return changed


def _is_open(found: Type | None) -> bool:
    return isinstance(found, TensorType) and found.shape is None


def _has_rank(found: Type | None) -> bool:
    return isinstance(found, TensorType) and found.shape is not None


def _flatten(
    graph: ir.Graph,
    node: ir.Node,
    branches: list[ir.Graph],
    differing: list[int],
    types: GraphTypes,
) -> None:
    """Replace an If by one whose differing outputs are rows; their shapes follow all outputs."""
    for each in branches:
        with interpreting(Nodes(each, types, name=name_of(node))):
            for index in differing:
                value = each.outputs[index]
                each.outputs[index] = op("Reshape", value, [-1])
                each.outputs.append(op("Shape", value))
    count = len(node.outputs)
    with building(graph, types, node):
        made = op("If", node.inputs[0], outputs=count + len(differing), **given(node))
        results = list(made)
        results[0].producer().name = node.name
        for place, index in enumerate(differing):
            results[index] = op("Reshape", results[index], results[count + place], allowzero=1)
            # Errors and profiles name the node of the model.
            results[index].producer().name = node.name
    for old, new in zip(node.outputs, results[:count], strict=True):
        replace_value(graph, types, old, new)
    remove(graph, [node])
