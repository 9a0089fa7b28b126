"""Calls of Python's own functions and methods whose arguments do not fit; keys without a hash."""

from __future__ import annotations

import functools
import inspect
import types
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.deques import Deque, class_of_list
from hagane.frontends.python.values.values import (
    DictRef,
    ListRef,
    SetRef,
    Value,
)

# Where functions are of which the signature is asked; methods of containers have no module.
_MODULES = ("builtins", "itertools", "functools", "_functools", "math", None)

# How many arguments methods take of which Python tells no signature.
_NONE, _ONE = (0, 0), (1, 1)
_COUNTS: dict[type, dict[str, tuple[int, int]]] = {
    dict: {"keys": _NONE, "values": _NONE, "items": _NONE, "clear": _NONE, "copy": _NONE,
           "pop": (1, 2), "update": (0, 1)},
    set: {"add": _ONE, "remove": _ONE, "discard": _ONE, "pop": _NONE, "clear": _NONE,
          "copy": _NONE, "symmetric_difference": _ONE, "symmetric_difference_update": _ONE,
          "issubset": _ONE, "issuperset": _ONE, "isdisjoint": _ONE},
    deque: {"append": _ONE, "pop": _NONE, "insert": (2, 2), "index": (1, 3), "appendleft": _ONE,
            "extend": _ONE, "extendleft": _ONE, "popleft": _NONE, "rotate": (0, 1),
            "clear": _NONE, "copy": _NONE, "reverse": _NONE, "count": _ONE, "remove": _ONE},
}  # fmt: skip


@functools.lru_cache(maxsize=1024)
def _signature(found: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(found)
    except (TypeError, ValueError):
        return None


def check_arguments(found: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Raise the TypeError of a call of Python's own function that its arguments do not fit.

    Functions of which Python tells no signature take anything here.

    Raises:
        CheckError: They do not.
    """
    built_in = types.BuiltinFunctionType | types.MethodDescriptorType | type
    if not isinstance(found, built_in) or getattr(found, "__module__", None) not in _MODULES:
        return
    signature = _signature(found)
    if signature is None:
        return
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        name = getattr(found, "__qualname__", found)
        raise CheckError("call", f"TypeError: {name}(): {error}") from None


def check_method(
    receiver: Value, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> None:
    """Raise the TypeError of a call of a container's method that its arguments do not fit.

    Raises:
        CheckError: They do not.
    """
    kind = _kind(receiver, name)
    if kind is None:
        return
    least, most = _COUNTS.get(kind, {}).get(name, (0, -1))
    if most < 0:
        found = getattr(kind, name, None)
        if isinstance(found, types.MethodDescriptorType):
            check_arguments(found, [None, *arguments], keywords)
    elif not least <= len(arguments) <= most or (keywords and name != "update"):
        expected = str(least) if least == most else f"{least} to {most}"
        given = f"{len(arguments)} and {len(keywords)} by keyword" if keywords else len(arguments)
        raise CheckError(
            "call",
            f"TypeError: {kind.__name__}.{name}(): expected {expected} arguments, got {given}",
        )


def _kind(receiver: Value, name: str) -> type | None:
    """Return the class of Python's whose method of a name is meant; None for others."""
    if isinstance(receiver, ListRef):
        return class_of_list(receiver)
    if isinstance(receiver, DictRef):
        return dict if receiver.kind == "dict" else None
    return set if isinstance(receiver, SetRef) else tuple if type(receiver) is tuple else None


def refuse_unhashable(value: Value) -> None:
    """Raise the TypeError of a list, dictionary or set as a key or an item of a set.

    Raises:
        CheckError: The value is one, or a tuple that has one.
    """
    for each in value if isinstance(value, tuple) else ():
        refuse_unhashable(each)
    kinds = {ListRef: "list", Deque: "collections.deque", DictRef: "dict", SetRef: "set"}
    kind = kinds.get(type(value))
    if kind is not None and not (isinstance(value, SetRef) and value.frozen):
        raise CheckError("type", f"TypeError: unhashable type: '{kind}'")


__all__ = ["check_arguments", "check_method", "refuse_unhashable"]
