"""``Regex``: one regular expression as a minimal automaton."""

from __future__ import annotations

from functools import cached_property

from hagane.lexgen.charset import END
from hagane.lexgen.determinise import determinise
from hagane.lexgen.dfa import Dfa, minimise
from hagane.lexgen.nfa import build_nfa
from hagane.lexgen.parse import Dialect, parse


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

    def longest(self, text: str) -> int | None:
        """Return the length of the longest match at the start of ``text``; None without one."""
        dfa = self.dfa
        state, at, best = dfa.starts[0][0], 0, None
        while state >= 0:
            if dfa.accepts[state]:
                back = dfa.accepts[state][0].back
                if back is not None:
                    best = at - back if best is None else max(best, at - back)
            if at > len(text):
                break
            symbol = ord(text[at]) if at < len(text) else END
            state = dfa.delta[state][dfa.alphabet.class_of(symbol)]
            at += 1
        return best

    def fullmatch(self, text: str) -> bool:
        """Return whether the whole text matches."""
        return self.longest(text) == len(text)
