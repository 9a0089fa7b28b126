"""Calls of libraries: lists as Python's own, choices taken apart, unknown values left so."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from hagane.frontends.python.interpret.open_numbers import OpenNumbers
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Instance,
)
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    Fields,
    LibraryMethod,
    ListRef,
    Many,
    Outside,
    SetRef,
    Unknown,
    Value,
    alternatives,
)

# A call is followed for so many combinations of values that the data decide.
_MAX_COMBINATIONS = 1024

# What library functions do with a value that nobody knows, they do with any.
_TAKE_UNKNOWN = frozenset(
    ("register_buffer", "register_parameter", "add_module", "register_module", "load_state_dict",
     "save", "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "DataLoader")
)  # fmt: skip

_OPEN = (
    "which only a run knows; say its type where it is read, as in "
    "'x: \"float32[n, 4]\" = …', or 'n: int = …'"
)


class LibraryCalls(OpenNumbers):
    """Calls functions and methods of libraries, with values as their tables take them."""

    tables: Tables

    def library(
        self, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a function or a class of a library by its name."""
        special = self.call_special(name, arguments, keywords)
        if special is not MISSING:
            return special
        if self.tables.records(name):
            return self.wrap(self.tables.call(self, name, arguments, keywords))
        return self._with_known(
            arguments, keywords, lambda a, k: self.tables.call(self, name, a, k), name
        )

    def library_method(
        self, method: LibraryMethod, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a method of a library's class."""
        if method.name.startswith("object."):
            name = method.name.partition(".")[2]
            return self.object_method(method.receiver, name, arguments, keywords)
        if self.tables.records(method.name):
            receiver = [method.receiver, *arguments]
            return self.wrap(self.tables.call_method(self, method.name, receiver, keywords))
        return self._with_known(
            [method.receiver, *arguments],
            keywords,
            lambda a, k: self.tables.call_method(self, method.name, a, k),
            method.name,
        )

    def _with_known(
        self,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
        run: Any,
        name: str = "",
    ) -> Value:
        """Call with lists as Python's own and choices taken apart; unknown values stay unknown."""
        arguments, keywords = self.as_numbers(name, arguments, keywords)
        values = [*arguments, *keywords.values()]
        lost = next((value for value in values if isinstance(value, Unknown)), None)
        if lost is not None and name.rpartition(".")[2] not in _TAKE_UNKNOWN:
            writes = not lost.failed and self.tables.writes(self, name, arguments, keywords)
            if writes or isinstance(lost, Outside):  # what is written would stay as it was
                return self.lost(f"'{name}' of {lost.reason}, {_OPEN}")
            return lost
        place = next((i for i, value in enumerate(values) if isinstance(value, Choice)), None)
        if place is not None:
            return self.either(
                values[place],
                lambda v: self._with_known_at(place, v, arguments, keywords, run, name),
            )
        plain = [self.unwrap(value) for value in arguments]
        named = {name: self.unwrap(value) for name, value in keywords.items()}
        return self._with_plain(plain, named, run, name)

    def _with_plain(
        self, plain: list[Value], named: dict[str, Value], run: Any, name: str = ""
    ) -> Value:
        """Call with values as library functions take them; choices inside lists are taken apart."""
        for value in [*plain, *named.values()]:
            lost = _lost_inside(value)
            if lost is None:
                continue
            writes = not lost.failed and self.tables.writes(self, name, plain, named)
            if writes or isinstance(lost, Outside):
                return self.lost(f"a call with {lost.reason}, {_OPEN}")
            return lost
        values = [*plain, *named.values()]
        choice = next((c for v in values if (c := _choice_inside(v))), None)
        if choice is None:
            return self.wrap(run(plain, named))
        if _combinations(values) > _MAX_COMBINATIONS:
            return self.lost("a call with values that the data decide, in too many combinations")
        return self.either(
            choice,
            lambda v: self._with_plain(
                [_replaced(item, choice, v) for item in plain],
                {key: _replaced(item, choice, v) for key, item in named.items()},
                run,
                name,
            ),
        )

    def _with_known_at(
        self,
        place: int,
        value: Value,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
        run: Any,
        name: str,
    ) -> Value:
        """Call again with the argument at ``place`` replaced."""
        values = [*arguments, *keywords.values()]
        values[place] = value
        count = len(arguments)
        named = dict(zip(keywords, values[count:], strict=True))
        return self._with_known(values[:count], named, run, name)

    def unwrap(self, value: Value) -> Value:
        """Return lists and dictionaries of the program as Python's own, for library functions.

        So are objects of its own classes of lists and tuples that do not say how they are read.
        """
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            items = self.inherited(value)
            plain = isinstance(items, ListRef | tuple)
            reading = ("__getitem__", "__iter__", "__len__")
            if not plain or any(isinstance(self.method_of(value, n), Bound) for n in reading):
                return value
            return self.unwrap(items)
        if isinstance(value, ListRef | SetRef):
            content = self.heap[value]
            if isinstance(content, Many):
                return _as_table(content)
            if isinstance(content, Choice):
                return content
            return [self.unwrap(v) for v in content]
        if isinstance(value, DictRef):
            content = self.heap[value]
            if not isinstance(content, dict):
                return content
            kind: type[dict[Any, Any]] = OrderedDict if value.kind == "OrderedDict" else dict
            return kind((key, self.unwrap(item)) for key, item in content.items())
        if isinstance(value, tuple):
            return (Size if isinstance(value, Size) else tuple)(map(self.unwrap, value))
        return value

    def wrap(self, value: Value) -> Value:
        """Return the result of a library function as a value of the program."""
        if isinstance(value, list):
            return self.new_list([self.wrap(item) for item in value])
        if isinstance(value, Many):
            return self.new_list(value)
        if isinstance(value, dict):
            kind = "OrderedDict" if isinstance(value, OrderedDict) else "dict"
            return self.new_dict({key: self.wrap(item) for key, item in value.items()}, kind)
        if isinstance(value, Fields | Size):
            return value
        if isinstance(value, tuple):
            return tuple(self.wrap(item) for item in value)
        return value


def _as_table(content: Many) -> Many:
    """Return a content with its items in one tensor, where they are lists and tuples of numbers."""
    if content.table is None or content.stacked is not None or content.uneven is not None:
        return content
    table = content.table()
    return content if table is None else Many(content.element, content.length, content.at, table)


def _lost_inside(value: Value) -> Unknown | None:
    if isinstance(value, list | tuple):
        for item in value:
            found = item if isinstance(item, Unknown) else _lost_inside(item)
            if found is not None:
                return found
    if (
        isinstance(value, Many)
        and isinstance(value.element, Unknown)
        and not (value.stacked or value.uneven)
    ):
        return value.element
    return None


def _choice_inside(value: Value) -> Choice | None:
    if isinstance(value, Choice):
        return value
    if type(value) in (list, tuple, Size):
        return next((c for item in value if (c := _choice_inside(item))), None)
    return None


def _combinations(value: Value) -> int:
    """Return in how many ways the choices inside of values can come out, those alike as one."""
    return prod(_alternatives_inside(value).values())


def _alternatives_inside(value: Value) -> dict[frozenset[Any], int]:
    """Return the numbers of alternatives of the choices inside of values, by their conditions."""
    if isinstance(value, Choice):
        return {frozenset(_conditions(value)): len(alternatives(value))}
    found: dict[frozenset[Any], int] = {}
    if type(value) in (list, tuple, Size):
        for item in value:
            found.update(_alternatives_inside(item))
    return found


def _conditions(value: Value) -> list[Any]:
    if not isinstance(value, Choice):
        return []
    return [value.condition, *_conditions(value.yes), *_conditions(value.no)]


def _replaced(value: Value, choice: Choice, item: Value) -> Value:
    if value is choice:
        return item
    if type(value) in (list, tuple, Size):
        return type(value)(_replaced(part, choice, item) for part in value)
    return value


__all__ = ["LibraryCalls"]
