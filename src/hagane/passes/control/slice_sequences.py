"""Take the pieces of a sequence out of the tensor that was cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    attributes_of,
    building,
    constant,
    name_of,
    producer,
    remove_unread,
    replace_value,
    type_of,
)

# No sequence has so many items: Gather refuses it, as SequenceAt would.
_NOWHERE = np.iinfo(np.int64).max


def slice_sequences(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace the items of SplitToSequence by slices of its input; return where.

    Lengths and positions may be known only when the model runs. The nodes that read the sequence
    are SequenceAt, SequenceLength and ConcatFromSequence, which along the axis of the cuts gives
    the input itself, and along another one lays pieces of one known length side by side. Pieces
    without their axis stay, and so do sequences that anything else reads.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.domain != "" or node.op_type != "SplitToSequence":
            continue
        cut, readers = _cut(node, types), [use.node for use in node.outputs[0].uses()]
        if cut is None or node.outputs[0].is_graph_output() or not readers:
            continue
        if not all(_is_served(reader, cut) for reader in readers):
            continue
        changed.append(name_of(node))
        for reader in readers:
            around = reader.graph  # that of a body sees the tensor too
            assert isinstance(around, ir.Graph)
            with building(around, types, reader, reader.name or ""):
                made = _READERS[reader.op_type](reader, cut)
            made.producer().name = reader.name
            replace_value(around, types, reader.outputs[0], made)
            remove_unread(around, reader)
        remove_unread(graph, node)
    return changed


@dataclass(frozen=True, slots=True)
class _Cut:
    """A tensor that is cut into pieces along an axis.

    Attributes:
        whole: The tensor.
        rank: How many axes it has.
        axis: The axis.
        length: Of each piece but the last; of the pieces, if they are ``several``.
        known: Whether the model fixes it.
        ones: Whether the pieces are of length 1, as many as ``length`` has elements.
    """

    whole: Any
    rank: int
    axis: int
    length: Any
    several: bool
    known: bool
    ones: bool = False

    @property
    def single(self) -> bool:
        """Whether pieces are known to be of length 1."""
        if self.ones:
            return True
        return self.known and not self.several and bool(np.all(self.length == 1))

    def size(self, start: int, end: int) -> Any:
        """Return the sizes of some axes of the tensor."""
        return op("Shape", self.whole, start=start, end=end)

    def extent(self) -> Any:
        """Return the size of the axis, one number."""
        return self.size(self.axis, self.axis + 1)

    def starts(self) -> Any:
        """Return where pieces of one length begin."""
        end = op("Squeeze", self.extent(), [0])
        return op("Range", 0, end, op("Squeeze", self.length, [0]))


def _cut(node: ir.Node, types: GraphTypes) -> _Cut | None:
    found, attributes = type_of(node.inputs[0], types), attributes_of(node)
    if found is None or not found.shape or found.dtype == ir.DataType.STRING:
        return None
    rank = len(found.shape)
    axis = attributes["axis"] % rank
    given = node.inputs[1] if len(node.inputs) > 1 else None
    if given is None:
        one = np.array([1])
        return (
            _Cut(node.inputs[0], rank, axis, one, False, True) if attributes["keepdims"] else None
        )
    lengths = type_of(given, types)
    if lengths is None or lengths.shape is None or len(lengths.shape) > 1:
        return None
    fixed = constant(given, types)
    if not (attributes["keepdims"] or lengths.shape) and (fixed is None or fixed == 1):
        return None
    if fixed is None or lengths.shape:
        several = len(lengths.shape) == 1
        return _Cut(
            node.inputs[0], rank, axis, given, several, False, several and _are_ones(given, types)
        )
    return _Cut(node.inputs[0], rank, axis, fixed.astype(np.int64).reshape(1), False, True)


def _are_ones(value: ir.Value, types: GraphTypes) -> bool:
    """Whether all elements of a value are 1, by ConstantOfShape or as the model has them."""
    fixed = constant(value, types)
    if fixed is not None:
        return bool(np.all(fixed == 1))
    maker = producer(value, "ConstantOfShape")
    content = None if maker is None else maker.attributes.get("value")
    return content is not None and bool(np.all(content.as_tensor().numpy() == 1))


def _is_served(reader: ir.Node, cut: _Cut) -> bool:
    if reader.domain != "" or reader.op_type not in _READERS:
        return False
    if reader.op_type != "ConcatFromSequence" or (cut.known and not cut.several):
        return True
    attributes = attributes_of(reader)
    return not attributes["new_axis"] and attributes["axis"] % cut.rank == cut.axis


def _whole_number(value: Any) -> Any:
    """Return one number as int64 with one axis."""
    return op("Reshape", op("Cast", value, to=ir.DataType.INT64), [1])


def _at(reader: ir.Node, cut: _Cut) -> Any:
    place = _whole_number(reader.inputs[1])
    if cut.ones:
        same = op("Equal", op("Shape", cut.length), cut.extent())
        place = op("Where", same, place, [_NOWHERE])
    if cut.single:
        return op("Gather", cut.whole, place, axis=cut.axis)
    if cut.several:
        lengths = op("Cast", cut.length, to=ir.DataType.INT64)
        place = _if_they_fit(cut, lengths, place)
        end = op("Gather", op("CumSum", lengths, 0), place)
        start = op("Sub", end, op("Gather", lengths, place))
    else:
        cut = _with_length(cut)
        start = op("Gather", cut.starts(), place)
        end = op("Add", start, cut.length)
    return op("Slice", cut.whole, start, end, [cut.axis])


def _if_they_fit(cut: _Cut, lengths: Any, place: Any) -> Any:
    """Return a place, or one that there is not if the pieces are another number than all."""
    fits = op("Equal", op("ReduceSum", lengths, [0]), cut.extent())
    return op("Where", fits, place, [_NOWHERE])


def _with_length(cut: _Cut) -> _Cut:
    return cut if cut.known else replace(cut, length=_whole_number(cut.length))


def _length(reader: ir.Node, cut: _Cut) -> Any:
    counted = cut.length if cut.several else _with_length(cut).starts()
    return op("Squeeze", op("Shape", counted), [0])


def _joined(reader: ir.Node, cut: _Cut) -> Any:
    attributes = attributes_of(reader)
    new, rank = attributes["new_axis"], cut.rank
    axis = attributes["axis"] % (rank + new)
    if not new and axis == cut.axis:
        if not cut.several:
            return op("Identity", cut.whole)
        lengths = op("Cast", cut.length, to=ir.DataType.INT64)
        start = op("Gather", [0], _if_they_fit(cut, lengths, [0]))
        return op("Slice", cut.whole, start, cut.extent(), [cut.axis])
    # (One piece is as long as the axis; pieces of two lengths do not fit, and Reshape says so.)
    length = op("Min", cut.extent(), cut.length)
    count = op("Div", cut.extent(), length)
    pieces = op("Reshape", cut.whole, _shape(cut, count, length), allowzero=1)
    order = [i for i in range(rank + 1) if i != cut.axis]
    order.insert(axis, cut.axis)
    pieces = op("Transpose", pieces, perm=order)
    if new:
        return pieces
    merged = op("Mul", count, cut.size(axis, axis + 1))
    sizes = [
        length if i == cut.axis else merged if i == axis else cut.size(i, i + 1)
        for i in range(rank)
    ]
    return op("Reshape", pieces, op("Concat", *sizes, axis=0), allowzero=1)


def _shape(cut: _Cut, *inside: Any) -> Any:
    """Return the tensor's shape with other sizes in the place of the axis."""
    before = [cut.size(0, cut.axis)] if cut.axis else []
    behind = [cut.size(cut.axis + 1, cut.rank)] if cut.axis + 1 < cut.rank else []
    return op("Concat", *before, *inside, *behind, axis=0)


_READERS = {"ConcatFromSequence": _joined, "SequenceAt": _at, "SequenceLength": _length}
