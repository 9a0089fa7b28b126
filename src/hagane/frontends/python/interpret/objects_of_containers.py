"""Objects of the program's own dicts, lists and tuples: what they have from Python's."""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.dictionaries import items_of
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Instance,
    Wrapped,
    names_of_tuple,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Host,
    Many,
    Ref,
    Value,
)

# Members of named tuples: their own, then those of all tuples.
_OF_TUPLES = {
    "__len__": len, "__iter__": iter, "__getitem__": operator.getitem, "__add__": operator.add,
    "__mul__": operator.mul, "__contains__": operator.contains, "__eq__": operator.eq,
    "__ne__": operator.ne, "__lt__": operator.lt, "__hash__": hash,
}  # fmt: skip
OF_NAMED_TUPLES = ("_asdict", "_fields", "_make", "_replace", "__len__", "count", "index")


class ObjectsOfContainers(Core):
    """Content and members of objects whose class derives from a container of Python's."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        # The dict, list or tuple that an object is, by its key.
        self._contents: dict[int, Ref | tuple[Value, ...]] = {}

    def of_named_tuple(self, value: Instance, names: list[str], name: str) -> Value:
        """Return a method that named tuples have, or the names of their fields."""
        items = tuple(self.heap[value][field] for field in names)
        assert isinstance(value.cls, Class)
        match name:
            case "_fields":
                return tuple(names)
            case "_make":
                return self.class_attribute(value.cls, name)
            case "_replace":
                return Bound(Host(dataclasses.replace), value)
            case "_asdict":
                made = self.new_dict(dict(zip(names, items, strict=True)))
                return Wrapped("partial", Host(copy.copy), (made,))
            case "__len__":
                return Wrapped("partial", Host(len), (items,))
        return self.attribute(items, name)

    def python_base(self, cls: Class) -> type | None:
        """Return the container of Python's own that a class derives from."""
        for base in self.resolution_order(cls):
            real = base.object if isinstance(base, Host) else None
            if isinstance(real, type) and issubclass(real, dict | list | tuple):
                return real
        return None

    def inherited(self, value: Instance) -> Ref | tuple[Value, ...] | None:
        """Return the dict, list or tuple that an object is, None if it is none."""
        if not isinstance(value.cls, Class) or names_of_tuple(value) is not None:
            return None
        known = self._contents.get(value.key)
        if known is not None:
            return known
        base = self.python_base(value.cls)
        if base is None:
            return None
        real = value.host
        made: Ref | tuple[Value, ...]
        if issubclass(base, tuple):
            made = () if real is None else tuple(self.lift(v) for v in tuple.__iter__(real))
        elif issubclass(base, dict):
            items = {} if real is None else {k: self.lift(v) for k, v in items_of(real)}
            kind = "OrderedDict" if issubclass(base, OrderedDict) else "dict"
            made = self.new_dict(items, kind)
        else:
            made = self.new_list([] if real is None else [self.lift(v) for v in list(real)])
        self._contents[value.key] = made
        return made

    def as_tuple(self, value: Value, own: str) -> Value:
        """Return an object that is a tuple as one, where its class has no method of its own."""
        if not isinstance(value, Instance) or not isinstance(value.cls, Class):
            return value
        if self.find_in_class(value.cls, own) is not MISSING:
            return value
        names = names_of_tuple(value)
        if names is None:
            items = self.inherited(value)
            return items if isinstance(items, tuple) else value
        return tuple(self.heap[value][name] for name in names)

    def of_tuple(self, items: tuple[Value, ...], name: str) -> Value:
        """Return a method of a tuple that an object is."""
        if name in _OF_TUPLES:
            return Wrapped("partial", Host(_OF_TUPLES[name]), (items,))
        return self.attribute(items, name) if name in ("count", "index") else MISSING

    def new_tuple(self, cls: Class, items: Sequence[Value]) -> Value:
        """Return a new object of a class that derives from ``tuple``."""
        found = self.sequence(items[0]) if items else []
        if isinstance(found, Many):
            return self.lost(f"a {cls.name} of a length that is not known")
        made = Instance(self.heap.new({}), cls)
        self.become(made, found)
        return made

    def hold_items(self, value: Instance, items: Ref | tuple[Value, ...]) -> None:
        """Give a new object of a class that derives from a container the container that it is."""
        self._contents[value.key] = items

    def become(self, value: Instance, items: Sequence[Value]) -> None:
        """Give a new object of a class that derives from ``tuple`` its items."""
        self._contents[value.key] = tuple(items)
