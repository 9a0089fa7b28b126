"""The names of values that a graph reads."""

from __future__ import annotations

import onnx


def read_names(graph: onnx.GraphProto) -> set[str]:
    """Return the names that nodes read, those of bodies included."""
    found = {value.name for value in graph.output}
    for node in graph.node:
        found.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found |= read_names(attribute.g)
            for body in attribute.graphs:
                found |= read_names(body)
    return found
