"""What a function reaches in the program: the names of its files, and generators of numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

from hagane.frontends.python.load.lift import is_standard

_MOST_OBJECTS = 20_000
_OURS = __name__.partition(".")[0]
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Reached:
    """What a function reaches.

    Attributes:
        namespaces: The names of the files of the functions that it may call.
        generators: Generators of NumPy and PyTorch that it may draw from.
    """

    namespaces: tuple[dict[str, Any], ...] = ()
    generators: tuple[Any, ...] = ()


def reached(function: FunctionType) -> Reached:
    """Return what a function reaches by names, attributes and items.

    Code of Python's library and of installed packages is not looked into.
    """
    kinds = _kinds()
    namespaces: dict[int, dict[str, Any]] = {id(function.__globals__): function.__globals__}
    generators: list[Any] = []
    seen: dict[int, Any] = {}
    waiting: list[Any] = [function]
    while waiting and len(seen) < _MOST_OBJECTS:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, kinds):
            generators.append(value)
        elif isinstance(value, FunctionType) and is_own(value):
            namespaces[id(value.__globals__)] = value.__globals__
            waiting += _known(value)
        else:
            waiting += _parts(value)
    return Reached(tuple(namespaces.values()), tuple(generators))


def _kinds() -> tuple[type, ...]:
    numpy: Any = sys.modules.get("numpy.random")
    torch: Any = sys.modules.get("torch")
    found = () if numpy is None else (numpy.Generator, numpy.RandomState)
    return found if not hasattr(torch, "Generator") else (*found, torch.Generator)


def is_own(value: Any) -> bool:
    """Tell whether a function or class belongs to the program, not to a library."""
    if isinstance(value, FunctionType):
        where = value.__code__.co_filename
    else:
        where = getattr(sys.modules.get(value.__module__), "__file__", None) or ""
    ours = (value.__module__ or "").partition(".")[0] == _OURS
    return not (ours or is_standard(value) or any(part in where for part in _INSTALLED))


def _known(function: FunctionType) -> Iterator[Any]:
    """Yield the values that the code of a function knows."""
    codes = [function.__code__]
    for code in codes:  # grows while it runs
        codes += [each for each in code.co_consts if hasattr(each, "co_names")]
        for name in code.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, ModuleType):
                yield from (vars(value)[each] for each in code.co_names if each in vars(value))
            elif value is not None:
                yield value
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not set yet
            continue
    yield from function.__defaults__ or ()
    yield from vars(function).values()


def _parts(value: Any) -> Iterator[Any]:
    """Yield the parts of an object of the program."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        if not isinstance(value, list | tuple) or not all(type(each) is int for each in value):
            yield from value
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, type):
        if is_own(value):
            yield from vars(value).values()
            yield from value.__bases__
    elif isinstance(value, property):
        yield value.fget
    elif isinstance(value, staticmethod | classmethod):
        yield value.__func__
    elif not isinstance(value, ModuleType) and hasattr(value, "__dict__"):
        yield from vars(value).values()
        yield type(value)
