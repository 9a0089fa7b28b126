"""Keep the items of a sequence as rows of one tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import SequenceType, TensorType
from hagane.graph.walk import bodies
from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes, infer_added
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
from hagane.symbolic import Dim, symbol, symbols_of

_MAKERS = ("SequenceEmpty", "SequenceConstruct", "SplitToSequence")
_CHANGERS = ("SequenceInsert", "SequenceErase")
_READERS = ("SequenceAt", "SequenceLength", "ConcatFromSequence")
_END = np.iinfo(np.int64).max


def stack_sequences(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace sequences whose items have one type by tensors with an axis more; return where.

    Sequences that one node hands to another, a loop to its body or a branch to its readers go
    together. The sizes of items must be numbers, or names that the graph's inputs show. An item is
    inserted at an end, or, like one that is erased, at a known place of a sequence of known length.
    Pieces of SplitToSequence must be of one known length. Sequences that the model is given or
    returns, and those that other operators read, stay.

    Where a sequence without items is joined, an empty tensor is left; ConcatFromSequence would
    fail.
    """
    changed: list[str] = []
    for found in _groups(graph, types):
        item = _item(found, types)
        if item is None or not _measured(found, types):
            continue
        if {name for dim in item.shape or () for name in symbols_of(dim)} - shown_by(graph, types):
            continue
        changed += [name_of(node) for _, node in found.nodes if node.op_type in _MAKERS]
        _rewrite(found, item, types)
    return changed


@dataclass(eq=False, slots=True)
class _Group:
    """Sequences of one kind.

    Attributes:
        nodes: Nodes that make, change, read or hand them on, with the graphs that they are in, as
            they run; loops and branches behind what is in their bodies.
        carried: Inputs of bodies, and results of loops and branches.
        stays: Something else reads or makes them.
    """

    nodes: list[tuple[ir.Graph, ir.Node]] = field(default_factory=list)
    carried: dict[ir.Value, None] = field(default_factory=dict)
    stays: bool = False


class _Joined:
    """Values by the group that they belong to."""

    def __init__(self) -> None:
        self._parents: dict[ir.Value, ir.Value] = {}

    def find(self, value: ir.Value) -> ir.Value:
        while (parent := self._parents.setdefault(value, value)) is not value:
            value = parent
        return value

    def join(self, *values: ir.Value) -> ir.Value:
        first = self.find(values[0])
        for value in values[1:]:
            self._parents[self.find(value)] = first
        return first


def _groups(graph: ir.Graph, types: GraphTypes) -> Iterator[_Group]:
    joined = _Joined()
    made: set[ir.Value] = set()  # by nodes that the groups hold, or carried
    stay: list[ir.Value] = []
    carried: list[ir.Value] = []
    nodes: list[tuple[ir.Graph, ir.Node, ir.Value]] = []
    for each, node in _as_they_run(graph):
        values = [value for value in (*node.inputs, *node.outputs) if value is not None]
        touched = [value for value in values if _is_sequence(value, types)]
        kind = node.op_type if node.domain == "" else ""
        if kind in ("Loop", "If"):
            for one, own in _handed_on(node, kind):
                given = [value for value in one if value is not None]
                if not any(_is_sequence(value, types) for value in given):
                    continue
                nodes.append((each, node, joined.join(*given)))
                carried += own
                made.update(own)
                touched = [value for value in touched if value not in given]
                if len(given) < len(one):
                    stay += given
            stay += touched
        elif kind in (*_MAKERS, *_CHANGERS, *_READERS, "Identity"):
            if touched:
                made.update(v for v in node.outputs if _is_sequence(v, types))
                nodes.append((each, node, joined.join(*touched)))
        else:
            stay += touched
    stay += [value for value in (*graph.inputs, *graph.outputs) if _is_sequence(value, types)]
    groups: dict[ir.Value, _Group] = {}
    for each, node, first in nodes:
        groups.setdefault(joined.find(first), _Group()).nodes.append((each, node))
        read = [value for value in node.inputs if _is_sequence(value, types)]
        stay += [value for value in read if value is not None and value not in made]
    for value in carried:
        groups.setdefault(joined.find(value), _Group()).carried[value] = None
    for value in stay:
        groups.setdefault(joined.find(value), _Group()).stays = True
    yield from (group for group in groups.values() if group.nodes and not group.stays)


def _as_they_run(graph: ir.Graph) -> Iterator[tuple[ir.Graph, ir.Node]]:
    """Yield all nodes with their graphs, those of bodies before the node that has them."""
    for node in graph:
        for body in bodies(node):
            yield from _as_they_run(body)
        yield graph, node


