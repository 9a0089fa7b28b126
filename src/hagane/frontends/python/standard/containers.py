"""Methods of lists, dictionaries, sets, tuples, texts and numbers."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.standard.counters import COUNTER
from hagane.frontends.python.standard.generators import OF_GENERATORS, Generators
from hagane.frontends.python.standard.ordering import Ordering
from hagane.frontends.python.standard.sets import Sets
from hagane.frontends.python.values.deques import Deque, list_like
from hagane.frontends.python.values.hashed import in_place
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    ListRef,
    Many,
    Method,
    Pairs,
    Real,
    SetRef,
    Stream,
    Truth,
    Unknown,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic import Expr, minimum, mod, product
from hagane.symbolic.expression import multiply
from hagane.symbolic.term import Term


class Containers(Generators, Sets, Ordering):
    """Calls methods of Python's own containers."""

    def bound_list(self, target: Deque, method: str = "append") -> None:
        """Drop the items of a full deque at the end where a method adds none."""
        most, content = target.most, self.heap[target]
        if isinstance(most, int) and isinstance(content, tuple):
            first = 0 if method == "appendleft" else max(0, len(content) - most)
            self.heap[target] = content[first : first + most]
        elif self.emit.builds and most is not None and not isinstance(most, int):
            raise CheckError("capture", "a deque whose maxlen the data decide")
        elif most is not None and is_size(most):
            element, length = self.as_many(content)
            self.heap[target] = Many(element, minimum(length, most))

    def _is_full(self, target: Deque) -> bool:
        content = self.heap[target]
        if target.most is None:
            return False
        if isinstance(content, tuple) and isinstance(target.most, int):
            return len(content) >= target.most
        raise CheckError("capture", "insert into a deque that may be full")

    def call_method(
        self, method: Method, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a method of a container, a text or a number."""
        receiver, name = method.receiver, method.name
        if isinstance(receiver, ListRef):
            full = isinstance(receiver, Deque) and name == "insert" and self._is_full(receiver)
            if full:
                return self.no_item("IndexError: deque already at its maximum size")
            result = self._list_method(receiver, name, arguments, keywords)
            if isinstance(receiver, Deque):
                self.bound_list(receiver, name)
            return result
        if isinstance(receiver, DictRef):
            found = self._dict_method(receiver, name, arguments, keywords)
            if name not in _READING:
                self.heap.changed(receiver)
            elif isinstance(found, ListRef | SetRef) and name in _VIEWS and self.emit.literal:
                self.heap.view(found.key, partial(self._viewed, receiver, name))
            return found
        if isinstance(receiver, SetRef):
            return self.set_method(receiver, name, arguments)
        if isinstance(receiver, Stream) and name in OF_GENERATORS:
            return self.generator_method(receiver, name, arguments)
        if isinstance(receiver, Stream):
            return self.next_of(receiver, ())
        if isinstance(receiver, tuple) and name == "numel":
            return product(receiver)
        if isinstance(receiver, int | Expr) and name == "item":
            return receiver
        if isinstance(receiver, str):
            return self._text_method(receiver, name, arguments, keywords)
        if isinstance(receiver, Real) and name in ("is_integer", "conjugate"):
            return self._is_whole(receiver) if name == "is_integer" else receiver
        if isinstance(receiver, bytes) and name == "join":
            parts = self.sequence(arguments[0])
            if isinstance(parts, Many) or not all(isinstance(part, bytes) for part in parts):
                return self.outside("bytes that only a run knows")
            return receiver.join(parts)
        real = [self.real_of(argument) for argument in arguments]
        if is_plain(receiver) and MISSING not in real:
            return self.lift(apply_plain(lambda *a: getattr(receiver, name)(*a), *real))
        if isinstance(receiver, tuple):
            return self._find(list(receiver), name, *arguments)
        return self.lost(f"the method '{name}' of {self.show(receiver)}")

    def _viewed(self, receiver: DictRef, name: str) -> Any:
        """Return the content of a view of a dictionary as it is now."""
        content = self.heap[receiver]
        if not isinstance(content, dict):
            raise CheckError("capture", f"'{name}' of a dictionary whose keys are not known")
        return tuple(getattr(content, name)())

    def _text_method(
        self,
        receiver: str,
        name: str,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        if name == "join":
            items = self.sequence(arguments[0])
            if isinstance(items, list) and all(isinstance(item, str) for item in items):
                return receiver.join(items)
            for place, item in enumerate(items if isinstance(items, list) else ()):
                if is_plain(item) and not isinstance(item, str):
                    told = f"TypeError: item {place} to join is no text: {self.show(item)}"
                    raise CheckError("type", told)
            return self.outside("a text that depends on sizes")
        plain = [tuple(v) if isinstance(v := (self.unwrap(a)), list) else v for a in arguments]
        if is_plain(tuple(plain)) and is_plain(tuple(keywords.values())):
            found = apply_plain(lambda: getattr(receiver, name)(*plain, **keywords))
            return self.new_list(found) if isinstance(found, list) else found
        return self.outside("a text that depends on sizes")

    def change(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Apply an operator such as ``+=`` to a container that changes by it, for all of its names.

        Returns:
            The container; ``MISSING`` for a value that the operator leaves as it is.
        """
        if isinstance(left, ListRef) and kind is ast.Add:
            self.call(Method(left, "extend"), [right], {})
            return left
        if isinstance(left, DictRef) and kind is ast.BitOr and left.kind != COUNTER:
            self.call(Method(left, "update"), [right], {})
            return left
        counts = isinstance(left, DictRef) and left.kind == COUNTER
        changes = (isinstance(left, ListRef) and kind is ast.Mult) or counts
        if isinstance(left, SetRef) and not left.frozen:
            changes = True
        if not changes:
            return MISSING
        made = self.binary(kind, left, right)
        if not isinstance(made, ListRef | SetRef | DictRef):
            return made
        content = self.heap[made]
        self.heap[left] = in_place(content) if isinstance(made, SetRef) else content
        if isinstance(left, Deque):
            self.bound_list(left)
        return left

    # Lists.

    def extend(self, target: ListRef, items: Value) -> None:
        """Append the items of an iterable to a list."""
        found = self.sequence(items)
        content = self.heap[target]
        if isinstance(content, tuple) and isinstance(found, list):
            self.heap[target] = (*content, *found)
        elif content == ():
            self.heap[target] = found
        else:
            more = self.new_list(found)
            self.heap[target] = self.heap[self.binary(ast.Add, target, more)]

    def _is_whole(self, value: Real) -> Value:
        """Return whether a number is an integer, as a condition on sizes where it has a formula."""
        if not isinstance(value.formula, Expr):
            return Truth(self.unknown_truth())
        below = math.lcm(*(Fraction(c).denominator for c in value.formula.terms.values()))
        whole = multiply(value.formula, below)
        assert isinstance(whole, int | Expr)
        return self.as_truth(self.knowledge.equal(mod(whole, below), 0))

    def _list_method(
        self,
        receiver: ListRef,
        name: str,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        content = self.heap[receiver]
        match name:
            case "append":
                item = arguments[0]
                self.heap[receiver] = (
                    (*content, item)
                    if isinstance(content, tuple)
                    else self.many_of(content, (item,))
                )
                return None
            case "extend":
                self.extend(receiver, arguments[0])
                return None
            case "appendleft":
                self.heap[receiver] = (
                    (arguments[0], *content)
                    if isinstance(content, tuple)
                    else self.many_of((arguments[0],), content)
                )
                return None
            case "popleft":
                return self._list_method(receiver, "pop", [0], {})
            case "extendleft":
                found = self.sequence(arguments[0])
                if not isinstance(found, list):
                    return self.lost("a deque extended by a number of items that is not known")
                for item in found:
                    self.call(Method(receiver, "appendleft"), [item], {})
                return None
            case "rotate":
                by = arguments[0] if arguments else 1
                if isinstance(content, tuple) and isinstance(by, int):
                    start = -by % max(1, len(content))
                    self.heap[receiver] = (*content[start:], *content[:start])
                    return None
            case "copy":
                return list_like(self.heap, receiver, content)
            case "__init__":
                self.heap[receiver] = ()
                if arguments:
                    self.extend(receiver, arguments[0])
                return None
            case "__getitem__":
                return self.item(receiver, arguments[0])
            case "__setitem__":
                self.set_item(receiver, arguments[0], arguments[1])
                return None
            case "__iter__":
                return self.new_stream(content)
            case "__contains__":
                return self.compare(ast.In, arguments[0], receiver)
            case "clear":
                self.heap[receiver] = ()
                return None
        if isinstance(content, tuple):
            return self._known_list_method(receiver, list(content), name, arguments, keywords)
        return self._many_list_method(receiver, content, name, arguments)

    def _many_list_method(
        self, receiver: ListRef, content: Value, name: str, arguments: Sequence[Value]
    ) -> Value:
        if isinstance(content, Many) and name == "pop":
            self.heap[receiver] = Many(content.element, content.length - 1, content.at)
            if arguments and arguments[0] == 0:
                return content.item(0)
            return content.item(content.length - 1)
        if isinstance(content, Many) and name == "insert":
            self.heap[receiver] = self.many_of(content, (arguments[1],))
            return None
        if isinstance(content, Many) and name in ("reverse", "sort", "rotate"):
            self.heap[receiver] = Many(content.element, content.length)
            return None
        if isinstance(content, Many) and name in ("index", "count") and not self.emit.builds:
            return minimum(self.emit.fresh("place"), content.length - (name == "index"))
        return self.lost(f"'{name}' of a list whose length depends on sizes")

    def _known_list_method(
        self,
        receiver: ListRef,
        items: list[Value],
        name: str,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        result: Value = None
        match name:
            case "pop":
                if not items:
                    return self.no_item("IndexError: pop from an empty list")
                if arguments and not is_plain(arguments[0]):
                    if not isinstance(arguments[0], Expr) or self.emit.builds:
                        return self.lost("an item taken from a place that is not known")
                    result = self.any_of(items)
                    self.heap[receiver] = self.one_less(items)
                    return result
                result = apply_plain(items.pop, *arguments)
            case "insert":
                items.insert(arguments[0], arguments[1])
            case "reverse":
                items.reverse()
            case "remove":
                place = self._find(items, "index", arguments[0])
                if not isinstance(place, int):
                    if not isinstance(place, Expr) or self.emit.builds:
                        return self.lost("an item removed from a place that is not known")
                    self.heap[receiver] = self.one_less(items)
                    return None
                del items[place]
            case "sort":
                items = self.sorted_items(items, keywords)
            case "index" | "count":
                return self._find(items, name, *arguments)
            case "__len__":
                return len(items)
            case _:
                return self.lost(f"the method '{name}' of lists")
        self.heap[receiver] = tuple(items)
        return result

    def _find(self, items: list[Value], name: str, wanted: Value, *between: Value) -> Value:
        if not is_plain(between):
            return self.lost(f"'{name}' between places that are not known")
        within = range(len(items))[slice(*(*between, None)[:2])]
        same = [
            items[p] is wanted or self.decide(self.truth(self.compare(ast.Eq, items[p], wanted)))
            for p in within
        ]
        if any(isinstance(found, Term) for found in same) and not self.emit.builds:
            return self.emit.fresh("place")  # which it is, only the run knows
        places = [p for p, found in zip(within, same, strict=True) if found is True]
        if name == "count":
            return len(places)
        if places:
            return places[0]
        raise CheckError("value", f"ValueError: {self.show(wanted)} is not among the items")

    # Dictionaries.

    def from_keys(self, keys: Value, value: Value = None, *, kind: str = "dict") -> Value:
        """Return a dictionary that has one value under all keys."""
        found = self.sequence(keys)
        pairs = None if isinstance(found, Many) else [(key, value) for key in found]
        made = None if pairs is None else self.with_keys(pairs)
        if made is None:
            return self.lost(f"'{kind}.fromkeys' of keys that only the run knows")
        return self.new_dict(made, kind)

    def _dict_method(
        self,
        receiver: DictRef,
        name: str,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        content = self.heap[receiver]
        if receiver.kind == COUNTER:
            counted = self.counter_method(receiver, name, arguments, keywords)
            if counted is not MISSING:
                return counted
        if not isinstance(content, dict):
            if name == "clear":
                self.heap[receiver] = {}
                return None
            return self._many_dict_method(content, name, arguments)
        if name in _KEYED and not self.is_by_identity(arguments[0]):
            key = self.key_in(content, arguments[0])
            if key is MISSING:
                return self._at_open_key(receiver, content, name, arguments)
            arguments, content = [key, *arguments[1:]], self.heap[receiver]
        match name:
            case "keys" | "__iter__":
                return SetRef(self.heap.new(tuple(content)))  # in the order of the dictionary
            case "values":
                return self.new_list(list(content.values()))
            case "items":
                return self.new_list(list(content.items()))
            case "__contains__":
                return arguments[0] in content
            case "__len__":
                return len(content)
            case "fromkeys":
                return self.from_keys(*arguments)
            case "__setitem__":
                content[arguments[0]] = arguments[1]
                return None
            case "__delitem__":
                if arguments[0] not in content:
                    raise CheckError("key", f"KeyError: {arguments[0]!r}")
                del content[arguments[0]]
                return None
            case "move_to_end":
                last = arguments[1] if len(arguments) > 1 else keywords.get("last", True)
                items = [(k, v) for k, v in content.items() if k != arguments[0]]
                own = [(arguments[0], content[arguments[0]])]
                content.clear()
                content.update([*items, *own] if last else [*own, *items])
                return None
            case "get":
                return content.get(arguments[0], arguments[1] if len(arguments) > 1 else None)
            case "copy":
                return self.new_dict(content, receiver.kind)
            case "setdefault":
                return content.setdefault(
                    arguments[0], arguments[1] if len(arguments) > 1 else None
                )
            case "update" | "__init__" | "__ior__":
                for other in arguments:
                    known = self.mapping(other)
                    found = self._pairs(other) if known is None else known
                    if isinstance(found, Unknown):
                        self.heap[receiver] = Many(found, self.emit.fresh("count"))
                        return None
                    content.update(found)
                content.update(keywords)
                return None
            case "pop" | "__getitem__":
                found = content.get(arguments[0], MISSING)
                if name == "pop":
                    content.pop(arguments[0], None)
                if found is MISSING and len(arguments) > 1:
                    return arguments[1]
                if found is MISSING:
                    raise CheckError("key", f"KeyError: {arguments[0]!r}")
                return found
            case "clear":
                content.clear()
                return None
            case "popitem":
                last = arguments[0] if arguments else keywords.get("last", True)
                if not content:
                    raise CheckError("key", "KeyError: 'popitem(): dictionary is empty'")
                key = [*content][-1 if last else 0]
                return key, content.pop(key)
        return self.lost(f"the method '{name}' of dictionaries")

    def _at_open_key(
        self, receiver: DictRef, content: dict[Any, Value], name: str, arguments: Sequence[Value]
    ) -> Value:
        """Ask a dictionary of known keys for one that only the run knows."""
        if name == "__contains__" and not self.emit.builds:
            return Truth(self.unknown_truth()) if content else False
        if name == "get" and not self.emit.builds:
            default = arguments[1] if len(arguments) > 1 else None
            found = self.at_some_key(content, arguments[0]) if content else MISSING
            if found is not MISSING or not content:
                return self.join(self.unknown_truth(), found, default)
        return self.lost("a dictionary asked for a key that is not known")

    def _many_dict_method(self, content: Value, name: str, arguments: Sequence[Value]) -> Value:
        if isinstance(content, Many) and name == "values":
            return self.new_list(Many(content.element, content.length))
        if isinstance(content, Pairs):
            match name:
                case "keys" | "__iter__":
                    return self.new_list(Many(content.key, content.length))
                case "items":
                    return self.new_list(Many((content.key, content.element), content.length))
                case "copy":
                    return DictRef(self.heap.new(content))
                case "__len__":
                    return content.length
                case "get":
                    other = arguments[1] if len(arguments) > 1 else None
                    return self.join(self.unknown_truth(), content.element, other)
        return self.lost(f"'{name}' of a dictionary whose keys are not known")

    def _pairs(self, value: Value) -> dict[Any, Value] | Unknown:
        """Return a dictionary from an iterable of pairs, unknown where its keys are."""
        items = self.sequence(value)
        if isinstance(items, Many):
            parts = items.element if isinstance(items.element, tuple) else (items.element,)
            failed = next((p for p in parts if isinstance(p, Unknown) and p.failed), None)
            return failed or self.lost("a dictionary of a number of keys that is not known")
        pairs = [self.sequence(item) for item in items]
        known = [pair for pair in pairs if isinstance(pair, list)]
        if len(known) < len(pairs):
            return self.lost("a dictionary of pairs that are not known")
        wrong = next((len(pair) for pair in known if len(pair) != 2), None)
        if wrong is not None:
            raise CheckError("value", f"ValueError: a dictionary takes pairs, got {wrong} items")
        made = self.with_keys((pair[0], pair[1]) for pair in known)
        return self.lost("a dictionary whose keys are not known") if made is None else made


_KEYED = ("get", "setdefault", "pop", "__getitem__", "__contains__", "__setitem__", "__delitem__",
          "move_to_end")  # fmt: skip
_READING = ("keys", "__iter__", "values", "items", "__contains__", "__len__", "get", "copy",
            "__getitem__")  # fmt: skip
_VIEWS = ("keys", "values", "items")
Handler = Callable[..., Value]
__all__ = ["Containers", "Handler", "Instance"]
