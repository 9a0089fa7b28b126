"""``Regex``: one regular expression as a minimal automaton."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from hagane.lexgen.automata.determinise import Before, determinise
from hagane.lexgen.automata.dfa import Dfa, minimise
from hagane.lexgen.automata.nfa import Accept, build_nfa
from hagane.lexgen.expressions.characters import Dialect
from hagane.lexgen.expressions.charset import END
from hagane.lexgen.expressions.parse import parse
from hagane.lexgen.expressions.syntax import EMPTY, Branch


class Regex:
    """A regular expression, matched by its minimal automaton in one pass.

    Args:
        pattern: The expression.
        dialect: ``python`` (the syntax of ``re``) or ``flex``.

    Raises:
        RegexSyntaxError: The expression is malformed or beyond finite automata.
    """

    def __init__(self, pattern: str, dialect: Dialect = "python"):
        self.pattern = pattern
        self.tree = parse(pattern, dialect)

    @cached_property
    def dfa(self) -> Dfa:
        """The minimal automaton over classes of characters."""
        return minimise(determinise(build_nfa([self.tree.branches])).winners_only())

    @cached_property
    def _parts(self) -> list[tuple[Dfa, Dfa]]:
        """The bodies and contexts of the branches, where the lengths of contexts vary."""
        if all(accept.back is not None for accepts in self.dfa.accepts for accept in accepts):
            return []
        return [
            (_automaton(Branch(branch.body)), _automaton(Branch(branch.following or EMPTY)))
            for branch in self.tree.branches
        ]

    def longest(self, text: str) -> int | None:
        """Return the length of the longest match at the start of ``text``; None without one."""
        if not self._parts:
            ends = [at - (accept.back or 0) for at, accept in _accepted(self.dfa, text, 0)]
            return max(ends, default=None)
        found: list[int] = []
        for body, following in self._parts:
            ends = sorted((at - (a.back or 0) for at, a in _accepted(body, text, 0)), reverse=True)
            for end in ends:
                if next(_accepted(following, text, end), None) is not None:
                    found.append(end)
                    break
        return max(found, default=None)

    def fullmatch(self, text: str) -> bool:
        """Return whether the whole text matches."""
        return self.longest(text) == len(text)


def _automaton(branch: Branch) -> Dfa:
    return minimise(determinise(build_nfa([[branch]])))


def _accepted(dfa: Dfa, text: str, start: int) -> Iterator[tuple[int, Accept]]:
    """Yield ends and rules of the matches of the automaton from a place of the text."""
    row = dfa.starts[0]
    state = row[min(_context(text, start), len(row) - 1)] if start else row[0]
    at = start
    while state >= 0:
        for accept in dfa.accepts[state]:
            yield at, accept
        if at > len(text):
            return
        symbol = ord(text[at]) if at < len(text) else END
        state = dfa.delta[state][dfa.alphabet.class_of(symbol)]
        at += 1


def _context(text: str, at: int) -> Before:
    if text[at - 1] == "\n":
        return Before.NEWLINE
    if text[at - 1] != "_" and not text[at - 1].isalnum():
        return Before.OTHER
    return Before.ASCII_WORD if text[at - 1].isascii() else Before.WORD
