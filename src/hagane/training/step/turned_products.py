"""Products of which only the transpose is read, as gradients of weights are."""

from __future__ import annotations

import onnx_ir as ir

from hagane.ops.builder import interpreting, op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    attributes_of,
    given,
    is_read_once,
    name_of,
    nodes_before,
    producer,
    remove_unread,
    replace_value,
    shape_of,
)


def turn_products(graph: ir.Graph, types: GraphTypes) -> None:
    """Compute a product of matrices as its transpose, where nothing else is read.

    The gradient of a linear layer's weights is the transpose of a product. A kernel of its own
    would copy it column by column, and do the casts behind products of 16 bits on the way.
    """
    for node in list(graph):
        if node.graph is graph and _swaps(node, types):
            _turn(graph, types, node)


def _swaps(node: ir.Node, types: GraphTypes) -> bool:
    """Whether a node is the transpose of a matrix."""
    if node.domain or node.op_type != "Transpose":
        return False
    perm = attributes_of(node).get("perm")
    return _is_matrix(node.inputs[0], types) and (perm is None or tuple(perm) == (1, 0))


def _is_matrix(value: ir.Value | None, types: GraphTypes) -> bool:
    return len(shape_of(value, types) or ()) == 2


def _turn(graph: ir.Graph, types: GraphTypes, node: ir.Node) -> None:
    casts: list[ir.Node] = []
    value = node.inputs[0]
    while (cast := producer(value, "Cast")) is not None and value is not None:
        if not is_read_once(value):
            return
        casts.append(cast)
        value = cast.inputs[0]
    product = producer(value, "MatMul")
    if product is None or value is None or not is_read_once(value):
        return
    sides = [side for side in product.inputs if side is not None]
    if not all(_is_matrix(side, types) for side in sides):
        return
    with interpreting(nodes_before(graph, types, node, name_of(product))):
        made = op("MatMul", *(_turned(side, types) for side in reversed(sides)))
        for cast in reversed(casts):
            made = op("Cast", made, **given(cast))
    replace_value(graph, types, node.outputs[0], made)
    remove_unread(graph, node)


def _turned(value: ir.Value, types: GraphTypes) -> ir.Value:
    """Return the transpose of a matrix, which is what a transpose was made of."""
    maker = value.producer()
    if maker is not None and _swaps(maker, types) and maker.inputs[0] is not None:
        return maker.inputs[0]
    made: ir.Value = op("Transpose", value, perm=[1, 0])
    return made
