"""Items of lists, dictionaries and tensors, at places and keys."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.interpret.reading.iterating import Iteration
from hagane.frontends.python.interpret.reading.open_keys import OpenKeys
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.deques import Deque
from hagane.frontends.python.values.objects import (
    Class,
    Instance,
    is_enumeration,
    names_of_tuple,
)
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.texts import OpenText
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    Host,
    Library,
    ListRef,
    Many,
    Method,
    Outside,
    Range,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic import Dim, Expr, ceildiv, maximum, minimum, symbols_of

_ASKED = 8  # items of a list that are told apart by a place that nothing determines


def _is_answered(question: Callable[[], Any]) -> bool:
    """Whether a question to a real object has an answer, rather than an error."""
    try:
        question()
    except Exception:
        return False
    return True


class Items(OpenKeys, Iteration):
    """Reads items.

    Attributes:
        strays: Whether an item was set of a container that nobody knows, which may be any of those
            that are known.
    """

    strays = False

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._open_dictionaries: set[int] = set()  # told by now

    def _asked(self, found: Any, question: Callable[[], Any]) -> Value:
        """Return the answer to a question to a real object, ``MISSING`` if it is that."""
        try:
            answer = question()
        except Exception:  # of this one the program may be told
            self.observer.asked(found, partial(_is_answered, question), False)
            raise
        self.observer.asked(found, question, answer)
        return MISSING if answer is MISSING else self.lift(answer)

    def _Subscript(self, node: ast.Subscript) -> Value:
        value = self.evaluate(node.value)
        index = self.evaluate(node.slice)
        self.emit.label = self.collector.text(node)
        return self.settle(self.item(value, index))

    def item_of(self, value: Value, index: Value) -> Value:
        """Return ``value[index]``, with Python's own meaning."""
        if isinstance(value, Choice) or isinstance(index, Choice):
            return self.either(value, lambda v: self.either(index, lambda i: self.item(v, i)))
        if type(value) is Outside and isinstance(index, str | int):
            return self.part_from_outside(value, index)
        if isinstance(value, Unknown):
            return value
        if isinstance(index, OpenText):
            found = self.at_open_key(value, index)
            if found is not MISSING:
                return found
        if isinstance(value, Tensor):
            lost = lost_part(index)
            return (
                self.tables.tensor_item(self, value, self.unwrap(index)) if lost is None else lost
            )
        if isinstance(value, DictRef) and (
            isinstance(index, Outside) or not isinstance(index, Unknown)
        ):
            return self._dict_item(value, index)
        if isinstance(index, Unknown) and not (self.emit.builds and isinstance(value, Instance)):
            return index
        if isinstance(value, Instance):
            if names_of_tuple(value) is not None:
                return self._sequence_item(value, index)
            own = self.as_tuple(value, "__getitem__")
            if isinstance(own, tuple):
                return self.item(own, index)
            method = self.method_of(value, "__getitem__")
            if isinstance(method, Method) and self._is_lacking(value, index):
                method = self.method_of(value, "__missing__")
            if method is not MISSING:
                return self.call(method, [index], {})
        if isinstance(value, Library):
            name = f"{value.name}.__getitem__"
            known = self.tables.arguments(name) is not None
            return self.call_library(name, [index]) if known else value  # else an annotation
        if isinstance(value, Class) and is_enumeration(value):
            return self.named_member(value, index)
        if isinstance(value, Class) or (
            isinstance(value, Host) and (isinstance(value.object, type) or _is_typing(value.object))
        ):
            return self.annotated(value, index) if self.emit.builds else value
        if isinstance(value, Host):
            if is_plain(index):
                is_lacking = isinstance(value.object, os._Environ) and index not in value.object
                if is_lacking and not self.emit.builds:
                    return self.outside(f"the variable {index!r} of the environment")
                item = partial(apply_plain, lambda v, i: v[i], value.object, index)
                return self._asked(value.object, item)
            return self.lost("an item of a real object at a place that is not known")
        if isinstance(value, Range | range | ListRef | tuple | str | bytes):
            return self._sequence_item(value, index)
        raise CheckError("type", f"{self.show(value)} has no items")

    def _dict_item(self, value: DictRef, index: Value) -> Value:
        content = self.heap[value]
        if isinstance(content, Many):
            return content.element
        if isinstance(content, dict) and content and not self.emit.builds:
            found = self.at_some_key(content, index)
            if found is not MISSING:
                return found
        if isinstance(content, dict) and self.is_by_identity(index):
            assert isinstance(index, Tensor)
            if index not in content and not value.kind.startswith("defaultdict"):
                return self._at_no_key(content, index)
        elif not isinstance(content, dict) or (key := self.key_in(content, index)) is MISSING:
            if isinstance(content, dict) and value.kind.startswith("defaultdict"):
                made = self.call(self.heap[int(value.kind.partition(":")[2])], [], {})
                if not isinstance(index, Unknown) and self.set_open_key(
                    value, content, index, made
                ):
                    return self.heap[value].element
            found = self.at_open_number(value, index)
            if found is not MISSING:
                return found
            return self.lost("an item of a dictionary at a key that is not known")
        else:
            index = key
        if index in content:
            return content[index]
        if value.kind.startswith("defaultdict"):
            made = self.call(self.heap[int(value.kind.partition(":")[2])], [], {})
            content[index] = made
            return made
        if value.kind == "Counter":
            return 0
        if self.strays:
            reason = "an item of a dictionary that may have been set where nobody saw it"
            if value.key in self._open_dictionaries:
                return Unknown(reason, told=True)
            self._open_dictionaries.add(value.key)
            return self.lost(reason)
        known = ", ".join(map(repr, list(content)[:8]))
        raise CheckError(
            "key", f"KeyError: expected one of the keys {known or '(none)'}, got {index!r}"
        )

    def _is_lacking(self, value: Instance, index: Value) -> bool:
        """Whether a dictionary of the program's own class has no item at a key, and a way then."""
        held = self.inherited(value)
        content = self.heap[held] if isinstance(held, DictRef) else None
        if not isinstance(content, dict) or self.method_of(value, "__missing__") is MISSING:
            return False
        key = self.key_in(content, index)
        return key is not MISSING and key not in content

    def _at_no_key(self, content: dict[Any, Value], index: Tensor) -> Value:
        """Return the item at a tensor that is none of the keys, which are others by identity."""
        plain = bool(content) and all(map(is_plain, content))
        if plain and index.kind == "torch.Tensor" and index.origin is not None:
            raise CheckError(
                "key",
                "KeyError: a tensor is a key by its identity, not by its value; expected one of "
                f"the keys {', '.join(map(repr, list(content)[:8]))}, got {self.show(index)}; "
                "take its number with .item()",
            )
        return self.lost("an item of a dictionary at a key that is not known")

    def at_some_key(self, content: dict[Any, Value], index: Value) -> Value:
        """Return the item at a key that only the run knows, where all items are of one kind."""
        numbers = all(isinstance(key, int | float) for key in content)
        if not isinstance(index, Outside) and not (isinstance(index, Expr | Real) and numbers):
            return MISSING
        items = list(content.values())
        if all(isinstance(item, str) for item in items):
            return self.outside("one of several texts")
        if all(isinstance(item, ListRef) for item in items):
            contents = [self.heap[item] for item in items]
            if all(isinstance(one, tuple | Many) for one in contents):
                joined = contents[0]
                for other in contents[1:]:
                    joined = self.many_of(joined, other)
                return self.new_list(Many(self.as_many(joined)[0], self.emit.fresh("length")))
        lengths = {len(item) if type(item) in (tuple, Size) else -1 for item in items}
        pairs = len(lengths) == 1 and min(lengths) > 0
        if all(map(is_size, items)) or (
            pairs and all(is_size(part) for item in items for part in item)
        ):
            return self.some_of(items)
        if all(isinstance(item, Tensor | float | Real) for item in items):
            return self.as_many(tuple(items))[0]
        return MISSING

    def _sequence_item(self, value: Value, index: Value) -> Value:
        items = self.sequence(value)
        if isinstance(index, slice):
            if isinstance(value, Deque):
                raise CheckError("type", "a deque has no slices; make a list of it first")
            return self._slice(value, items, index)
        index = self._place(index)
        if not is_size(index) and not isinstance(index, Truth):
            raise CheckError("type", f"expected an integer as index, got {self.show(index)}")
        if isinstance(items, Many):
            self._expect_item(items, index)
            return items.item(index if not _is_negative(index) else items.length + index)
        if isinstance(index, int):
            if not -len(items) <= index < len(items):
                if isinstance(value, ListRef) and value == self.given_words and index > 0:
                    return self.outside("a word of the command line")
                told = f"IndexError: index {index} is out of range for {len(items)} items"
                told = f"{told} ({self.show(value)})"
                if not items and isinstance(value, ListRef):
                    return self.no_item(told)
                raise CheckError("index", told)
            return items[index]
        return self._some_item(items, index)

    def _expect_item(self, items: Many, index: Value) -> None:
        """Restrict the sizes that a list's length depends on to those with which it has an item."""
        length = items.length
        if not isinstance(index, int) or (
            isinstance(length, Expr) and symbols_of(length) & self.knowledge.invented
        ):
            return
        if not self.emit.may_reach(index, length, "index of a list"):
            raise CheckError(
                "index", f"IndexError: index {index} is out of range for {length} items"
            )

    def _some_item(self, items: list[Value], index: Value) -> Value:
        """Return the item at a position that depends on sizes: all of them, joined."""
        if not items:
            return self.no_item("IndexError: there are no items")
        drawn = isinstance(index, Expr) and symbols_of(index) <= self.knowledge.invented
        if drawn and len(items) > _ASKED and not self.emit.builds:
            return self.some_of(items)
        result = items[-1]
        for place in range(len(items) - 2, -1, -1):
            condition = self.knowledge.equal(index, place)
            if not isinstance(self.decide(condition), bool):
                result = self.join(condition, items[place], result)
            elif self.decide(condition):
                result = items[place]
        return result

    def no_item(self, message: str) -> Value:
        """Fail for an item of a list without any; where a loop is attempted, only the path ends.

        A list may be empty before a loop of a graph that fills it: paths that read it are followed
        in later attempts, once an iteration is known to leave items.
        """
        error = CheckError("index", message)
        attempted = self.emit.builds and self.collector.muted
        if not attempted or (self.handlers and self.catches(error)):
            raise error
        self.dead = True
        return Unknown(message, told=True, failed=True)

    def _slice(self, value: Value, items: list[Value] | Many, index: slice) -> Value:
        index = slice(*map(self._place, (index.start, index.stop, index.step)))
        if isinstance(items, list) and is_plain(index):
            found = apply_plain(lambda s: items[s], index)
            if isinstance(value, str | bytes | range):
                return value[index]
            if isinstance(value, Size):
                return Size(found)
            return tuple(found) if isinstance(value, tuple) else self.new_list(found)
        length = len(items) if isinstance(items, list) else items.length
        start, stop = self._bounds(index, length)
        step = 1 if index.step is None else index.step
        if isinstance(step, int) and step < 0 and index.start is index.stop is None:
            start, stop = length - 1, -1
        elif not isinstance(step, int) or step < 1 or start is None or stop is None:
            return self.lost("a slice whose bounds are not known")
        distance = stop - start if step > 0 else start - stop
        count = ceildiv(maximum(0, distance), abs(step))
        many = items if isinstance(items, Many) else self.many_items(items)
        first: Dim = start
        rule = many.at
        at = None if rule is None else (lambda k: rule(first + k * step))
        return self.new_list(Many(many.element, count, at))

    def _place(self, index: Value) -> Value:
        """Return an index as a number: integer tensors without axes are places, too."""
        if isinstance(index, Tensor) and index.shape == () and index.dtype.is_integer():
            return self.tensor_number(index, whole=True)
        return index

    def _bounds(self, index: slice, length: Dim) -> tuple[Dim | None, Dim | None]:
        bounds: list[Dim | None] = []
        for bound, default in ((index.start, 0), (index.stop, length)):
            if bound is None:
                bounds.append(default)
            elif not is_size(bound):
                bounds.append(None)
            elif _is_negative(bound):
                bounds.append(maximum(0, length + bound))
            else:
                bounds.append(minimum(bound, length))
        return bounds[0], bounds[1]


def lost_part(index: Value) -> Unknown | None:
    """Return an unknown value within an index."""
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        bounds = (part.start, part.stop, part.step) if isinstance(part, slice) else (part,)
        for bound in bounds:
            if isinstance(bound, Unknown):
                return bound
    return None


def _is_typing(found: Any) -> bool:
    return getattr(found, "__module__", "") in ("typing", "types", "collections.abc")


def _is_negative(value: Dim) -> bool:
    if isinstance(value, int):
        return value < 0
    return all(coefficient < 0 for coefficient in value.terms.values())
