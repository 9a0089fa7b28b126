"""Objects that a function may change and that are older than a run of it."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from hagane.tools.prob.replay.frozen import Unfrozen, freeze
from hagane.tools.prob.replay.reached import is_own

_NAMING = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")


def older(function: FunctionType) -> dict[str, Any]:
    """Return the state of what a function knows that is older than a run of it, by name.

    That are its global and captured variables, attributes of modules that it names, attributes of
    functions and classes of the program, and the same of the functions, methods and classes that
    it may call. Objects whose state cannot be told are left out.
    """
    found: dict[str, Any] = {}
    for name, value in outside(function, classes=True).items():
        if not isinstance(value, ModuleType | type | FunctionType):
            try:
                found[name] = freeze([(name, value)])
            except (Unfrozen, RecursionError):
                continue
    return found


def outside(function: FunctionType, classes: bool = False) -> dict[str, Any]:
    """Return what a function and those that it calls know beside their arguments, by name.

    Args:
        function: The function.
        classes: Whether attributes of classes of the program count, and what their methods know.
    """
    found: dict[str, Any] = {}
    waiting: list[FunctionType | type] = [function]
    seen: set[FunctionType | type] = {function}
    while waiting:
        current = waiting.pop()
        known = _of_class(current) if isinstance(current, type) else _of_function(current)
        for name, value in known:
            found[name] = value
            kind = value if isinstance(value, FunctionType | type) else type(value)
            looked_into = classes or isinstance(kind, FunctionType)
            if looked_into and kind not in seen and is_own(kind):
                seen.add(kind)
                waiting.append(kind)
    return found


def _of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    names, attributes = _names(function.__code__)
    for name in names:
        if name in function.__globals__:
            value = function.__globals__[name]
            yield name, value
            if isinstance(value, ModuleType):
                held = vars(value)
                yield from ((f"{name}.{each}", held[each]) for each in attributes if each in held)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not set yet
            continue
    for place, value in enumerate(function.__defaults__ or ()):
        yield f"default {place} of {function.__name__}", value
    for name, value in (function.__kwdefaults__ or {}).items():
        yield f"default {name} of {function.__name__}", value
    for name, value in vars(function).items():
        yield f"{function.__name__}.{name}", value


@lru_cache(1024)
def _names(code: CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the global names of code, and all names: of attributes too."""
    codes = [code]
    for each in codes:  # grows while it runs
        codes += [inner for inner in each.co_consts if isinstance(inner, CodeType)]
    steps = (step for each in codes for step in dis.get_instructions(each))
    names = {step.argval for step in steps if step.opname in _NAMING}
    return tuple(sorted(names)), tuple(sorted({name for each in codes for name in each.co_names}))


def _of_class(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in list(vars(kind).items()):
        match value:
            case staticmethod() | classmethod():
                value = value.__func__
            case property():
                yield f"{kind.__name__}.{name} to set", value.fset
                value = value.fget
            case MethodType():
                yield f"{kind.__name__}.{name} of", value.__self__
        if not (name.startswith("__") and name.endswith("__")) or isinstance(value, FunctionType):
            yield f"{kind.__name__}.{name}", value
    yield from ((f"base {base.__name__}", base) for base in kind.__bases__)
