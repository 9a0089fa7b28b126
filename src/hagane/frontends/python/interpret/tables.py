"""Meanings of names of libraries: the port through which the interpreter asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    Device,
    DType,
    Host,
    Library,
    Tensor,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from hagane.frontends.python.interpret.core import Core


class ComplexNumbers(Protocol):
    """Complex tensors in a graph: two real ones each."""

    def joined(self, core: Core, x: Tensor) -> Tensor:
        """Return the parts of a complex tensor in a last axis of 2."""
        ...

    def divided(self, core: Core, real: Tensor, kind: str) -> Tensor:
        """Return the complex tensor of a kind whose parts lie in a last axis of 2."""
        ...

    def chosen(
        self, core: Core, yes: Tensor, no: Tensor, choose: Callable[[Tensor, Tensor], Value]
    ) -> Tensor:
        """Return one of two complex tensors, given what chooses between two real ones."""
        ...

    def number(self, core: Core, real: Value, imaginary: Value) -> Value:
        """Return ``real + imaginary * 1j``, a number of Python."""
        ...

    def is_number(self, x: Tensor) -> bool:
        """Whether a complex tensor is a number of Python."""
        ...


class Tables(Protocol):
    """Libraries that are known by name: their functions, classes, constants and tensors."""

    @property
    def complex_parts(self) -> ComplexNumbers:
        """Return what makes complex tensors of real ones."""
        ...

    def knows(self, name: str) -> bool:
        """Whether a module is known by its name alone."""
        ...

    def describes(self, name: str) -> bool:
        """Whether a table knows what a class of a library is and has."""
        ...

    def stranger_of(self, core: Core, value: Instance) -> str | None:
        """Return the first class of a library among an object's bases that no table knows."""
        ...

    def unread(self, core: Core, name: str) -> Value:
        """Return the value of a name that no table knows, and tell the reader."""
        ...

    def reads(self, name: str) -> bool:
        """Whether a real module is read from its source."""
        ...

    def records(self, name: str) -> bool:
        """Whether a call of a name only shows or keeps values, unknown ones too."""
        ...

    def writes(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> bool:
        """Whether a call changes the content of a tensor of a graph."""
        ...

    def arguments(self, name: str) -> Mapping[str, bool] | None:
        """Return a function's arguments and whether each has to be given; None if not known."""
        ...

    def set_needs(self, core: Core, x: Tensor, value: Value) -> None:
        """Take note that a tensor is told whether it needs gradients."""
        ...

    def parameters(self, name: str) -> Sequence[str]:
        """Return the names of the parameters of a function, a method or a class; none if open."""
        ...

    def call_forward(
        self,
        core: Core,
        value: Instance,
        method: Value,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        """Call the method that a call of an object means, with the hooks around it."""
        ...

    def is_class_method(self, library: Library, name: str) -> bool:
        """Whether a name of a library's class is a method that gets the class."""
        ...

    def member(self, core: Core, library: Library, name: str) -> Value:
        """Return the meaning of a dotted name."""
        ...

    def set_member(self, core: Core, library: Library, name: str, value: Value) -> None:
        """Set a name of a library that the program can change; others are left alone."""
        ...

    def set_content(self, core: Core, x: Tensor, value: Value) -> bool:
        """Do ``x.data = value`` where a graph can tell it; whether it was done."""
        ...

    def constant_attribute(self, value: DType | Device, name: str) -> Value:
        """Return an attribute of an element type or a device."""
        ...

    def is_transparent(self, name: str) -> bool:
        """Whether a decorator changes no type."""
        ...

    def entered(self, core: Core, manager: Value) -> Value:
        """Enter a context manager of a library and return its value."""
        ...

    def left(self, core: Core, manager: Value) -> None:
        """Leave a context manager of a library."""
        ...

    def ancestors(self, library: Library) -> list[Value]:
        """Return the classes of a library that one of its classes derives from, nearest first."""
        ...

    def class_flags(self, base: Library | Host) -> set[str]:
        """Return the effect of deriving from a class."""
        ...

    def tensor_attribute(self, core: Core, value: Tensor, name: str) -> Value:
        """Return an attribute or a method of a tensor."""
        ...

    def operator(self, core: Core, name: str, left: Value, right: Value) -> Value:
        """Return an operator of which at least one operand is a tensor."""
        ...

    def item_operator(self, core: Core, name: str, left: Value, right: Value) -> Value:
        """Return what ``x[index] += right`` stores, given the item ``left``."""
        ...

    def unary(self, core: Core, name: str, value: Tensor) -> Value:
        """Return an operator applied to a tensor."""
        ...

    def view_of(self, core: Core, view: Tensor, whole: Tensor, now: Tensor) -> Tensor:
        """Return the view of ``now`` that ``view`` is of ``whole``, which may be all of it."""
        ...

    def tensor_item(self, core: Core, value: Tensor, index: Value) -> Value:
        """Return ``value[index]``."""
        ...

    def set_tensor_item(self, core: Core, value: Tensor, index: Value, item: Value) -> None:
        """Do ``value[index] = item``."""
        ...

    def call(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a function or a class of a library."""
        ...

    def call_method(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a method of a library's class; the receiver comes first."""
        ...

    def prepare(self, core: Core, made: Instance, library: Library) -> None:
        """Give a new object of a derived class its base's attributes of before ``__init__``."""
        ...

    def initialise(
        self,
        core: Core,
        made: Instance,
        library: Library,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Unknown | None:
        """Run the ``__init__`` of a library's class; return the reason if its result is lost."""
        ...

    def libraries_of(self, core: Core, value: Instance) -> list[str]:
        """Return the classes of libraries that an object derives from, nearest first."""
        ...

    def object_attribute(self, core: Core, value: Instance, name: str) -> Value:
        """Return an object's member by its library's classes, ``MISSING`` without one."""
        ...

    def call_order(self, core: Core, value: Instance) -> Sequence[str]:
        """Return the methods that a call of an object means, the first that exists counts."""
        ...

    def keep_member(self, core: Core, receiver: Instance, name: str, value: Value) -> bool:
        """Store a module that is set as an attribute of a container among its modules."""
        ...

    def is_instance(self, core: Core, value: Value, option: Value) -> bool | None:
        """Return the result of ``isinstance``; None where nobody can tell."""
        ...

    def has_special(self, value: Value, name: str) -> bool:
        """Whether a value has a special attribute (``__doc__``) by the class that it is of."""
        ...

    def class_of(self, value: Value) -> type | None:
        """Return the class of Python's that a value is of; None for objects of other classes."""
        ...

    def real_object(self, value: Value) -> Any:
        """Return what a name of a library is in the running Python; None where that is unknown."""
        ...

    def is_scalar(self, value: Value) -> bool:
        """Whether a value is a scalar of NumPy, and no array without axes."""
        ...

    def name_of(self, found: Any) -> str | None:
        """Return the name under which a table knows a real function or class."""
        ...

    def lift_object(self, core: Core, found: Any) -> Value:
        """Return the stand-in of a real tensor, layer, element type or device."""
        ...

    def lift_array(self, core: Core, found: Any, kind: str) -> Value:
        """Return a tensor for a real array; small ones keep their content."""
        ...
