"""Attributes of every kind of value."""

from __future__ import annotations

import ast
import enum
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from functools import partial
from types import FunctionType, GeneratorType
from typing import Any

from hagane.frontends.python.interpret.reading.items import Items
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.deques import Deque
from hagane.frontends.python.values.members import Member
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Function,
    Instance,
    ModuleRef,
    Super,
    Wrapped,
)
from hagane.frontends.python.values.open_tuples import OpenTuple
from hagane.frontends.python.values.stand_ins import forget_kept, registered, with_accessor
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Device,
    DictRef,
    DType,
    Fields,
    Host,
    Library,
    ListRef,
    Method,
    Outside,
    Range,
    Real,
    SetRef,
    Stream,
    Tensor,
    Unknown,
    Value,
    is_plain,
    may_be_absent,
)
from hagane.symbolic import Expr

# Modules of packages that tables know, which are read where packages are imported.
READ_INSTALLED = ("torchvision.models", "torchvision.ops")
# Methods that lists have not.
_MAPPINGS: dict[str, type] = {
    "Counter": Counter, "OrderedDict": OrderedDict, "defaultdict": defaultdict,
}  # fmt: skip

# Attributes that every function has.
_OF_FUNCTIONS = ("__annotations__", "__closure__", "__code__", "__defaults__", "__globals__",
                 "__kwdefaults__")  # fmt: skip
_OF_MEMBERS = ("name", "value", "_name_", "_value_")  # of enumerations
_STREAMS = ("stdin", "stdout", "stderr")


