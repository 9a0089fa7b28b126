"""SequenceConstruct, SequenceAt, SequenceInsert, ConcatFromSequence, SplitToSequence, …."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import SequenceType, TensorType, Type
from hagane.ops.builder import Call, content_of, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.control.join import join
from hagane.ops.definition import Array, OpDef, RuntimeValue
from hagane.ops.functions.tensors.shapes import reshape_like, zeros_like
from hagane.ops.vjp import CONSTANT, DISCRETE


def _position(index: Array | None, length: int, room: int) -> int:
    """Return an index counted from the front; ``room`` positions are valid."""
    if index is None:
        return length
    where = int(index) if index.ndim == 0 else int(index.ravel()[0])
    low = -length
    if not low <= where < room:
        raise IndexError(f"position {where} is out of range for a sequence of {length}")
    return where + length if where < 0 else where


def _construct(*items: RuntimeValue) -> list[RuntimeValue]:
    return list(items)


def _infer_construct(ctx: InferContext) -> Sequence[Any]:
    element: Type | None = ctx.type(0)
    for i in range(1, ctx.n_inputs):
        element = join(element, ctx.type(i), ctx.fresh)
    return [SequenceType(element)]


def _empty(*, dtype: int = 1) -> list[RuntimeValue]:
    return []


def _infer_empty(ctx: InferContext) -> Sequence[Any]:
    return [SequenceType(TensorType(ir.DataType(ctx.attr("dtype", 1)), None))]


def _at(sequence: list[RuntimeValue], position: Array) -> RuntimeValue:
    return sequence[_position(position, len(sequence), len(sequence))]


def _infer_at(ctx: InferContext) -> Sequence[Any]:
    return [_sequence(ctx).element]


def _sequence(ctx: InferContext) -> SequenceType:
    found = ctx.type(0)
    if not isinstance(found, SequenceType):
        ctx.fail(f"expected a sequence as input '{ctx.name(0)}', got {found}")
    return found


def _insert(
    sequence: list[RuntimeValue], item: RuntimeValue, position: Array | None = None
) -> list[RuntimeValue]:
    if position is None:
        return [*sequence, item]
    where = _position(position, len(sequence), len(sequence) + 1)
    return [*sequence[:where], item, *sequence[where:]]


def _infer_insert(ctx: InferContext) -> Sequence[Any]:
    return [SequenceType(join(_sequence(ctx).element, ctx.type(1), ctx.fresh))]


def _erase(sequence: list[RuntimeValue], position: Array | None = None) -> list[RuntimeValue]:
    last = np.array(-1) if position is None else position
    where = _position(last, len(sequence), len(sequence))
    return [*sequence[:where], *sequence[where + 1 :]]


def _length(sequence: list[RuntimeValue]) -> Array:
    return np.array(len(sequence), dtype=np.int64)


def _concat_from_sequence(sequence: list[Array], *, axis: int, new_axis: int = 0) -> Array:
    if not sequence:
        raise ValueError("cannot concatenate an empty sequence")
    return np.stack(sequence, axis) if new_axis else np.concatenate(sequence, axis)


def _infer_concat(ctx: InferContext) -> Sequence[Any]:
    element = _sequence(ctx).element
    if not isinstance(element, TensorType) or element.shape is None:
        return [element]
    shape = element.shape
    rank = len(shape) + bool(ctx.attr("new_axis"))
    axis = ctx.axis(ctx.attr("axis"), rank)
    tail = shape[axis:] if ctx.attr("new_axis") else shape[axis + 1 :]
    # Elements may differ along the axis, so their sum is not known from one type.
    return [TensorType(element.dtype, (*shape[:axis], ctx.fresh(), *tail))]


def _split_to_sequence(
    x: Array, split: Array | None = None, *, axis: int = 0, keepdims: int = 1
) -> list[Array]:
    """Cut a tensor; with the length 1, ``keepdims`` says whether pieces have the axis.

    The standard ignores ``keepdims`` where lengths are given. PyTorch writes ``unbind`` with both,
    and ONNX Runtime heeds both.
    """
    size = x.shape[axis]
    if split is None or (split.ndim == 0 and split == 1):
        parts = _cut(x, [1] * size, axis)
        return parts if keepdims else [np.squeeze(part, axis) for part in parts]
    lengths: list[int] = split.ravel().tolist()
    if split.ndim == 0:
        (length,) = lengths
        whole, rest = divmod(size, length)
        return _cut(x, [length] * whole + [rest] * bool(rest or not size), axis)
    if sum(lengths) != size or min(lengths, default=0) < 0:
        raise ValueError(f"parts {lengths} do not add up to size {size} of axis {axis}")
    return _cut(x, lengths, axis)


def _cut(x: Array, lengths: Sequence[int], axis: int) -> list[Array]:
    """Return pieces of an array, one behind the other along an axis."""
    before = (slice(None),) * (axis % x.ndim)
    parts, start = [], 0
    for length in lengths:
        parts.append(x[(*before, slice(start, start + length))])
        start += length
    return parts


def _infer_split(ctx: InferContext) -> Sequence[Any]:
    found = ctx.tensor(0)
    if found.shape is None:
        return [SequenceType(found)]
    axis = ctx.axis(ctx.attr("axis"), len(found.shape))
    shape, split = found.shape, ctx.tensor(1).shape if ctx.has(1) else ()
    length = ctx.constant(1) if ctx.has(1) and split == () else None
    if ctx.has(1) and not ctx.attr("keepdims") and split in (None, ()) and length is None:
        return [SequenceType(TensorType(found.dtype, None))]
    if not ctx.has(1) or (length is not None and length == 1):
        kept = (1,) if ctx.attr("keepdims") else ()
        return [SequenceType(TensorType(found.dtype, (*shape[:axis], *kept, *shape[axis + 1 :])))]
    part = (*shape[:axis], ctx.fresh(), *shape[axis + 1 :])
    return [SequenceType(TensorType(found.dtype, part))]


def _construct_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    return [op("SequenceAt", gradients[0], i) for i in range(len(call.inputs))]


def _zeros(sequence: Any) -> Any:
    """Return a sequence of zeros in the shapes of another's elements."""
    return op("SequenceMap", sequence, body=lambda x: [zeros_like(x)])


