"""Let Softmax work on the last axis again where older models flatten for it."""

from __future__ import annotations

import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.ops.registry import has_trait
from hagane.ops.traits import Trait
from hagane.passes.edit import attributes_of, name_of, producer, shape_of, substitute


def restore_softmax(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace Softmax between a flattening of all axes but the last and its undoing; return where.

    Until opset 13 Softmax, LogSoftmax and Hardmax took all axes from one on together, which is
    Flatten, the operator, and Reshape to the shape before. Where only the last axis is one of them,
    the operator alone does the same. Nothing changes where more axes are taken together.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "Reshape" or node.domain != "":
            continue
        rows = node.inputs[0].producer() if node.inputs[0] is not None else None
        if rows is None or not has_trait(rows, Trait.ROWWISE):
            continue
        flat = producer(rows.inputs[0], "Flatten") or producer(rows.inputs[0], "Reshape")
        source = None if flat is None else flat.inputs[0]
        own, matrix = shape_of(source, types), shape_of(rows.inputs[0], types)
        if source is None or not own or matrix is None or len(matrix) != 2:
            continue
        same = own == shape_of(node.outputs[0], types) and own[-1] == matrix[-1]
        if same and attributes_of(rows)["axis"] in (-1, 1):
            changed.append(name_of(rows))
            substitute(graph, types, node, rows.op_type, [source], axis=-1)
    return changed
