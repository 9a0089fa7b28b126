"""Pass over nodes that return their input."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.ops.registry import has_trait
from hagane.ops.traits import Trait
from hagane.passes.edit import (
    attributes_of,
    constant,
    name_of,
    remove_unread,
    replace_value,
    shape_of,
    type_of,
)


def remove_identity(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Let readers of a node that returns its input read that; return where.

    Such are Identity; Dropout while not training; Cast to the type that is there; Reshape, Expand,
    Flatten, Squeeze, Unsqueeze and Tile to the shape that is there; Slice of everything, forwards;
    Transpose that keeps the order; Concat, Sum, Mean, Max and Min of one; Pad by nothing; Clip
    without bounds; products with and quotients by 1; and sums that change no bit: ``x - 0``,
    ``x + -0``, and ``x + 0`` of integers, since ``-0 + 0`` is ``0``.

    Constants that widen the other operand are left, and so is a node between an input and an output
    of the graph: the two need names of their own.
    """
    changed: list[str] = []
    for node in list(graph):
        source = None if node.domain != "" else _returned(node, types)
        if source is None or not node.outputs:
            continue
        out = node.outputs[0]
        if out.is_graph_output() and not _may_be_renamed(graph, source):
            continue
        changed.append(name_of(node))
        replace_value(graph, types, out, source)
        remove_unread(graph, node)
    return changed


def _may_be_renamed(graph: ir.Graph, value: ir.Value) -> bool:
    producer = value.producer()
    return producer is not None and producer.graph is graph and not value.is_graph_output()


def _returned(node: ir.Node, types: GraphTypes) -> ir.Value | None:
    """Return the input that a node returns unchanged, if it does."""
    if node.op_type == "Identity":
        return node.inputs[0]
    if node.op_type == "Dropout":
        return node.inputs[0] if _drops_nothing(node, types) else None
    if node.op_type in ("Mul", "Div", "Add", "Sub"):
        return _unchanged_operand(node, types)
    source = node.inputs[0] if node.inputs else None
    before, after = type_of(source, types), type_of(node.outputs[0], types)
    if before is None or before != after or before.shape is None:
        return None
    match node.op_type:
        case "Cast":
            same = True
        case "Transpose":
            rank = len(before.shape)
            perm = attributes_of(node).get("perm", tuple(reversed(range(rank))))
            same = tuple(perm) == tuple(range(rank))
        case "Slice":
            steps = node.inputs[4] if len(node.inputs) > 4 else None
            known = constant(steps, types)
            same = steps is None or (known is not None and bool((known > 0).all()))
        case "Pad":
            pads = constant(node.inputs[1], types)
            same = pads is not None and not pads.any()
        case "Clip":
            same = all(bound is None for bound in node.inputs[1:])
        case _ if has_trait(node, Trait.VARIADIC):
            same = len(node.inputs) == 1
        case _:
            same = has_trait(node, Trait.RESHAPING | Trait.REPEATING)
    return source if same else None


def _drops_nothing(node: ir.Node, types: GraphTypes) -> bool:
    if any(out.uses() or out.is_graph_output() for out in node.outputs[1:]):
        return False
    training = node.inputs[2] if len(node.inputs) > 2 else None
    known = constant(training, types)
    return training is None or (known is not None and not bool(known))


def _unchanged_operand(node: ir.Node, types: GraphTypes) -> ir.Value | None:
    left, right = node.inputs
    pairs = [(left, right)]
    if node.op_type in ("Mul", "Add"):
        pairs.append((right, left))
    for value, other in pairs:
        array = constant(other, types)
        shape = shape_of(value, types)
        if array is None or shape is None or shape != shape_of(node.outputs[0], types):
            continue
        if node.op_type in ("Mul", "Div"):
            neutral = bool((array == 1).all())
        elif array.dtype.kind in "iu":
            neutral = not array.any()
        else:
            negative = np.signbit(array.astype(np.float64))
            neutral = not array.any() and bool((negative == (node.op_type == "Add")).all())
        if neutral:
            return value
    return None
