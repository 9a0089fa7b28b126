"""Functions of the standard library as programs in Python, which are followed as a user's are.

``operator``, ``bisect`` and ``heapq`` have definitions in Python beside their compiled ones; some
others are written here.
"""

from __future__ import annotations

import builtins
import functools
import heapq
import importlib.util
import operator
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from hagane.frontends.python.values.loggers import as_logging
from hagane.frontends.python.values.workers import as_worker

# The module of compiled functions: the one whose source has them in Python.
_SOURCES = {"_operator": "operator", "_bisect": "bisect", "_heapq": "heapq"}
_GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def _largest(n: int, iterable: Iterable[Any], key: Any = None) -> list[Any]:
    return sorted(iterable, key=key, reverse=True)[: max(n, 0)]


def _smallest(n: int, iterable: Iterable[Any], key: Any = None) -> list[Any]:
    return sorted(iterable, key=key)[: max(n, 0)]


def _merged(*iterables: Iterable[Any], key: Any = None, reverse: bool = False) -> Iterator[Any]:
    whole = [item for iterable in iterables for item in iterable]
    return iter(sorted(whole, key=key, reverse=reverse))


def partial_method(function: Any, /, *args: Any, **keywords: Any) -> Any:
    """Return the method that ``functools.partialmethod`` of the same arguments stands for."""

    def method(self: Any, /, *more: Any, **named: Any) -> Any:
        return function(self, *args, *more, **{**keywords, **named})

    return method


_PROGRAMS: dict[Any, Any] = {
    heapq.nlargest: _largest, heapq.nsmallest: _smallest, heapq.merge: _merged,
    functools.partialmethod: partial_method,
}  # fmt: skip


def in_python(found: Any) -> Any:
    """Return a function of the standard library's in Python; None where it cannot be followed.

    A getter of ``operator`` is made anew of what it was made of.
    """
    if isinstance(found, _GETTERS):
        return _getter(found)
    if isinstance(found, Hashable) and found in _PROGRAMS:
        return _PROGRAMS[found]
    if (worker := as_worker(found)) is not None:
        return worker
    name = getattr(found, "__module__", None) or ""
    made = getattr(_module(_SOURCES[name]), found.__name__, None) if name in _SOURCES else None
    return made if isinstance(made, FunctionType) else None


def base_in_python(found: Any) -> Any:
    """Return the program that a class of the standard library stands for as a base, if any."""
    return as_worker(found) or as_logging(found)


def _getter(found: Any) -> Callable[..., Any]:
    make, given = found.__reduce__()[:2]
    named: Mapping[str, Any] = {}
    if not isinstance(make, type):  # methodcaller with keywords, by functools.partial
        make, given, named = make.func, (*make.args, *given), make.keywords
    maker = getattr(_module("operator"), make.__name__)
    made: Callable[..., Any] = maker(*given, **named)
    return made


@cache
def _module(name: str) -> ModuleType:
    """Return a module of the standard library as it is without compiled functions."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    module = ModuleType(f"{name} in Python")
    module.__file__, module.__spec__ = spec.origin, spec
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _without_compiled}
    sys.modules[module.__name__] = module
    with open(spec.origin, encoding="utf-8") as file:
        exec(compile(file.read(), spec.origin, "exec"), module.__dict__)
    return module


def _without_compiled(
    name: str,
    names: Mapping[str, Any] | None = None,
    own: Mapping[str, Any] | None = None,
    wanted: Sequence[str] = (),
    level: int = 0,
) -> Any:
    if name in _SOURCES:
        raise ImportError(name)
    return __import__(name, names, own, wanted, level)


__all__ = ["base_in_python", "in_python"]
