"""The syntax tree of a regular expression."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from hagane.lexgen.expressions.charset import Ranges


class Look(Enum):
    """Conditions on the place between two characters."""

    LINE_START = "^"
    LINE_END = "$"
    TEXT_START = r"\A"
    TEXT_END = r"\Z"
    LAST_LINE_END = "$ of the text"  # at the end, or before a newline that ends the text
    WORD_BOUNDARY = r"\b"
    NO_WORD_BOUNDARY = r"\B"
    ASCII_BOUNDARY = r"\b of ASCII"
    NO_ASCII_BOUNDARY = r"\B of ASCII"


@dataclass(frozen=True, slots=True)
class Chars:
    """One symbol of a set; the empty set matches nothing."""

    symbols: Ranges


@dataclass(frozen=True, slots=True)
class Concat:
    """The parts one after the other; no parts match the empty string."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternate:
    """Any one of the parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body at least ``low`` and at most ``high`` times (None: any number)."""

    body: Node
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition that consumes nothing."""

    look: Look


Node: TypeAlias = Chars | Concat | Alternate | Repeat | Assertion

EMPTY = Concat(())


@dataclass(frozen=True, slots=True)
class Branch:
    """An expression, and the one that must follow it (None: anything may)."""

    body: Node
    following: Node | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """A whole regular expression: its branches, and whether a repetition in it was lazy."""

    source: str
    branches: tuple[Branch, ...]
    lazy: bool = False

    @property
    def has_following(self) -> bool:
        """Whether a branch asks for the text after it."""
        return any(branch.following is not None for branch in self.branches)


def concat(*parts: Node) -> Node:
    """Return the concatenation, flattened."""
    flat: list[Node] = []
    for part in parts:
        if isinstance(part, Concat):
            flat.extend(part.parts)
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else Concat(tuple(flat))


def alternate(*parts: Node) -> Node:
    """Return the alternation."""
    return parts[0] if len(parts) == 1 else Alternate(parts)


def literal(text: str) -> Node:
    """Return the tree that matches exactly this text."""
    return concat(*(Chars(((ord(char), ord(char)),)) for char in text))


def width(node: Node) -> int | None:
    """Return how many symbols every match of the node has, or None where matches differ."""
    match node:
        case Chars():
            return 1
        case Assertion():
            return 0
        case Concat(parts):
            widths = [width(part) for part in parts]
            return None if None in widths else sum(w for w in widths if w is not None)
        case Alternate(parts):
            kinds = {width(part) for part in parts}
            return kinds.pop() if len(kinds) == 1 else None
        case Repeat(body, low, high):
            inner = width(body)
            if inner == 0:
                return 0
            return None if inner is None or low != high else inner * low


def matches_empty(node: Node) -> bool:
    """Return whether the node can match without consuming anything."""
    match node:
        case Chars():
            return False
        case Assertion():
            return True
        case Concat(parts):
            return all(matches_empty(part) for part in parts)
        case Alternate(parts):
            return any(matches_empty(part) for part in parts)
        case Repeat(body, low, _):
            return low == 0 or matches_empty(body)


def without_empty(node: Node) -> Node:
    """Return the tree that matches the same texts, the empty one excepted."""
    if not matches_empty(node):
        return node
    match node:
        case Alternate(parts):
            return alternate(*(without_empty(part) for part in parts))
        case Concat(parts):
            # The first part that consumes something is each one in turn.
            ways = []
            for number, part in enumerate(parts):
                first = (_empty_part(each) for each in parts[:number])
                ways.append(concat(*first, without_empty(part), *parts[number + 1 :]))
            return alternate(*ways) if ways else Chars(())
        case Repeat(body, low, high):
            ways = []
            for number in range(1, max(low, 2) + 1):
                # The first round that consumes something is this one.
                if high is not None and number > high:
                    break
                before = (_empty_part(body),) if number > 1 and matches_empty(body) else ()
                if number > 1 and not before:
                    break
                left = None if high is None else high - number
                rest = Repeat(body, max(low - number, 0), left)
                ways.append(concat(*before, without_empty(body), rest))
            return alternate(*ways) if ways else Chars(())
    return Chars(())


def _empty_part(node: Node) -> Node:
    """Return the conditions under which a node that can match the empty text does so."""
    match node:
        case Concat(parts):
            return concat(*(_empty_part(part) for part in parts))
        case Alternate(parts):
            return alternate(*(_empty_part(part) for part in parts if matches_empty(part)))
        case Repeat(body, low, _):
            return _empty_part(body) if low else EMPTY
    return node
