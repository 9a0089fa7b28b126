"""Tuples whose length only the run knows: lists of the interpreter that nothing changes."""

from __future__ import annotations

from dataclasses import dataclass

from hagane.frontends.python.values.heap import Heap
from hagane.frontends.python.values.values import (
    ListRef,
    Many,
    Value,
)


@dataclass(frozen=True, slots=True, eq=False)
class OpenTuple(ListRef):
    """A tuple of open length; content: ``Many``."""


def tuple_of(heap: Heap, items: Value) -> Value:
    """Return a tuple of items, of which a run may decide the number."""
    return OpenTuple(heap.new(items)) if isinstance(items, Many) else tuple(items)
