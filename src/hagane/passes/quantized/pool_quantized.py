"""Pool bytes, and dequantise what is left."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import op
from hagane.ops.context import known_attributes
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import schema_of
from hagane.passes.edit import (
    building,
    constant,
    given,
    name_of,
    producer,
    put_in_place,
    readers,
    remove_unread,
    replace_value,
    shape_of,
)

_BYTES = (ir.DataType.INT8, ir.DataType.UINT8)


def pool_quantized(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Move DequantizeLinear after the MaxPool that reads it; return where.

    * ``MaxPool(Dequantize(x))`` becomes ``Dequantize(MaxPool(x))``: the largest byte is that of the
      largest number. There is one scale, which is above nought, and one zero point.
    * A QuantizeLinear behind it with the same scale and zero point goes: it returns the bytes.

    A MaxPool of which the places are read stays, and one whose border is as wide as its window.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "MaxPool" or node.domain != "":
            continue
        whole, out = producer(node.inputs[0], "DequantizeLinear"), node.outputs[0]
        if whole is None or whole.inputs[0] is None or any(o.uses() for o in node.outputs[1:]):
            continue
        scale, zero = constant(whole.inputs[1], types), None
        kept = types.types.get(whole.inputs[0])
        point = whole.inputs[2] if len(whole.inputs) > 2 else None
        if scale is None or scale.size != 1 or not float(scale.reshape(-1)[0]) > 0:
            continue
        if not isinstance(kept, TensorType) or kept.dtype not in _BYTES:
            continue
        zero = np.zeros((), kept.dtype.numpy()) if point is None else constant(point, types)
        if zero is None or zero.size != 1 or shape_of(out, types) is None:
            continue
        attributes = known_attributes(node, schema_of(node).defaults)
        kernel = list(attributes["kernel_shape"])
        pads = list(attributes.get("pads") or [0] * 2 * len(kernel))
        if any(pad >= size for pad, size in zip(pads, [*kernel, *kernel], strict=True)):
            continue
        changed.append(name_of(node))
        with building(graph, types, node, name_of(node)):
            pooled = op("MaxPool", whole.inputs[0], **given(node))
            pooled.producer().name = name_of(node)
            made = op("DequantizeLinear", pooled, *whole.inputs[1:])
        put_in_place(graph, types, node, made)
        for again in list(readers(made, "QuantizeLinear")):
            if _same(again, scale, zero, types):
                replace_value(graph, types, again.outputs[0], pooled)
                remove_unread(graph, again)
    return changed


def _same(node: ir.Node, scale: Array, zero: Array, types: GraphTypes) -> bool:
    """Whether a node quantises with a scale and a zero point."""
    own = constant(node.inputs[1], types)
    point = node.inputs[2] if len(node.inputs) > 2 else None
    own_zero = constant(point, types) if point is not None else np.zeros((), np.uint8)
    if own is None or own_zero is None or own.size != 1 or own_zero.size != 1:
        return False
    attributes = known_attributes(node, schema_of(node).defaults)
    if attributes.get("precision") or (point is None and attributes.get("output_dtype")):
        return False
    return all(
        one.dtype == other.dtype and one.reshape(-1)[0] == other.reshape(-1)[0]
        for one, other in ((own, scale), (own_zero, zero))
    )
