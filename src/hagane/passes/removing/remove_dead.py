"""Remove nodes that no output needs."""

from __future__ import annotations

import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.passes.edit import name_of


def remove_dead(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Remove nodes none of whose outputs is read; return which.

    Nodes of subgraphs count as readers, and are left as they are. Constants that nobody reads go
    too, except for inputs.
    """
    changed: list[str] = []
    for node in reversed(list(graph)):
        if all(not out.uses() and not out.is_graph_output() for out in node.outputs):
            changed.append(name_of(node))
            graph.remove(node, safe=True)
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_input() and not value.is_graph_output():
            del graph.initializers[name]
    return changed
