"""Compute ahead values that follow from constants and known sizes."""

from __future__ import annotations

import onnx_ir as ir

from hagane.graph.walk import has_bodies
from hagane.ops.definition import Array
from hagane.ops.folding import fold_node
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import find
from hagane.passes.edit import (
    add_initializer,
    constant,
    has_dtype,
    name_of,
    remove_unread,
    replace_value,
)

# Results may be this much larger, in bytes, than the constants that they take the place of.
_MOST_ADDED = 64 << 10
# Larger results would lie in memory beside their packed forms, while the weights that they
# are made of may stay in their file: engines compute them as they pack.
_MOST_BYTES = 1 << 20


def fold_constants(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace nodes whose results are known by constants of the graph; return which.

    Known are results of nodes that read constants only, and values that follow from the shapes of
    others (``Shape``, ``Gather``, ``Concat``), where those are numbers.

    Left alone are nodes that draw random numbers, hold subgraphs, make outputs of the graph, text
    or anything but tensors; DequantizeLinear, since engines read quantised weights as they are; and
    results of more than a megabyte or much larger than the constants that nobody else reads.
    """
    changed: list[str] = []
    for node in list(graph):
        arrays = _results(node, types)
        if arrays is None:
            continue
        changed.append(name_of(node))
        held = _held(node)
        for old, array in zip(node.outputs, arrays, strict=True):
            if old.uses():
                content = array if held is None else held
                replace_value(graph, types, old, add_initializer(graph, str(old.name), content))
        remove_unread(graph, node)
    return changed


def _held(node: ir.Node) -> ir.TensorProtocol | None:
    """Return the tensor that a Constant holds."""
    attribute = node.attributes.get("value") if node.op_type == "Constant" else None
    if attribute is None or attribute.type != ir.AttributeType.TENSOR:
        return None
    found: ir.TensorProtocol = attribute.value
    return found


def _results(node: ir.Node, types: GraphTypes) -> list[Array] | None:
    """Return the contents of all outputs of a node, if they are known and not too large."""
    if (
        find(node).random
        or has_bodies(node)
        or node.op_type == "DequantizeLinear"
        or not node.outputs
    ):
        return None
    if any(out.is_graph_output() for out in node.outputs) or not any(
        out.uses() for out in node.outputs
    ):
        return None
    known = [types.values.get(out) for out in node.outputs]
    arrays = [array for array in known if array is not None and array.dtype != object]
    if len(arrays) < len(node.outputs):
        computed = _computed(node, types)
        if computed is None:
            return None
        arrays = computed
    # A Constant holds its replacement.
    freed = sum(_freed_bytes(value) for value in node.inputs if value is not None)
    size = sum(array.nbytes for array in arrays)
    if node.op_type != "Constant" and size > min(_MOST_BYTES, _MOST_ADDED + freed):
        return None
    fits = (
        array.dtype.kind not in "OUS" and has_dtype(out, types, ir.DataType.from_numpy(array.dtype))
        for out, array in zip(node.outputs, arrays, strict=True)
    )
    return arrays if all(fits) else None


def _computed(node: ir.Node, types: GraphTypes) -> list[Array] | None:
    arguments = [constant(value, types) for value in node.inputs]
    if any(
        value is not None and (array is None or array.dtype == object)
        for value, array in zip(node.inputs, arguments, strict=True)
    ):
        return None
    return fold_node(node, arguments, types.types)


def _freed_bytes(value: ir.Value) -> int:
    if value.const_value is None or len(value.uses()) != 1 or value.is_graph_output():
        return 0
    return int(value.const_value.nbytes)
