"""Stack the additions of a loop's iterations to an end of a value, and join them once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import Nodes, interpreting, op
from hagane.ops.control.loop import hands_on
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    attributes_of,
    building,
    given,
    is_read_once,
    name_of,
    remove,
    remove_unread,
    replace_value,
    shown_by,
    type_of,
)
from hagane.symbolic import Dim, symbols_of


def stack_appended(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace values of a Loop that its body only adds to by stacked results; return where.

    The body must use such a value in one Concat alone, as the first or the last input, whose output
    is the value of the next iteration and nothing else. The other input becomes a result of the
    loop, one row an iteration; after the loop, a Reshape and a Concat with the initial value
    follow. An empty sequence that the body only inserts into at its end is treated alike, if
    ConcatFromSequence alone reads the last one; after no iterations at all, an empty tensor is left
    where ConcatFromSequence would fail.

    Rows must have one shape, of numbers and names that inputs of the graph show: those of different
    iterations would not stack. A value that nested bodies read, or that the condition depends on,
    stays.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "Loop" or node.domain != "":
            continue
        found = _find(graph, node, types)
        while found is not None:
            changed.append(f"{name_of(node)} {found.result.name}")
            node = _rewrite(graph, node, found, types)
            found = _find(graph, node, types)
    return changed


@dataclass(frozen=True, slots=True)
class _Appended:
    """A state that iterations only add to.

    Attributes:
        index: Which of the states.
        maker: The node that adds, a Concat or SequenceInsert.
        items: The items that it adds.
        type: Of all that one iteration adds.
        axis: Of the Concat.
        front: Whether it adds in front.
        readers: For a sequence, the nodes that make a tensor of it after the loop.
        result: The output of the loop.
    """

    index: int
    maker: ir.Node
    items: Sequence[ir.Value]
    type: TensorType
    axis: int
    front: bool
    readers: Sequence[ir.Node]
    result: ir.Value


def _find(graph: ir.Graph, node: ir.Node, types: GraphTypes) -> _Appended | None:
    if any(value.is_graph_output() and value not in graph.outputs for value in node.outputs):
        return None
    for index in range(len(node.inputs) - 2):
        found = _appended(graph, node, index, types)
        if found is not None:
            return found
    return None


def _appended(graph: ir.Graph, node: ir.Node, index: int, types: GraphTypes) -> _Appended | None:
    body = node.attributes["body"].as_graph()
    before, after = body.inputs[2 + index], body.outputs[1 + index]
    start, result = node.inputs[2 + index], node.outputs[index]
    made = hands_on(after)
    maker = made.producer()
    if start is None or maker is None or maker.graph is not body or maker.domain != "":
        return None
    if maker.op_type not in ("Concat", "SequenceInsert"):
        return None
    ends = [i for i, value in enumerate(maker.inputs) if value and hands_on(value) is before]
    if len(ends) != 1 or not _only(body, maker.inputs[ends[0]], before, maker):
        return None
    if not _only(body, after, made, None):
        return None
    (end,) = ends
    items = [value for value in maker.inputs if value is not None]
    del items[end]
    if maker.op_type == "SequenceInsert":
        return _inserted(graph, index, maker, items, start, result, types) if end == 0 else None
    if not items or end not in (0, len(items)):
        return None
    found = [type_of(value, types) for value in items]
    shapes = [type_.shape for type_ in found if type_ is not None and type_.shape is not None]
    begun = type_of(start, types)
    if len(shapes) != len(items) or not all(_is_one(graph, shape, types) for shape in shapes):
        return None
    if begun is None or begun.shape is None or len(begun.shape) != len(shapes[0]):
        return None
    axis = attributes_of(maker)["axis"] % len(shapes[0])
    length: Dim = sum((shape[axis] for shape in shapes), start=0)
    shape = (*shapes[0][:axis], length, *shapes[0][axis + 1 :])
    type_ = TensorType(begun.dtype, shape)
    return _Appended(index, maker, items, type_, axis, end > 0, (), result)


def _inserted(
    graph: ir.Graph,
    index: int,
    maker: ir.Node,
    items: Sequence[ir.Value],
    start: ir.Value,
    result: ir.Value,
    types: GraphTypes,
) -> _Appended | None:
    """Return a sequence that iterations only insert into, at its end."""
    begun = start.producer()
    if len(items) != 1 or begun is None or begun.op_type != "SequenceEmpty" or begun.domain != "":
        return None
    found = type_of(items[0], types)
    if found is None or not found.shape or not _is_one(graph, found.shape, types):
        return None
    readers = [use.node for use in result.uses()]
    wanted = all(
        node.op_type == "ConcatFromSequence" and node.domain == "" and node.graph is graph
        for node in readers
    )
    if not wanted or not readers or result.is_graph_output():
        return None
    return _Appended(index, maker, items, found, 0, False, readers, result)


def _is_one(graph: ir.Graph, shape: Sequence[Dim], types: GraphTypes) -> bool:
    """Whether a shape is the same in all iterations, and known before them."""
    names = {name for dim in shape for name in symbols_of(dim)}
    return names <= shown_by(graph, types) and all(not isinstance(d, int) or d > 0 for d in shape)


def _only(body: ir.Graph, value: ir.Value | None, source: ir.Value, reader: ir.Node | None) -> bool:
    """Whether a chain of Identity nodes leads from a value to its one reader, or output of a body.

    Args:
        body: The body.
        value: Where the chain ends.
        source: Where it begins.
        reader: The only node that may read it; None for the body's outputs.
    """
    assert value is not None
    outputs = [output for output in body.outputs if output is value]
    if reader is None and (len(outputs) != 1 or value.uses()):
        return False
    if reader is not None and (outputs or not is_read_once(value)):
        return False
    while value is not source:
        node = value.producer()
        assert node is not None
        (value,) = node.inputs
        assert value is not None
        if node.graph is not body or not is_read_once(value):
            return False
    return True


def _rewrite(graph: ir.Graph, node: ir.Node, found: _Appended, types: GraphTypes) -> ir.Node:
    """Return the loop that takes the place of one; nodes behind it make its results."""
    body = node.attributes["body"].as_graph()
    after = body.outputs.pop(1 + found.index)
    items = _result_of_body(body, found, f"{after.name} items", types)
    body.outputs.append(items)
    last = after.producer()
    assert last is not None
    remove_unread(body, last)
    del body.inputs[2 + found.index]
    inputs = [value for i, value in enumerate(node.inputs) if i != 2 + found.index]
    with building(graph, types, node):
        made = op("Loop", *inputs, outputs=len(node.outputs), **given(node))
    results: tuple[ir.Value, ...] = made if isinstance(made, tuple) else (made,)
    loop = results[0].producer()
    assert loop is not None
    loop.name = node.name
    kept = [value for value in node.outputs if value is not found.result]
    for old, new in zip(kept, results, strict=False):
        if old in types.types:
            types.types[new] = types.types[old]
        if not old.name:
            new.name = old.name
        replace_value(graph, types, old, new)
    rows, start = results[-1], node.inputs[2 + found.index]
    assert start is not None
    for reader in found.readers:
        _read_rows(graph, reader, rows, found.type, types)
    if not found.readers:
        with building(graph, types, node):
            whole = _joined(_reversed(rows) if found.front else rows, found.type, found.axis)
            parts = (whole, start) if found.front else (start, whole)
            joined: ir.Value = op("Concat", *parts, axis=found.axis)
        _name(joined, found.maker)
        if found.result in types.types:
            types.types[joined] = types.types[found.result]
        replace_value(graph, types, found.result, joined)
    remove(graph, [node])
    return loop


def _name(value: ir.Value, after: ir.Node) -> None:
    maker = value.producer()
    assert maker is not None
    maker.name = after.name


def _result_of_body(body: ir.Graph, found: _Appended, name: str, types: GraphTypes) -> ir.Value:
    """Return an output that is all that an iteration adds; a value from outside can be none."""
    with interpreting(Nodes(body, types, name=name)):
        several = len(found.items) > 1
        made: ir.Value = (
            op("Concat", *found.items, axis=found.axis)
            if several
            else op("Identity", found.items[0])
        )
    made.name = name
    return made


def _reversed(rows: ir.Value) -> ir.Value:
    """Return rows from the last to the first."""
    made: ir.Value = op("Slice", rows, [-1], [np.iinfo(np.int64).min], [0], [-1])
    return made


def _joined(rows: ir.Value, type_: TensorType, axis: int) -> ir.Value:
    """Return rows, one behind the other along an axis of theirs."""
    assert type_.shape is not None
    front, length, back = type_.shape[:axis], type_.shape[axis], type_.shape[axis + 1 :]
    moved = _moved(rows, len(type_.shape), axis)
    if all(isinstance(dim, int) for dim in type_.shape):
        made: ir.Value = op("Reshape", moved, [*front, -1, *back])
        return made
    # (A named size may be 0: -1 could be any number then, and 0 is no copy of another.)
    whole = op("Mul", op("Shape", rows, start=0, end=1), [length])
    sizes = [list(front)] * bool(front) + [whole] + [list(back)] * bool(back)
    target = op("Concat", *sizes, axis=0) if len(sizes) > 1 else whole
    named: ir.Value = op("Reshape", moved, target, allowzero=1)
    return named


def _moved(rows: ir.Value, rank: int, axis: int) -> ir.Value:
    """Return rows with the axis of the iterations in another place."""
    if axis == 0:
        return rows
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    made: ir.Value = op("Transpose", rows, perm=order)
    return made


def _read_rows(
    graph: ir.Graph, reader: ir.Node, rows: ir.Value, type_: TensorType, types: GraphTypes
) -> None:
    """Put rows in the place of a ConcatFromSequence."""
    assert type_.shape is not None
    attributes, rank = attributes_of(reader), len(type_.shape)
    with building(graph, types, reader):
        if attributes["new_axis"]:
            made = _moved(rows, rank, attributes["axis"] % (rank + 1))
        else:
            made = _joined(rows, type_, attributes["axis"] % rank)
    old = reader.outputs[0]
    if old in types.types:
        types.types.setdefault(made, types.types[old])
    replace_value(graph, types, old, made)
    remove(graph, [reader])
