"""Names in a loop that have one memory: a single tensor is handed on for all of them.

``row = table[i]`` before a loop that writes ``row[j]`` and reads ``table`` has two names for one
memory. Handed on as two tensors, a write into one would have to be a write into the other. Where
the second is the same view of the first before the loop and behind each iteration, it is made
anew from the first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from hagane.frontends.capture.flow.slots import Contents, Slot, TensorSlot, at
from hagane.frontends.python.values.memory import is_same_view
from hagane.frontends.python.values.values import Tensor, Value

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter

Name: TypeAlias = tuple[int, Any]  # an object, and the name of a value in it


class Twins:
    """The names that follow another one, as far as attempts have shown them.

    Args:
        core: The interpreter.
        start: The contents before the loop.
    """

    def __init__(self, core: Interpreter, start: Contents):
        self.core = core
        self.start = start
        self.leaders: dict[Name, Name] = {}  # by name that follows
        self._unlike: set[tuple[Name, Name]] = set()

    def learn(self, slots: Mapping[Name, Slot], after: Contents) -> bool:
        """Note what follows what behind an iteration; return whether anything is new."""
        before = dict(self.leaders)
        for name, leader in before.items():
            if not self._follows(name, leader, after):
                del self.leaders[name]
                self._unlike.add((name, leader))
        names = [name for name, slot in slots.items() if isinstance(slot, TensorSlot)]
        for name in names:
            if name in self.leaders or name in self.leaders.values():
                continue
            for leader in names:
                pair = name, leader
                free = name != leader and leader not in self.leaders and pair not in self._unlike
                if free and self._follows(name, leader, after):
                    self.leaders[name] = leader
                    break
        return self.leaders != before

    def _follows(self, name: Name, leader: Name, after: Contents) -> bool:
        """Whether a value is one view of another before the loop and behind an iteration."""
        found = []
        for contents in (self.start, after):
            view, whole = (_tensor_at(contents, one) for one in (name, leader))
            if view is None or whole is None or view.kind != whole.kind:
                return False
            found.append((view.value, whole.value))
        (first, first_whole), (last, last_whole) = found
        return is_same_view(first, first_whole, last, last_whole)

    def in_order(self, slots: Mapping[Name, Slot]) -> Iterator[tuple[Name, Slot]]:
        """Yield names with their slots, those that follow others last."""
        yield from ((name, slot) for name, slot in slots.items() if name not in self.leaders)
        yield from ((name, slots[name]) for name in self.leaders if name in slots)

    def made(self, name: Name, leader: Value) -> Tensor:
        """Return the value of a name that follows, given its leader's value."""
        view, whole = _tensor_at(self.start, name), _tensor_at(self.start, self.leaders[name])
        assert view is not None
        assert whole is not None
        assert isinstance(leader, Tensor)
        return self.core.tables.view_of(self.core, view, whole, leader)


def _tensor_at(contents: Contents, name: Name) -> Tensor | None:
    if name[1] is None or name[0] not in contents:
        return None
    value = at(contents, *name)
    return value if isinstance(value, Tensor) else None


__all__ = ["Twins"]
