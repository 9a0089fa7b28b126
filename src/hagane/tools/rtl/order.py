"""An order in which work that feeds other work comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def in_order(items: Sequence[T], fed: Callable[[T], Iterable[T]]) -> list[T]:
    """Return ``items``, each before those that it feeds as far as there are no cycles.

    That is the reverse of the order in which a depth-first search leaves them.
    """
    seen: set[T] = set()
    left: list[T] = []
    for item in reversed(items):
        if item in seen:
            continue
        seen.add(item)
        stack: list[tuple[T, Iterator[T]]] = [(item, iter(fed(item)))]
        while stack:
            node, following = stack[-1]
            fresh = next((other for other in following if other not in seen), None)
            if fresh is None:
                stack.pop()
                left.append(node)
            else:
                seen.add(fresh)
                stack.append((fresh, iter(fed(fresh))))
    return left[::-1]
