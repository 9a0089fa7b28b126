"""Write grouped 8-bit convolutions as convolutions of floats."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    attributes_of,
    building,
    constant,
    given,
    name_of,
    readers,
    remove,
    replace_value,
    shape_of,
    substitute,
    type_of,
)

# Floats hold all whole numbers below.
_EXACT = 1 << 24


def spread_quantized(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace QLinearConv of several groups by a convolution of floats; return where.

    Kernels of floats exist for these. Weights, scales and zero points are constants. Sums are
    of floats that are whole numbers, and are scaled after that, so that a result in the middle of
    two bytes is rounded to the same one. A convolution
    in which each channel has a filter of its own stays as it is, if it has one or two spatial axes
    and its result one constant scale.

    ConvInteger of several groups, whose zero point only a run knows, becomes one of floats that are
    whole numbers, if weights are so small that all sums are exact.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type == "ConvInteger" and node.domain == "":
            changed += _spread_integers(graph, node, types)
        if node.op_type != "QLinearConv" or node.domain != "":
            continue
        if int(attributes_of(node)["group"]) == 1:
            continue
        weight, w_scale, w_zero = (constant(node.inputs[i], types) for i in (3, 4, 5))
        x_scale = constant(node.inputs[1], types)
        y_scale, y_zero = node.inputs[6], node.inputs[7]
        bias_value = node.inputs[8] if len(node.inputs) > 8 else None
        bias = constant(bias_value, types)
        if weight is None or w_scale is None or w_zero is None or x_scale is None:
            continue
        if x_scale.size != 1 or (bias_value is not None and bias is None):
            continue
        if _has_kernels(node, types):
            continue
        if shape_of(node.inputs[0], types) is None or shape_of(node.outputs[0], types) is None:
            continue
        changed.append(name_of(node))
        name = name_of(node)
        along = (-1,) + (1,) * (weight.ndim - 1)
        offset = weight.astype(np.float64) - w_zero.astype(np.float64).reshape(along)
        one = np.ones((), np.float32)
        with building(graph, types, node, name):
            x = op("DequantizeLinear", node.inputs[0], one, op("Reshape", node.inputs[2], []))
            made = op("Conv", x, offset.astype(np.float32), **given(node))
            made = op("Cast", made, to=ir.DataType.INT32)  # (factors stay apart from the weights)
            if bias is not None:
                made = op("Add", made, bias.reshape(along[:-1]))
            factor = op(
                "Div",
                (x_scale.reshape(()) * w_scale).reshape(() if w_scale.size == 1 else along[:-1]),
                op("Reshape", y_scale, []),
            )
            made = op("Mul", op("Cast", made, to=ir.DataType.FLOAT), factor)
            y_zero = op("Reshape", y_zero, [])
        substitute(graph, types, node, "QuantizeLinear", [made, one, y_zero])
    return changed


def _spread_integers(graph: ir.Graph, node: ir.Node, types: GraphTypes) -> list[str]:
    """Replace a ConvInteger of several groups, if that may be done; return its name then."""
    x, w, x_zero, w_zero = (*node.inputs, None, None)[:4]
    weight, offset, found = constant(w, types), constant(w_zero, types), type_of(x_zero, types)
    if int(attributes_of(node)["group"]) == 1 or weight is None or weight.ndim < 3:
        return []
    if found is None or found.shape not in ((), (1,)) or constant(x_zero, types) is not None:
        return []
    if (w_zero is not None and offset is None) or shape_of(x, types) is None:
        return []
    zero = np.zeros(1) if offset is None else offset.astype(np.float64)
    floats = weight.astype(np.float64) - zero.reshape(-1, *(1,) * (weight.ndim - 1))
    if 255 * np.abs(floats).sum(tuple(range(1, weight.ndim))).max(initial=0) >= _EXACT:
        return []
    old = node.outputs[0]
    with building(graph, types, node, name_of(node)):
        around = op("Sub", *(op("Cast", v, to=ir.DataType.FLOAT) for v in (x, x_zero)))
        made = op("Conv", around, floats.astype(np.float32), **given(node))
    for reader in list(readers(old, "Cast")):
        if attributes_of(reader)["to"] == ir.DataType.FLOAT:
            replace_value(graph, types, reader.outputs[0], made)
            remove(graph, [reader])
    if old.uses() or old.is_graph_output():
        substitute(graph, types, node, "Cast", [made], to=ir.DataType.INT32)
    else:
        remove(graph, [node])
    return [name_of(node)]


def _has_kernels(node: ir.Node, types: GraphTypes) -> bool:
    """Whether a convolution is one of bytes that the engine computes as it stands."""
    weight, y_scale, y_zero = (constant(node.inputs[i], types) for i in (3, 6, 7))
    x_zero = constant(node.inputs[2], types)
    if weight is None or y_scale is None or y_zero is None or x_zero is None:
        return False
    groups = int(attributes_of(node)["group"])
    depthwise = weight.shape[:2] == (groups, 1) and weight.ndim in (3, 4)
    return depthwise and y_scale.size == y_zero.size == x_zero.size == 1
