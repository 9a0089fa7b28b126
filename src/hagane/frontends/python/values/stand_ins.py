"""Functions that stand for what the interpreter gives programs; it knows their meaning by name."""

from __future__ import annotations

from typing import Any


def identity(value: Any) -> Any:
    """Return ``value``: a decorator that changes no type."""
    return value


def forget_kept(function: Any) -> None:
    """Forget the results that a function keeps: as ``cache_clear`` does."""
    raise NotImplementedError(function)


def registered(what: Any) -> Any:
    """Return a function that ``singledispatch`` is given, or what takes it for a class."""
    raise NotImplementedError(what)


def with_accessor(value: Any, kind: str, function: Any) -> Any:
    """Return a property with another getter, setter or deleter: as ``property.setter`` does."""
    raise NotImplementedError(value, kind, function)
