"""Methods of sets, and of counters as dictionaries that have operators of their own."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.standard.counters import Counters
from hagane.frontends.python.values.values import MISSING, Many, SetRef, Value, is_plain

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
                    self.heap[receiver] = (*content, arguments[0])
                return None
            case "copy":
                return self.new_set(content, frozen=receiver.frozen)
            case "clear":
                self.heap[receiver] = ()
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
            found = apply_plain(lambda: getattr(set(content), name)(*map(set, others)))  # type: ignore[arg-type]
            return self.new_set(sorted(found, key=str)) if isinstance(found, set) else found
        result: SetRef = self.new_set(content, frozen=receiver.frozen)
        for other in others:
            assert isinstance(other, list)
            made = self.binary(kind, result, self.new_set(other))
            assert isinstance(made, SetRef)
            result = made
        if name in _MAKING:
            return result
        self.heap[receiver] = self.heap[result]
        return None

    def _taken(self, receiver: SetRef, content: tuple[Value, ...], name: str, item: Value) -> Value:
        """Take an item out of a set."""
        if not (is_plain(item) and is_plain(content)):
            return self.lost(f"the method '{name}' of sets")
        if item not in content and name == "remove":
            raise CheckError("key", f"KeyError: {item!r}")
        self.heap[receiver] = tuple(each for each in content if each != item)
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


__all__ = ["Sets"]
