"""An application of an operator, and the interpreters that give it a meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from hagane.graph.types import Type
from hagane.ops.definition import Array, OpDef


# Not frozen: eager steps make hundreds, and a frozen one takes 0.4 µs longer to make.
@dataclass(slots=True, eq=False)
class Call:
    """An operator applied to values; nobody changes it.

    Attributes:
        op: The operator.
        inputs: One value an input, all of one interpreter; None for an absent one.
        attributes: The attributes that were given, as plain Python values. Subgraphs are Python
            functions from values to sequences of values.
        outputs: The results, once the call was made.
        captured: Values of outside that its subgraphs read, where these are known. Gradients of
            them follow those of the inputs.
    """

    op: OpDef
    inputs: tuple[Any, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[Any, ...] = ()
    captured: tuple[Any, ...] = ()

    def attr(self, name: str) -> Any:
        """Return an attribute, else its default by the operator's schema, else None."""
        if name in self.attributes:
            return self.attributes[name]
        from hagane.ops.registry import schema

        return schema(*self.op.key).defaults.get(name)


class Interpreter(Protocol):
    """The meaning of values: arrays, nodes of a graph, types, calls to be differentiated.

    ``level`` orders interpreters whose values meet in one call: the highest interprets it, and
    takes the values of lower ones for constants.
    """

    level: int

    def apply(self, call: Call, n_outputs: int) -> Sequence[Any]:
        """Return the outputs of an operator; the inputs of ``call`` were lifted."""
        ...

    def constant(self, content: Array) -> Any:
        """Return fixed content as a value; the elements of an object array are sizes."""
        ...

    def type_of(self, value: Any) -> Type | None:
        """Return the type of a value, None where it is not known."""
        ...

    def content_of(self, value: Any) -> Array | None:
        """Return the content of a value if it is known; the elements of object arrays are sizes."""
        ...


Active = TypeVar("Active", bound=Interpreter | None)
_ACTIVE: ContextVar[Interpreter | None] = ContextVar("hagane.interpreter", default=None)


def active_interpreter() -> Interpreter | None:
    """Return the interpreter of operators whose operands name none themselves."""
    return _ACTIVE.get()


@contextmanager
def interpreting(interpreter: Active) -> Iterator[Active]:
    """Let an interpreter give operators a meaning whose operands name none themselves.

    None stands for computing with arrays.
    """
    token = _ACTIVE.set(interpreter)
    try:
        yield interpreter
    finally:
        _ACTIVE.reset(token)


def interpreter_of(values: Sequence[Any]) -> Interpreter:
    """Return the interpreter of a call: the highest of its operands', else the active one.

    An operand names its interpreter by an attribute of that name.
    """
    found = _ACTIVE.get()
    for value in values:
        named: Interpreter | None = getattr(value, "interpreter", None)
        if named is not None and (found is None or named.level >= found.level):
            found = named
    if found is None:
        from hagane.ops.builder.eager import EAGER

        return EAGER
    return found
