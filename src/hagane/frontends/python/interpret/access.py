"""Attributes, items and iteration of every kind of value."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.interpret.objects import Objects
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    MISSING,
    Bound,
    Choice,
    Class,
    Device,
    DictRef,
    DType,
    Fields,
    Function,
    Host,
    Instance,
    Library,
    ListRef,
    Many,
    Method,
    ModuleRef,
    Outside,
    Pairs,
    Range,
    Real,
    SetRef,
    Stream,
    Super,
    Tensor,
    Truth,
    Unknown,
    Value,
    Wrapped,
    is_enumeration,
    is_key,
    is_plain,
    is_size,
    names_of_tuple,
    with_setter,
)
from hagane.symbolic import Dim, Expr, ceildiv, maximum, minimum, symbols_of
from hagane.symbolic.logic import both
from hagane.symbolic.term import Term

# Methods that lists have not.
_OF_DEQUES = ("appendleft", "extendleft", "popleft", "rotate")

# A list of this many items or fewer is followed item by item.
MAX_UNROLLED = 256

_ASKED = 8  # items of a list that are told apart by a place that nothing determines


class Access(Objects):
    """Reads attributes and items, and gives the items of iterables."""

    tables: Tables

    # Attributes.

    def _Attribute(self, node: ast.Attribute) -> Value:
        value = self.evaluate(node.value)
        self.emit.label = self.collector.text(node)
        return self.settle(self.attribute(value, node.attr))

    def attribute(self, value: Value, name: str) -> Value:
        """Return an attribute of any value of the program."""
        found = self.find_attribute(value, name)
        if found is MISSING:
            self._no_attribute(value, name)
        return found

    def _no_attribute(self, value: Value, name: str) -> None:
        if isinstance(value, Tensor):
            self.fail("attribute", f"'{value.kind}' has no attribute '{name}'", value)
        if isinstance(value, Library):
            self.fail("attribute", f"'{value.name}' has no attribute '{name}'")
        what = self.show(value)
        if value is None:
            what = "None"
        raise CheckError("attribute", f"{what} has no attribute '{name}'")

    def _asked(self, found: Any, question: Callable[[], Any]) -> Value:
        """Return the answer to a question to a real object, ``MISSING`` if it is that."""
        answer = question()
        self.observer.asked(found, question, answer)
        return MISSING if answer is MISSING else self.lift(answer)

    def find_attribute(self, value: Value, name: str) -> Value:
        """Return an attribute, ``MISSING`` if there is none."""
        match value:
            case Unknown():
                return value
            case Choice():
                return self.either(value, lambda v: self.attribute(v, name))
            case Tensor():
                if (value.value, name) in self.tags:
                    return self.tags[value.value, name]
                return self.tables.tensor_attribute(self, value, name)
            case Instance():
                return self.instance_attribute(value, name)
            case Class():
                return self.class_attribute(value, name)
            case Super(start=start, receiver=receiver):
                return self.super_attribute(start, receiver, name)
            case Library():
                return self.tables.member(self, value, name)
            case ModuleRef():
                return self.module_attribute(value, name)
            case Host(object=found):
                return self._asked(found, partial(getattr, found, name, MISSING))
            case DType() | Device():
                return self.tables.constant_attribute(value, name)
            case Function() if name == "__class__":
                return Host(FunctionType)
            case Function() if name in ("__name__", "__qualname__", "__module__"):
                return value.scope.module.name if name == "__module__" else value.name
            case Function() if value.host is not None and hasattr(value.host, name):
                return self._asked(value.host, partial(getattr, value.host, name))
            case Wrapped(kind="property") if name == "setter":
                return Bound(Host(with_setter), value)
            case Wrapped(kind="property") if name in ("getter", "deleter"):
                return Host(lambda function: value)
            case Wrapped(kind="partial") if name in ("func", "args", "keywords"):
                return {
                    "func": value.function,
                    "args": value.arguments,
                    "keywords": self.new_dict(value.keywords),
                }[name]
            case Wrapped() if isinstance(value.function, Function):
                return self.find_attribute(value.function, name)
            case Bound() if name == "__self__":
                return value.receiver
        if isinstance(
            value,
            (
                tuple | frozenset | str | bytes | int | float | Expr | Real | range | Range,
                ListRef | DictRef | SetRef | Stream,
            ),
        ):
            return self._builtin_attribute(value, name)
        return MISSING

    def _builtin_attribute(self, value: Value, name: str) -> Value:
        if name == "__class__":
            return MISSING
        if isinstance(value, Expr) or (isinstance(value, int) and name in ("item", "bit_length")):
            return Method(value, name)
        if isinstance(value, Fields) and name in value.names:
            return value[value.names.index(name)]
        if isinstance(value, tuple) and name in ("numel", "index", "count"):
            return Method(value, name)
        kinds = {
            ListRef: list,
            DictRef: dict,
            SetRef: set,
            Stream: iter(()).__class__,
            Range: range,
            Real: float,
        }
        if isinstance(value, Real) and name in ("real", "imag"):
            return value if name == "real" else 0.0
        python = kinds.get(type(value), type(value))
        extra = isinstance(value, DictRef) and value.kind != "dict"
        deque = isinstance(value, ListRef) and name in _OF_DEQUES
        if not (hasattr(python, name) or deque) and not (
            extra and name in ("move_to_end", "most_common")
        ):
            return MISSING
        found = getattr(python, name, None)
        if is_plain(value) and found is not None and not callable(found):
            return getattr(value, name)
        return Method(value, name)

    # Items.

    def _Subscript(self, node: ast.Subscript) -> Value:
        value = self.evaluate(node.value)
        index = self.evaluate(node.slice)
        self.emit.label = self.collector.text(node)
        return self.settle(self.item(value, index))

    def item_of(self, value: Value, index: Value) -> Value:
        """Return ``value[index]``, with Python's own meaning."""
        if isinstance(value, Choice) or isinstance(index, Choice):
            return self.either(value, lambda v: self.either(index, lambda i: self.item(v, i)))
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Tensor):
            lost = _lost_part(index)
            return (
                self.tables.tensor_item(self, value, self.unwrap(index)) if lost is None else lost
            )
        if isinstance(value, DictRef) and (
            isinstance(index, Outside) or not isinstance(index, Unknown)
        ):
            return self._dict_item(value, index)
        if isinstance(index, Unknown):
            return index
        if isinstance(value, Instance):
            if names_of_tuple(value) is not None:
                return self._sequence_item(value, index)
            method = self.method_of(value, "__getitem__")
            if method is not MISSING:
                return self.call(method, [index], {})
        if isinstance(value, Library):
            name = f"{value.name}.__getitem__"
            known = self.tables.arguments(name) is not None
            return self.call_library(name, [index]) if known else value  # else an annotation
        if isinstance(value, Class) and is_enumeration(value):
            return self._named_member(value, index)
        if isinstance(value, Class) or (
            isinstance(value, Host) and (isinstance(value.object, type) or _is_typing(value.object))
        ):
            return value  # List[int]: an annotation
        if isinstance(value, Host):
            if is_plain(index):
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
            found = self._at_some_key(content, index)
            if found is not MISSING:
                return found
        if isinstance(content, dict) and isinstance(index, Tensor) and not self.emit.builds:
            if index not in content and not value.kind.startswith("defaultdict"):
                return self._at_no_key(content, index)
        elif not isinstance(content, dict) or not is_key(index):
            return self.lost("an item of a dictionary at a key that is not known")
        if index in content:
            return content[index]
        if value.kind.startswith("defaultdict"):
            made = self.call(self.heap[int(value.kind.partition(":")[2])], [], {})
            content[index] = made
            return made
        known = ", ".join(map(repr, list(content)[:8]))
        raise CheckError(
            "key", f"KeyError: expected one of the keys {known or '(none)'}, got {index!r}"
        )

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

    def _at_some_key(self, content: dict[Any, Value], index: Value) -> Value:
        """Return the item at a key that only the run knows, where all items are of one kind."""
        if not isinstance(index, Outside | Expr) or not (
            isinstance(index, Outside) or all(isinstance(key, int) for key in content)
        ):
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
        if all(map(is_size, items)):
            return self.some_of(items)
        if all(isinstance(item, Tensor | float | Real) for item in items):
            return self.as_many(tuple(items))[0]
        return MISSING

    def _named_member(self, cls: Class, name: Value) -> Value:
        """Return the member of an enumeration that has a name."""
        if not isinstance(name, str):
            return self.lost(f"a member of {cls.name} by a name that is not known")
        if cls.host is not None:
            if name not in cls.host.__members__:
                raise CheckError("key", f"KeyError: {name!r}")
            return self.lift(cls.host[name])
        found = self.heap[cls].get(name)
        if found is None or not isinstance(found, Instance):
            raise CheckError("key", f"KeyError: {name!r}")
        return found

    def _sequence_item(self, value: Value, index: Value) -> Value:
        items = self.sequence(value)
        if isinstance(index, slice):
            return self._slice(value, items, index)
        index = self._place(index)
        if not is_size(index) and not isinstance(index, Truth):
            raise CheckError("type", f"expected an integer as index, got {self.show(index)}")
        if isinstance(items, Many):
            self._expect_item(items, index)
            return items.item(index if not _is_negative(index) else items.length + index)
        if isinstance(index, int):
            if not -len(items) <= index < len(items):
                raise CheckError(
                    "index",
                    f"IndexError: index {index} is out of range for {len(items)} items "
                    f"({self.show(value)})",
                )
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
            raise CheckError("index", "IndexError: there are no items")
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

    def _slice(self, value: Value, items: list[Value] | Many, index: slice) -> Value:
        index = slice(*map(self._place, (index.start, index.stop, index.step)))
        if isinstance(items, list) and is_plain(index):
            found = apply_plain(lambda s: items[s], index)
            if isinstance(value, str | bytes):
                return value[index]
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

    # Iteration.

    def sequence(self, value: Value) -> list[Value] | Many:
        """Return the items of an iterable."""
        value = self.settle(value)
        match value:
            case tuple() | range() | str() | bytes() | frozenset():
                return list(value)
            case ListRef() | SetRef():
                return self._content(self.heap[value])
            case DictRef():
                content = self.heap[value]
                if isinstance(content, Pairs):
                    return Many(content.key, content.length)
                return list(content) if isinstance(content, dict) else content
            case Stream(key=key):
                content = self._content(self.heap[key])
                self.heap[key] = ()
                return content
            case Range():
                return self._range_items(value)
            case Tensor():
                return self._tensor_items(value)
            case Instance():
                return self._object_items(value)
            case Unknown():
                return Many(value, self.emit.fresh("count"))
            case Choice(condition=condition):
                yes, no = self.sequence(value.yes), self.sequence(value.no)
                if isinstance(yes, list) and isinstance(no, list) and len(yes) == len(no):
                    return [self.join(condition, a, b) for a, b in zip(yes, no, strict=True)]
                return self._either_list(condition, yes, no)
            case Host(object=found):
                items = apply_plain(tuple, found)
                if iter(found) is not found:  # it can be asked again
                    self.observer.asked(found, partial(tuple, found), items)
                return [self.lift(item) for item in items]
        raise CheckError("type", f"{self.show(value)} is not iterable")

    def _either_list(
        self, condition: Term, yes: list[Value] | Many, no: list[Value] | Many
    ) -> list[Value] | Many:
        """Return the items of one of two lists of different lengths."""
        if self.emit.builds:
            lost = self.lost("items of one of two lists of different lengths")
            return Many(lost, self.emit.fresh("count"))
        if not yes or not no:  # one of them has no items
            return Many(self._any_of(no or yes), self.emit.fresh("count"))
        items = (self._any_of(yes), self._any_of(no))
        same = is_plain(items[0]) and is_plain(items[1])
        element = self.some_of([*items]) if same else self.join(condition, *items)
        lengths = (part.length if isinstance(part, Many) else len(part) for part in (yes, no))
        return Many(element, self.join_sizes(condition, *lengths))

    def _any_of(self, items: list[Value] | Many) -> Value:
        return items.element if isinstance(items, Many) else self.some_of(items)

    def _content(self, content: Any) -> list[Value] | Many:
        if isinstance(content, Choice):
            yes, no = self._content(content.yes), self._content(content.no)
            return self._either_list(content.condition, yes, no)
        return content if isinstance(content, Many) else list(content)

    def _range_items(self, value: Range) -> list[Value] | Many:
        count: Dim
        start, step = value.start, value.step
        if not isinstance(step, int) and self.emit.builds:
            count = maximum(0, -((start - value.stop) // step))  # for either sign of the step
            return self.domain.many(value, Many(start, count, lambda k: start + k * step))
        if not isinstance(step, int):
            raise CheckError("value", "a range with a step that depends on sizes is not understood")
        if step > 0:
            count = maximum(0, -((start - value.stop) // step))
        else:
            count = maximum(0, -((value.stop - start) // -step))
        if isinstance(count, int):
            return [start + k * step for k in range(count)]
        return self.domain.many(value, Many(start, count, lambda k: start + k * step))

    def _tensor_items(self, value: Tensor) -> list[Value] | Many:
        if value.shape is None:
            return Many(self.lost("items of a tensor of unknown rank"), self.emit.fresh("count"))
        if not value.shape:
            raise CheckError("type", "iteration over a tensor without axes", tensors=(value,))
        count = value.shape[0]
        if isinstance(count, int) and count <= MAX_UNROLLED:
            return [self.tables.tensor_item(self, value, place) for place in range(count)]
        return self.domain.many(value, Many(self.tables.tensor_item(self, value, 0), count))

    def _object_items(self, value: Instance) -> list[Value] | Many:
        names = names_of_tuple(value)
        if names is not None:
            return [self.heap[value][name] for name in names]
        for name in ("__iter__", "__getitem__"):
            method = self.method_of(value, name)
            if method is MISSING:
                continue
            if name == "__iter__":
                return self.sequence(self.call(method, [], {}))
            length = self.call(self.attribute(value, "__len__"), [], {})
            if isinstance(length, int):
                return [self.call(method, [place], {}) for place in range(length)]
        raise CheckError("type", f"{self.show(value)} is not iterable")

    def sequence_or_keys(self, container: Instance) -> Any:
        """Return the keys of a dictionary-like object, or its items."""
        method = self.method_of(container, "keys")
        return self.sequence(self.call(method, [], {}) if method is not MISSING else container)

    def within(self, index: Dim, length: Dim) -> Term:
        """Return the condition that ``index`` is a position of ``length`` items."""
        return both(self.knowledge.less(0, index, strict=False), self.knowledge.less(index, length))


def _lost_part(index: Value) -> Unknown | None:
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
