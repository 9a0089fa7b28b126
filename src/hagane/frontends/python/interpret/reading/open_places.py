"""Containers of which the program sets an item at a place that only the run knows."""

from __future__ import annotations

from typing import Any

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    ListRef,
    Many,
    Outside,
    Pairs,
    Real,
    Tensor,
    Unknown,
    Value,
    is_size,
)


class OpenPlaces(Core):
    """Sets items at open places: one value stands for all items from there on."""

    def set_open_item(self, receiver: ListRef, content: Any, value: Value) -> bool:
        """Set an item of a list at an open place, where one type stands for all items."""
        if self.emit.builds or not isinstance(content, tuple | Many) or content == ():
            return False
        if isinstance(content, Many):
            items, length = [content.element], content.length
        else:
            items, length = list(content), len(content)
        element = self._one_for([*items, value])
        if element is MISSING:
            return False
        self.heap[receiver] = Many(element, length)
        return True

    def set_open_key(self, receiver: DictRef, content: Any, key: Value, value: Value) -> bool:
        """Set an item at a key that only the run knows, where one type stands for all items."""
        if self.emit.builds or not isinstance(content, dict | Pairs):
            return False
        if isinstance(key, Tensor) and key.kind != "numpy.ndarray":
            return False  # a key by its identity
        if isinstance(content, Pairs):
            keys, items, length = [content.key], [content.element], content.length
        else:
            keys, items, length = [*content], [*content.values()], self.emit.fresh("keys")
        element = self._one_for([*items, value])
        if element is MISSING:
            return False
        self.heap[receiver] = Pairs(element, length, key=self.some_of([*keys, key]))
        return True

    def _one_for(self, items: list[Value]) -> Value:
        """Return a value that stands for any of several of one type; ``MISSING`` for others."""
        if all(isinstance(item, Outside) for item in items):
            return items[-1]
        if any(isinstance(item, Unknown) for item in items):
            return MISSING
        if all(map(is_size, items)):
            return self.emit.fresh("item")
        if all(is_size(item) or isinstance(item, float | Real) for item in items):
            return Real()
        if len({self.show(item) for item in items}) > 1:
            return MISSING
        return self.as_many(tuple(items))[0]


__all__ = ["OpenPlaces"]
