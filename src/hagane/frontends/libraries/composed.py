"""Functions of libraries that are programs over others of their functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from hagane.frontends.libraries.table import Table
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.values.values import Value


def programmed(table: Table, name: str, program: Callable[..., Any]) -> None:
    """Register a function of a library that a program stands for, with the program's signature."""

    def function(t: Core, *arguments: Value, **keywords: Value) -> Value:
        given = [t.wrap(argument) for argument in arguments]
        named = {name: t.wrap(argument) for name, argument in keywords.items()}
        return run_own(t, program, given, named)

    own = inspect.signature(program)
    first = inspect.Parameter("t", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    function.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[first, *own.parameters.values()]
    )
    table.function(name)(function)
