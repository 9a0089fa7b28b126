"""Real functions with the parameters of the program's, for ``inspect``."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from hagane.frontends.python.values.objects import (
    Bound,
    Function,
    Wrapped,
)
from hagane.frontends.python.values.values import MISSING, Value

Real = Callable[[Value], Any]  # the real object of a value, MISSING where there is none


class UnknownValue:
    """The default of a parameter, or an argument, that has no real object."""


@dataclass(frozen=True, slots=True)
class Given:
    """An argument of a call, while a signature binds it."""

    value: Value


def fill_defaults(arguments: Any, signature: Any) -> None:
    """Add the defaults of arguments that a call leaves out, as ``apply_defaults`` does."""
    raise NotImplementedError(arguments, signature)


def like(value: Value, real_of: Real) -> Any:
    """Return a function with the parameters of a function or method; MISSING for other values.

    Args:
        value: The function.
        real_of: Returns the real object of a default.
    """
    if isinstance(value, Bound):
        inner = like(value.function, real_of)
        return MISSING if inner is MISSING else types.MethodType(inner, object())
    if isinstance(value, Wrapped) and value.kind == "partial":
        inner = like(value.function, real_of)
        given = [UnknownValue() for _ in value.arguments]
        named = {name: _real(found, real_of) for name, found in value.keywords.items()}
        return MISSING if inner is MISSING else functools.partial(inner, *given, **named)
    if isinstance(value, Wrapped) and value.kind in ("within", "staticmethod"):
        return like(value.function, real_of)
    if not isinstance(value, Function):
        return real_of(value)
    if value.host is not None:
        return value.host
    node = deepcopy(value.node.args)
    parameters = [*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg]
    for parameter in parameters:
        if parameter is not None:
            parameter.annotation = None
    none = ast.Constant(None)
    node.defaults = [none for _ in node.defaults]
    node.kw_defaults = [None if default is None else none for default in node.kw_defaults]
    made = ast.Expression(ast.Lambda(node, none))
    function = eval(compile(ast.fix_missing_locations(made), "<parameters>", "eval"))

    function.__defaults__ = tuple(_real(found, real_of) for found in value.defaults) or None
    named = {name: _real(found, real_of) for name, found in value.keyword_defaults.items()}
    function.__kwdefaults__ = named or None
    function.__name__ = value.name
    return function


def _real(value: Value, real_of: Real) -> Any:
    real = real_of(value)
    return UnknownValue() if real is MISSING else real


__all__ = ["Given", "UnknownValue", "fill_defaults", "like"]
