"""Keep the items of a sequence one behind the other in one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import SequenceType, TensorType
from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.passes.control.sequence_groups import (
    MAKERS,
    Group,
    carry_tensors,
    groups,
    is_handed_on,
    place_of,
)
from hagane.passes.edit import (
    attributes_of,
    building,
    name_of,
    remove_unread,
    replace_value,
    shown_by,
    type_of,
)
from hagane.symbolic import Dim, symbols_of

_SERVED = frozenset({*MAKERS, "SequenceInsert", "ConcatFromSequence", "Identity", "If", "Loop"})


def join_sequences(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace sequences that are only added to, and joined, by what is joined so far; return where.

    Sequences that one node hands to another, a loop to its body or a branch to its readers go
    together. Items may differ along one axis, which is the axis of all ConcatFromSequence; their
    other sizes must be numbers, or names that the graph's inputs show, and the same for all. Items
    are inserted at an end. Sequences that the model is given or returns, and those that other
    operators read, stay.

    Where a sequence without items is joined, an empty tensor is left; ConcatFromSequence would
    fail.
    """
    changed: list[str] = []
    for found in groups(graph, types):
        axis = _axis(found, types)
        item = None if axis is None else _item(found, axis, types)
        if axis is None or item is None or item.shape is None:
            continue
        rest = (dim for i, dim in enumerate(item.shape) if i != axis)
        if {name for dim in rest for name in symbols_of(dim)} - shown_by(graph, types):
            continue
        changed += [name_of(node) for _, node in found.nodes if node.op_type in MAKERS]
        _rewrite(found, item, axis, types)
    return changed


def _axis(found: Group, types: GraphTypes) -> int | None:
    """Return the axis along which all readers join the items, if it is one."""
    axes: set[int | None] = set()
    for _, node in found.nodes:
        if node.op_type not in _SERVED:
            return None
        if node.op_type == "SequenceInsert" and place_of(node, types) not in (None, 0):
            return None
        if node.op_type == "ConcatFromSequence":
            attributes, rank = attributes_of(node), _rank(found, types)
            axes.add(None if attributes["new_axis"] or not rank else attributes["axis"] % rank)
    return next(iter(axes)) if len(axes) == 1 else None


def _rank(found: Group, types: GraphTypes) -> int | None:
    ranks = {len(one.shape) for one in _items(found, types) if one is not None and one.shape}
    return next(iter(ranks)) if len(ranks) == 1 else None


def _items(found: Group, types: GraphTypes) -> list[TensorType | None]:
    """Return the types of all items, None for one that is no tensor of known shape."""
    kinds: list[TensorType | None] = []
    for _, node in found.nodes:
        if node.op_type == "SequenceConstruct":
            kinds += [type_of(value, types) for value in node.inputs]
        elif node.op_type == "SplitToSequence":
            pieces = types.types.get(node.outputs[0])
            element = pieces.element if isinstance(pieces, SequenceType) else None
            kinds.append(element if isinstance(element, TensorType) else None)
        elif node.op_type == "SequenceInsert":
            kinds.append(type_of(node.inputs[1], types))
    return [None if one is None or not one.shape else one for one in kinds]


def _item(found: Group, axis: int, types: GraphTypes) -> TensorType | None:
    """Return the type of all items, of any size along the axis, if they have one otherwise."""
    kinds: set[TensorType | None] = set()
    for one in _items(found, types):
        if one is None or one.shape is None or one.dtype == ir.DataType.STRING:
            return None
        kinds.add(TensorType(one.dtype, (*one.shape[:axis], 0, *one.shape[axis + 1 :])))
    for _, node in found.nodes:
        if node.op_type == "SplitToSequence":
            whole = type_of(node.inputs[0], types)
            # (The axis of the cuts alone is joined again without moving anything.)
            if whole is None or not whole.shape or _cut_axis(node, len(whole.shape)) != axis:
                return None
    return next(iter(kinds)) if len(kinds) == 1 else None


def _cut_axis(node: ir.Node, rank: int) -> int | None:
    """Return the axis along which a SplitToSequence cuts; None if pieces lack it."""
    attributes = attributes_of(node)
    return attributes["axis"] % rank if attributes["keepdims"] else None


def _rewrite(found: Group, item: TensorType, axis: int, types: GraphTypes) -> None:
    shape: Sequence[Dim] = item.shape or ()
    open_shape = [None if i == axis else dim for i, dim in enumerate(shape)]
    carry_tensors(found, types, item.dtype, open_shape)
    for graph, node in found.nodes:
        if is_handed_on(node, types):
            continue
        with building(graph, types, node, node.name or ""):
            made = _made(node, item, axis)
        made.producer().name = node.name
        replace_value(graph, types, node.outputs[0], made)
        remove_unread(graph, node)


def _made(node: ir.Node, item: TensorType, axis: int) -> Any:
    """Return what takes the place of a node's result, by a node of its own."""
    match node.op_type:
        case "SequenceEmpty":
            zero = ir.tensor(np.zeros(1, item.dtype.numpy()), dtype=item.dtype)
            return op("ConstantOfShape", [*(item.shape or ())], value=zero)
        case "SequenceInsert":
            whole, piece, *place = node.inputs
            at_front = bool(place) and place[0] is not None
            return op("Concat", *((piece, whole) if at_front else (whole, piece)), axis=axis)
        case "SequenceConstruct" if len(node.inputs) > 1:
            return op("Concat", *node.inputs, axis=axis)
        case _:  # pieces of a tensor are the tensor, and one item is the whole
            return op("Identity", node.inputs[0])
