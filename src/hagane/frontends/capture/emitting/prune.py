"""Parts of a graph that nothing needs, taken out."""

from __future__ import annotations

import onnx_ir as ir


def prune(graph: ir.Graph) -> None:
    """Remove nodes and initializers that no output needs, in subgraphs too."""
    changed = True
    while changed:
        changed = _prune_once(graph)
    # Bodies of loops that were interpreted again are in no graph, and read initializers still.
    nodes = set(graph.all_nodes())
    for name, value in list(graph.initializers.items()):
        read = any(use.node in nodes for use in value.uses())
        if not read and not value.is_graph_input() and not value.is_graph_output():
            del graph.initializers[name]


def _prune_once(graph: ir.Graph) -> bool:
    changed = False
    for node in reversed(list(graph)):
        if all(not out.uses() and not out.is_graph_output() for out in node.outputs):
            for inner in _bodies(node):
                _empty(inner)
            graph.remove(node, safe=True)
            changed = True
            continue
        for inner in _bodies(node):
            changed |= _prune_once(inner)
        if node.op_type == "If":
            changed |= _prune_outputs(node)
    return changed


def _prune_outputs(node: ir.Node) -> bool:
    """Remove the outputs of a branch that nobody reads; one is left."""
    wanted = [i for i, out in enumerate(node.outputs) if out.uses() or out.is_graph_output()]
    if len(wanted) == len(node.outputs):
        return False
    for inner in _bodies(node):
        inner.outputs[:] = [inner.outputs[i] for i in wanted]
    for place, index in enumerate(wanted):
        if place != index:
            kept, free = node.outputs[index], node.outputs[place]
            free.type, free.shape = kept.type, kept.shape
            ir.convenience.replace_all_uses_with(kept, free, replace_graph_outputs=True)
    node.resize_outputs(len(wanted))
    return True


def _empty(graph: ir.Graph) -> None:
    """Let go of a subgraph's reads; bodies in no graph may read its values still."""
    graph.outputs.clear()
    for node in reversed(list(graph)):
        for inner in _bodies(node):
            _empty(inner)
        for place in range(len(node.inputs)):
            node.replace_input_with(place, None)
        graph.remove(node)


def _bodies(node: ir.Node) -> list[ir.Graph]:
    return [
        attribute.as_graph()
        for attribute in node.attributes.values()
        if attribute.type == ir.AttributeType.GRAPH
    ]


__all__ = ["prune"]
