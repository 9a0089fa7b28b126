"""Keep the items of a sequence as rows of one tensor."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.passes.control.sequence_groups import (
    CHANGERS,
    MAKERS,
    SOMEWHERE,
    Group,
    carry_tensors,
    groups,
    is_handed_on,
    is_sequence,
    place_of,
)
from hagane.passes.edit import (
    attributes_of,
    building,
    constant,
    name_of,
    remove_unread,
    replace_value,
    shown_by,
    type_of,
)
from hagane.symbolic import Dim, symbols_of

_END = np.iinfo(np.int64).max


def stack_sequences(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace sequences whose items have one type by tensors with an axis more; return where.

    Sequences that one node hands to another, a loop to its body or a branch to its readers go
    together. The sizes of items must be numbers, or names that the graph's inputs show. Places at
    which items are inserted or erased, and that may not be there, are looked up in the run. Pieces
    of SplitToSequence must be of one known length. Sequences that the model is given or
    returns, and those that other operators read, stay.

    Where a sequence without items is joined, an empty tensor is left; ConcatFromSequence would
    fail.
    """
    changed: list[str] = []
    for found in groups(graph, types):
        item = _item(found, types)
        if item is None:
            continue
        if {name for dim in item.shape or () for name in symbols_of(dim)} - shown_by(graph, types):
            continue
        changed += [name_of(node) for _, node in found.nodes if node.op_type in MAKERS]
        _rewrite(found, item, _doubtful(found, types), types)
    return changed


# ---- the type of items, and numbers of them ----


def _item(found: Group, types: GraphTypes) -> TensorType | None:
    """Return the type of all items, if they have one."""
    kinds: set[TensorType | None] = set()
    for _, node in found.nodes:
        if node.op_type == "SequenceConstruct":
            kinds |= {type_of(value, types) for value in node.inputs}
        elif node.op_type == "SplitToSequence":
            kinds.add(_piece(node, types))
        elif node.op_type == "SequenceInsert":
            item = node.inputs[1]
            maker = None if item is None else item.producer()
            # An item of the same sequence is of any type that the others are.
            if (
                maker is None
                or maker.op_type != "SequenceAt"
                or all(other is not maker for _, other in found.nodes)
            ):
                kinds.add(type_of(item, types))
    (item_type,) = kinds if len(kinds) == 1 else (None,)
    if item_type is None or item_type.shape is None or item_type.dtype == ir.DataType.STRING:
        return None
    return item_type


def _pieces(node: ir.Node, types: GraphTypes) -> tuple[int, Dim, int | None] | None:
    """Return the axis of a SplitToSequence, the number of pieces, and their length.

    The length is None if pieces lack the axis.
    """
    whole = type_of(node.inputs[0], types)
    attributes = attributes_of(node)
    if whole is None or not whole.shape:
        return None
    axis = attributes["axis"] % len(whole.shape)
    size = whole.shape[axis]
    if len(node.inputs) < 2 or node.inputs[1] is None:
        return axis, size, 1 if attributes["keepdims"] else None
    given = constant(node.inputs[1], types)
    if given is None or given.size == 0 or len(set(given.reshape(-1).tolist())) > 1:
        return None
    length = int(given.reshape(-1)[0])
    if length == 1 and given.ndim == 0:
        return axis, size, 1 if attributes["keepdims"] else None
    if length < 1 or not isinstance(size, int) or size % length:
        return None
    count = size // length
    return (axis, count, length) if given.ndim == 0 or given.size == count else None


def _piece(node: ir.Node, types: GraphTypes) -> TensorType | None:
    found, whole = _pieces(node, types), type_of(node.inputs[0], types)
    if found is None or whole is None or whole.shape is None:
        return None
    axis, _, length = found
    kept = () if length is None else (length,)
    return TensorType(whole.dtype, (*whole.shape[:axis], *kept, *whole.shape[axis + 1 :]))


def _doubtful(found: Group, types: GraphTypes) -> Set[ir.Node]:
    """Return the nodes that insert or erase items at places that may not be there."""
    lengths: dict[ir.Value | None, int | None] = {}
    doubtful: set[ir.Node] = set()
    for _, node in found.nodes:
        before = lengths.get(node.inputs[0]) if node.inputs else None
        length: Dim | None = before
        if node.op_type == "SequenceEmpty":
            length = 0
        elif node.op_type == "SequenceConstruct":
            length = len(node.inputs)
        elif node.op_type == "SplitToSequence":
            pieces = _pieces(node, types)
            length = None if pieces is None else pieces[1]
        elif node.op_type in CHANGERS:
            inserts = node.op_type == "SequenceInsert"
            if not _is_inside(node, before, inserts, types):
                doubtful.add(node)
            length = None if before is None else before + (1 if inserts else -1)
        if node.outputs and is_sequence(node.outputs[0], types):
            lengths[node.outputs[0]] = length if isinstance(length, int) else None
    return doubtful


def _is_inside(node: ir.Node, length: int | None, inserts: bool, types: GraphTypes) -> bool:
    place = place_of(node, types)
    if inserts and place in (None, 0):
        return True
    if length is None:
        return False
    return -length <= (-1 if place is None else place) < length + inserts


# ---- rows ----


def _rewrite(found: Group, item: TensorType, doubtful: Set[ir.Node], types: GraphTypes) -> None:
    assert item.shape is not None
    carry_tensors(found, types, item.dtype, (None, *item.shape))
    for graph, node in found.nodes:
        if is_handed_on(node, types):
            continue
        with building(graph, types, node, node.name or ""):
            by_run = {"SequenceInsert": _insert_there, "SequenceErase": _erase_there}
            rule = (by_run if node in doubtful else _ROWS)[node.op_type]
            made = rule(node, item, types)  # by a node of its own
        made.producer().name = node.name
        replace_value(graph, types, node.outputs[0], made)
        remove_unread(graph, node)


