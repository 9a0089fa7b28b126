"""Python functions and where they stand in their files."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hagane.tools.prob.language.source import ProgramTypeError, Source, Span


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


class Texts:
    """The text of a file, and behind it types that do not stand there.

    Args:
        file: The file.
    """

    def __init__(self, file: Source):
        self._file = file
        self._text = file.text
        self._elsewhere: list[tuple[int, int]] = []

    def add(self, text: str, place: int) -> int:
        """Return where a text begins that is added, of which messages tell a place in the file."""
        self._text += "\n"
        start = len(self._text)
        self._elsewhere.append((start, place))
        self._text += text
        return start

    def source(self) -> Source:
        """Return all of it, as the file."""
        return Source(self._text, self._file.name, tuple(self._elsewhere))


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
