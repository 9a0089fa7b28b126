"""The items of a list whose length the data decide, as they leave the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from hagane.frontends.python.values.values import Tensor, Value


@dataclass(frozen=True, slots=True)
class Stack:
    """Tensors or numbers of all items.

    Attributes:
        values: They lie along a new first axis; where their sizes differ, behind each other.
        sizes: How large each is along this axis, where they differ.
        axis: The axis along which they lie behind each other.
        kind: ``numbers`` for those of Python; empty for tensors.
        inner: The kind of the numbers of which each is a list; empty for others.
    """

    values: Tensor
    sizes: Tensor | None = None
    axis: int = 0
    kind: str = ""
    inner: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of all items: of tuples, lists, dictionaries or objects.

    Attributes:
        like: A value of the kind.
        names: The keys or fields; empty for tuples and lists.
        parts: The parts.
    """

    like: Value
    names: tuple[Any, ...]
    parts: tuple[Described, ...]


@dataclass(frozen=True, slots=True)
class Same:
    """A value that is the same in all items."""

    value: Value


Described: TypeAlias = Stack | Group | Same
__all__ = ["Described", "Group", "Same", "Stack"]
