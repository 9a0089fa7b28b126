"""Texts of a grammar's rules as trees: literal text, sets of texts, sequences, choices, calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hagane.lexgen.automata.utf8 import utf8_sequences
from hagane.lexgen.masks.texts import Texts

# The sequences of byte ranges that write the code points of an interval.
Ways = Callable[[int, int], Iterable[tuple[tuple[int, int], ...]]]


@dataclass(frozen=True)
class Bytes:
    """A text."""

    text: bytes


@dataclass(frozen=True)
class OneOf:
    """A text of a set, each character written in one of some ways.

    Attributes:
        texts: The set.
        ways: How its characters are written.
        tails: A state of the set and what may follow there, without calls, to the end.
    """

    texts: Texts
    ways: Ways = utf8_sequences
    tails: tuple[tuple[int, Part], ...] = ()


@dataclass(frozen=True)
class Seq:
    """Parts one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Alt:
    """One of some parts; none of them: no text at all."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Rep:
    """A part, again and again.

    Attributes:
        body: The part.
        low: The least number.
        high: The most; None for no bound.
    """

    body: Part
    low: int
    high: int | None


@dataclass(frozen=True)
class Call:
    """A rule, by its number."""

    rule: int


@dataclass(frozen=True)
class Net:
    """Parts between numbered places, from the start to the end.

    Attributes:
        edges: (place, part, next place). None leads to the first place, none begins at the last.
        start: The first place.
        end: The last place.
    """

    edges: tuple[tuple[int, Part, int], ...]
    start: int
    end: int


Part = Bytes | OneOf | Seq | Alt | Rep | Call | Net
NO_TEXT = Seq(())


def seq(*parts: Part) -> Part:
    """Return parts one after the other."""
    return parts[0] if len(parts) == 1 else Seq(parts)


def alt(parts: Iterable[Part]) -> Part:
    """Return one of some parts."""
    found = tuple(parts)
    return found[0] if len(found) == 1 else Alt(found)
