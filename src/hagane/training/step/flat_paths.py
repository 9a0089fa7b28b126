"""Parameters that a loss depends on by functions alone whose derivative is zero almost everywhere.

Operators give these no gradient, which costs nothing on the way back. PyTorch gives zeros, which
the optimizer follows: weights decay, and momentum goes on.
"""

from __future__ import annotations

import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.gradient.marks import is_stopped
from hagane.ops.inference import GraphTypes

# Constant almost everywhere.
FLAT = frozenset({"Ceil", "Floor", "Round", "Sign"})
# Whose float inputs other than the first one have no gradient in PyTorch either.
_OF_ONE = frozenset({"Resize", "RoiAlign", "MaxRoiPool"})


def behind_flat(graph: ir.Graph, types: GraphTypes, loss: ir.Value) -> frozenset[ir.Value]:
    """Return what a loss depends on by real numbers, if a function on the way is flat.

    Bodies of branches and loops are not followed.

    Args:
        graph: The loss, without gradients.
        types: Of its values.
        loss: One of its values.
    """
    if not any(node.op_type in FLAT and not node.domain for node in graph):
        return frozenset()
    found = {loss}
    for node in reversed(graph):
        bodies = any(
            a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
            for a in node.attributes.values()
        )
        if bodies or is_stopped(node) or not any(value in found for value in node.outputs):
            continue
        given = node.inputs[:1] if node.op_type in _OF_ONE else node.inputs
        found.update(value for value in given if value is not None and _is_real(types, value))
    return frozenset(found)


def _is_real(types: GraphTypes, value: ir.Value) -> bool:
    found = types.types.get(value)
    return isinstance(found, TensorType) and found.dtype.is_floating_point()
