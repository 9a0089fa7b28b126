"""Functions of libraries that are programs over others of their functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from hagane.frontends.libraries.table import Table
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.values.values import Fields, Value


def programmed(
    table: Table, name: str, program: Callable[..., Any], *, methods: Sequence[str] = (),
    fields: tuple[str, ...] = (),
) -> None:  # fmt: skip
    """Register a function of a library that a program stands for, with the program's signature.

    Args:
        table: The library's table.
        name: The function's name below its root; empty for methods alone.
        program: The program.
        methods: Names of tensors' methods that it stands for too.
        fields: The names of its results, of a program that returns several.
    """

    def function(t: Core, *arguments: Value, **keywords: Value) -> Value:
        given = [t.wrap(argument) for argument in arguments]
        named = {name: t.wrap(argument) for name, argument in keywords.items()}
        made = run_own(t, program, given, named)
        return Fields(made, fields) if fields and isinstance(made, tuple) else made

    own = inspect.signature(program)
    first = inspect.Parameter("core", inspect.Parameter.POSITIONAL_ONLY)
    function.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[first, *own.parameters.values()]
    )
    table.function(*[name] if name else [], methods=methods)(function)
