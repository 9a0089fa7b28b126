"""Dataclasses: their fields, what ``__init__`` makes of them, copies and dictionaries."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.interpret.own_programs import own_program
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.standard.standard import StandardLibrary
from hagane.frontends.python.values.objects import (
    Class,
    Generated,
    Instance,
    ModuleRef,
    Wrapped,
)
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    Host,
    ListRef,
    Many,
    Value,
)


class Records(StandardLibrary):
    """Calls of ``dataclasses``, and the ``__init__`` that it makes."""

    def _call_field(
        self, *, default: Value = MISSING, default_factory: Value = MISSING, **settings: Value
    ) -> Value:
        value = default if default_factory is MISSING else Wrapped("factory", default_factory)
        return Wrapped("field", value, (), settings)

    def add_field(self, cls: Class, name: str, annotation: ast.expr, default: Value) -> None:
        """Add what an annotated name in the body of a class says to the fields of the class."""
        text = ast.unparse(annotation)
        if "ClassVar" in text:
            return
        if text.rpartition(".")[2] == "KW_ONLY":
            cls.flags.add("names alone")  # of the fields from here on
            return
        settings: dict[str, Any] = {"kw_only": "names alone" in cls.flags, "node": annotation}
        if isinstance(default, Wrapped) and default.kind == "field":
            settings.update(default.keywords)
            default = default.function
            if default is MISSING or isinstance(default, Wrapped):
                self.heap[cls].pop(name, None)
            else:
                self.heap[cls][name] = default
        settings["passed"] = "InitVar" in text  # to __post_init__, and kept nowhere
        cls.settings[name] = settings
        cls.fields.append((name, default))

    def _call_dataclass(self, cls: Value = None, **settings: Value) -> Value:
        if cls is None:
            return Wrapped("partial", Host(_dataclass_decorator), (), settings)
        return self._call__dataclass_decorator(cls, **settings)

    def _call__dataclass_decorator(self, cls: Value, **settings: Value) -> Value:
        if isinstance(cls, Class):
            cls.flags.discard("names alone")
            cls.flags.add("dataclass")
            if settings.get("frozen") is True:
                cls.flags.add("frozen")
            if settings.get("eq", True) is True:
                cls.flags.add("by value")
            if settings.get("init", True) is True:
                self.heap[cls].setdefault("__init__", Generated(cls))
            if settings.get("kw_only") is True:
                for one in cls.settings.values():
                    one.setdefault("kw_only", True)
                    one["kw_only"] = True
        return cls

    def fields_of(self, cls: Class) -> dict[str, tuple[Value, Mapping[str, Any]]]:
        """Return the default and the settings of each field, those of bases first."""
        found: dict[str, tuple[Value, Mapping[str, Any]]] = {}
        for base in reversed(self.resolution_order(cls)):
            if isinstance(base, Class) and "dataclass" in base.flags:
                for name, default in base.fields:
                    found[name] = (default, base.settings.get(name, {}))
        return found

    def fill_fields(
        self, made: Instance, cls: Class, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> None:
        """Set the fields of a new object of a dataclass or named tuple."""
        fields = self.fields_of(cls)
        taken = {name for name, (_, own) in fields.items() if own.get("init", True) is True}
        places = [n for n in fields if n in taken and fields[n][1].get("kw_only") is not True]
        if len(arguments) > len(places):
            raise CheckError(
                "call", f"{cls.name}() takes {len(places)} arguments, got {len(arguments)}"
            )
        given = dict(zip(places, arguments, strict=False))
        for name, value in keywords.items():
            if name not in taken:
                raise CheckError("call", f"{cls.name}() got an unexpected argument '{name}'")
            given[name] = value
        passed = []
        for name, (default, settings) in fields.items():
            if name in given:
                value = given[name]
            elif name not in taken and default is MISSING:
                continue  # __post_init__ sets it
            elif default is MISSING:
                raise CheckError("call", f"{cls.name}() is missing the argument '{name}'")
            elif isinstance(default, Wrapped) and default.kind == "factory":
                value = self.call(default.function, [], {})
            else:
                value = default
            value = self.as_annotated(settings.get("node"), value)
            if settings.get("passed"):
                passed.append(value)
            elif cls.flags & {"frozen", "named tuple"}:
                self.heap[made][name] = value
            else:
                self.set_attribute(made, name, value)
        post = self.find_in_class(cls, "__post_init__")
        if post is not MISSING:
            self.call(post, [made, *passed], {})

    def described_fields(self, cls: Class) -> tuple[Instance, ...]:
        """Return what ``dataclasses.fields`` gives of a class of the program."""
        described = []
        kind = Class(self.heap.new({}), "Field", (), cls.module)
        for name, (default, settings) in self.fields_of(cls).items():
            if settings.get("passed"):
                continue
            is_made = isinstance(default, Wrapped) and default.kind == "factory"
            nothing = Host(dataclasses.MISSING)
            content: dict[str, Value] = {
                "name": name,
                "type": self._type_of_field(cls.module, settings.get("node")),
                "default": nothing if is_made or default is MISSING else default,
                "default_factory": default.function if is_made else nothing,
                "init": settings.get("init", True),
                "repr": settings.get("repr", True),
                "kw_only": settings.get("kw_only", False),
                "metadata": settings.get("metadata") or self.new_dict(),
            }
            described.append(Instance(self.heap.new(content), kind))
        return tuple(described)

    def _type_of_field(self, module: ModuleRef, node: ast.expr | None) -> Value:
        if node is None:
            return self.lost("the annotation of a field")
        if "annotations" in self.heap[module]:  # from __future__
            return ast.unparse(node)
        self.collector.muted += 1
        try:
            return self.evaluate(node)
        finally:
            self.collector.muted -= 1

    def _call_SimpleNamespace(self, *mappings: Value, **attributes: Value) -> Value:
        assert self.frame is not None
        found: dict[str, Value] = {}
        for mapping in mappings:
            known = self.mapping(mapping)
            if known is None:
                return self.lost("a SimpleNamespace of names that are not known")
            found.update(known)
        names = {"__eq__": own_program(self, _are_same_names)}
        cls = Class(self.heap.new(names), "SimpleNamespace", (), self.frame.module)
        cls.flags.add("by value")
        return Instance(self.heap.new({**found, **attributes}), cls)

    def _call_is_dataclass(self, value: Value) -> Value:
        cls = value.cls if isinstance(value, Instance) else value
        if isinstance(cls, Class):
            return "dataclass" in cls.flags and "named tuple" not in cls.flags
        real = self.real_of(value)
        return False if real is MISSING else dataclasses.is_dataclass(real)

    def _call_replace(self, value: Value, *rest: Value, **changes: Value) -> Value:
        """Return a copy of an object with some of its fields changed."""
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            if isinstance(self.find_in_class(value.cls, "__init__"), Generated):
                known = self.fields_of(value.cls)
                kept = [n for n, (_, own) in known.items() if own.get("init", True) is True]
                fields = {n: self.attribute(value, n) for n in kept if n not in changes}
                return self.call(value.cls, [], {**fields, **changes})
            made = self._call_copy(value)
            self.heap[made].update(changes)
            return made
        real = self.real_of(value)
        plain = [self.real_of(one) for one in rest]
        named = {name: self.real_of(one) for name, one in changes.items()}
        if any(one is MISSING for one in (real, *plain, *named.values())):
            return self.lost("a copy, with changes, of an object that is not known")
        own = getattr(real, "replace", None)  # a signature's
        if own is not None:
            return self.lift(apply_plain(lambda: own(*plain, **named)))
        return self.lift(apply_plain(lambda: dataclasses.replace(real, *plain, **named)))

    def _call_asdict(self, value: Value, *, dict_factory: Value = MISSING) -> Value:
        found = self._as_plain(value, "dict")
        return found if dict_factory is MISSING else self.call(dict_factory, [found], {})

    def _call_astuple(self, value: Value) -> Value:
        return self._as_plain(value, "tuple")

    def _as_plain(self, value: Value, kind: str) -> Value:
        """Return objects of dataclasses, however deep, as dictionaries or tuples."""
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            if "dataclass" not in value.cls_flags or "named tuple" in value.cls_flags:
                return value
            names = [
                n for n, (_, own) in self.fields_of(value.cls).items() if not own.get("passed")
            ]
            items = {n: self._as_plain(self.attribute(value, n), kind) for n in names}
            return self.new_dict(items) if kind == "dict" else tuple(items.values())
        if isinstance(value, tuple):
            return tuple(self._as_plain(item, kind) for item in value)
        if isinstance(value, ListRef):
            content = self.heap[value]
            if isinstance(content, Many):
                return self._call_copy(value)
            return self.new_list([self._as_plain(item, kind) for item in content])
        if isinstance(value, DictRef):
            content = self.heap[value]
            if not isinstance(content, dict):
                return self._call_copy(value)
            return self.new_dict({k: self._as_plain(v, kind) for k, v in content.items()})
        return value


def _dataclass_decorator(value: Any, **_: Any) -> Any:
    return value


def _are_same_names(left: Any, right: Any) -> bool:
    """Compare two namespaces."""
    return type(right).__name__ == "SimpleNamespace" and vars(left) == vars(right)


__all__ = ["Records"]
