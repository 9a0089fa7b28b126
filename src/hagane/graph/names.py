"""Names that no two values of a model share, and no two nodes."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from hagane.graph.walk import all_graphs


def separate_names(graph: ir.Graph) -> None:
    """Rename values with a taken name in place, and name nameless ones.

    ONNX wants every value of a graph and its subgraphs defined once, and runtimes want the same
    of the names of nodes. Inputs and outputs of the main graph keep their names, by which callers
    ask for them, and so do initializers with other names.
    """
    kept = (*graph.initializers.values(), *graph.outputs, *graph.inputs)
    values: dict[str, object] = {str(value.name): value for value in kept}
    nodes: dict[str, object] = {}
    graphs = list(all_graphs(graph))
    # A new name is no name of a value that is still to come: a graph refuses it for an initializer.
    for value in (value for inner in graphs for value in _values(inner) if value.name):
        values.setdefault(str(value.name), value)
    for inner in graphs:
        for value in _values(inner):
            # (An output without a name is one that nobody wants; loops and branches have them all.)
            if value.name or _counts(value) or _is_read(value):
                free = _free_name(value.name or "value", value, values)
                if free != value.name:
                    value.name = free
        for node in inner:
            node.name = _free_name(node.name or node.op_type, node, nodes)


def _free_name(name: str, thing: object, taken: dict[str, object]) -> str:
    """Return a name for a thing, and note that it is taken."""
    free, number = name, 0
    while taken.get(free, thing) is not thing:
        number += 1
        free = f"{name}_{number}"
    taken[free] = thing
    return free


def _counts(value: ir.Value) -> bool:
    """Whether a value is an input, or one of the outputs of a node that has to have them all."""
    node = value.producer()
    return node is None or node.op_type in ("Loop", "If", "Scan")


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from dict.fromkeys((*graph.inputs, *graph.initializers.values()))
    for node in graph:
        yield from node.outputs
