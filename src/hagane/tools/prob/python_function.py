"""Python functions and where they stand in their files."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hagane.tools.prob.source import ProgramTypeError, Source, Span
from hagane.tools.prob.syntax import Expression, Let


class Unsupported(ProgramTypeError):
    """Python that is outside the supported subset."""


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function with its syntax tree and its file."""

    function: Callable[..., Any]
    tree: ast.FunctionDef
    source: Source

    @property
    def names(self) -> list[str]:
        """Return the parameters."""
        return [argument.arg for argument in self.tree.args.args]

    def offset(self, line: int, column: int) -> int:
        """Return the character at a line, from 1, and a column of UTF-8 bytes, from 0."""
        lines = self.source.text.split("\n")
        inside = lines[line - 1].encode()[:column].decode()
        return sum(len(text) + 1 for text in lines[: line - 1]) + len(inside)

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """Return the place of a Python node."""
        start = self.offset(node.lineno, node.col_offset)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return Span(start, self.offset(node.end_lineno, node.end_col_offset))


def read_function(function: Callable[..., Any]) -> PythonFunction:
    """Find the source of a Python function.

    Raises:
        Unsupported: It has none, or is no plain ``def`` with plain parameters.
    """
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename))
    source = Source(text, code.co_filename)
    nowhere = Span(0, 0)
    if not text:
        raise Unsupported(
            f"'{function.__name__}' has no source to read; define it in a file", source, nowhere
        )
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                found = PythonFunction(function, node, source)
                given = node.args
                if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
                    raise Unsupported("plain parameters only", source, found.span(node))
                return found
    raise Unsupported(f"'{function.__name__}' is no 'def' of {code.co_filename}", source, nowhere)


class Given(ast.stmt):
    """An assignment of a value that is known already: a step of an unrolled loop."""

    def __init__(self, target: ast.expr, item: Any, place: ast.stmt):
        super().__init__()
        self.target = target
        self.item = item
        ast.copy_location(self, place)


def plain(value: Any) -> Any:
    """Return NumPy's numbers and arrays as Python's."""
    return value.tolist() if hasattr(value, "tolist") else value


def returns(statement: ast.stmt) -> bool:
    """Tell whether a statement may return."""
    return any(isinstance(node, ast.Return) for node in ast.walk(statement))


def breaks(statement: ast.stmt) -> bool:
    """Tell whether a statement leaves or restarts a loop."""
    return any(isinstance(node, ast.Break | ast.Continue) for node in ast.walk(statement))


@dataclass(slots=True)
class Bindings:
    """Names given to values, in the order of evaluation."""

    pairs: list[tuple[str, Expression]] = field(default_factory=list)

    def around(self, body: Expression) -> Expression:
        """Return an expression inside these bindings."""
        for name, bound in reversed(self.pairs):
            body = Let(body.span, name, bound, body)
        return body
