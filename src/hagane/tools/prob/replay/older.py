"""Objects that a function may change and that are older than a run of it."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from hagane.tools.prob.replay.frozen import Unfrozen, freeze

_NAMING = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")


def older(function: FunctionType) -> dict[str, Any]:
    """Return the state of the global and captured variables of a function, by name.

    Functions of the same file that it calls are looked into; objects whose state cannot be told are
    left out.
    """
    found: dict[str, Any] = {}
    for name, value in outside(function).items():
        if not isinstance(value, ModuleType | type | FunctionType):
            try:
                found[name] = freeze([(name, value)])
            except (Unfrozen, RecursionError):
                continue
    return found


def outside(function: FunctionType) -> dict[str, Any]:
    """Return the global and captured variables of a function and of those that it calls."""
    found: dict[str, Any] = {}
    waiting, seen = [function], {function}
    while waiting:
        current = waiting.pop()
        for name, value in _outside(current):
            found[name] = value
            if isinstance(value, FunctionType):
                own = value.__code__.co_filename == function.__code__.co_filename
                if own and value not in seen:
                    seen.add(value)
                    waiting.append(value)
    return found


def _outside(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not set yet
            continue
    for place, value in enumerate(function.__defaults__ or ()):
        yield f"default {place} of {function.__name__}", value


def _names(code: CodeType) -> set[str]:
    found = {each.argval for each in dis.get_instructions(code) if each.opname in _NAMING}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _names(inner)
    return found
