"""The port to the running Python: an interpretation's reads of real objects, and replacements.

A program that is checked or captured in a process reads objects of that process: attributes of a
model, globals of a module, items of lists. Observers of such reads (a graph holds only while
they stay as they were) gives the interpreter an :class:`Observer`; nothing of it is overridden.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hagane.frontends.python.values.objects import Instance, ModuleRef
from hagane.frontends.python.values.values import Place, Value

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter


class OutOfTime(Exception):
    """An interpretation took longer than its budget.

    Args:
        message: How long it took.
        place: How far it came.
    """

    def __init__(self, message: str, place: Place | None):
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, slots=True)
class Budget:
    """The time that an interpretation may take.

    Attributes:
        seconds: How long, by the clock.
        clock: Returns the seconds of the processor's work for this process, so that a busy
            machine changes no result.
        start: The time of the start.
    """

    seconds: float
    clock: Callable[[], float] = time.process_time
    start: float = field(default_factory=time.process_time)

    @property
    def is_spent(self) -> bool:
        """Whether the time is over."""
        return self.clock() - self.start > self.seconds


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
        """Take note that a global of a real module is read, there or (a built-in one) not."""
        ...

    def library_name(self, owner: Any, name: str) -> None:
        """Take note that a name of a library is read, which a program may set.

        Args:
            owner: The module or class that has it; other objects are left alone.
            name: The name.
        """
        ...

    def listed(self, names: Mapping[str, Any]) -> None:
        """Take note that the names of a real object's members are listed, in their order."""
        ...

    def compared(self) -> None:
        """Take note that the program asks whether two tensors are one object."""
        ...

    def lacking(self) -> None:
        """Take note that the program asks a tensor for an attribute that its class lacks."""
        ...

    def asked(self, found: Any, question: Callable[[], Any], answer: Any) -> None:
        """Take note of a question to a real object of which no source is read, and its answer.

        Args:
            found: The object.
            question: Asks again: for an attribute, an item, all items, the result of a method.
            answer: The answer.
        """
        ...

    def original(self, value: Value) -> Any:
        """Return the real object that a value stands for.

        It is None for values that the program makes, and ``MISSING`` for those that the caller
        gives, of which each call has others.
        """
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

    def library_name(self, owner: Any, name: str) -> None:
        """Take note that a name of a library is read."""

    def listed(self, names: Mapping[str, Any]) -> None:
        """Take note that names are listed."""

    def compared(self) -> None:
        """Take note that two tensors are compared by identity."""

    def lacking(self) -> None:
        """Take note that a tensor is asked for an attribute that its class lacks."""

    def asked(self, found: Any, question: Callable[[], Any], answer: Any) -> None:
        """Take note of a question to a real object."""

    def original(self, value: Value) -> Any:
        """Return the real object that a value stands for, None here."""
        return None

    def lifted(self, found: Any, value: Value) -> None:
        """Take note of the value that stands for a real object."""


__all__ = ["Observer", "Unobserved"]
