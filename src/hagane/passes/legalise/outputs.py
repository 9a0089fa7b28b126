"""Outputs that a graph lists again."""

from __future__ import annotations

from itertools import count

import onnx_ir as ir

from hagane.graph.walk import all_nodes
from hagane.ops.builder import Nodes, interpreting, op


def part_outputs(graph: ir.Graph) -> None:
    """Give outputs names of their own: one that is listed again is a copy, ``y_again_1``."""
    given = (*graph.inputs, *graph.outputs, *graph.initializers.values())
    taken = {value.name for value in given}
    taken |= {value.name for node in all_nodes(graph) for value in node.outputs}
    seen: set[str | None] = set()
    with interpreting(Nodes(graph, name="legalised", typed=False)):
        for place, value in enumerate(graph.outputs):
            if value.name in seen:
                names = (f"{value.name}_again_{number}" for number in count(1))
                again = op("Identity", value)
                again.name = next(name for name in names if name not in taken)
                again.type, again.shape = value.type, value.shape
                graph.outputs[place] = again
                taken.add(again.name)
            seen.add(value.name)
