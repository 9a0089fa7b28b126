"""What arguments are expected to be: those that are not are named before training begins."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument


def fail(told: str, expected: str, got: Any) -> InvalidArgument:
    """Return the error about an argument.

    Args:
        told: The class or function and the argument, such as ``Trainer: updater``.
        expected: What it is to be.
        got: What it is.
    """
    shown = f"the class {got.__name__}" if isinstance(got, type) else repr(got)
    if len(shown) > _LONGEST:
        shown = f"a {type(got).__module__}.{type(got).__qualname__}"
    return InvalidArgument(f"{told}: expected {expected}, got {shown}")


_LONGEST = 60


def need_number(told: str, given: Any, *, positive: bool = False, optional: bool = False) -> None:
    """Refuse what is no number.

    Args:
        told: The class or function and the argument.
        given: The argument.
        positive: Whether it has to be above 0.
        optional: Whether None is allowed.
    """
    if given is None and optional:
        return
    one = isinstance(given, numbers.Real | np.number) or (
        getattr(given, "shape", None) == () and hasattr(given, "__float__")
    )
    if not one or isinstance(given, bool | np.bool_) or (positive and not given > 0):
        kind = "a positive number" if positive else "a number"
        raise fail(told, f"{kind} or None" if optional else kind, given)


def need_text(told: str, given: Any, *, optional: bool = False) -> None:
    """Refuse what is no text."""
    if not isinstance(given, str) and not (optional and given is None):
        raise fail(told, "a text or None" if optional else "a text", given)


def texts(told: str, given: Any) -> list[str]:
    """Return names as a list; refuse one text, whose letters would be names."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise fail(told, "a list of names", given)
    listed = list(given)
    if not all(isinstance(item, str) for item in listed):
        raise fail(told, "a list of names", given)
    return listed


def need_callable(told: str, given: Any, *, optional: bool = False) -> None:
    """Refuse what cannot be called."""
    if not callable(given) and not (optional and given is None):
        raise fail(told, "a function or None" if optional else "a function", given)


def need(told: str, given: Any, expected: str, *attributes: str) -> None:
    """Refuse what lacks attributes, and classes in the place of their objects.

    Args:
        told: The class or function and the argument.
        given: The argument.
        expected: What it is to be, in words.
        attributes: What it has to have.
    """
    if isinstance(given, type) or not all(hasattr(given, name) for name in attributes):
        raise fail(told, expected, given)


def by_name(told: str, given: Any, expected: str, *attributes: str) -> dict[str, Any]:
    """Return one object, or several by name, ``main`` among them, as a dict.

    Args:
        told: The class or function and the argument.
        given: The argument.
        expected: What each is to be, in words.
        attributes: What each has to have.
    """
    several = dict(given) if isinstance(given, Mapping) else {"main": given}
    for name, one in several.items():
        at = f"{told} '{name}'" if isinstance(given, Mapping) else told
        need(at, one, expected, *attributes)
    return several


__all__ = ["by_name", "fail", "need", "need_callable", "need_number", "need_text", "texts"]