def _empty(node: ir.Node, item: TensorType, types: GraphTypes) -> Any:
    zero = ir.tensor(np.zeros(1, item.dtype.numpy()), dtype=item.dtype)
    return op("ConstantOfShape", [0, *(item.shape or ())], value=zero)


def _construct(node: ir.Node, item: TensorType, types: GraphTypes) -> Any:
    return op("Concat", *(op("Unsqueeze", value, [0]) for value in node.inputs), axis=0)


def _split(node: ir.Node, item: TensorType, types: GraphTypes) -> Any:
    found, whole = _pieces(node, types), type_of(node.inputs[0], types)
    assert found is not None
    assert whole is not None
    assert whole.shape is not None
    axis, count, length = found
    rows: Any = node.inputs[0]
    order = [axis, *(i for i in range(len(whole.shape)) if i != axis)]
    if length is not None:
        shape = [*whole.shape[:axis], count, length, *whole.shape[axis + 1 :]]
        rows = op("Reshape", rows, shape, allowzero=1)
        order = [axis, *(i for i in range(len(whole.shape) + 1) if i != axis)]
    return op("Transpose", rows, perm=order) if axis else op("Identity", rows)


def _insert(node: ir.Node, item: TensorType, types: GraphTypes) -> Any:
    rows, place = node.inputs[0], place_of(node, types)
    row = op("Unsqueeze", node.inputs[1], [0])
    if place is None:
        return op("Concat", rows, row, axis=0)
    if place == 0:
        return op("Concat", row, rows, axis=0)
    front, back = op("Slice", rows, [0], [place], [0]), op("Slice", rows, [place], [_END], [0])
    return op("Concat", front, row, back, axis=0)


def _erase(node: ir.Node, item: TensorType, types: GraphTypes) -> Any:
    rows, place = node.inputs[0], place_of(node, types)
    if place in (None, -1):
        return op("Slice", rows, [0], [-1], [0])
    assert place is not None
    back = op("Slice", rows, [place + 1], [_END], [0])
    return op("Concat", op("Slice", rows, [0], [place], [0]), back, axis=0) if place else back


def _insert_there(node: ir.Node, item: TensorType, types: GraphTypes) -> Any:
    """Insert an item at a place that only the run knows, from minus the length to the length."""
    rows, row = node.inputs[0], op("Unsqueeze", node.inputs[1], [0])
    length = op("Shape", rows, start=0, end=1)
    number, one = op("Squeeze", length, [0]), op("Squeeze", op("Add", length, 1), [0])
    places = op("Concat", op("Range", 0, number, 1), op("Range", 0, one, 1), axis=0)
    at = op("Add", _whole_number(node.inputs[2]), length)
    place = op("Gather", places, op("Where", op("Less", at, 0), SOMEWHERE, at))
    front, back = op("Slice", rows, [0], place, [0]), op("Slice", rows, place, [_END], [0])
    return op("Concat", front, row, back, axis=0)


def _erase_there(node: ir.Node, item: TensorType, types: GraphTypes) -> Any:
    """Erase an item at a place that only the run knows, from minus the length to before it."""
    rows = node.inputs[0]
    number = op("Squeeze", op("Shape", rows, start=0, end=1), [0])
    given = node.inputs[1] if len(node.inputs) > 1 else None
    place = op("Gather", op("Range", 0, number, 1), [-1] if given is None else _whole_number(given))
    front = op("Slice", rows, [0], place, [0])
    return op("Concat", front, op("Slice", rows, op("Add", place, 1), [_END], [0]), axis=0)


def _whole_number(value: Any) -> Any:
    """Return one number as int64 with one axis."""
    return op("Reshape", op("Cast", value, to=ir.DataType.INT64), [1])


def _at(node: ir.Node, item: TensorType, types: GraphTypes) -> Any:
    place: Any = node.inputs[1]
    found = type_of(place, types)
    if found is None or found.shape != ():
        place = op("Reshape", place, np.zeros(0, np.int64))
    return op("Gather", node.inputs[0], place, axis=0)


def _length(node: ir.Node, item: TensorType, types: GraphTypes) -> Any:
    return op("Squeeze", op("Shape", node.inputs[0], start=0, end=1), [0])


def _concat(node: ir.Node, item: TensorType, types: GraphTypes) -> Any:
    rows, attributes = node.inputs[0], attributes_of(node)
    shape: Sequence[Dim] = item.shape or ()
    axis = attributes["axis"] % (len(shape) + attributes["new_axis"])
    if axis:
        rows = op(
            "Transpose", rows, perm=[*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
        )
    if attributes["new_axis"]:
        return rows if axis else op("Identity", rows)
    if all(isinstance(dim, int) and dim > 0 for dim in shape):
        return op("Reshape", rows, [*shape[:axis], -1, *shape[axis + 1 :]])
    # (A named size may be 0: -1 could be any number then, and 0 is no copy of another.)
    length = op("Mul", op("Shape", node.inputs[0], start=0, end=1), [shape[axis]])
    front, back = shape[:axis], shape[axis + 1 :]
    sizes = [list(front)] * bool(front) + [length] + [list(back)] * bool(back)
    target = op("Concat", *sizes, axis=0) if len(sizes) > 1 else length
    return op("Reshape", rows, target, allowzero=1)


_ROWS = {
    "SequenceEmpty": _empty,
    "SequenceConstruct": _construct,
    "SplitToSequence": _split,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceAt": _at,
    "SequenceLength": _length,
    "ConcatFromSequence": _concat,
}
