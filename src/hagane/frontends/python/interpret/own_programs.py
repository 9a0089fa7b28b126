"""Functions in Python that stand for those of a library, interpreted like their callers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Function, Value


def run_own(
    core: Core,
    function: Callable[..., Any],
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Value:
    """Return the result of a program of hagane's, whose lines are no lines of the user's."""
    found = core.lift(function)
    assert isinstance(found, Function)
    hidden = replace(found, scope=replace(found.scope, is_user=False))
    return core.call(hidden, arguments, keywords)
