"""What a loop hands from one iteration to the next: values of the program as tensors and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import onnx_ir as ir

from hagane.frontends.capture.emitter import GraphEmitter
from hagane.frontends.python.interpret.loops import changes
from hagane.frontends.python.values.values import (
    Earlier,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_plain,
)
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


class Carried:
    """What the iterations of a loop hand on, as far as attempts have shown it.

    Args:
        start: The contents before the loop.
    """

    def __init__(self, start: dict[int, Any]):
        self.start = start
        self.slots: dict[tuple[int, Any], Slot] = {}  # by object, and name or None
        self.lists: dict[int, int] = {}  # lists that grow, by how many items each time

    def learn(self, after: dict[int, Any]) -> tuple[tuple[Any, Value, Value] | None, bool]:
        """Note what an iteration changed.

        Returns:
            What no slot holds: name, value before and after; and whether anything was new.
        """
        more = False
        for key, part, before, value in changes(self.start, after):
            if part is None and isinstance(before, tuple) and isinstance(value, tuple):
                grown = _grown(before, value, self.lists.get(key))
                if grown:
                    more |= self.lists.get(key) != grown
                    self.lists[key] = grown
                    continue
            known = self.slots.get((key, part))
            slot = slot_for(before, value, known)
            if slot is None and part is not None and _is_rebound(before, value):
                slot = Fixed(Unknown(f"'{part}' has another type before the loop", told=False))
            if slot is None:
                return (part, before, value), False
            if not isinstance(slot, Fixed):
                more |= known != slot
                self.slots[key, part] = slot
            elif isinstance(slot.value, Unknown):
                more |= known is None
                self.slots[key, part] = slot
        return None, more

    def leaf_types(self, emitter: GraphEmitter) -> list[TensorType]:
        """Return the types of the tensors that hold all of it."""
        return [leaf_type(leaf, emitter) for slot in self.slots.values() for leaf in leaves(slot)]

    def tensors(self, contents: dict[int, Any], emitter: GraphEmitter) -> list[ir.Value]:
        """Return the graph values that hold it, given contents of the program."""
        return [
            emitter.value_of(tensor)
            for (key, part), slot in self.slots.items()
            for tensor in unpacked(slot, at(contents, key, part), emitter)
        ]


def at(contents: dict[int, Any], key: int, part: Any) -> Value:
    """Return what an object contains, or a name of it."""
    return contents[key] if part is None else contents[key][part]


def _is_rebound(before: Value, after: Value) -> bool:
    return before is not None and after is not None and type(before) is not type(after)


def _grown(before: tuple[Value, ...], after: tuple[Value, ...], known: int | None) -> int:
    """Return by how many items a list grows in an iteration; 0 if it changes otherwise."""
    if known is not None:
        started = after[:1] and isinstance(after[0], Earlier)
        return len(after) - 1 if started else 0
    same = len(after) > len(before) and all(a is b for a, b in zip(before, after, strict=False))
    return len(after) - len(before) if same else 0


def slot_of_result(value: Value) -> Slot | None:
    """Return what holds a value that a loop returns; None if nothing does."""
    if isinstance(value, tuple):
        found = [slot_of_result(item) for item in value]
        return None if None in found else Parts(tuple(s for s in found if s is not None))
    if isinstance(value, Tensor):
        return TensorSlot(value.dtype, tuple(value.shape or ()), value.kind, value.device)
    return NumberSlot(number_kind(value)) if number_kind(value) else None
