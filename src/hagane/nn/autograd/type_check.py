"""Checks of the types of arguments, as expressions that can name their expectation.

A function node writes ``type_check.expect(in_types[0].ndim == 2)`` in ``check_type_forward``. The
check runs on plain arrays first; where it fails it runs again on expressions, whose text is the
message.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.invalid_type import InvalidType, get_function_check_context
from hagane.nn.autograd.type_expression import Expr, Variable

_LOCAL = threading.local()


class TypeInfo:
    """Sizes and element type of an array."""

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


class TypeInfoTuple(tuple[Any, ...]):
    """The types of all arguments, as expressions."""

    name = "in_types"

    def size(self) -> Any:
        """Return their number, as an expression."""
        return Variable(len(self), f"{self.name}.size")


class LightTypeInfoTuple(tuple[Any, ...]):
    """The types of all arguments, as they are."""

    def size(self) -> int:
        """Return their number."""
        return len(self)


def get_types(data: tuple[Any, ...], name: str, accept_none: bool, *, shapes: Any = None) -> Any:
    """Return the types of arrays as expressions."""
    assert isinstance(data, tuple), f"get_types: expected a tuple of arrays, got {type(data)}"
    found = []
    for i, array in enumerate(data):
        info = (
            TypeInfo((), None)
            if accept_none and array is None
            else TypeInfo(array.shape, array.dtype)
        )
        found.append(Variable(info, f"{name}[{i}]"))
    made = TypeInfoTuple(found)
    made.name = name
    return made


def get_light_types(data: tuple[Any, ...], *, shapes: Any = None) -> Any:
    """Return the types of arrays, which the arrays themselves show."""
    return LightTypeInfoTuple(data)


def check_node(function: Any, arrays: tuple[Any, ...]) -> None:
    """Run the type check of a function node."""
    try:
        with light_mode:
            function.check_type_forward(LightTypeInfoTuple(arrays))
        return
    except InvalidType:
        pass
    with get_function_check_context(function):
        function.check_type_forward(get_types(arrays, "in_types", False))


def expect(*bool_exprs: Any) -> None:
    """Check that expressions hold.

    Raises:
        InvalidType: One does not.
    """
    if in_light_mode():
        if not all(bool_exprs):
            raise InvalidType("", "", "")
        return
    for expression in bool_exprs:
        expression.expect()


def same_types(*arrays: Any) -> bool:
    """Return whether all are arrays."""
    return all(isinstance(x, np.ndarray) for x in arrays)


def eval(exp: Any) -> Any:
    """Return the value of an expression."""
    return exp.eval() if isinstance(exp, Expr) else exp


def make_variable(value: Any, name: str) -> Any:
    """Return a value with a name for messages."""
    return value if in_light_mode() else Variable(value, name)


class LightMode:
    """A context in which checks run on plain values."""

    def __enter__(self) -> None:
        _LOCAL.light = True

    def __exit__(self, *details: Any) -> None:
        _LOCAL.light = False


light_mode = LightMode()


def in_light_mode() -> bool:
    """Return whether checks run on plain values."""
    return getattr(_LOCAL, "light", False)


_PROD = Variable(math.prod, "prod")


def prod(xs: Any) -> Any:
    """Return the product, as an expression."""
    return math.prod(xs) if in_light_mode() else _PROD(xs)


def expect_broadcast_shapes(*shape_types: Any) -> None:
    """Check that shapes broadcast together.

    Raises:
        InvalidType: They don't.
    """
    shapes = [eval(shape) for shape in shape_types]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        lines = ["cannot broadcast inputs of the following shapes:"]
        lines += [f"{t} = {s}" for t, s in zip(shape_types, shapes, strict=True)]
        raise InvalidType("", "", "\n".join(lines)) from None


def argname(in_types: Sequence[Any], names: Sequence[str]) -> None:
    """Name the arguments of a function in messages.

    Raises:
        InvalidType: There are more or fewer of them.
    """
    if len(in_types) != len(names):
        raise InvalidType(
            f"{len(names)} argument(s)",
            f"{len(in_types)} argument(s)",
            "Invalid number of arguments",
        )
    for type_, name in zip(in_types, names, strict=True):
        if isinstance(type_, Variable):
            type_.name = name


_argname = argname


def refuse(function: str, expected: str, actual: str) -> InvalidType:
    """Return the error of an argument of a function of the library.

    Args:
        function: The function.
        expected: The condition on an argument, with its name.
        actual: The actual condition.
    """
    with get_function_check_context(function):
        return InvalidType(expected, actual)
