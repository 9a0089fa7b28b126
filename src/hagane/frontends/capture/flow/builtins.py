"""Operators and functions of Python's own where data decide: lists, and the order of items."""

from __future__ import annotations

import ast
import builtins
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hagane.frontends.capture.flow import prelude
from hagane.frontends.capture.flow.iterators import ITERATORS, Iterators
from hagane.frontends.capture.flow.lists import is_data
from hagane.frontends.capture.flow.numeric import NONE
from hagane.frontends.capture.flow.slots import is_stackable
from hagane.frontends.python.interpret.domain import Operation
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.deques import list_like
from hagane.frontends.python.values.objects import is_key
from hagane.frontends.python.values.open_tuples import OpenTuple, tuple_of
from hagane.frontends.python.values.values import (
    Choice,
    Host,
    ListRef,
    Many,
    Method,
    Real,
    SetRef,
    Tensor,
    Unknown,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic import Dim, Expr


class Calling(Iterators):
    """Calls and operators whose operands are data."""

    def call(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call any value of the program."""
        if isinstance(function, Method) and function.name in _GROWING:
            self.core.check_growing(function.receiver, arguments)
            made = self._called(function, arguments, keywords)
            self.core.check_growing(function.receiver, arguments)  # some code runs only now
            return made
        return self._called(function, arguments, keywords)

    def _called(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        if isinstance(function, Method) and function.name in _READING:
            name = function.name
            found = self._parted(
                [function.receiver],
                lambda one: self.call(Method(one[0], name), arguments, keywords),
            )
        elif isinstance(function, Host):
            found = self._parted(arguments, lambda own: self.call(function, own, keywords))
        else:
            found = NONE
        if found is not NONE:
            return found
        if isinstance(function, Method):
            found = self._method(function, arguments, keywords)
        elif isinstance(function, Host):
            found = self._function(function.object, arguments, keywords)
        else:
            return self.core.apply(function, arguments, keywords)
        return self.core.apply(function, arguments, keywords) if found is NONE else found

    def _parted(self, values: Sequence[Value], run: Callable[[Sequence[Value]], Value]) -> Value:
        """Run a function on each of the dictionaries that one among some values may be.

        Returns:
            The result; ``NONE`` where no keys are as the data decide.
        """
        for place, value in enumerate(values):
            parted = self.core.parted(value)
            if isinstance(parted, Choice):
                before, behind = values[:place], values[place + 1 :]
                return self.core.either(parted, partial(_between, run, before, behind))
        return NONE

    # Methods.

    def _method(
        self, method: Method, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        receiver, name = method.receiver, method.name
        by_item = name in ("add", "discard", "remove", "__contains__")
        if isinstance(receiver, SetRef) and by_item and any(map(is_data, arguments)):
            raise CheckError("capture", "a set holds values that the data decide; use a list")
        if isinstance(receiver, Real) and name == "is_integer":
            return self.number_operation(ast.Eq, receiver, self._real("Floor", receiver))
        if not isinstance(receiver, ListRef):
            return NONE
        content = self.core.heap[receiver]
        if isinstance(content, Many):
            result = self.lists.method(receiver, name, arguments, keywords)
            self._bound(receiver, name)
            return result
        if not isinstance(content, tuple):
            return NONE
        by_data = name in ("pop", "insert") and bool(arguments) and is_data(arguments[0])
        by_data |= name in ("index", "count", "remove") and (
            any(map(is_data, (*content, *arguments)))
        )
        by_data |= name == "sort" and self._ordered_by_data(content, keywords)
        if by_data and content:
            return self.lists.method(receiver, name, arguments, keywords)
        return NONE

    def _bound(self, receiver: ListRef, name: str) -> None:
        """Drop the items of a full deque at the end where a method adds none."""
        most, content = getattr(receiver, "most", None), self.core.heap[receiver]
        if not isinstance(most, int) or not isinstance(content, Many):
            return
        if name == "appendleft" or most == 0:
            self.core.heap[receiver] = self.lists.part(content, None, most)
        elif name in ("append", "extend"):
            self.core.heap[receiver] = self.lists.part(content, -most, None)

    def _ordered_by_data(self, content: Sequence[Value], keywords: Mapping[str, Value]) -> bool:
        key = keywords.get("key")
        if key is None:
            return any(map(is_data, content))
        return any(is_data(self.core.call(key, [item], {})) for item in content)

    # Functions.

    def _function(
        self, found: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        arguments = [self.core.settle(value) for value in arguments]
        if any(isinstance(value, Choice) for value in arguments):
            return NONE
        handler = _HANDLERS.get(_key(found))
        if handler is not None:
            make = partial(handler, self, *arguments, **keywords)
            return self.core.derived(found, arguments, make)
        if getattr(found, "__module__", "") == "math" and any(map(is_data, arguments)):
            return self._math(found.__name__, arguments)
        return NONE

    def _sum(self, value: Value, start: Value = 0) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return NONE
        self.core.sequence(value)
        whole = self.lists.reduced("ReduceSum", self.lists.stacked(items))
        if whole is None:
            return self.lists.own(prelude.total, self.core.new_list(items), start)
        if is_plain(start) and start == 0:
            return whole
        return self.core.binary(ast.Add, start, whole)

    def _prod(self, value: Value, *, start: Value = 1) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return NONE
        return self.lists.own(prelude.multiplied, self.core.new_list(items), start)

    def _print(self, *values: Value, **_: Value) -> Value:
        self.telling.tell("print", values)
        return None

    def _any(self, value: Value) -> Value:
        return self._junction(value, prelude.any_of)

    def _all(self, value: Value) -> Value:
        return self._junction(value, prelude.all_of)

    def _junction(self, value: Value, function: Callable[..., Any]) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return NONE
        self.core.sequence(value)
        self.core.put_back(value, None)
        return self.lists.own(function, self.core.new_list(items))

    def _min(self, *values: Value, **keywords: Value) -> Value:
        return self._extreme(values, keywords, prelude.least, "ReduceMin")

    def _max(self, *values: Value, **keywords: Value) -> Value:
        return self._extreme(values, keywords, prelude.greatest, "ReduceMax")

    def _extreme(
        self,
        values: Sequence[Value],
        keywords: Mapping[str, Value],
        function: Callable[..., Any],
        name: str,
    ) -> Value:
        items = self._items(values[0]) if len(values) == 1 else list(values)
        many = isinstance(items, Many)
        key = keywords.get("key")
        if not isinstance(items, Many):
            if not items or (key is None and not any(map(is_data, items))):
                return NONE
            if key is None and all(isinstance(i, int | Expr) for i in items):
                return self.extreme_number(name, items)
            if key is not None and not self._ordered_by_data(items, keywords):
                return NONE
        if len(values) == 1:
            self.core.sequence(values[0])
        content = items if isinstance(items, Many) else tuple(items)
        ref = self.core.new_list(content)
        by = key
        if key is None:
            by = self.core.lift(prelude.itself)
            if isinstance(content, Many):
                if "default" not in keywords:
                    empty = self.core.compare(ast.Eq, content.length, 0)
                    told = f"{name.removeprefix('Reduce').lower()}() arg is an empty sequence"
                    self.core.fail_where(empty, ValueError, told)
                whole = self.lists.reduced(name, self.lists.stacked(content))
                if whole is not None and "default" not in keywords:
                    return whole
        if "default" in keywords and many:
            empty = self.core.decide(self.core.as_term(self.core.truth(ref)))
            run = partial(self.lists.own, function, ref, by)
            if isinstance(empty, bool):
                return run() if empty else keywords["default"]
            return self.core.fork(empty, run, lambda: keywords["default"], "the list has items")
        return self.lists.own(function, ref, by)

    def _sorted(self, value: Value, **keywords: Value) -> Value:
        items = self._items(value)
        content = items if isinstance(items, Many) else tuple(items)
        if isinstance(content, tuple) and not self._ordered_by_data(content, keywords):
            return NONE
        self.core.sequence(value)
        return self.lists.sorted(content, keywords)

    def _set(self, value: Value = ()) -> Value:
        items = self._items(value)
        if isinstance(items, Many) or any(is_data(v) and not is_key(v) for v in items):
            raise CheckError("capture", "a set holds values that the data decide; use a list")
        return NONE

    def _reduce(self, function: Value, value: Value, *initial: Value) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return NONE
        content = self.lists.chained(tuple(initial), self.core.sequence(value))
        return self.lists.own(prelude.folded, function, self.core.new_list(content))

    # Operators.

    def operate(self, kind: Operation, *operands: Value) -> Value:
        """Return an operator applied to its operands; data among them go to nodes."""
        if kind is not ast.Store:
            found = self._parted(operands, lambda own: self.operate(kind, *own))
            if found is not NONE:
                return found
        if kind in (ast.Subscript, ast.Store):
            found = self._place(kind, *operands)
        elif kind in (ast.In, ast.NotIn):
            found = self._membership(kind, *operands)
        elif any(isinstance(value, ListRef) for value in operands):
            found = self._lists(kind, *operands) if len(operands) == 2 else NONE
        else:
            found = self.number_operation(kind, *operands)
        return self.core.compute(kind, *operands) if found is NONE else found

    def _place(self, kind: Operation, receiver: Value, index: Value, *value: Value) -> Value:
        if not isinstance(receiver, ListRef | tuple):
            return NONE
        index = self.core.settle(index)
        if isinstance(index, Choice | Unknown):
            return NONE
        content = self.core.heap[receiver] if isinstance(receiver, ListRef) else receiver
        if isinstance(content, Many):
            simple = content.at is not None and not isinstance(index, slice | Tensor)
            if kind is ast.Subscript and simple and not hasattr(content, "columns"):
                return NONE
        elif not isinstance(content, tuple) or not is_data(index) or not content:
            return NONE
        elif not is_stackable(self.lists.form_of(content)):
            if not isinstance(index, Expr):
                return NONE
            place = self.lists.from_front(index, len(content))
            alone = all(isinstance(v, Tensor) or is_plain(v) for v in (*content, *value))
            if kind is ast.Store and isinstance(receiver, ListRef) and alone:
                self.core.heap[receiver] = self._either_set(content, place, value[0])
                return None
            return self.core.compute(kind, receiver, place, *value)
        elif isinstance(receiver, ListRef):
            self.lists.searched.add(receiver.key)
        if not isinstance(index, slice):
            self.lists.check_place(content, index)
        if kind is ast.Subscript:
            found = self.lists.item(content, index)
            of_tuple = isinstance(receiver, OpenTuple) and isinstance(index, slice)
            return OpenTuple(found.key) if of_tuple else found
        assert isinstance(receiver, ListRef)
        self.core.heap[receiver] = self._stored(content, index, value[0])
        return None

    def _either_set(self, content: Sequence[Value], place: Dim, value: Value) -> Value:
        """Return items that no tensor holds together, the one at a place set."""
        core = self.core
        conditions = [
            core.as_term(core.truth(core.compare(ast.Eq, place, k))) for k in range(len(content))
        ]
        pairs = zip(conditions, content, strict=True)
        return tuple(core.join(condition, value, item) for condition, item in pairs)

    def _stored(self, content: Value, index: Value, value: Value) -> Value:
        rows = self.lists.store(content, index, value)
        if isinstance(content, tuple):  # as long as it was
            return tuple(rows.item(k) for k in range(len(content)))
        return rows

    def _membership(self, kind: Operation, item: Value, container: Value) -> Value:
        if not isinstance(container, ListRef):
            return NONE
        content = self.core.heap[container]
        if not isinstance(content, Many):
            return NONE
        found = self.lists.own(prelude.contains, container, item)
        return found if kind is ast.In else self.core.negated(self.core.truth(found))

    def _lists(self, kind: Operation, left: Value, right: Value) -> Value:
        heap = self.core.heap
        contents = [heap[x] if isinstance(x, ListRef) else x for x in (left, right)]
        tuples = all(isinstance(x, tuple | OpenTuple) for x in (left, right))
        both = tuples or (isinstance(left, ListRef) and isinstance(right, ListRef))
        if kind is ast.Add and both and any(isinstance(c, Many) for c in contents):
            made = self.lists.chained(*contents)
            return tuple_of(heap, made) if tuples else self.core.new_list(made)
        if kind is ast.Mult:
            content, times = contents if isinstance(left, ListRef) else contents[::-1]
            if isinstance(times, Tensor):
                times = self.core.tensor_number(times, whole=True)
            many = isinstance(content, Many)
            if (many and is_size(times)) or (isinstance(times, Expr) and (many or content)):
                like = left if isinstance(left, ListRef) else right
                return list_like(heap, like, self.lists.repeated(content, times))
        return NONE


def _between(
    run: Callable[[Sequence[Value]], Value],
    before: Sequence[Value],
    behind: Sequence[Value],
    one: Value,
) -> Value:
    return run([*before, one, *behind])


# Methods that put the items of iterators into containers, one after the other.
_GROWING = ("extend", "extendleft", "update", "__ior__")
# Methods of dictionaries that change nothing.
_READING = frozenset(("keys", "values", "items", "get", "copy", "__len__", "__contains__",
                      "__iter__", "__getitem__"))  # fmt: skip


def _key(found: Any) -> Any:
    try:
        hash(found)
    except TypeError:
        return None
    return found


_HANDLERS: dict[Any, Callable[..., Value]] = {
    builtins.sum: Calling._sum, builtins.any: Calling._any, builtins.all: Calling._all,
    builtins.min: Calling._min, builtins.max: Calling._max, builtins.sorted: Calling._sorted,
    builtins.set: Calling._set, builtins.frozenset: Calling._set,
    builtins.abs: Calling._abs, builtins.round: Calling._round,
    builtins.int: Calling._int, builtins.float: Calling._float, builtins.pow: Calling._pow,
    builtins.print: Calling._print, math.prod: Calling._prod,
    functools.reduce: Calling._reduce, **ITERATORS,
}  # fmt: skip
__all__ = ["Calling"]