def _is_sequence(value: ir.Value | None, types: GraphTypes) -> bool:
    return value is not None and isinstance(types.types.get(value), SequenceType)


def _handed_on(
    node: ir.Node, kind: str
) -> Iterator[tuple[tuple[ir.Value | None, ...], tuple[ir.Value, ...]]]:
    """Yield the values that are one, a state of a loop or a result of branches.

    The second tuple has those among them that the node itself gives, to its body and its readers.
    """
    if kind == "Loop":
        body = node.attributes["body"].as_graph()
        n = len(node.inputs) - 2
        states = zip(body.inputs[2:], body.outputs[1 : 1 + n], node.outputs[:n], strict=True)
        for start, (before, after, result) in zip(node.inputs[2:], states, strict=True):
            yield (start, before, after, result), (before, result)
    else:
        graphs = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        for *values, result in zip(*(body.outputs for body in graphs), node.outputs, strict=True):
            yield (*values, result), (result,)


# ---- the type of items, and numbers of them ----


def _item(found: _Group, types: GraphTypes) -> TensorType | None:
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
        return axis, size, 1
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


def _measured(found: _Group, types: GraphTypes) -> bool:
    """Whether all places at which items are inserted or erased are known to be there."""
    lengths: dict[ir.Value | None, int | None] = {}
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
        elif node.op_type in _CHANGERS:
            inserts = node.op_type == "SequenceInsert"
            if not _is_inside(node, before, inserts, types):
                return False
            length = None if before is None else before + (1 if inserts else -1)
        if node.outputs and _is_sequence(node.outputs[0], types):
            lengths[node.outputs[0]] = length if isinstance(length, int) else None
    return True


def _place(node: ir.Node, types: GraphTypes) -> int | None:
    """Return the place at which a node inserts or erases an item; the end is None."""
    at = 2 if node.op_type == "SequenceInsert" else 1
    if len(node.inputs) <= at or node.inputs[at] is None:
        return None
    found = constant(node.inputs[at], types)
    return _END if found is None or found.size != 1 else int(found.reshape(-1)[0])


def _is_inside(node: ir.Node, length: int | None, inserts: bool, types: GraphTypes) -> bool:
    place = _place(node, types)
    if inserts and place in (None, 0):
        return True
    if length is None:
        return False
    return -length <= (-1 if place is None else place) < length + inserts


# ---- rows ----


def _rewrite(found: _Group, item: TensorType, types: GraphTypes) -> None:
    assert item.shape is not None
    for value in found.carried:
        name = f"items of {value.name}"
        types.invented.add(name)
        types.types[value] = TensorType(item.dtype, (symbol(name), *item.shape))
        value.type, value.shape = ir.TensorType(item.dtype), None
    for graph, node in found.nodes:
        if node.op_type in ("Loop", "If"):
            infer_added(node, types)
            continue
        if node.op_type == "Identity":
            source = node.inputs[0]
            assert source is not None
            types.types[node.outputs[0]] = types.types[source]
            node.outputs[0].type, node.outputs[0].shape = ir.TensorType(item.dtype), None
            continue
        with building(graph, types, node, node.name or ""):
            made = _ROWS[node.op_type](node, item, types)  # by a node of its own
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
    rows, place = node.inputs[0], _place(node, types)
    row = op("Unsqueeze", node.inputs[1], [0])
    if place is None:
        return op("Concat", rows, row, axis=0)
    if place == 0:
        return op("Concat", row, rows, axis=0)
    front, back = op("Slice", rows, [0], [place], [0]), op("Slice", rows, [place], [_END], [0])
    return op("Concat", front, row, back, axis=0)


def _erase(node: ir.Node, item: TensorType, types: GraphTypes) -> Any:
    rows, place = node.inputs[0], _place(node, types)
    if place in (None, -1):
        return op("Slice", rows, [0], [-1], [0])
    assert place is not None
    back = op("Slice", rows, [place + 1], [_END], [0])
    return op("Concat", op("Slice", rows, [0], [place], [0]), back, axis=0) if place else back


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
    stacked = type_of(node.inputs[0], types)
    assert stacked is not None
    assert stacked.shape is not None
    if all(isinstance(dim, int) and dim > 0 for dim in shape):
        return op("Reshape", rows, [*shape[:axis], -1, *shape[axis + 1 :]])
    length = stacked.shape[0] * shape[axis]
    return op("Reshape", rows, [*shape[:axis], length, *shape[axis + 1 :]], allowzero=1)


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
