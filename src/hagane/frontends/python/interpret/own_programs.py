"""Functions in Python that stand for those of a library, interpreted like their callers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Function
from hagane.frontends.python.values.values import Value


def run_own(
    core: Core,
    function: Callable[..., Any],
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Value:
    """Return the result of a program of hagane's."""
    return core.call(own_program(core, function), arguments, keywords)


def own_program(core: Core, function: Callable[..., Any]) -> Function:
    """Return a function of hagane's, whose lines are no lines of the user's."""
    found = core.lift(function)
    assert isinstance(found, Function)
    return replace(found, scope=replace(found.scope, is_user=False))


def turns_of(iterator: Any) -> Any:
    """Yield the items of an object with ``__next__``."""
    while True:
        try:
            item = iterator.__next__()
        except StopIteration:
            return
        yield item


def sized_items_of(container: Any) -> Any:
    """Yield the items of an object with ``__getitem__`` of which the run knows the length."""
    for place in range(len(container)):
        yield container[place]


def items_of(container: Any) -> Any:
    """Yield the items of an object with ``__getitem__`` alone."""
    place = 0
    while True:
        try:
            item = container[place]
        except IndexError:
            return
        yield item
        place += 1


def next_or(iterator: Any, default: Any) -> Any:
    """Return the next item of an object with ``__next__``, or a default behind the last one."""
    try:
        return iterator.__next__()
    except StopIteration:
        return default
