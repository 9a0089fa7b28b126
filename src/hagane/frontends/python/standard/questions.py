"""Built-in functions about objects: their classes, attributes and identity."""

from __future__ import annotations

import enum
import types

from hagane.frontends.python.interpret.fitting import refuse_unhashable
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.standard.iterables import Iterables
from hagane.frontends.python.values.members import Member
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Function,
    Instance,
    Wrapped,
)
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.values import (
    MISSING,
    Absent,
    Choice,
    DictRef,
    DType,
    Host,
    Library,
    LibraryMethod,
    Method,
    Real,
    Ref,
    Tensor,
    Truth,
    Unknown,
    Unset,
    Value,
    is_plain,
)
from hagane.symbolic import Expr

_CALLABLE = (Function, Bound, Class, Library, LibraryMethod, Method, Wrapped)
_FIRST_ID = 1 << 48  # of the identities of objects that a program makes


class Questions(Iterables):
    """Calls built-in functions that ask objects, or set their attributes."""

    def _call_hash(self, value: Value) -> Value:
        if isinstance(value, int):
            return hash(value)
        if isinstance(value, Instance):
            method = self.method_of(value, "__hash__")
            if method is not MISSING:
                return self.call(method, [], {})
        refuse_unhashable(value)
        return self.emit.fresh("hash")

    def _call_id(self, value: Value) -> Value:
        if not self.emit.builds:
            return id(value)
        found = value.object if isinstance(value, Host) else self.observer.original(value)
        if found is MISSING or (found is None and isinstance(value, Tensor | Expr | Real)):
            return self.lost("the identity of a value that each call has anew")
        if found is not None or value is None:
            return id(found)
        return _FIRST_ID + value.key if isinstance(value, Ref) else id(value)

    def _call_isinstance(self, value: Value, classes: Value) -> Value:
        options = _options(classes)
        wrong = next((one for one in options if is_plain(one)), MISSING)
        if wrong is not MISSING:
            told = f"TypeError: isinstance() expected classes, got {self.show(wrong)}"
            raise CheckError("type", told)
        found = [self.tables.is_instance(self, value, option) for option in options]
        if True in found:
            return True
        return Truth(self.unknown_truth()) if None in found else False

    def _call_issubclass(self, value: Value, classes: Value) -> Value:
        options = _options(classes)
        if isinstance(value, Class):
            if any(option in self.resolution_order(value) for option in options):
                return True
            real = [o.object for o in options if isinstance(o, Host)]
            return value.host is not None and issubclass(value.host, tuple(real))
        if value in options:
            return True
        real = [found for o in options if isinstance(found := self.tables.real_object(o), type)]
        derived = self.tables.real_object(value)
        if isinstance(derived, type) and (
            issubclass(derived, tuple(real)) or len(real) == len(options)
        ):
            return issubclass(derived, tuple(real))
        return False if isinstance(value, Host) else Truth(self.unknown_truth())

    def _call_type(self, value: Value, *made: Value) -> Value:
        if made:
            content = self.mapping(made[1]) if len(made) == 2 else None
            if content is None or not isinstance(value, str):
                return self.lost("a class made by type() of parts that are not known")
            return self.made_class(value, made[0], content)
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Choice):
            return self.either(value, self._call_type)
        if isinstance(value, Instance | Member):
            return (value.instance if isinstance(value, Member) else value).cls
        if isinstance(value, Tensor):
            scalar = self.emit.builds and self.tables.is_scalar(value)
            return DType(value.dtype) if scalar else Library(value.kind)
        if isinstance(value, Host):
            return self.lift(type(value.object))
        if isinstance(value, Size):
            return Library("torch.Size")
        real = value.host if isinstance(value, Class) else value
        if isinstance(real, enum.Enum | type):
            return self.lift(type(real))
        return Host(self.tables.class_of(value) or type(value))

    def _call_callable(self, value: Value) -> Value:
        if isinstance(value, Instance):
            return self.method_of(value, "forward") is not MISSING or (
                self.method_of(value, "__call__") is not MISSING
            )
        return isinstance(value, _CALLABLE) or (isinstance(value, Host) and callable(value.object))

    def _call_isfunction(self, value: Value) -> Value:
        return isinstance(value, Function)

    def _call_ismethod(self, value: Value) -> Value:
        return isinstance(value, Bound)

    def _call_isroutine(self, value: Value) -> Value:
        return isinstance(value, Function | Bound | LibraryMethod | Method)

    def _call_isclass(self, value: Value) -> Value:
        if isinstance(value, Library):
            return value.name.rpartition(".")[2][:1].isupper()
        return isinstance(value, Class) or (
            isinstance(value, Host) and isinstance(value.object, type)
        )

    def _call_hasattr(self, value: Value, name: Value) -> Value:
        if not isinstance(name, str):
            return Truth(self.unknown_truth())
        special = name.startswith("__") and name.endswith("__")
        if special and isinstance(value, Tensor):
            return self.tables.has_special(value, name)
        found = self.attempt(lambda: self.find_attribute(value, name))
        if found is MISSING and special:
            return self.tables.has_special(value, name)
        return self.either(found, lambda v: not _is_missing(v))

    def _call_getattr(self, value: Value, name: Value, *default: Value) -> Value:
        if not isinstance(name, str):
            return self.lost("an attribute whose name is not known")
        if default:
            found = self.attempt(lambda: self.find_attribute(value, name))
            return self.either(found, lambda v: default[0] if _is_missing(v) else v)
        return self.attribute(value, name)

    def _call_setattr(self, value: Value, name: Value, content: Value) -> Value:
        if not isinstance(name, str):
            if isinstance(value, Instance):
                self.opened.add(value.key)
            return self.lost("an attribute whose name is not known is set")
        self.set_attribute(value, name, content)
        return None

    def _call_delattr(self, value: Value, name: Value) -> Value:
        if not isinstance(name, str):
            return self.lost("an attribute whose name is not known is deleted")
        self.delete_attribute(value, name)
        return None

    def _call_vars(self, value: Value = MISSING) -> Value:
        if value is MISSING:
            return self._call_locals()
        found = self.find_attribute(value, "__dict__")
        return self.new_dict() if found is MISSING else found

    def _call_locals(self) -> Value:
        assert self.frame is not None
        if self.frame.key == self.frame.module.key:
            return self._call_globals()
        partly = self.heap.partly.get(self.frame.key, ())
        names = self.heap.contents[self.frame.key]
        half = next((name for name in partly if names.get(name, MISSING) is not MISSING), None)
        if half is not None:
            return self.lost(f"all names of a function, of which some paths alone set '{half}'")
        own = {k: v for k, v in names.items() if v is not MISSING and not str(k).startswith("<")}
        return self.new_dict(own)

    def _call_globals(self) -> Value:
        assert self.frame is not None
        return DictRef(self.frame.module.key)


def _options(classes: Value) -> tuple[Value, ...]:
    """Return the classes that an argument of ``isinstance`` lists, unions taken apart."""
    if isinstance(classes, tuple):
        return tuple(option for part in classes for option in _options(part))
    real = classes.object if isinstance(classes, Host) else None
    if isinstance(real, types.UnionType):
        return tuple(Host(type(None) if o is None else o) for o in real.__args__)
    origin = getattr(real, "__origin__", None)
    if getattr(real, "__module__", "") == "typing" and isinstance(origin, type):
        return (Host(origin),)  # typing.Mapping
    return (Host(type(None)) if classes is None else classes,)


def _is_missing(found: Value) -> bool:
    """Whether an attribute that the program asks for is not there."""
    if isinstance(found, Unset):
        found.asked.append(True)
    return found is MISSING or isinstance(found, Unset | Absent)


__all__ = ["Questions"]
