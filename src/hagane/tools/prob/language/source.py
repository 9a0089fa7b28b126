"""Program text with positions, and every error that points into it.

The tree::

    ProgramError                  (ValueError)           a program that cannot be checked
    ├── ProgramSyntaxError        (SyntaxError)          it does not parse
    ├── ProgramTypeError          (TypeError)            names, types or arities don't fit
    ├── PathError                 (ArithmeticError)      some possible run goes wrong
    │   ├── DivisionByZero        (ZeroDivisionError)
    │   ├── UnboundedRecursion    (RecursionError)
    │   │   └── EndlessRecursion
    │   ├── ImpossibleCondition                          conditioning on probability zero
    │   └── BadDistribution                              an empty range, weights that are none
    └── TooLarge                  (MemoryError)          beyond the limit of an engine
        └── TooManyCalls
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from hagane.errors import HaganeError

# Characters of a line that messages show.
_WIDEST = 160


class Span(NamedTuple):
    """Characters ``start`` to ``end`` (exclusive) of a source."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """Return the span from this one's start to the other's end."""
        return Span(self.start, other.end)


@dataclass(frozen=True, slots=True)
class Source:
    """A program's text and the name to call it by in messages.

    Attributes:
        text: The text.
        name: The name.
        elsewhere: Where parts of the text begin that do not stand in the file, in order, and for
            each the character of the file to point at in its place.
    """

    text: str
    name: str = "<program>"
    elsewhere: tuple[tuple[int, int], ...] = ()

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of a character, both from 1."""
        for start, place in reversed(self.elsewhere):
            if offset >= start:
                offset = place
                break
        return self._line_and_column(offset)

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def slice(self, span: Span) -> str:
        """Return the characters of a span, runs of white space as one space."""
        return " ".join(self.text[span.start : span.end].split())

    def caret(self, span: Span) -> str:
        """Return the line of a span, and below it carets under the span."""
        line, column = self._line_and_column(span.start)
        text = self.text.split("\n")[line - 1]
        line, _ = self.position(span.start)
        if len(text) > _WIDEST:
            # Of a long line, the part around the span.
            first = max(0, column - 1 - _WIDEST // 4)
            ahead, behind = "…" * (first > 0), "…" * (first + _WIDEST < len(text))
            text = ahead + text[first : first + _WIDEST] + behind
            column += len(ahead) - first
        width = max(1, min(span.end - span.start, len(text) - column + 1))
        margin = f"{line:>4} | "
        # A tab is kept and a wide character takes two columns, so that the caret stands below.
        lead = "".join(c if c == "\t" else " " * _columns(c) for c in text[: column - 1])
        marks = "^" * sum(_columns(c) for c in text[column - 1 : column - 1 + width])
        return f"{margin}{text}\n{' ' * (len(margin) - 2)}| {lead}{marks or '^'}"


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class ProgramError(HaganeError, ValueError):
    """A probabilistic program that cannot be checked.

    Args:
        message: The fault, the expectation, and the remedy where there is one.
        source: The program.
        span: Where it is wrong.
    """

    def __init__(self, message: str, source: Source, span: Span):
        self.message = message
        self.source = source
        self.span = span
        self.line, self.column = source.position(span.start)
        super().__init__(
            f"{source.name}:{self.line}:{self.column}: {message}\n{source.caret(span)}"
        )


class ProgramSyntaxError(ProgramError, SyntaxError):
    """A program that does not parse."""

    def __str__(self) -> str:
        # SyntaxError has a layout of its own.
        return str(self.args[0])


class ProgramTypeError(ProgramError, TypeError):
    """Names, types or arities that don't fit."""


class PathError(ProgramError, ArithmeticError):
    """Something that goes wrong on a possible run; the message carries the run."""


class DivisionByZero(PathError, ZeroDivisionError):
    """A divisor that is zero on a possible run."""


class UnboundedRecursion(PathError, RecursionError):
    """A recursion that no measure and no depth bounds."""


class EndlessRecursion(UnboundedRecursion):
    """One whose calls a run may go on with for ever, and that declares nothing else."""


class ImpossibleCondition(PathError):
    """A condition of probability zero."""


class BadDistribution(PathError):
    """An empty range, or probabilities that are negative or do not sum to one."""


class TooLarge(ProgramError, MemoryError):
    """A program beyond the number of states that an engine may use."""


class TooManyCalls(TooLarge):
    """More calls than an engine may follow one by one."""
