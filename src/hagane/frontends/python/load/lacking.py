"""Packages that are not installed, and what a program does without them."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import sys
import warnings
from functools import cache
from types import ModuleType


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


def gives_up(statement: ast.stmt) -> bool:
    """Whether a statement of a handler ends the program, or may."""
    for node in ast.walk(statement):
        called = node.func if isinstance(node, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if isinstance(node, ast.Raise) or name in ("exit", "quit", "_exit", "abort"):
            return True
    return False


__all__ = ["gives_up", "imported", "is_installed", "lacks"]
