"""Metaclasses of programs, which make classes and objects in their own way: not in graphs."""

from __future__ import annotations

import types

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Class
from hagane.frontends.python.values.values import MISSING, Value

_STANDARD = ("abc", "enum", "typing", "ctypes", "_ctypes")


def refuse_metaclass(t: Core, cls: Class, metaclass: Value) -> None:
    """Refuse a class that a metaclass of the program makes in the call.

    Args:
        t: The interpreter.
        cls: The class.
        metaclass: What its statement gives as metaclass.
    """
    inherited = any(
        isinstance(base, Class) and _own(base, "__new__", "__init__")
        for base in t.resolution_order(cls)
    )
    if isinstance(metaclass, Class) or inherited:
        raise CheckError(
            "capture",
            f"the metaclass of {cls.name} makes the class in its own way, which no graph follows; "
            "make the class outside of the call",
        )


def refuse_construction(t: Core, cls: Class) -> None:
    """Refuse objects that a metaclass makes, or whose end Python tells their class of."""
    if _own(cls, "__call__"):
        raise CheckError(
            "capture",
            f"objects of {cls.name} are made by its metaclass, which no graph follows; make them "
            "outside of the call, and pass them or keep them in an attribute",
        )
    if t.find_in_class(cls, "__del__") is not MISSING:
        raise CheckError(
            "capture",
            f"objects of {cls.name} have a '__del__', and no graph tells when one goes; call what "
            "it does by another name, where it is meant",
        )


def asks_metaclass(cls: Class) -> bool:
    """Whether a metaclass of the program says which objects are of a class."""
    return _own(cls, "__instancecheck__")


def _own(cls: Class, *names: str) -> bool:
    """Whether a real class has a metaclass that defines one of some methods in Python."""
    if cls.host is None:
        return False
    return any(
        isinstance(vars(kind).get(name), types.FunctionType | staticmethod | classmethod)
        for kind in type(cls.host).__mro__
        for name in names
        if kind.__module__.partition(".")[0] not in _STANDARD
    )


__all__ = ["asks_metaclass", "refuse_construction", "refuse_metaclass"]
