"""Trees of arguments: their leaves, their outline."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hagane.errors import HaganeError
from hagane.frontends.capture.interface.structure import Object, Same, Sized, Whole
from hagane.frontends.python.values.dictionaries import fill


class Obstacle(HaganeError, NotImplementedError):
    """A reason why a call cannot run as a graph."""


@dataclass(frozen=True, slots=True)
class TensorLeaf:
    """A tensor or an array.

    Attributes:
        path: Its path in the arguments: ``x``, ``states.0``.
        value: It.
        kind: ``torch.Tensor``, ``numpy.ndarray`` or ``chainer.Variable``.
        dtype: Its element type.
        shape: Its sizes.
    """

    path: str
    value: Any
    kind: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NumberLeaf:
    """A number of Python."""

    path: str
    value: Any


Leaf = TensorLeaf | NumberLeaf
Tree = Any  # of tuples, lists and dicts, leaves and plain values


def joined(path: str, name: object) -> str:
    """Return the path of a part."""
    return f"{path}.{name}" if path else str(name)


def leaves(tree: Tree) -> list[Leaf]:
    """Return the leaves of a tree in order, each path once."""
    found: dict[str, Leaf] = {}
    seen: set[int] = set()

    def walk(part: Tree) -> None:
        if isinstance(part, TensorLeaf | NumberLeaf):
            found.setdefault(part.path, part)
        elif isinstance(part, Object):
            if id(part) not in seen:
                seen.add(id(part))
                walk(part.attributes)
                walk(part.items)
        elif isinstance(part, dict):
            for item in part.values():
                walk(item)
        elif isinstance(part, tuple | list):
            for item in part:
                walk(item)

    walk(tree)
    return list(found.values())


def objects(tree: Tree) -> dict[str, Any]:
    """Return the objects that a call may change, by their paths in a tree of arguments."""
    found: dict[str, Any] = {}
    seen: set[int] = set()

    def walk(part: Tree, path: str) -> None:
        if isinstance(part, Object):
            if id(part) in seen:
                return
            seen.add(id(part))
            found[path] = part.real
            walk(part.items, path)
            walk(part.attributes, path)
        elif isinstance(part, dict):
            for name, item in part.items():
                walk(item, joined(path, name))
        elif isinstance(part, tuple | list):
            for i, item in enumerate(part):
                walk(item, joined(path, i))

    walk(tree, "")
    return found


def outline(tree: Tree) -> Any:
    """Return the common part of calls that one graph may serve: all but sizes and numbers."""
    return _outline(tree, {})


def _outline(tree: Tree, seen: dict[int, int]) -> Any:
    if isinstance(tree, TensorLeaf):
        is_scalar = not tree.shape and not hasattr(tree.value, "__setitem__")  # NumPy's
        return (tree.kind, tree.dtype, len(tree.shape), is_scalar, tree.path)
    if isinstance(tree, NumberLeaf):
        return type(tree.value)
    if isinstance(tree, Object):
        if id(tree) in seen:
            return ("the same as", seen[id(tree)])
        seen[id(tree)] = len(seen)
        return (tree.cls, _outline(tree.attributes, seen), _outline(tree.items, seen))
    if isinstance(tree, Whole):
        return Same(tree.value)
    if isinstance(tree, dict):
        return (dict, *((key, _outline(item, seen)) for key, item in tree.items()))
    if isinstance(tree, tuple | list):
        return (type(tree), *(_outline(item, seen) for item in tree))
    if isinstance(tree, slice):  # which has no hash
        return (slice, tree.start, tree.stop, tree.step)
    return (type(tree), tree)


def replaced(tree: Tree, change: Callable[[Leaf], Any]) -> Any:
    """Return a tree with its leaves replaced."""
    return _replaced(tree, change, {})


def _replaced(tree: Tree, change: Callable[[Leaf], Any], made: dict[int, Object]) -> Any:
    if isinstance(tree, TensorLeaf | NumberLeaf):
        return change(tree)
    if isinstance(tree, Object):
        if id(tree) not in made:
            fresh = made[id(tree)] = Object(tree.cls, tree.real)
            fresh.attributes = _replaced(tree.attributes, change, made)
            fresh.items = _replaced(tree.items, change, made)
        return made[id(tree)]
    if isinstance(tree, dict):
        return {key: _replaced(item, change, made) for key, item in tree.items()}
    if isinstance(tree, tuple | list):
        return type(tree)(_replaced(item, change, made) for item in tree)
    return tree


def remade(tree: Tree, change: Callable[[Leaf], Any]) -> Any:
    """Return the arguments of a tree as new objects, with its leaves replaced."""
    made: dict[int, Any] = {}

    def build(part: Tree) -> Any:
        if isinstance(part, TensorLeaf | NumberLeaf):
            return change(part)
        if isinstance(part, Whole):
            return part.value
        if isinstance(part, Object):
            return made[id(part)] if id(part) in made else _copied(part, build, made)
        if isinstance(part, dict):
            return {key: build(item) for key, item in part.items()}
        if isinstance(part, Sized):
            return sys.modules["torch"].Size(map(build, part))
        return type(part)(map(build, part)) if isinstance(part, tuple | list) else part

    return build(tree)


def _copied(part: Object, build: Callable[[Any], Any], made: dict[int, Any]) -> Any:
    if issubclass(part.cls, tuple) and part.items is None:
        made[id(part)] = part.cls(**{name: build(v) for name, v in part.attributes.items()})
        return made[id(part)]
    make: Any = part.cls
    if make is deque:
        queue: deque[Any] = deque(maxlen=part.attributes["maxlen"])
        made[id(part)] = queue
        queue.extend(map(build, part.items))
        return queue
    if issubclass(part.cls, tuple):
        fresh = made[id(part)] = tuple.__new__(make, map(build, part.items))
    else:
        fresh = made[id(part)] = make.__new__(make)
    if isinstance(fresh, tuple):
        pass
    elif isinstance(part.items, dict):
        fill(fresh, {key: build(item) for key, item in part.items.items()})
    elif part.items is not None:
        list.extend(fresh, map(build, part.items))
    for name, item in part.attributes.items():
        object.__setattr__(fresh, name, build(item))
    return fresh
