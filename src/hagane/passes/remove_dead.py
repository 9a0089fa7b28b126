"""Remove nodes that no output needs."""

from __future__ import annotations

import onnx_ir as ir

from hagane.ops.inference import GraphTypes


def remove_dead(graph: ir.Graph, types: GraphTypes) -> int:
    """Remove nodes none of whose outputs is read; return how many.

    Nodes of subgraphs count as readers, and are left as they are.
    """
    count = 0
    for node in reversed(list(graph)):
        if all(not out.uses() and not out.is_graph_output() for out in node.outputs):
            graph.remove(node, safe=True)
            count += 1
    return count
