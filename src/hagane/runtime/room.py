"""The message when there is no memory for a model's values."""

from __future__ import annotations

import onnx_ir as ir

from hagane.errors import OutOfMemory
from hagane.graph.types import TensorType
from hagane.graph.verify import describe
from hagane.graph.walk import all_nodes
from hagane.ops.inference import GraphTypes


def largest_value(graph: ir.Graph, types: GraphTypes) -> str:
    """Return the node whose output, of a size that is known ahead, takes most bytes; '' if none."""
    most, found = 0, ""
    for node in all_nodes(graph):
        for value in node.outputs:
            type_ = types.types.get(value)
            if not isinstance(type_, TensorType) or type_.dtype.name in ("STRING", "UNDEFINED"):
                continue
            count = type_.dtype.bitwidth
            for dim in type_.shape or (0,):
                count *= dim if isinstance(dim, int) else 0
            if count // 8 > most:
                most = count // 8
                found = f"{describe(node)}, whose output {type_} takes {most:,} bytes"
    return found


def out_of_memory(error: MemoryError, largest: str) -> OutOfMemory:
    """Return the error for values that could not be allocated."""
    at = f"; the largest of known size is that of {largest}" if largest else ""
    return OutOfMemory(f"there is no memory for the model's values: {error}{at}")
