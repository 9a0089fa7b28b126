"""The port to the running Python: an interpretation's reads of real objects, and replacements.

A program that is checked or captured in a process reads objects of that process: attributes of a
model, globals of a module, items of lists. Observers of such reads (a graph holds only while
they stay as they were) gives the interpreter an :class:`Observer`; nothing of it is overridden.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from hagane.frontends.python.values.values import Instance, ModuleRef, Value

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter


class Observer(Protocol):
    """Is told of the objects that are read in the running Python; made for one interpreter."""

    def attribute(self, value: Instance, name: str, held: Callable[[], Value]) -> Value:
        """Return the value of an attribute of a real object, read there for the first time.

        Later reads, and reads after the program has set it, find it in the heap.

        Args:
            value: The stand-in of the object, which is ``value.host``.
            name: The name; that of a method or a class attribute is looked up here first.
            held: Returns the stand-in for the object's own, ``MISSING`` where it has none.
        """
        ...

    def global_name(self, module: ModuleRef, name: str) -> None:
        """Take note that a global of a real module is read, which is in ``module.host``."""
        ...

    def lifted(self, found: Any, value: Value) -> None:
        """Take note of the value that stands for a real object from now on.

        It comes after the parts of the object: items of a list, cells of a function.
        """
        ...


class Unobserved:
    """Reads without a report.

    Args:
        core: The interpreter.
    """

    def __init__(self, core: Interpreter):
        del core

    def attribute(self, value: Instance, name: str, held: Callable[[], Value]) -> Value:
        """Return the value of an attribute of a real object."""
        del value, name
        return held()

    def global_name(self, module: ModuleRef, name: str) -> None:
        """Take note that a global is read."""

    def lifted(self, found: Any, value: Value) -> None:
        """Take note of the value that stands for a real object."""


__all__ = ["Observer", "Unobserved"]
