"""What a loop hands from one iteration to the next: values of the program as tensors and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import onnx_ir as ir

from hagane.frontends.capture.emitter import GraphEmitter
from hagane.frontends.python.values.values import Real, Tensor, Truth, Unknown, Value, is_plain
from hagane.graph.types import TensorType
from hagane.symbolic import Dim, Expr, definitely_equal


@dataclass(frozen=True, slots=True)
class TensorSlot:
    """A tensor; sizes that differ from iteration to iteration are None."""

    dtype: ir.DataType
    shape: tuple[Dim | None, ...]
    kind: str
    device: str


@dataclass(frozen=True, slots=True)
class NumberSlot:
    """A number of Python: ``int``, ``bool`` or ``float``."""

    kind: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that iterations leave alone."""

    value: Value


@dataclass(frozen=True, slots=True)
class Parts:
    """A tuple."""

    items: tuple[Slot, ...]


Slot: TypeAlias = TensorSlot | NumberSlot | Fixed | Parts
_DTYPES = {"int": ir.DataType.INT64, "bool": ir.DataType.BOOL, "float": ir.DataType.DOUBLE}


@dataclass(frozen=True, slots=True, eq=False)
class Earlier(Unknown):
    """The items that earlier iterations appended to a list; ``count`` of them."""

    count: Dim = 0


def slot_for(before: Value, after: Value, earlier: Slot | None = None) -> Slot | None:
    """Return what holds both values, and what an earlier one held; None if nothing does."""
    if isinstance(before, tuple) and isinstance(after, tuple):
        if len(before) != len(after) or type(before) is not type(after):
            return None
        known = earlier.items if isinstance(earlier, Parts) else (None,) * len(before)
        found = [slot_for(a, b, c) for a, b, c in zip(before, after, known, strict=True)]
        return None if None in found else Parts(tuple(s for s in found if s is not None))
    if isinstance(before, Tensor) and isinstance(after, Tensor):
        return _tensor_slot(before, after, earlier)
    if isinstance(earlier, NumberSlot):
        wider = "float" if "float" in (earlier.kind, number_kind(after)) else earlier.kind
        return NumberSlot(wider) if number_kind(after) else None
    if before is after or (is_plain(before) and is_plain(after) and _same(before, after)):
        return Fixed(before) if earlier is None or isinstance(earlier, Fixed) else earlier
    kinds = {number_kind(before), number_kind(after)}
    if "" in kinds:
        return None
    if len(kinds) == 1:
        return NumberSlot(kinds.pop())
    return NumberSlot("float") if kinds == {"int", "float"} else None


def _same(before: Value, after: Value) -> bool:
    return type(before) is type(after) and bool(before == after)


def number_kind(value: Value) -> str:
    """Return ``int``, ``bool`` or ``float``; empty for what is no number."""
    if isinstance(value, bool | Truth):
        return "bool"
    if isinstance(value, int | Expr):
        return "int"
    return "float" if isinstance(value, float | Real) else ""


def _tensor_slot(before: Tensor, after: Tensor, earlier: Slot | None) -> Slot | None:
    if before is after and not isinstance(earlier, TensorSlot):
        return Fixed(before)
    if before.shape is None or after.shape is None or before.rank != after.rank:
        return None
    if before.dtype != after.dtype:
        return None
    known = earlier.shape if isinstance(earlier, TensorSlot) else before.shape
    shape = tuple(
        a if a is not None and definitely_equal(a, b) and definitely_equal(a, c) else None
        for a, b, c in zip(known, before.shape, after.shape, strict=True)
    )
    return TensorSlot(before.dtype, shape, after.kind, after.device)


def leaves(slot: Slot) -> Iterator[TensorSlot | NumberSlot]:
    """Yield the tensors that a slot takes, in order."""
    if isinstance(slot, Parts):
        for item in slot.items:
            yield from leaves(item)
    elif not isinstance(slot, Fixed):
        yield slot


def leaf_type(leaf: TensorSlot | NumberSlot, emitter: GraphEmitter) -> TensorType:
    """Return the type of the tensor that holds a leaf; sizes that differ get new names."""
    if isinstance(leaf, NumberSlot):
        return TensorType(_DTYPES[leaf.kind], ())
    shape = tuple(emitter.fresh("size") if dim is None else dim for dim in leaf.shape)
    return TensorType(leaf.dtype, shape)


def unpacked(slot: Slot, value: Value, emitter: GraphEmitter) -> list[Tensor]:
    """Return the tensors that hold a value."""
    if isinstance(slot, Fixed):
        return []
    if isinstance(slot, Parts):
        pairs = zip(slot.items, value, strict=True)
        return [tensor for part, item in pairs for tensor in unpacked(part, item, emitter)]
    if isinstance(slot, TensorSlot):
        assert isinstance(value, Tensor)
        return [value]
    return [emitter.as_scalar(value, slot.kind)]


def packed(slot: Slot, tensors: Iterator[ir.Value], emitter: GraphEmitter) -> Value:
    """Return the value that tensors hold."""
    if isinstance(slot, Fixed):
        return slot.value
    if isinstance(slot, Parts):
        return tuple(packed(item, tensors, emitter) for item in slot.items)
    value = next(tensors)
    if isinstance(slot, TensorSlot):
        made = emitter.tensor(value, slot.kind)
        return replace(made, device=slot.device)
    scalar = emitter.tensor(value)
    if slot.kind == "int":
        return emitter.number(scalar, "state")
    if slot.kind == "bool":
        return Truth(emitter.truth(scalar, emitter.new_truth()))
    return Real(None, scalar)
