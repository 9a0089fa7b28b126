"""``Lexer``: a lexer made from rules, ready to use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from hagane.lexgen.charset import END
from hagane.lexgen.determinise import determinise
from hagane.lexgen.dfa import Dfa, minimise
from hagane.lexgen.errors import SpecificationError
from hagane.lexgen.nfa import build_nfa
from hagane.lexgen.parse import Dialect, parse
from hagane.lexgen.specification import ERROR, Action, Rule, Specification


class Token(NamedTuple):
    """One token: ``text`` is ``source[start:end]``; ``line`` and ``column`` count from 1."""

    kind: str
    text: str
    start: int
    end: int
    line: int
    column: int


class Lexer:
    """Splits text into tokens: the longest match, and of those the first rule."""

    def __init__(self, specification: Specification):
        self.specification = specification
        nfa = build_nfa(
            [rule.pattern.branches for rule in specification.rules], specification.active()
        )
        self.dfa: Dfa = minimise(determinise(nfa).winners_only())

    @classmethod
    def from_rules(
        cls, rules: Iterable[tuple[str | None, str] | Rule], dialect: Dialect = "python"
    ) -> Lexer:
        """Make a lexer from pairs (kind, regular expression); the kind None skips the match.

        Raises:
            RegexSyntaxError: An expression is malformed.
            SpecificationError: There is no rule, or one is no pair.
        """
        made: list[Rule] = []
        for number, rule in enumerate(rules, 1):
            if isinstance(rule, Rule):
                made.append(rule)
                continue
            if not isinstance(rule, Sequence) or len(rule) != 2:
                raise SpecificationError(
                    f"rule {number}: expected a pair (kind, regular expression), got {rule!r}"
                )
            kind, source = rule
            made.append(Rule(parse(source, dialect), Action(kind), where=f"rule {number}"))
        if not made:
            raise SpecificationError("expected at least one rule, got none")
        return cls(Specification(tuple(made)))

    def tokenize(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a text; what no rule matches comes as tokens of kind ``ERROR``."""
        position, line, line_start, error = 0, 1, 0, -1
        while position < len(text):
            stop, kind = self._match(text, position)
            if stop < 0:
                if error < 0:
                    error = position
                position += 1
                if position < len(text):
                    continue
            if error >= 0:
                end = position
                lost = text[error:end]
                yield Token(ERROR, lost, error, end, line, error - line_start + 1)
                if "\n" in lost:
                    line += lost.count("\n")
                    line_start = error + lost.rindex("\n") + 1
                error = -1
            if stop < 0:
                break
            matched = text[position:stop]
            if kind is not None:
                yield Token(kind, matched, position, stop, line, position - line_start + 1)
            if "\n" in matched:
                line += matched.count("\n")
                line_start = position + matched.rindex("\n") + 1
            position = stop

    def _match(self, text: str, position: int) -> tuple[int, Any]:
        dfa = self.dfa
        state, at = dfa.starts[0][0], position
        best: tuple[int, Any] = (-1, None)
        while state >= 0:
            if dfa.accepts[state] and at > position:
                accept = dfa.accepts[state][0]
                best = (at - (accept.back or 0), self.specification.rules[accept.rule].action.kind)
            if at > len(text):
                break
            symbol = ord(text[at]) if at < len(text) else END
            state = dfa.delta[state][dfa.alphabet.class_of(symbol)]
            at += 1
        return best