def _from_front(position: Any, sequence: Any) -> Any:
    position = op("Cast", position, to=ir.DataType.INT64)
    from_back = op("Add", position, op("SequenceLength", sequence))
    return op("Where", op("Less", position, 0), from_back, position)


def _at_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    sequence, position = call.inputs
    place = _from_front(position, sequence)
    others = op("SequenceErase", _zeros(sequence), place)
    return [op("SequenceInsert", others, gradients[0], place), None]


def _erase_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    sequence, *rest = call.inputs
    last = op("Sub", op("SequenceLength", sequence), 1)
    given = rest[0] if rest and rest[0] is not None else None
    place = last if given is None else _from_front(given, sequence)
    erased = zeros_like(op("SequenceAt", sequence, place))
    return [op("SequenceInsert", gradients[0], erased, place), *(None for _ in rest)]


def _insert_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    sequence, _, *rest = call.inputs
    given = rest[0] if rest and rest[0] is not None else None
    place = op("SequenceLength", sequence) if given is None else _from_front(given, sequence)
    return [
        lambda: op("SequenceErase", gradients[0], place),
        lambda: op("SequenceAt", gradients[0], place),
        *(None for _ in rest),
    ]


def _concat_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (sequence,), (g,), axis = call.inputs, gradients, call.attr("axis")
    if call.attr("new_axis"):
        return [op("SplitToSequence", g, axis=axis, keepdims=0)]
    axis %= rank_of(g)
    lengths = op("SequenceMap", sequence, body=lambda x: [op("Shape", x, start=axis, end=axis + 1)])
    return [op("SplitToSequence", g, op("ConcatFromSequence", lengths, axis=0), axis=axis)]


def _split_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    x, *rest = call.inputs
    given = rest[0] if rest else None
    known = None if given is None else content_of(given)
    ones = given is None or (known is not None and known.ndim == 0 and known == 1)
    single = ones and not call.attr("keepdims")
    joined = op("ConcatFromSequence", gradients[0], axis=call.attr("axis"), new_axis=int(single))
    return [reshape_like(joined, x), *(None for _ in rest)]


OPERATORS = (
    OpDef("ConcatFromSequence", _infer_concat, _concat_from_sequence, vjp=_concat_vjp),
    OpDef("SequenceAt", _infer_at, _at, vjp=_at_vjp),
    OpDef("SequenceConstruct", _infer_construct, _construct, vjp=_construct_vjp),
    OpDef("SequenceEmpty", _infer_empty, _empty, vjp=CONSTANT),
    OpDef("SequenceErase", lambda ctx: [_sequence(ctx)], _erase, vjp=_erase_vjp),
    OpDef("SequenceInsert", _infer_insert, _insert, vjp=_insert_vjp),
    OpDef("SequenceLength", lambda ctx: [()], _length, vjp=DISCRETE),
    OpDef("SplitToSequence", _infer_split, _split_to_sequence, vjp=_split_vjp),
)
