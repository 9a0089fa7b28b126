"""Contents of objects, and how two versions of them become one where paths meet."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from hagane.frontends.python.values.memory import WRITTEN
from hagane.frontends.python.values.values import MISSING, Choice, Many, Ref, Value
from hagane.symbolic.term import Term

Join = Callable[[Value, Value], Value]


class Heap:
    """Contents by key: a dict is changed in place, every other content is replaced."""

    def __init__(self) -> None:
        self.contents: dict[int, Any] = {WRITTEN: frozenset()}
        self._keys = itertools.count(1)

    def new(self, content: Any) -> int:
        """Return the key of a new object."""
        key = next(self._keys)
        self.contents[key] = content
        return key

    def __getitem__(self, ref: Ref | int) -> Any:
        return self.contents[ref if isinstance(ref, int) else ref.key]

    def __setitem__(self, ref: Ref | int, content: Any) -> None:
        self.contents[ref if isinstance(ref, int) else ref.key] = content

    def snapshot(self) -> dict[int, Any]:
        """Return all contents as they are now; later changes do not reach the copy."""
        return {
            key: dict(content) if type(content) is dict else content
            for key, content in self.contents.items()
        }

    def restore(self, snapshot: dict[int, Any]) -> None:
        """Go back to a snapshot, which must not be used again; younger objects stay."""
        for key, content in self.contents.items():
            snapshot.setdefault(key, content)
        self.contents = snapshot


def join_contents(
    yes: dict[int, Any],
    no: dict[int, Any],
    join: Join,
    condition: Term,
    join_lists: Join | None = None,
) -> dict[int, Any]:
    """Return the contents after two paths: ``yes`` was taken where ``condition`` holds.

    ``join_lists`` joins the contents of lists of different lengths; one value stands for all of
    their items without it.
    """
    result = dict(no)
    for key, content in yes.items():
        other = result.get(key, MISSING)
        if other is MISSING or other is content:
            result[key] = content
        elif key == WRITTEN:
            result[key] = content | other
        elif type(content) is dict and type(other) is dict:
            result[key] = _join_names(content, other, join, condition)
        else:
            result[key] = _join_items(content, other, join, condition, join_lists)
    return result


def _join_names(
    yes: dict[Any, Value], no: dict[Any, Value], join: Join, condition: Term
) -> dict[Any, Value]:
    if yes.keys() == no.keys() and all(yes[name] is no[name] for name in yes):
        return yes
    result = {}
    for name in [*yes, *(name for name in no if name not in yes)]:
        a, b = yes.get(name, MISSING), no.get(name, MISSING)
        result[name] = a if a is b else join(a, b)
    return result


def _join_items(yes: Any, no: Any, join: Join, condition: Term, join_lists: Join | None) -> Any:
    if isinstance(yes, tuple) and isinstance(no, tuple) and len(yes) == len(no):
        return tuple(a if a is b else join(a, b) for a, b in zip(yes, no, strict=True))
    if isinstance(yes, tuple | Many) and isinstance(no, tuple | Many):
        if join_lists is not None:
            return join_lists(yes, no)
        element, length = as_many(yes, join)
        other, other_length = as_many(no, join)
        if element is MISSING or other is MISSING:
            element = other if element is MISSING else element
        elif element is not other:
            element = join(element, other)
        return Many(element, join(length, other_length))
    return Choice(condition, yes, no)


def as_many(content: tuple[Value, ...] | Many, join: Join) -> tuple[Value, Any]:
    """Return one value that stands for all, and how many there are."""
    if isinstance(content, Many):
        return content.element, content.length
    element: Value = MISSING
    for item in content:
        element = item if element is MISSING or element is item else join(element, item)
    return element, len(content)
