"""Nodes like others of a graph, and the constants of these."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import onnx_ir as ir

from hagane.ops.builder import Call, Nodes
from hagane.ops.gradient.replay import call_of
from hagane.ops.values import tensor_to_array


def again(nodes: Nodes, node: ir.Node, *inputs: ir.Value | None) -> ir.Value:
    """Add a node of one output with other inputs, and return its output."""
    call = call_of(node)
    return nodes.apply(Call(call.op, inputs, call.attributes), 1)[0]


def held(value: ir.Value | None) -> npt.NDArray[Any] | None:
    """Return the content of a value that belongs to the model, None where it is computed or given.

    Sizes of the observation, which inference knows too, change with the batch.
    """
    if value is None or value.is_graph_input():
        return None
    if value.const_value is not None:
        return tensor_to_array(value.const_value)
    node = value.producer()
    tensor = node.attributes.get("value") if node and node.op_type == "Constant" else None
    return None if tensor is None else tensor_to_array(tensor.as_tensor())
