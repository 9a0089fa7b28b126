"""Names of an object's arrays in its graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

# Attributes that hold members with names of their own: of modules of PyTorch, links of Chainer.
_HOLDING = ("_parameters", "_buffers", "_modules", "_children", "_layers")


def joined(path: str, name: object) -> str:
    """Return the path of a part."""
    return f"{path}.{name}" if path else str(name)


def array_names(found: Any) -> dict[int, str]:
    """Return the paths of arrays that an object holds, by their identity."""
    names: dict[int, str] = {}
    seen: set[int] = set()

    def walk(value: Any, path: str, depth: int, *, within: bool = False) -> None:
        if depth > 8 or id(value) in seen or isinstance(value, ModuleType):
            return
        if _is_array(value):
            names.setdefault(id(value), path)
            return
        seen.add(id(value))
        if isinstance(value, dict):
            items = [(k, v) for k, v in value.items() if isinstance(k, str | int)]
        elif isinstance(value, list | tuple | deque):
            items = list(enumerate(value))
        else:
            items = list(getattr(value, "__dict__", {}).items())
        for name, item in items:
            holds = name in _HOLDING
            inner = path if holds else joined(path, name)
            # Parts of a module are as near as it is, however deep they lie.
            walk(item, inner, depth if holds or within else depth + 1, within=holds)

    owner = getattr(found, "__self__", found)
    if hasattr(owner, "named_parameters"):
        for name, array in (*owner.named_parameters(), *owner.named_buffers()):
            names.setdefault(id(array), name)
    function = getattr(found, "__func__", found)
    if hasattr(function, "__code__"):
        for name, value in _cells(function):
            walk(value, name, 0)
        for name in function.__code__.co_names:
            if name in function.__globals__:
                value = function.__globals__[name]
                if _is_array(value) or isinstance(value, dict | list | tuple):
                    walk(value, name, 6)
    if owner is not found or not hasattr(function, "__code__"):
        walk(owner, "", 0)
    return names


def object_paths(found: Any, arguments: Mapping[str, Any]) -> dict[int, str]:
    """Return the paths of objects whose attributes a call may change, by their identity.

    Args:
        found: What is called.
        arguments: Objects that it is given, by name.
    """
    paths: dict[int, str] = {}

    def walk(value: Any, path: str, depth: int, *, within: bool = False) -> None:
        if depth > 8 or id(value) in paths or _is_array(value) or isinstance(value, type):
            return
        if isinstance(value, dict):
            items = [(k, v) for k, v in value.items() if isinstance(k, str | int)]
        elif isinstance(value, list | tuple | deque):
            items = list(enumerate(value))
        elif hasattr(value, "__dict__") and not isinstance(value, ModuleType | FunctionType):
            paths[id(value)] = path
            items = list(vars(value).items())
        else:
            return
        for name, item in items:
            holds = name in _HOLDING
            inner = path if holds else joined(path, name)
            # Parts of a module are as near as it is, however deep they lie.
            walk(item, inner, depth if holds or within else depth + 1, within=holds)

    owner = getattr(found, "__self__", found)
    function = getattr(found, "__func__", found)
    for name, value in arguments.items():
        walk(value, name, 0)
    walk(owner, "", 0)
    if hasattr(function, "__code__"):
        for name, value in _cells(function):
            walk(value, name, 0)
        for name in function.__code__.co_names:
            if name in function.__globals__:
                walk(function.__globals__[name], name, 0)
    return paths


def _cells(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names of functions around one that it reads, with their values if they have one."""
    names = function.__code__.co_freevars
    for name, cell in zip(names, function.__closure__ or (), strict=False):
        with suppress(ValueError):  # not set yet
            yield name, cell.cell_contents


def _is_array(value: Any) -> bool:
    try:
        if not (hasattr(value, "dtype") and hasattr(value, "shape")):
            return False
        return hasattr(value, "__array__") or hasattr(value, "creator_node")  # Chainer's variables
    except Exception:  # of a __getattr__ that raises, as those of packages that are not there do
        return False


__all__ = ["array_names", "joined", "object_paths"]
