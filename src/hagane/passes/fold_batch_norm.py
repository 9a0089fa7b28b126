"""Make batch normalisation a part of the convolution before it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.ops.context import known_attributes
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import schema_of
from hagane.passes.edit import (
    add_initializer,
    constant,
    name_of,
    producer,
    substitute,
)


def fold_batch_norm(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Fold BatchNormalization by fixed statistics into a Conv or ConvTranspose; return where.

    The convolution's weights must be constant and its result must be read by nothing else.
    ``W' = W · s / √(v + ε)``, ``b' = (b − m) · s / √(v + ε) + t`` (Ioffe and Szegedy, 2015).
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "BatchNormalization" or node.domain != "":
            continue
        conv = producer(node.inputs[0], "Conv") or producer(node.inputs[0], "ConvTranspose")
        if conv is None or conv.graph is not graph or len(conv.outputs[0].uses()) != 1:
            continue
        if conv.outputs[0].is_graph_output():
            continue
        attributes = known_attributes(node, schema_of(node).defaults)
        arrays = [constant(value, types) for value in (conv.inputs[1], *node.inputs[1:5])]
        has_bias = len(conv.inputs) > 2 and conv.inputs[2] is not None
        bias = constant(conv.inputs[2], types) if has_bias else None
        if attributes.get("training_mode") or any(array is None for array in arrays):
            continue
        if (has_bias and bias is None) or any(out.uses() for out in node.outputs[1:]):
            continue
        weight, scale, shift, mean, variance = (np.asarray(array) for array in arrays)
        group = known_attributes(conv, schema_of(conv).defaults).get("group", 1)
        if weight.dtype != np.float32 or (conv.op_type == "ConvTranspose" and group != 1):
            continue
        factor = scale.astype(np.float64) / np.sqrt(
            variance.astype(np.float64) + attributes["epsilon"]
        )
        axis = 0 if conv.op_type == "Conv" else 1
        shape = [-1 if i == axis else 1 for i in range(weight.ndim)]
        folded = (weight * factor.reshape(shape)).astype(np.float32)
        start = 0.0 if bias is None else bias.astype(np.float64)
        moved = ((start - mean) * factor + shift).astype(np.float32)
        name = str(conv.outputs[0].name)
        inputs = [
            conv.inputs[0],
            add_initializer(graph, f"{name} weights", folded),
            add_initializer(graph, f"{name} bias", moved),
        ]
        changed.append(name_of(node))
        substitute(graph, types, node, conv.op_type, inputs, **conv.attributes)
    return changed
