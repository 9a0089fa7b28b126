"""The items of every kind of iterable."""

from __future__ import annotations

from functools import partial
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.interpret.own_programs import (
    items_of,
    run_own,
    sized_items_of,
    turns_of,
)
from hagane.frontends.python.interpret.reading.containing import Containing
from hagane.frontends.python.interpret.reading.streams import ENDED
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.hashed import in_order
from hagane.frontends.python.values.objects import (
    Class,
    Instance,
    is_enumeration,
    names_of_tuple,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    Host,
    Library,
    ListRef,
    Many,
    Pairs,
    Range,
    SetRef,
    Stream,
    Tensor,
    Unknown,
    Value,
    alternatives,
    is_plain,
)
from hagane.symbolic import Dim, Expr, ceildiv, maximum, symbol
from hagane.symbolic.logic import both
from hagane.symbolic.substitute import symbols_of
from hagane.symbolic.term import Term

# A list of this many items or fewer is followed item by item.
MAX_UNROLLED = 256


class Iteration(Containing):
    """Gives the items of iterables."""

    tables: Tables

    def sequence(self, value: Value) -> list[Value] | Many:
        """Return the items of an iterable."""
        value = self.settle(value)
        match value:
            case tuple() | range() | str() | bytes() | frozenset():
                return list(value)
            case ListRef() | SetRef():
                return self._content(in_order(self.heap[value]))
            case DictRef():
                content = self.heap[value]
                if isinstance(content, Pairs):
                    return Many(content.key, content.length)
                return list(content) if isinstance(content, dict) else content
            case Stream(key=key):
                self.check_stream(value)
                content = self._content(self.left_of(value))
                self.heap[key] = ENDED
                return content
            case Range():
                return self._range_items(value)
            case Tensor():
                return self._tensor_items(value)
            case Instance():
                return self._object_items(value)
            case Class() if is_enumeration(value):
                return self.items_of_class(value)
            case Unknown():
                return Many(value, self.emit.fresh("count"))
            case Library(name=name) if not self.tables.describes(name):
                return Many(self.tables.unread(self, name), self.emit.fresh("count"))
            case Choice() if self.emit.builds and any(v is None for v in alternatives(value)):
                return self.sequence(self.present(value))
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
            count = self._length(-((start - value.stop) // step))  # for either sign of the step
            return self.domain.many(value, Many(start, count, lambda k: start + k * step))
        if not isinstance(step, int) and self.knowledge.is_nonnegative(step - 1):
            count = maximum(0, ceildiv(value.stop - start, step))
            return self.domain.many(value, Many(start, count, lambda k: start + k * step))
        if not isinstance(step, int):
            element = self.emit.fresh("item")  # (the number of steps is no formula of sizes)
            self.emit.pieces.varying.add(str(element))
            return self.domain.many(value, Many(element, self.emit.fresh("steps")))
        if step > 0:
            count = self._length(-((start - value.stop) // step))
        else:
            count = self._length(-((value.stop - start) // -step))
        if isinstance(count, int):
            return [start + k * step for k in range(count)]
        return self.domain.many(value, Many(start, count, lambda k: start + k * step))

    def _length(self, steps: Dim) -> Dim:
        """Return the number of a range's steps, which is negative where it ends at its start."""
        names = symbols_of(steps) if self.emit.builds else ()
        if all(self._is_size(symbol(name)) for name in names):
            return maximum(0, steps)
        found = self.call(Host(max), [0, steps], {})  # formulas take names for sizes, from 0 on
        return found if isinstance(found, int | Expr) else maximum(0, steps)

    def _is_size(self, value: Dim) -> bool:
        return self.decide(self.as_term(self.knowledge.less(-1, value))) is True

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
                return self.sequence(self._iterator_by(method))
            once = self.read_once(value)
            if once is not value:
                return self.sequence(once)
            length = self.call(self.attribute(value, "__len__"), [], {})
            if isinstance(length, int) and (length <= MAX_UNROLLED or self.emit.builds):
                return [self.call(method, [place], {}) for place in range(length)]
            if isinstance(length, int | Expr):
                place = self.emit.fresh("index")
                entry = self.knowledge.path
                self.knowledge.path = entry.taking(self.within(place, length))
                item = self.call(method, [place], {})
                self.knowledge.path = entry
                return Many(item, length)
        raise CheckError("type", f"{self.show(value)} is not iterable")

    def _iterator_by(self, method: Value) -> Value:
        """Return what an ``__iter__`` gives, as an iterator of Python's own."""
        found = self.call(method, [], {})
        if isinstance(found, Instance) and self.method_of(found, "__next__") is not MISSING:
            return run_own(self, turns_of, [found], {})
        return found

    def read_once(self, value: Value) -> Value:
        """Return an object's iterator in place of an object whose class says how it is read."""
        if not isinstance(value, Instance) or not isinstance(value.cls, Class):
            return value
        own = self.find_in_class(value.cls, "__iter__")
        if own is not MISSING:
            return self._iterator_by(self.bind(own, value, value.cls))
        if self.emit.builds and self.find_in_class(value.cls, "__getitem__") is not MISSING:
            size = self.method_of(value, "__len__")
            length = 0 if size is MISSING else self.call(size, [], {})
            program = items_of if isinstance(length, int) else sized_items_of
            return run_own(self, program, [value], {})
        return value

    def sequence_or_keys(self, container: Instance) -> Any:
        """Return the keys of a dictionary-like object, or its items."""
        method = self.method_of(container, "keys")
        return self.sequence(self.call(method, [], {}) if method is not MISSING else container)

    def within(self, index: Dim, length: Dim) -> Term:
        """Return the condition that ``index`` is a position of ``length`` items."""
        return both(self.knowledge.less(0, index, strict=False), self.knowledge.less(index, length))
