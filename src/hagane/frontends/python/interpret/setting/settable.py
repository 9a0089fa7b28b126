"""Attributes that Python does not let a program set."""

from __future__ import annotations

import dataclasses

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.leaving.exceptions import Raised
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import (
    Class,
    Instance,
    Wrapped,
    names_of_tuple,
)
from hagane.frontends.python.values.values import (
    Host,
    ListRef,
    SetRef,
    Value,
)


def error_of_setting(t: Core, receiver: Instance, cls: Class, name: str) -> CheckError | None:
    """Return the error that Python raises where an attribute is set; None where it is set.

    Args:
        t: The interpreter.
        receiver: The object.
        cls: Its class, which has no ``__setattr__``.
        name: The attribute.
    """
    found = t.find_in_class(cls, name)
    if isinstance(found, Wrapped) and found.kind == "property":
        if found.arguments and found.arguments[0] is not None:
            return None
        return CheckError("attribute", f"property '{name}' of '{cls.name}' object has no setter")
    if "frozen" in receiver.cls_flags:
        told = f"FrozenInstanceError: cannot assign to field '{name}'"
        return Raised(told, Host(dataclasses.FrozenInstanceError))
    if name in (names_of_tuple(receiver) or ()):
        return CheckError("attribute", f"'{name}' of a {cls.name} cannot be set")
    slots = _slots(t, cls)
    if slots is None or name in slots:
        return None
    return CheckError("attribute", f"'{cls.name}' object has no attribute '{name}'")


def _slots(t: Core, cls: Class) -> set[str] | None:
    """Return the names that ``__slots__`` allow for; None where any name is."""
    found: set[str] = set()
    for base in t.resolution_order(cls):
        if isinstance(base, Host) and base.object is object:
            continue
        listed = t.heap[base].get("__slots__") if isinstance(base, Class) else None
        names = _names(t, listed)
        if names is None or "__dict__" in names:
            return None
        found |= names
    return found


def _names(t: Core, listed: Value) -> set[str] | None:
    if isinstance(listed, str):
        return {listed}
    items = t.heap[listed] if isinstance(listed, ListRef | SetRef) else listed
    if not isinstance(items, tuple) or not all(isinstance(item, str) for item in items):
        return None
    return set(items)


__all__ = ["error_of_setting"]
