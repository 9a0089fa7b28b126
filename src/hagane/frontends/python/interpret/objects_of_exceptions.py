"""Objects of the program's own exceptions: what they have from Python's."""

from __future__ import annotations

from collections.abc import Sequence

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import (
    Class,
    Instance,
    Wrapped,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Host,
    Value,
)

_CHAINED = ("with_traceback", "add_note", "__setstate__")  # their result is the exception, or none
# Members of every object, and those that no exception has.
_OF_OBJECTS = (
    "__init__", "__init_subclass__", "__setattr__", "__new__", "__getattribute__", "__delattr__",
    "__eq__", "__ne__", "__hash__",
)  # fmt: skip


class ObjectsOfExceptions(Core):
    """Attributes of exceptions that the program defines."""

    def exception_base(self, cls: Class) -> type | None:
        """Return the exception of Python's own that a class derives from, None without one."""
        for base in self.resolution_order(cls):
            real = base.object if isinstance(base, Host) else None
            if isinstance(real, type) and issubclass(real, BaseException):
                return real
        return None

    def initialise_exception(self, receiver: Value, arguments: Sequence[Value]) -> None:
        """Do what ``BaseException.__init__`` does; nothing for other objects."""
        cls = receiver.cls if isinstance(receiver, Instance) else None
        if isinstance(cls, Class) and self.exception_base(cls) is not None:
            self.heap[receiver]["args"] = tuple(arguments)

    def of_exception(self, value: Instance, base: type, name: str) -> Value:
        """Return an attribute that an exception of the program has from Python's own."""
        if not hasattr(base, name) or name in _OF_OBJECTS:
            return MISSING
        if name in _CHAINED:
            return Wrapped("reference", value)
        if name in ("__str__", "__repr__"):
            content = self.heap[value].get("args", ())
            known = len(content) == 1 and isinstance(content[0], str)
            text = content[0] if known else self.outside("the text of an exception")
            return Wrapped("reference", text)
        return self.outside(f"'{name}' of an exception")


__all__ = ["ObjectsOfExceptions"]
