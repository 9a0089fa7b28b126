"""Write linear nodes and normalisations whose parameters are computed in smaller operators."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of
from hagane.ops.inference import GraphTypes
from hagane.ops.linear.matmul import composed_gemm
from hagane.passes.edit import (
    attributes_of,
    building,
    constant,
    name_of,
    put_in_place,
    remove_unread,
    replace_value,
    shape_of,
    type_of,
)

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def spread_variable(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Take Gemm and BatchNormalization apart where their parameters vary; return where.

    Kernels of the two pack constant parameters ahead; a step of training has others each time. Gemm
    becomes MatMul, a product with alpha and a sum with ``beta · C``; BatchNormalization becomes
    means where it trains, a product and a sum (Ioffe and Szegedy, 2015). Both are of float32 or
    float64. Nothing changes where all parameters are constant and nothing is trained.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.domain != "" or node.op_type not in ("Gemm", "BatchNormalization"):
            continue
        source = type_of(node.inputs[0], types)
        if source is None or source.dtype not in _FLOATS or not source.shape:
            continue
        attributes = attributes_of(node)
        varies = any(
            value is not None and constant(value, types) is None for value in node.inputs[1:]
        )
        if node.op_type == "Gemm":
            if not varies and not attributes["transA"]:
                continue
            shapes = [shape_of(value, types) for value in node.inputs if value is not None]
            if None in shapes:
                continue
            changed.append(name_of(node))
            with building(graph, types, node, name_of(node)):
                made = composed_gemm(*node.inputs, **attributes)
            put_in_place(graph, types, node, made)
        elif varies or attributes.get("training_mode"):
            changed.append(name_of(node))
            with building(graph, types, node, name_of(node)):
                results = _normalised(node, attributes)
            for old, new in zip(node.outputs, results, strict=False):
                if old in types.types:
                    types.types[new] = types.types[old]
                replace_value(graph, types, old, new)
            remove_unread(graph, node)
    return changed


def _normalised(node: ir.Node, attributes: dict[str, Any]) -> list[ir.Value]:
    """Return the outputs of a normalisation by given statistics, or by those of the batch."""
    x, scale, shift, mean, variance = node.inputs[:5]
    rank = rank_of(x)
    axes = list(range(1, rank - 1))  # of one number a channel, beside the channels

    def along(value: Any) -> Any:
        """Return one number a channel so that it meets the channels of ``x``."""
        value = value if dtype_of(value) == dtype_of(x) else op("CastLike", value, x)
        return op("Unsqueeze", value, axes) if axes else value

    results: list[Any] = []
    if attributes.get("training_mode"):
        others = [0, *range(2, rank)]
        kept = op("ReduceMean", x, others)
        centred = op("Sub", x, kept)
        spread = op("ReduceMean", op("Mul", centred, centred), others)
        momentum = attributes["momentum"]
        for old, of_batch in ((mean, kept), (variance, spread)):
            flat = op("CastLike", op("Reshape", of_batch, [-1]), old)
            moved = op("Mul", old, momentum)
            results.append(op("Add", moved, op("Mul", flat, 1 - momentum)))
        deviation = spread
    else:
        centred = op("Sub", x, along(mean))
        deviation = along(variance)
    root = op("Sqrt", op("Add", deviation, attributes["epsilon"]))
    y = op("Add", op("Mul", centred, op("Div", along(scale), root)), along(shift))
    return [y, *results]
