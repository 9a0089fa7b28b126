"""The containers that a value is and holds, by their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hagane.frontends.capture.flow.slots import Contents, Rows
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    Choice,
    DictRef,
    ListRef,
    Value,
)


def stale() -> CheckError:
    """Return the error for a container that may have been changed under another name."""
    return CheckError(
        "capture",
        "a list or object is read here after a change in place of another one, and the data decide "
        "whether the two are the same; change a copy, as in row = list(row), or set the item",
    )


def is_container(value: Value) -> bool:
    """Whether a value is an object whose content tensors can hold."""
    if isinstance(value, Instance):
        return bool(getattr(value.cls, "fields", None))
    return isinstance(value, ListRef | DictRef)


def is_flat(value: Value, contents: Contents) -> bool:
    """Whether a container has no others in it."""
    found = [*containers(value, contents)]
    return len(found) == 1 and found[0] == getattr(value, "key", None)


def keys_of(values: Sequence[Value]) -> list[int]:
    """Return the keys of values that are containers."""
    return [value.key for value in values if is_container(value)]


def containers(value: Value, contents: Contents) -> Iterator[int]:
    """Yield the keys of the containers in a value, in order."""
    if isinstance(value, tuple):
        for item in value:
            yield from containers(item, contents)
    elif isinstance(value, Choice):
        yield from containers(value.yes, contents)
        yield from containers(value.no, contents)
    elif is_container(value):
        yield value.key
        content = contents.get(value.key)
        if type(content) is dict:
            content = tuple(content.values())
        if isinstance(content, tuple):
            yield from containers(content, contents)


def objects(value: Value, contents: Contents) -> Iterator[int]:
    """Yield the keys of the containers in a value or a content, and the families of its items."""
    if isinstance(value, Rows):
        yield from value.family
        return
    for key in containers(value, contents):
        yield key
        content = contents.get(key)
        if isinstance(content, Rows):
            yield from content.family


def named(contents: Contents) -> set[int]:
    """Return the keys of the containers that a name, an attribute or an item stands for."""
    waiting = [
        value
        for content in contents.values()
        if isinstance(content, dict | tuple)
        for value in (content.values() if isinstance(content, dict) else content)
    ]
    found = set[int]()
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting += value
        elif isinstance(value, Choice):
            waiting += [value.yes, value.no]
        elif is_container(value):
            found.add(value.key)
    return found


__all__ = ["containers", "is_container", "is_flat", "keys_of", "named", "objects", "stale"]
