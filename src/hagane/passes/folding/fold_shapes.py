"""Write shapes that a model computes for itself as constants, named sizes left open."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.graph.types import Shape
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    add_initializer,
    attributes_of,
    constant,
    name_of,
    remove_unread,
    shape_of,
)
from hagane.symbolic import Dim, Expr


def fold_shapes(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Give Reshape and Expand constant shapes where inference followed the shape; return where.

    A named size that Reshape takes over from the same axis of its input becomes 0, and one other
    becomes -1; a named size that Expand leaves as it is becomes 1. The computation of the shape is
    removed if nothing else reads it.

    Nothing changes where more sizes stay open, or one beside axes that are taken over, which may be
    empty; or where a 0 already means an empty axis (``allowzero``).
    """
    changed: list[str] = []
    for node in list(graph):
        if node.domain != "" or node.op_type not in ("Reshape", "Expand"):
            continue
        shape = node.inputs[1]
        known = None if shape is None else types.values.get(shape)
        own = shape_of(node.inputs[0], types)
        if shape is None or known is None or own is None or constant(shape, types) is not None:
            continue
        dims = [item if isinstance(item, Expr) else int(item) for item in known.reshape(-1)]
        numbers = _of_reshape(dims, own) if node.op_type == "Reshape" else _of_expand(dims, own)
        if numbers is None or (node.op_type == "Reshape" and not _may_fold(node, dims)):
            continue
        changed.append(name_of(node))
        node.attributes.pop("allowzero", None)
        node.replace_input_with(1, add_initializer(graph, f"{shape.name} known", np.array(numbers)))
        producer = shape.producer()
        if producer is not None:
            remove_unread(graph, producer)
    return changed


def _may_fold(node: ir.Node, dims: list[Dim]) -> bool:
    return 0 not in dims or not attributes_of(node)["allowzero"]


def _of_reshape(dims: list[Dim], own: Shape) -> list[int] | None:
    numbers: list[int] = []
    for axis, dim in enumerate(dims):
        if not isinstance(dim, Expr):
            numbers.append(dim)
        elif axis < len(own) and own[axis] == dim:
            numbers.append(0)
        else:
            numbers.append(-1)
    # Beside axes that may have length 0, a new -1 would have no meaning where they do.
    if -1 in numbers and -1 not in dims and 0 in numbers:
        return None
    return numbers if numbers.count(-1) <= 1 else None


def _of_expand(dims: list[Dim], own: Shape) -> list[int] | None:
    numbers: list[int] = []
    for position, dim in enumerate(dims):
        axis = position - len(dims)
        if not isinstance(dim, Expr):
            numbers.append(dim)
        elif -axis <= len(own) and own[axis] == dim:
            numbers.append(1)
        else:
            return None
    return numbers
