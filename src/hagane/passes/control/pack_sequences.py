"""Keep the items of a sequence, whose lengths differ, one behind the other, and where each ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.passes.control.sequence_groups import Group, carry_tensors, groups, place_of
from hagane.passes.edit import (
    attributes_of,
    building,
    given,
    name_of,
    remove,
    remove_unread,
    replace_value,
    shown_by,
    type_of,
)
from hagane.symbolic import symbol, symbols_of

_END = np.iinfo(np.int64).max
_MAKERS = frozenset({"SequenceEmpty", "SequenceConstruct"})


def pack_sequences(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace sequences whose items differ in one length by two tensors; return where.

    One has all items, one behind the other along that axis, which comes first in it; the other
    has 0 and where each of them ends. Sequences that one node hands to another, a loop to its body
    or a branch to its readers go together. The items' other sizes must be numbers, or names that
    the graph's inputs show, and the same for all; ConcatFromSequence joins them along the axis in
    which they differ. Pieces of SplitToSequence stay, and so do sequences that the model is given
    or returns, and those that other operators read.

    Where a sequence without items is joined, an empty tensor is left; ConcatFromSequence would
    fail.
    """
    changed: list[str] = []
    for found in groups(graph, types):
        item = _item(found, graph, types)
        if item is None:
            continue
        changed += [name_of(node) for _, node in found.nodes if node.op_type in _MAKERS]
        _Packing(found, *item, types).rewrite()
    return changed


def _item(found: Group, graph: ir.Graph, types: GraphTypes) -> tuple[TensorType, int] | None:
    """Return the type of an item, and the axis in which they differ, if there is one."""
    kinds: list[TensorType] = []
    for _, node in found.nodes:
        if node.op_type == "SequenceConstruct":
            items = list(node.inputs)
        elif node.op_type == "SequenceInsert":
            maker = node.inputs[1].producer() if node.inputs[1] is not None else None
            again = maker is not None and any(other is maker for _, other in found.nodes)
            items = [] if again else [node.inputs[1]]
        elif node.op_type in _RULES or node.op_type in ("Identity", "If", "Loop"):
            continue
        else:
            return None
        of_items = [type_of(value, types) for value in items]
        if None in of_items:
            return None
        kinds += [each for each in of_items if each is not None]
    if len({(each.dtype, len(each.shape or ())) for each in kinds}) != 1:
        return None
    if kinds[0].dtype == ir.DataType.STRING:
        return None
    shown = shown_by(graph, types)
    differ = [
        axis
        for axis, dims in enumerate(zip(*(each.shape or () for each in kinds), strict=True))
        if len(set(dims)) > 1 or symbols_of(dims[0]) - shown
    ]
    if len(differ) != 1:
        return None
    for _, node in found.nodes:
        if node.op_type == "ConcatFromSequence":
            attributes = attributes_of(node)
            axis = attributes["axis"] % len(kinds[0].shape or ())
            if attributes["new_axis"] or axis != differ[0]:
                return None
    return kinds[0], differ[0]


