"""Packages that are not installed, and what a program does without them."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import sys
import warnings
from difflib import get_close_matches
from functools import cache
from types import ModuleType
from typing import Any

_NOTHING = object()


@cache
def is_installed(top: str) -> bool:
    """Whether a package is there to be imported."""
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return False


def lacks(name: str) -> bool:
    """Whether an import of a module fails in the running Python."""
    if name in sys.modules:
        return sys.modules[name] is None
    try:
        return importlib.util.find_spec(name) is None
    except (ImportError, ValueError, AttributeError):
        return True


@cache
def imported(name: str) -> ModuleType | None:
    """Return an installed module, imported for real; None where that fails."""
    if not is_installed(name.partition(".")[0]):
        return None
    told = io.StringIO()
    with (
        contextlib.redirect_stdout(told),
        contextlib.redirect_stderr(told),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except Exception:
            return None


@cache
def nearest_to(name: str) -> str | None:
    """Return what an installed package has instead of a dotted name; None where it has the name.

    Returns:
        The nearest name of those that are there, empty if none is near; None too for a package
        that is not installed.
    """
    found: Any = imported(name.partition(".")[0])
    if found is None:
        return None
    at, *parts = name.split(".")
    for part in parts:
        inner = getattr(found, part, _NOTHING)
        if inner is _NOTHING:
            inner = imported(f"{at}.{part}") if isinstance(found, ModuleType) else None
        if inner is None:
            fits = {one.casefold(): one for one in dir(found) if not one.startswith("_")}
            near = get_close_matches(part.casefold(), fits, 1)
            return f"{at}.{fits[near[0]]}" if near else ""
        found, at = inner, f"{at}.{part}"
    return None


def gives_up(statement: ast.stmt) -> bool:
    """Whether a statement of a handler ends the program, or may."""
    for node in ast.walk(statement):
        called = node.func if isinstance(node, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if isinstance(node, ast.Raise) or name in ("exit", "quit", "_exit", "abort"):
            return True
    return False


__all__ = ["gives_up", "imported", "is_installed", "lacks", "nearest_to"]
