"""Loop whose body takes its number and its condition as vectors of one element."""

from __future__ import annotations

import onnx_ir as ir

from hagane.ops.builder import Nodes, interpreting, op
from hagane.passes.legalise.rewrite import Site


def loop_scalars(site: Site) -> None:
    """Inputs that a body declares to have one axis get it from scalars, as in ONNX Runtime."""
    body = site.node.attributes["body"].as_graph()
    for index, value in enumerate(body.inputs[:2]):
        if value.shape is None or len(value.shape) != 1:
            continue
        scalar = ir.Value(name=value.name, shape=ir.Shape([]), type=value.type)
        before = next(iter(body), None)
        nodes = Nodes(body, before=before, name=f"{value.name}.legalised", typed=False)
        with interpreting(nodes):
            vector = op("Unsqueeze", scalar, [0])
        value.replace_all_uses_with(vector, replace_graph_outputs=True)
        value.name, body.inputs[index] = None, scalar