class Access(Items):
    """Reads attributes, beside items."""

    def _Attribute(self, node: ast.Attribute) -> Value:
        value = self.evaluate(node.value)
        self.emit.label = self.collector.text(node)
        return self.settle(self.attribute(value, self.own_name(value, node.attr)))

    def own_name(self, value: Value, name: str) -> str:
        """Return the name that an object has for a private one (``self.__x``) of a class.

        Python gives those of an imported class its name (``_Model__x``), as code does that is run.
        """
        if not name.startswith("__") or name.endswith("__"):
            return name
        frame = self.frame
        while frame is not None and (frame.function is None or frame.function.owner is None):
            frame = frame.parent
        if frame is None or not isinstance(value, Instance | Class | Super):
            return name
        assert frame.function is not None
        assert frame.function.owner is not None
        whole = f"_{frame.function.owner.name.lstrip('_')}{name}"
        own = self.find_attribute(value, name) is not MISSING
        return name if own or self.find_attribute(value, whole) is MISSING else whole

    def attribute(self, value: Value, name: str) -> Value:
        """Return an attribute of any value of the program."""
        found = self.find_attribute(value, name)
        if found is MISSING and isinstance(value, Instance) and value.key in self.opened:
            return self.lost("an attribute of an object that has some of names not known")
        if found is MISSING:
            self._no_attribute(value, name)
        return self.where_set(found, value, name) if may_be_absent(found) else found

    def _no_attribute(self, value: Value, name: str) -> None:
        if isinstance(value, Tensor):
            self.fail("attribute", f"'{value.kind}' has no attribute '{name}'", value)
        if isinstance(value, Library):
            self.fail("attribute", f"'{value.name}' has no attribute '{name}'")
        what = self.show(value)
        if value is None:
            what = "None"
        raise CheckError("attribute", f"{what} has no attribute '{name}'")

    def find_attribute(self, value: Value, name: str) -> Value:
        """Return an attribute, ``MISSING`` if there is none."""
        match value:
            case Outside():
                return self.part_from_outside(value, name)
            case Unknown():
                return value
            case Choice():
                return self.either(value, lambda v: self.attribute(v, name))
            case Tensor():
                if (value.value, name) in self.tags:
                    return self.tags[value.value, name]
                if name == "__class__":
                    return self.call(Host(type), [value], {})
                found = self.tables.tensor_attribute(self, value, name)
                if found is MISSING:
                    self.observer.lacking()
                return found
            case Instance():
                return self.instance_attribute(value, name)
            case Member() | enum.Enum():
                return self._of_member(value, name)
            case Class():
                return self.class_attribute(value, name)
            case Super(start=start, receiver=receiver):
                return self.super_attribute(start, receiver, name)
            case Library(name=of) if self.imports and f"{of}.{name}" in READ_INSTALLED:
                return self.import_module(f"{of}.{name}")
            case Library():
                self.observer.library_name(sys.modules.get(value.name), name)
                return self.tables.member(self, value, name)
            case ModuleRef():
                return self.module_attribute(value, name)
            case Host(object=found) if found is sys and name == "argv" and not self.emit.builds:
                return self.command_line()
            case Host(object=found) if found is sys and name == "path" and not self.emit.builds:
                return self.search_path()
            case Host(object=found) if found is sys and name == "modules" and self.runs_modules:
                return self.loaded_modules()
            case Host(object=found) if found is sys and name in _STREAMS:
                return Host(getattr(sys, f"__{name}__"))  # not one in which this process writes
            case Host(object=found):
                self.observer.library_name(found, name)
                return self._asked(found, partial(getattr, found, name, MISSING))
            case slice() if name in ("start", "stop", "step"):
                return getattr(value, name)
            case DType() | Device():
                return self.tables.constant_attribute(value, name)
            case Function() if name in self.names_of_function(value):
                return self.names_of_function(value)[name]
            case Function() if name == "__dict__":
                return self.new_dict(self.names_of_function(value))
            case Function() if name == "__class__":
                return Host(FunctionType)
            case Function() if name in ("__name__", "__qualname__", "__module__"):
                return value.scope.module.name if name == "__module__" else value.name
            case Function() if value.host is not None and hasattr(value.host, name):
                return self._asked(value.host, partial(getattr, value.host, name))
            case Function() if name in _OF_FUNCTIONS:
                return self.lost(f"'{name}' of a function")
            case Wrapped(kind="property") if name in ("getter", "setter", "deleter"):
                return Wrapped("partial", Host(with_accessor), (value, name))
            case Wrapped(kind="partial") if name in ("func", "args", "keywords"):
                return {
                    "func": value.function,
                    "args": value.arguments,
                    "keywords": self.new_dict(value.keywords),
                }[name]
            case Wrapped(kind="dispatching") if name == "register":
                return Host(registered)
            case Wrapped(kind="cached") if name == "__wrapped__":
                return value.function
            case Wrapped(kind="cached") if name == "cache_clear":
                return Wrapped("partial", Host(forget_kept), (value,))
            case Wrapped() if isinstance(value.function, Function) and value.kind != "partial":
                return self.find_attribute(value.function, name)
            case Wrapped(kind="frame") if name in ("f_back", "f_locals"):
                if name == "f_locals":
                    held = self.heap[value.function.key]
                    return self.new_dict({n: v for n, v in held.items() if n.isidentifier()})
                caller = value.function.caller
                return None if caller is None else Wrapped("frame", caller)
            case Bound() if name == "__self__":
                return value.receiver
        if isinstance(
            value,
            (
                tuple
                | frozenset
                | str
                | bytes
                | int
                | float
                | complex
                | Expr
                | Real
                | range
                | Range,
                ListRef | DictRef | SetRef | Stream,
            ),
        ):
            return self._builtin_attribute(value, name)
        return MISSING

    def _of_member(self, value: Any, name: str) -> Value:
        """Return an attribute of a member of an enumeration that is a text or number as well."""
        real = isinstance(value, enum.Enum)  # of an imported class
        if real and name in _OF_MEMBERS:
            return self.lift(getattr(value, name))
        cls = self.lift(type(value)) if real else value.instance.cls
        found = self.find_in_class(cls, name) if isinstance(cls, Class) else MISSING
        if isinstance(found, Function | Wrapped):
            return self.bind(found, value, cls)
        found = MISSING if real else self.instance_attribute(value.instance, name)
        return self._builtin_attribute(value, name) if found is MISSING else found

    def _builtin_attribute(self, value: Value, name: str) -> Value:
        if name == "__class__":
            return self.call(Host(type), [value], {})
        if isinstance(value, Expr) or (isinstance(value, int) and name in ("item", "bit_length")):
            return Method(value, name)
        if isinstance(value, Fields) and name in value.names:
            return value[value.names.index(name)]
        if isinstance(value, Fields) and name in ("n_fields", "n_sequence_fields"):
            return len(value) if hasattr(value.real, name) else MISSING
        if isinstance(value, tuple) and name in ("numel", "index", "count"):
            return Method(value, name)
        kinds = {
            ListRef: list,
            Deque: deque,
            OpenTuple: tuple,
            SetRef: set,
            Stream: GeneratorType,
            Range: range,
            Real: float,
        }
        if isinstance(value, Real) and name in ("real", "imag"):
            return value if name == "real" else 0.0
        python = kinds.get(type(value), type(value))
        if isinstance(value, DictRef):
            python = _MAPPINGS.get(value.kind.partition(":")[0], dict)
        if isinstance(value, Deque) and name == "maxlen":
            return value.most
        if not any(name in vars(cls) for cls in python.__mro__):
            return MISSING
        found = getattr(python, name, None)
        if is_plain(value) and found is not None and not callable(found):
            return getattr(value, name)
        return Method(value, name)