class _Packing:
    """The rewriting of one group.

    Args:
        found: The sequences.
        item: The type of one of its items.
        axis: The axis in which they differ.
        types: Of all values; changed.
    """

    def __init__(self, found: Group, item: TensorType, axis: int, types: GraphTypes) -> None:
        shape = list(item.shape or ())
        self.found, self.axis, self.types, self.dtype = found, axis, types, item.dtype
        self.rest = [*shape[:axis], *shape[axis + 1 :]]
        self._ends: dict[ir.Value, ir.Value] = {}

    def rewrite(self) -> None:
        """Put tensors in the place of the sequences."""
        carry_tensors(self.found, self.types, self.dtype, [None, *self.rest])
        done: set[ir.Node] = set()
        for _, node in self.found.nodes:
            if node.op_type == "Loop" and node not in done:
                self._carry_ends(node)
                done.add(node)
        for graph, node in self.found.nodes:
            if node.op_type in ("Loop", "If"):
                if node in done or node.op_type == "If":
                    self._hand_on(graph, node)
                done.discard(node)
                continue
            with building(graph, self.types, node, node.name or ""):
                if node.op_type == "Identity":
                    made, ends = op("Identity", node.inputs[0]), self.ends(node.inputs[0])
                else:
                    made, ends = _RULES[node.op_type](self, node)
            maker = made.producer()
            if maker is not None:
                maker.name = node.name
            if ends is not None:
                self._ends[made] = ends
            replace_value(graph, self.types, node.outputs[0], made)
            remove_unread(graph, node)

    def ends(self, value: ir.Value | None) -> ir.Value:
        """Return where the items end of what was a sequence."""
        while value not in self._ends:
            # (A result that a body only hands on has a name of its own.)
            node = None if value is None else value.producer()
            assert node is not None, value
            assert node.op_type == "Identity", value
            value = node.inputs[0]
        assert value is not None
        return self._ends[value]

    def rows(self, item: Any) -> Any:
        """Return an item with the axis first in which items differ."""
        order = [i for i in range(1 + len(self.rest)) if i != self.axis]
        return op("Transpose", item, perm=[self.axis, *order]) if self.axis else item

    def item(self, rows: Any) -> Any:
        """Return an item of its rows."""
        order = [*range(1, self.axis + 1), 0, *range(self.axis + 1, 1 + len(self.rest))]
        return op("Transpose", rows, perm=order) if self.axis else rows

    def length(self, item: Any) -> Any:
        """Return the length of an item, with one axis."""
        return op("Shape", item, start=self.axis, end=self.axis + 1)

    # ---- loops and branches ----

    def _carry_ends(self, node: ir.Node) -> None:
        """Give the body of a loop inputs for where items end."""
        body = node.attributes["body"].as_graph()
        for before in [value for value in body.inputs[2:] if value in self.found.carried]:
            name = f"ends of {before.name}"
            self.types.invented.add(name)
            ends = ir.Value(name=name, type=ir.TensorType(ir.DataType.INT64))
            self.types.types[ends] = TensorType(ir.DataType.INT64, (symbol(name),))
            body.inputs.append(ends)
            self._ends[before] = ends

    def _hand_on(self, graph: ir.Graph, node: ir.Node) -> None:
        """Let a loop or branch leave where items end too."""
        own = [i for i, value in enumerate(node.outputs) if value in self.found.carried]
        if not own:
            return  # another entry of the same node
        inputs, at = list(node.inputs), len(node.outputs)
        if node.op_type == "Loop":
            at = len(inputs) - 2
            inputs += [self.ends(inputs[2 + i]) for i in own]
            body = node.attributes["body"].as_graph()
            body.outputs[1 + at : 1 + at] = [self._made_in(body, body.outputs[1 + i]) for i in own]
        else:
            for name in ("then_branch", "else_branch"):
                body = node.attributes[name].as_graph()
                body.outputs.extend(self._made_in(body, body.outputs[i]) for i in own)
        results = list(node.outputs)
        with building(graph, self.types, node):
            made = op(node.op_type, *inputs, outputs=len(results) + len(own), **given(node))
        maker = made[0].producer()
        maker.name = node.name
        maker.metadata_props.update(node.metadata_props)
        for i, ends in zip(own, made[at : at + len(own)], strict=True):
            self._ends[made[i]] = ends
        for old, new in zip(results, [*made[:at], *made[at + len(own) :]], strict=True):
            if not old.name:
                new.name = old.name
            replace_value(graph, self.types, old, new)
        remove(graph, [node])

    def _made_in(self, body: ir.Graph, sequence: ir.Value) -> ir.Value:
        """Return where items end, as a result of a body: a value that is made in it."""
        ends = self.ends(sequence)
        maker, last = ends.producer(), sequence.producer()
        if maker is not None and maker.graph is body and not ends.is_graph_output():
            return ends
        assert last is not None
        assert last.graph is body
        with building(body, self.types, last):
            copy: ir.Value = op("Identity", ends)
        return copy


# ---- what nodes become: the items, or what is read of them, and where each ends ----

_Made = tuple[Any, Any]


def _empty(to: _Packing, node: ir.Node) -> _Made:
    zero = ir.tensor(np.zeros(1, to.dtype.numpy()), dtype=to.dtype)
    first = ir.tensor(np.zeros(1, np.int64))
    return op("ConstantOfShape", [0, *to.rest], value=zero), op("ConstantOfShape", [1], value=first)


