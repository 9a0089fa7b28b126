"""Look up bytes, and dequantise the found ones."""

from __future__ import annotations

import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    building,
    constant,
    given,
    is_read_once,
    name_of,
    producer,
    shape_of,
    substitute,
)


def gather_quantized(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Move DequantizeLinear after the Gather that reads it; return where.

    A table of embeddings is then not dequantised as a whole for a few rows of it. There is one
    scale and one zero point for the whole table, and the Gather is its only reader.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "Gather" or node.domain != "":
            continue
        source = node.inputs[0]
        whole = producer(source, "DequantizeLinear")
        if whole is None or source is None or not is_read_once(source):
            continue
        scale, kept = constant(whole.inputs[1], types), types.types.get(whole.inputs[0])  # type: ignore[arg-type]
        out = types.types.get(node.outputs[0])
        if scale is None or scale.size != 1 or not isinstance(kept, TensorType):
            continue
        if not isinstance(out, TensorType) or shape_of(node.outputs[0], types) is None:
            continue
        changed.append(name_of(node))
        with building(graph, types, node, name_of(node)):
            looked_up = op("Gather", whole.inputs[0], node.inputs[1], **given(node))
        inputs = [looked_up, *whole.inputs[1:]]
        substitute(graph, types, node, "DequantizeLinear", inputs)
    return changed
