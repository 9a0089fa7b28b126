"""Errors of regular expressions and of lexers' specifications."""

from __future__ import annotations

from hagane.errors import InvalidArgument


class RegexSyntaxError(InvalidArgument):
    """A regular expression that cannot be read; names the column."""

    def __init__(self, source: str, column: int, problem: str):
        self.source = source
        self.column = column
        self.problem = problem
        super().__init__(f"regular expression '{source}', column {column}: {problem}")


class SpecificationError(InvalidArgument):
    """A lexer's specification that cannot be used; names the place where it has one."""
