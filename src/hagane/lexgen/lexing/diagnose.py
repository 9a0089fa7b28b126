"""Suspicious parts of a lexer, found on its automaton, with a text that shows each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hagane.lexgen.automata.dfa import Dfa
from hagane.lexgen.automata.nfa import Accept
from hagane.lexgen.expressions.charset import END, Ranges, contains
from hagane.lexgen.expressions.syntax import matches_empty
from hagane.lexgen.lexing.compile import Compiled
from hagane.lexgen.lexing.specification import INITIAL


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    ``kind`` is ``never-matches``, ``matches-empty``, ``cannot-be-left``, ``never-entered`` or
    ``ambiguous``; ``witness`` is a text that shows it; ``other`` names the other rule.
    """

    kind: str
    message: str
    where: str = ""
    rule: str = ""
    other: str | None = None
    witness: str | None = None


def diagnose(compiled: Compiled, ambiguities: bool = False) -> list[Diagnostic]:
    """Return the findings about a lexer, in the order of its rules.

    Args:
        compiled: The lexer.
        ambiguities: Also list each pair of rules that match a common text.
    """
    found = [*_never_matching(compiled), *_matching_empty(compiled), *_conditions(compiled)]
    if ambiguities:
        found += _ambiguities(compiled)
    return found


def _never_matching(compiled: Compiled) -> Iterable[Diagnostic]:
    full, rules = compiled.full, compiled.specification.rules
    entered = {to for row in full.delta for to in row if to >= 0}  # by a text that is not empty
    winners = {full.accepts[state][0].rule for state in entered if full.accepts[state]}
    for number, rule in enumerate(rules):
        if number in winners:
            continue
        shown = shortest(full, lambda accepts, n=number: any(a.rule == n for a in accepts))  # type: ignore[misc]
        if shown is None:
            message = f"rule {rule.label} can never match: no text fits its expression"
            yield Diagnostic("never-matches", message, rule.where, rule.label)
            continue
        witness, accepts = shown
        shadow = rules[accepts[0].rule].label
        message = (
            f"rule {rule.label} can never match: rule {shadow} comes first and takes all its "
            f"texts, for instance {witness!r}; move it up or drop it"
        )
        yield Diagnostic("never-matches", message, rule.where, rule.label, shadow, witness)


def _matching_empty(compiled: Compiled) -> Iterable[Diagnostic]:
    for rule in compiled.specification.rules:
        if not any(matches_empty(branch.body) for branch in rule.pattern.branches):
            continue
        message = (
            f"rule {rule.label} matches the empty string, which is never a token: only its other "
            "matches count; use + for *, or make a part of it obligatory"
        )
        yield Diagnostic("matches-empty", message, rule.where, rule.label, None, "")


def _conditions(compiled: Compiled) -> Iterable[Diagnostic]:
    specification = compiled.specification
    actions = [rule.action for rule in specification.rules]
    free = any(action.code or action.function for action in actions)
    entered = {name for action in actions for name in (action.begin, action.push)}
    for (name, exclusive), active in zip(
        specification.conditions.items(), specification.active(), strict=True
    ):
        if name == INITIAL:
            continue
        own = [specification.rules[number].action for number in active]
        if name in specification.at_end:
            own.append(specification.at_end[name])
        kind = "exclusive" if exclusive else "inclusive"
        if not any(
            a.pop or a.code or a.function or a.push or a.begin not in (None, name) for a in own
        ):
            message = (
                f"the {kind} start condition '{name}' cannot be left: none of its {len(active)} "
                "rules begins another condition or pops"
            )
            yield Diagnostic("cannot-be-left", message, specification.source, name)
        if name not in entered and not free:
            message = f"the {kind} start condition '{name}' is never entered"
            yield Diagnostic("never-entered", message, specification.source, name)


def _ambiguities(compiled: Compiled) -> Iterable[Diagnostic]:
    full, rules = compiled.full, compiled.specification.rules
    pairs = {
        (a.rule, b.rule)
        for accepts in full.accepts
        for a in accepts
        for b in accepts
        if a.rule < b.rule
    }
    for first, second in sorted(pairs):
        shown = shortest(
            full,
            lambda accepts, a=first, b=second: {a, b} <= {each.rule for each in accepts},  # type: ignore[misc]
        )
        if shown is None:
            continue
        a, b = rules[first].label, rules[second].label
        message = f"rules {a} and {b} both match {shown[0]!r}; the first one wins"
        yield Diagnostic("ambiguous", message, rules[second].where, b, a, shown[0])


def shortest(
    dfa: Dfa, wanted: Callable[[tuple[Accept, ...]], bool]
) -> tuple[str, tuple[Accept, ...]] | None:
    """Return a shortest text, not empty, after which the automaton accepts something wanted."""
    members = [_sample(symbols) for symbols in dfa.alphabet.members()]
    seen = {state: "" for row in dfa.starts for state in row if state >= 0}
    order = list(seen)
    for state in order:  # grows while it runs
        for id, to in sorted(enumerate(dfa.delta[state]), key=lambda move: members[move[0]]):
            if to >= 0 and wanted(dfa.accepts[to]):
                return seen[state] + members[id], dfa.accepts[to]
            if to >= 0 and to not in seen:
                seen[to] = seen[state] + members[id]
                order.append(to)
    return None


def _sample(symbols: Ranges) -> str:
    """Return a member that reads well; the end of the input is no character."""
    for char in "a0A_ ":
        if contains(symbols, ord(char)):
            return char
    for low, high in symbols:
        for code in range(max(low, 33), min(high, 126) + 1):
            return chr(code)
    return "" if symbols[0][0] == END else chr(symbols[0][0])
