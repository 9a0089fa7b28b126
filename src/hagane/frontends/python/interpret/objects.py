"""Objects and classes of the program: attributes, inheritance, members of Python's own classes."""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from hagane.frontends.python.interpret.objects_of_containers import (
    OF_NAMED_TUPLES,
    ObjectsOfContainers,
)
from hagane.frontends.python.interpret.objects_of_exceptions import ObjectsOfExceptions
from hagane.frontends.python.interpret.setting.deleting import Deleting
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Computed,
    Function,
    Generated,
    Instance,
    Wrapped,
    is_flag,
    names_of_tuple,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Absent,
    Choice,
    DictRef,
    Host,
    Library,
    LibraryMethod,
    Many,
    Method,
    Range,
    Unset,
    Value,
    may_be_absent,
)
from hagane.symbolic.logic import negate
from hagane.symbolic.term import Term

# Members of every object from ``object``; the receiver is given.
_OBJECT = (
    "__init__", "__init_subclass__", "__setattr__", "__new__", "__post_init__", "__getattribute__",
    "__getattr__", "__delattr__",
)  # fmt: skip

_OF_FLAGS = ("__or__", "__and__", "__xor__", "__invert__", "__contains__", "__bool__")


class Objects(Deleting, ObjectsOfContainers, ObjectsOfExceptions):
    """Attributes of objects and classes of the program."""

    tables: Tables

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._orders: dict[Class, list[Value]] = {}
        self.heap.absent = self.absent_attribute

    # Objects.

    def instance_attribute(self, value: Instance, name: str) -> Value:
        """Return an attribute of an object, ``MISSING`` if there is none."""
        cls = value.cls
        if isinstance(cls, Class):
            getter = self.find_in_class(cls, "__getattribute__")
            if getter is not MISSING:
                found = self.attempt(lambda: self.call(self.bind(getter, value, cls), [name], {}))
                return self._computed(value, name) if found is MISSING else found
        found = self.plain_attribute(value, name)
        return self._computed(value, name) if found is MISSING else found

    def plain_attribute(self, value: Instance, name: str) -> Value:
        """Return an attribute as ``object.__getattribute__`` does."""
        if not isinstance(value.cls, Class):
            own = self.own_attribute(value, name)
            if own is not MISSING:
                return own
            if name == "__dict__":
                return self._namespace(value)
            if name == "__class__":
                return value.cls
            return self.tables.object_attribute(self, value, name)
        names = names_of_tuple(value)
        if names is not None and name in OF_NAMED_TUPLES and name not in names:
            return self.of_named_tuple(value, names, name)
        found = self.find_in_class(value.cls, name)
        if isinstance(found, Wrapped) and found.kind == "property":
            return self.call(found.function, [value], {})
        if self.descriptor(found, "__set__") is not MISSING:
            return self.bind(found, value, value.cls)
        if found is not MISSING and _is_registered(value.host, name):
            return self._beyond_own(value, value.cls, name, found)  # as of the class it is found
        own = self.own_attribute(value, name)
        if own is MISSING or (isinstance(own, Unset) and _is_cached(found)):
            return self._beyond_own(value, value.cls, name, found)
        if may_be_absent(own) and (
            found is not MISSING or self.find_in_class(value.cls, "__getattr__") is not MISSING
        ):
            return self.either(own, partial(self._own_or_beyond, value, value.cls, name, found))
        return own

    def _own_or_beyond(
        self, value: Instance, cls: Class, name: str, found: Value, own: Value
    ) -> Value:
        if not isinstance(own, Absent):
            return own
        other = self._beyond_own(value, cls, name, found)
        other = self._computed(value, name) if other is MISSING else other
        return own if other is MISSING else other

    def _beyond_own(self, value: Instance, cls: Class, name: str, found: Value) -> Value:
        """Return an attribute that an object does not hold, given what its class has for it."""
        if _is_cached(found):
            made = self.call(found.function, [value], {})
            self.set_own(value, name, made)
            return made
        if found is not MISSING:
            if self._is_described(cls, name):
                base = self.tables.stranger_of(self, value)
                if base is not None:  # which may give objects another value
                    return self.tables.unread(self, f"{base}.{name}")
            return self.bind(found, value, cls)
        if name == "__class__":
            return cls
        if name == "__module__":
            return getattr(cls.host, name, cls.module.name)
        if name == "__dict__":
            return self._namespace(value)
        if name == "__dataclass_fields__":
            return self.class_attribute(cls, name)
        base = self.tables.object_attribute(self, value, name)
        found = self._from_python(value, name) if base is MISSING else base
        if found is MISSING and self._is_access(cls, name):
            return LibraryMethod(value, f"object.{name}")
        return found

    def _is_access(self, cls: Class, name: str) -> bool:
        """Whether a method by which Python gets at attributes is the one of all objects.

        ``object`` has no ``__getattr__``, classes of libraries may have one.
        """
        if name == "__getattr__":
            return any(isinstance(base, Library) for base in self.resolution_order(cls))
        return name in ("__getattribute__", "__setattr__", "__delattr__")

    def _is_described(self, cls: Class, name: str) -> bool:
        """Whether a class or a base of it annotates a name, and is no dataclass."""
        for base in self.resolution_order(cls):
            if isinstance(base, Class) and any(name == field for field, _ in base.fields):
                return "dataclass" not in base.flags
        return False

    def _computed(self, value: Instance, name: str) -> Value:
        """Return the result of ``__getattr__``."""
        if not isinstance(value.cls, Class):
            return MISSING
        getter = self.find_in_class(value.cls, "__getattr__")
        if getter is MISSING:
            return MISSING
        return self.call(self.bind(getter, value, value.cls), [name], {})

    def _namespace(self, value: Instance) -> Value:
        names = getattr(value.host, "__dict__", {})
        self.observer.listed(names)
        for name in names:
            self.own_attribute(value, name)
        self.refuse_half_set(value)
        self.owned(value)
        self.heap.namespaces.add(value.key)
        return DictRef(value.key)

    def own_attribute(self, value: Instance, name: str) -> Value:
        """Return an attribute that the object itself holds."""
        content = self.heap[value]
        if self.heap.late.noted:
            self.heap.late.note(value.key, name)
        if self.heap.late.owed:
            self.heap.check_owed(value.key, name)
        found = content.get(name, MISSING)
        if isinstance(found, Computed):
            return found.compute()
        if found is MISSING and value.host is not None and name not in content:
            held = partial(self.host_attribute, value.host, name)
            found = self.observer.attribute(value, name, held)
            if found is not MISSING:
                content[name] = found
                self.heap.originals.read(value.key, name, found)
        return found

    # Members of objects from Python's own classes.

    def attribute_of_enumeration(self, cls: Class, name: str) -> Value:
        """Return an attribute that every enumeration has, ``MISSING`` for others."""
        raise NotImplementedError

    def flag_method(self, value: Instance, name: str, arguments: Sequence[Value]) -> Value:
        """Return an operator on flags, ``MISSING`` where there is none."""
        raise NotImplementedError

    def _from_python(self, value: Instance, name: str) -> Value:
        if name in _OF_FLAGS and is_flag(value.cls):
            return LibraryMethod(value, f"object.{name}")
        if isinstance(value.host, enum.Enum) and name in ("name", "value"):
            return self.own_attribute(value, f"_{name}_")
        raised = self.exception_base(value.cls) if isinstance(value.cls, Class) else None
        if raised is not None:
            return self.of_exception(value, raised, name)
        content = self.inherited(value)
        if content is None:
            return MISSING
        if isinstance(content, tuple):
            return self.of_tuple(content, name)
        python = OrderedDict if isinstance(content, DictRef) else list
        return Method(content, name) if hasattr(python, name) else MISSING

    def mapping(self, value: Value) -> dict[Any, Value] | None:
        """Return the items of a dictionary with known keys, or of an object like one."""
        if isinstance(value, Instance):
            inner = self.inherited(value)
            if isinstance(inner, DictRef):
                value = inner
            else:
                keys = self.method_of(value, "keys")
                if keys is MISSING:
                    return None
                found = self.sequence(self.call(keys, [], {}))
                if not isinstance(found, list):
                    return None
                return {key: self.item(value, key) for key in found}
        content = self.heap[value] if isinstance(value, DictRef) else None
        return content if isinstance(content, dict) else None

    # Classes.

    def find_in_class(self, cls: Class, name: str, after: Class | None = None) -> Value:
        """Return a name from a class or its bases, in method resolution order."""
        order = self.resolution_order(cls)
        if after is not None:
            order = order[order.index(after) + 1 :] if after in order else []
        for base in order:
            if isinstance(base, Class):
                found = self.heap[base].get(name, MISSING)
                if found is not MISSING:
                    return self._or_of_bases(found, cls, base, name)
        return MISSING

    def _or_of_bases(self, found: Value, cls: Class, base: Class, name: str) -> Value:
        """Return a name of a class; on paths that did not set it there, that of further bases."""
        if not may_be_absent(found):
            return found
        other = self.find_in_class(cls, name, after=base)

        def put(one: Value) -> Value:
            if isinstance(one, Choice):
                return self.join(one.condition, put(one.yes), put(one.no))
            return other if isinstance(one, Absent) else one

        return found if other is MISSING else put(found)

    def resolution_order(self, cls: Class) -> list[Value]:
        """Return a class and its bases in Python's order (C3)."""
        known = self._orders.get(cls)
        if known is None:
            orders = [self._order_of(base) for base in cls.bases]
            known = self._orders[cls] = [cls, *_merged([*orders, list(cls.bases)])]
        return known

    def _order_of(self, base: Value) -> list[Value]:
        if isinstance(base, Class):
            return list(self.resolution_order(base))
        return [base, *(self.tables.ancestors(base) if isinstance(base, Library) else ())]

    def bind(self, found: Value, receiver: Value, cls: Class) -> Value:
        """Return the value of a name of a class when it is reached through ``receiver``."""
        if isinstance(found, Function | Generated):
            return Bound(found, receiver)
        if isinstance(found, Host) and hasattr(found.object, "cache_info"):
            return Bound(found, receiver)
        if isinstance(found, Library):  # a table gives the meaning of the class's own method
            owner = found.name.rpartition(".")[0].rpartition(".")[2]
            order = self.resolution_order(cls)
            own = any(isinstance(base, Class) and base.name == owner for base in order)
            return Bound(found, receiver) if own else found
        if isinstance(found, Wrapped):
            if found.kind == "staticmethod":
                return found.function
            if found.kind == "classmethod":
                return Bound(found.function, cls)
            if found.kind == "property":
                return self.call(found.function, [receiver], {})
            if found.kind in ("cached", "managed", "within"):
                return Bound(found, receiver)
        getter = self.descriptor(found, "__get__")
        return found if getter is MISSING else self.call(getter, [found, receiver, cls], {})

    def descriptor(self, found: Value, name: str) -> Value:
        """Return a method of a descriptor, ``MISSING`` where a value is none."""
        if isinstance(found, Instance) and isinstance(found.cls, Class):
            return self.find_in_class(found.cls, name)
        return MISSING

    def class_attribute(self, cls: Class, name: str) -> Value:
        """Return an attribute of a class, ``MISSING`` if there is none."""
        if "named tuple" in cls.flags and name == "_make":
            return Wrapped("partial", self.lift(_made_of), (cls,))
        if "named tuple" in cls.flags and name == "_fields":
            return tuple(field for field, _ in cls.fields)
        found = self.find_in_class(cls, name)
        if found is not MISSING:
            if isinstance(found, Wrapped) and found.kind in ("staticmethod", "classmethod"):
                return self.bind(found, cls, cls)
            getter = self.descriptor(found, "__get__")
            return found if getter is MISSING else self.call(getter, [found, None, cls], {})
        if name in ("__name__", "__qualname__"):
            return cls.name
        if name == "__module__":
            return cls.module.name
        if name == "__bases__":
            return cls.bases or (Host(object),)
        if name == "__mro__":
            return tuple(self.resolution_order(cls))
        if name == "__dict__":
            self.refuse_half_set(cls)
            return DictRef(cls.key)
        if name == "__dataclass_fields__" and "dataclass" in cls.flags:
            described = self.described_fields(cls)
            return self.new_dict({self.heap[one]["name"]: one for one in described})
        library = next((b for b in self.resolution_order(cls) if isinstance(b, Library)), None)
        if library is not None:
            found = self.tables.member(self, library, name)
            if self.tables.is_class_method(library, name):
                return Wrapped("partial", found, (cls,))
            if found is not MISSING:
                return found
        found = self.attribute_of_enumeration(cls, name)
        if found is not MISSING:
            return found
        if cls.host is not None and hasattr(cls.host, name):
            return self.lift(getattr(cls.host, name))
        if name == "__match_args__":
            bases = [b for b in reversed(self.resolution_order(cls)) if isinstance(b, Class)]
            return tuple(dict.fromkeys(field for base in bases for field, _ in base.fields))
        for base in self.resolution_order(cls):
            if isinstance(base, Host) and hasattr(base.object, name):
                return self.lift(getattr(base.object, name))
        return Host(object.__new__) if name == "__new__" else MISSING

    def super_attribute(self, start: Class, receiver: Value, name: str) -> Value:
        """Return the value of ``super().name``."""
        cls = receiver.cls if isinstance(receiver, Instance) else receiver
        if isinstance(cls, Class):
            found = self.find_in_class(cls, name, after=start)
            if found is not MISSING:
                return self.bind(found, receiver, cls)
        if isinstance(receiver, Instance):
            found = self.tables.object_attribute(self, receiver, name)
            if found is not MISSING:
                return found
            if name not in ("__setattr__", "__getattribute__", "__delattr__"):
                found = self._from_python(receiver, name)
                if found is not MISSING:
                    return found
        if name in _OBJECT:
            return LibraryMethod(receiver, f"object.{name}")
        return MISSING

    def object_method(
        self, receiver: Value, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a method that every object has."""
        del keywords
        if name in _OF_FLAGS and isinstance(receiver, Instance):
            return self.flag_method(receiver, name, arguments)
        match name, arguments:
            case "__init__", _:
                self.initialise_exception(receiver, arguments)
                return None
            case "__setattr__", (str() as attribute, content) if isinstance(receiver, Instance):
                self.set_own(receiver, attribute, content)
                return None
            case "__delattr__", (str() as attribute,) if isinstance(receiver, Instance):
                self.delete_own(receiver, attribute)
                return None
            case "__getattribute__" | "__getattr__", (str() as attribute,) if isinstance(
                receiver, Instance
            ):
                found = (
                    self.own_attribute(receiver, attribute)
                    if name == "__getattr__"
                    else self.plain_attribute(receiver, attribute)
                )
                if found is MISSING:
                    raise CheckError(
                        "attribute", f"{self.show(receiver)} has no attribute '{attribute}'"
                    )
                return found
            case "__new__", (Class() as cls, *items):
                base = self.python_base(cls)
                if base is not None and issubclass(base, tuple):
                    return self.new_tuple(cls, items)
                return Instance(self.heap.new({}), cls)
        return None

    def method_of(self, receiver: Instance, name: str) -> Value:
        """Return a method of an object, ``MISSING`` if it has none of that name."""
        if not isinstance(receiver.cls, Class):
            return self.tables.object_attribute(self, receiver, name)
        found = self.find_in_class(receiver.cls, name)
        if found is not MISSING and not _is_of_flags(receiver.host, name):
            return self.bind(found, receiver, receiver.cls)
        found = self.tables.object_attribute(self, receiver, name)
        return self._from_python(receiver, name) if found is MISSING else found

    def truth_of_object(self, value: Value) -> bool | Term:
        """Return whether an object counts as true."""
        if isinstance(value, Instance):
            for name in ("__bool__", "__len__"):
                method = self.method_of(value, name)
                if method is not MISSING:
                    answer = self.call(method, [], {})
                    is_plain = isinstance(answer, int | float | str | None)
                    if name == "__bool__" and is_plain and not isinstance(answer, bool):
                        told = f"__bool__ should return bool, returned {self.show(answer)}"
                        raise CheckError("type", told)
                    return self.truth(answer)
            if names_of_tuple(value) is not None:
                return bool(names_of_tuple(value))
        if isinstance(value, Range):
            items = self.sequence(value)
            if isinstance(items, Many):
                return negate(self.knowledge.equal(items.length, 0))
            return bool(items)
        return True


def _is_of_flags(host: Any, name: str) -> bool:
    """Whether a method of an imported flag is the one of all flags, which its class has too."""
    if not isinstance(host, enum.Flag) or name not in _OF_FLAGS:
        return False
    return getattr(type(host), name, None) is getattr(enum.Flag, name, None)


def _is_registered(host: Any, name: str) -> bool:
    """Whether a name of a module of PyTorch is that of a child, parameter or buffer alone."""
    own = getattr(host, "__dict__", None)
    if not isinstance(own, dict) or name in own or "_modules" not in own:
        return False
    return any(name in own.get(part, ()) for part in ("_modules", "_parameters", "_buffers"))


def _is_cached(found: Value) -> bool:
    """Whether a name of a class is a ``cached_property``."""
    return isinstance(found, Wrapped) and found.kind == "cached property"


def _merged(orders: list[list[Value]]) -> list[Value]:
    """Return the orders of bases merged by C3; where there is none, the last of repeated ones."""
    result: list[Value] = []
    queues = [list(order) for order in orders if order]
    while queues:
        head = next(
            (q[0] for q in queues if not any(_among(q[0], other[1:]) for other in queues)), None
        )
        if head is None:
            rest = [item for q in queues for item in q]
            return [*result, *(x for i, x in enumerate(rest) if not _among(x, rest[i + 1 :]))]
        result.append(head)
        queues = [q for q in ([x for x in q if not _same(x, head)] for q in queues) if q]
    return result


def _among(item: Value, items: list[Value]) -> bool:
    return any(_same(item, other) for other in items)


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, Host) and isinstance(b, Host):
        return a.object is b.object
    return a is b or bool(a == b)


__all__ = ["Objects"]


def _made_of(cls: Any, iterable: Any) -> Any:
    """Return a named tuple of the items of an iterable, as ``_make`` does."""
    items = tuple(iterable)
    if len(items) != len(cls._fields):
        raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(items)}")
    return cls(*items)