def _construct(to: _Packing, node: ir.Node) -> _Made:
    items = [to.rows(value) for value in node.inputs]
    data = op("Concat", *items, axis=0) if len(items) > 1 else op("Identity", items[0])
    lengths = op("Concat", [0], *(to.length(value) for value in node.inputs), axis=0)
    return data, op("CumSum", lengths, 0)


def _insert(to: _Packing, node: ir.Node) -> _Made:
    data, item, ends = node.inputs[0], node.inputs[1], to.ends(node.inputs[0])
    rows, place = to.rows(item), place_of(node, to.types)
    if place is None:
        more = op("Concat", data, rows, axis=0)
        return more, op("Concat", ends, op("Shape", more, start=0, end=1), axis=0)
    length = to.length(item)
    if place == 0:
        later = op("Add", ends, length)
        return op("Concat", rows, data, axis=0), op("Concat", [0], later, axis=0)
    count = op("Squeeze", _count(ends), [0])
    # From minus the number of items to that number.
    places = op("Concat", op("Range", 0, count, 1), op("Range", 0, op("Add", count, 1), 1), axis=0)
    at = op("Add", _whole_number(node.inputs[2]), count)
    at = op("Gather", places, op("Where", op("Less", at, 0), _END, at))
    begin = op("Gather", ends, at)
    front, back = op("Slice", data, [0], begin, [0]), op("Slice", data, begin, [_END], [0])
    first = op("Slice", ends, [0], op("Add", at, 1), [0])
    later = op("Add", op("Slice", ends, at, [_END], [0]), length)
    return op("Concat", front, rows, back, axis=0), op("Concat", first, later, axis=0)


def _erase(to: _Packing, node: ir.Node) -> _Made:
    data, ends, place = node.inputs[0], to.ends(node.inputs[0]), place_of(node, to.types)
    if place in (None, -1):
        begin = op("Gather", op("Slice", ends, [0], [-1], [0]), [-1])
        return op("Slice", data, [0], begin, [0]), op("Slice", ends, [0], [-1], [0])
    if place == 0:
        later = op("Slice", ends, [1], [_END], [0])
        end = op("Gather", later, [0])
        return op("Slice", data, end, [_END], [0]), op("Sub", later, end)
    count = op("Squeeze", _count(ends), [0])
    at = op("Gather", op("Range", 0, count, 1), _whole_number(node.inputs[1]))
    begin, end = op("Gather", ends, at), op("Gather", ends, op("Add", at, 1))
    front, back = op("Slice", data, [0], begin, [0]), op("Slice", data, end, [_END], [0])
    first = op("Slice", ends, [0], op("Add", at, 1), [0])
    later = op("Slice", ends, op("Add", at, 2), [_END], [0])
    later = op("Sub", later, op("Sub", end, begin))
    return op("Concat", front, back, axis=0), op("Concat", first, later, axis=0)


def _at(to: _Packing, node: ir.Node) -> _Made:
    ends, at = to.ends(node.inputs[0]), _whole_number(node.inputs[1])
    begin = op("Gather", op("Slice", ends, [0], [-1], [0]), at)
    end = op("Gather", op("Slice", ends, [1], [_END], [0]), at)
    return to.item(op("Slice", node.inputs[0], begin, end, [0])), None


def _length(to: _Packing, node: ir.Node) -> _Made:
    return op("Squeeze", _count(to.ends(node.inputs[0])), [0]), None


def _concat(to: _Packing, node: ir.Node) -> _Made:
    data = node.inputs[0]
    return (to.item(data) if to.axis else op("Identity", data)), None


def _count(ends: Any) -> Any:
    """Return the number of items, with one axis."""
    return op("Sub", op("Shape", ends, start=0, end=1), 1)


def _whole_number(value: Any) -> Any:
    """Return one number as int64 with one axis."""
    return op("Reshape", op("Cast", value, to=ir.DataType.INT64), [1])


_RULES: Mapping[str, Callable[[_Packing, ir.Node], _Made]] = {
    "SequenceEmpty": _empty,
    "SequenceConstruct": _construct,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceAt": _at,
    "SequenceLength": _length,
    "ConcatFromSequence": _concat,
}
