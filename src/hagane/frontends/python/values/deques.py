"""Deques: lists of the interpreter whose class, methods and length are others."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hagane.frontends.python.values.heap import Heap
from hagane.frontends.python.values.open_tuples import OpenTuple, tuple_of
from hagane.frontends.python.values.values import (
    ListRef,
    Many,
    Value,
)


@dataclass(frozen=True, slots=True, eq=False)
class Deque(ListRef):
    """A deque; content: as that of a list.

    Attributes:
        most: The most items that it takes (``maxlen``), None if any number.
    """

    most: Value = None


def class_of_list(value: ListRef) -> type:
    """Return the class that a list, deque or tuple of open length is of."""
    if isinstance(value, OpenTuple):
        return tuple
    return deque if isinstance(value, Deque) else list


def are_alike(values: Sequence[Value]) -> bool:
    """Whether values are all lists, all tuples, or all deques of one length at most."""
    kinds = [(type(value), getattr(value, "most", None)) for value in values]
    return all(kind == kinds[0] for kind in kinds)


def items_of_sequence(found: Any) -> list[Any]:
    """Return the items of a real list, tuple or deque, whatever its class makes of iterating."""
    kind = next(kind for kind in (list, tuple, deque) if isinstance(found, kind))
    return [*kind.__iter__(found)]


def list_like(heap: Heap, like: Value, items: Sequence[Value] | Many) -> Value:
    """Return a new list, deque of the same ``maxlen`` or tuple, as the one that is given."""
    if isinstance(like, OpenTuple):
        return tuple_of(heap, items)
    if isinstance(like, Deque):
        return new_deque(heap, like.most, items)
    return ListRef(heap.new(items if isinstance(items, Many) else tuple(items)))


def new_deque(heap: Heap, most: Value, items: Sequence[Value] | Many) -> Deque:
    """Return a new deque of items, of which there are no more than it takes."""
    return Deque(heap.new(items if isinstance(items, Many) else tuple(items)), most)
