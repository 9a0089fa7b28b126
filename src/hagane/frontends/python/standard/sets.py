"""Methods of sets, and of counters as dictionaries that have operators of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.standard.counters import Counters
from hagane.frontends.python.values.hashed import Hashed, Step, hashed, set_argument
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    Many,
    SetRef,
    Value,
    is_plain,
)

# Methods that change the set, with the operator that gives what it then holds.
_CHANGING: dict[str, type[ast.operator]] = {
    "update": ast.BitOr, "intersection_update": ast.BitAnd,
    "difference_update": ast.Sub, "symmetric_difference_update": ast.BitXor,
}  # fmt: skip
_MAKING: dict[str, type[ast.operator]] = {
    "union": ast.BitOr, "intersection": ast.BitAnd,
    "difference": ast.Sub, "symmetric_difference": ast.BitXor,
}  # fmt: skip


class Sets(Counters):
    """Calls methods of sets."""

    def set_method(self, receiver: SetRef, name: str, arguments: Sequence[Value]) -> Value:
        """Call a method of a set; those that change it change it for all of its names."""
        content = self.heap[receiver]
        if not isinstance(content, tuple):
            return self._many_set_method(receiver, content, name, arguments)
        match name:
            case "add":
                if arguments[0] not in content:
                    self.heap[receiver] = _changed(
                        content, (*content, arguments[0]), name, arguments
                    )
                return None
            case "copy":
                return self.copied_set(receiver)
            case "clear":
                self.heap[receiver] = hashed((), Step(None, "set"))
                return None
            case "discard" | "remove":
                return self._taken(receiver, content, name, arguments[0])
            case "pop":
                return self._popped(receiver, content)
        kind = _CHANGING.get(name) or _MAKING.get(name)
        others = [self.sequence(argument) for argument in arguments]
        known = all(isinstance(other, list) and is_plain(tuple(other)) for other in others)
        if not known or not is_plain(content):
            return self.lost(f"the method '{name}' of sets")
        if kind is None:
            return apply_plain(lambda: getattr(set(content), name)(*map(set, others)))  # type: ignore[arg-type]
        result: SetRef = self.new_set(content, frozen=receiver.frozen)
        noted: list[Any] = []
        for argument, other in zip(arguments, others, strict=True):
            assert isinstance(other, list)
            given = self.heap[argument] if isinstance(argument, SetRef | DictRef) else None
            noted.append(set_argument(given, other))
            made = self.binary(kind, result, self.new_set(other))
            assert isinstance(made, SetRef)
            result = made
        items = _changed(content, self.heap[result], name, noted)
        if name in _MAKING:
            return SetRef(self.heap.new(items), receiver.frozen)
        self.heap[receiver] = items
        return None

    def copied_set(self, value: SetRef) -> SetRef:
        """Return a copy of a set; one that cannot change is its own."""
        content = self.heap[value]
        if value.frozen or not isinstance(content, tuple):
            return value if value.frozen else SetRef(self.heap.new(content))
        return SetRef(self.heap.new(_changed(content, content, "copy", ())))

    def _taken(self, receiver: SetRef, content: tuple[Value, ...], name: str, item: Value) -> Value:
        """Take an item out of a set."""
        if not (is_plain(item) and is_plain(content)):
            return self.lost(f"the method '{name}' of sets")
        if item not in content and name == "remove":
            raise CheckError("key", f"KeyError: {item!r}")
        if item in content:
            left = tuple(each for each in content if each != item)
            self.heap[receiver] = _changed(content, left, name, (item,))
        return None

    def _popped(self, receiver: SetRef, content: tuple[Value, ...]) -> Value:
        """Take some item out of a set; of several it is not known which comes first."""
        if not content:
            raise CheckError("key", "KeyError: 'pop from an empty set'")
        if len(content) > 1:
            return self.lost("an item of a set of several, in whose order Python does not say")
        self.heap[receiver] = ()
        return content[0]

    def _many_set_method(
        self, receiver: SetRef, content: Any, name: str, arguments: Sequence[Value]
    ) -> Value:
        """Call a method of a set of which one value stands for all items."""
        if name == "copy":
            return SetRef(self.heap.new(content))
        if name == "clear":
            self.heap[receiver] = ()
            return None
        if name == "add" and isinstance(content, Many):
            element, item = content.element, arguments[0]
            joined = item if element is MISSING else self.join(self.unknown_truth(), element, item)
            self.heap[receiver] = Many(joined, self.emit.fresh("different"))
            return None
        return self.lost(f"the method '{name}' of a set whose items are not known")


def _changed(
    content: tuple[Value, ...], items: Iterable[Value], name: str, arguments: Sequence[Any]
) -> Hashed:
    """Return the content of a set after a call of a method."""
    before = content if isinstance(content, Hashed) else hashed(content, _anew(content))
    return hashed(items, Step(before, name, tuple(arguments)))


def _anew(content: tuple[Value, ...]) -> Step:
    return Step(None, "set", (list(content),))


__all__ = ["Sets"]
