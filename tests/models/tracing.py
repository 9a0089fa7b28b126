"""Shapes and dtypes of what the statements of one file assign and return while a function runs.

It knows no framework: an array is what has a ``shape`` that is a tuple and a ``dtype``. Statements
are told apart by their lines, so that no two of them may share one.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any


@dataclass(frozen=True)
class TracedValue:
    """One array that a statement assigned or returned.

    ``name`` is the variable, or ``return``; an array within a list, a tuple, a mapping or a
    dataclass has its path behind it, as in ``hs[0]``, ``state['h']`` or ``return.loss``.
    """

    line: int
    name: str
    shape: tuple[int, ...]
    dtype: str


def trace_values(
    filename: str | Path, function: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> list[TracedValue]:
    """Call ``function`` and return the distinct values of the file's statements, in order.

    Traced are assignments to names (plain, annotated, augmented and in tuples), the variables of
    ``for`` and ``with``, and what functions return; the line is the statement's first. Left out
    are lambdas, comprehensions, what a generator yields, and other threads.

    Raises:
        Exception: Whatever ``function`` raises.
    """
    return trace_source(
        Path(filename).read_text(encoding="utf-8"), filename, function, *args, **kwargs
    )


def trace_source(
    source: str, filename: str | Path, function: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> list[TracedValue]:
    """Do as ``trace_values`` for code that was compiled from ``source`` under the file's name."""
    path = os.path.realpath(filename)
    statements = _statements_by_line(source)
    found: dict[TracedValue, None] = {}

    def record(statement: ast.stmt, name: str, value: object) -> None:
        for suffix, shape, dtype in _arrays(value):
            found[TracedValue(statement.lineno, name + suffix, shape, dtype)] = None

    def on_call(frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if code.co_name.startswith("<") or _real(code.co_filename) != path:
            return None
        pending: ast.stmt | None = None

        def finish(following: ast.stmt | None) -> None:
            if pending is None or not _is_done(pending, following):
                return
            variables = frame.f_locals
            for name in _targets(pending):
                if name in variables:
                    record(pending, name, variables[name])

        def within(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
            nonlocal pending
            if event == "exception":
                pending = None
            elif event == "line":
                statement = statements.get(frame.f_lineno)
                if statement is not pending:
                    finish(statement)
                    pending = statement
            elif event == "return":
                finish(None)
                if isinstance(pending, ast.Return) and not code.co_flags & inspect.CO_GENERATOR:
                    record(pending, "return", arg)
            return within

        return within

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        function(*args, **kwargs)
    finally:
        sys.settrace(before)
    return list(found)


def line_of_error(filename: str | Path, error: BaseException) -> int | None:
    """Return the line of the file at which ``error`` was raised: that of its innermost frame."""
    path = os.path.realpath(filename)
    line = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        if _real(trace.tb_frame.f_code.co_filename) == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


@cache
def _real(filename: str) -> str:
    return os.path.realpath(filename)


def _statements_by_line(source: str) -> dict[int, ast.stmt]:
    """Return the innermost statement of each line; a compound one has only its head."""
    statements: dict[int, ast.stmt] = {}
    for node in ast.walk(ast.parse(source)):  # parents first
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            for line in range(node.lineno, max(node.lineno, last) + 1):
                statements[line] = node
    return statements


def _is_done(statement: ast.stmt, following: ast.stmt | None) -> bool:
    """Return whether ``statement`` has assigned: a ``for`` or ``with`` that enters its body has.

    On their way out both come by their head again, with variables that the body may have changed.
    """
    if isinstance(statement, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith):
        return following is statement.body[0]
    return True


def _targets(statement: ast.stmt) -> list[str]:
    """Return the names that ``statement`` itself assigns."""
    targets: list[ast.expr] = []
    match statement:
        case ast.Assign():
            targets = statement.targets
        case ast.AugAssign() | ast.For() | ast.AsyncFor():
            targets = [statement.target]
        case ast.AnnAssign():
            targets = [statement.target] if statement.value is not None else []
        case ast.With() | ast.AsyncWith():
            targets = [item.optional_vars for item in statement.items if item.optional_vars]
    return [
        node.id
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def _arrays(value: object) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """Yield path, shape and dtype of each array in ``value``."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        yield "", tuple(int(size) for size in shape), str(dtype).removeprefix("torch.")
        return
    parts: Iterator[tuple[str, object]] = iter(())
    if isinstance(value, list | tuple):
        parts = ((f"[{i}]", part) for i, part in enumerate(value))
    elif isinstance(value, Mapping):
        parts = ((f"[{key!r}]", part) for key, part in value.items())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = (
            (f".{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)
        )
    for path, part in parts:
        for suffix, shape, dtype in _arrays(part):
            yield path + suffix, shape, dtype
