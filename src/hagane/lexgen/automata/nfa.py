"""Thompson's construction: syntax trees to a nondeterministic automaton with empty moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hagane.lexgen.errors import SpecificationError
from hagane.lexgen.expressions.charset import Ranges
from hagane.lexgen.expressions.syntax import (
    Alternate,
    Assertion,
    Branch,
    Chars,
    Concat,
    Look,
    Node,
    Repeat,
    width,
)

MAX_STATES = 400_000


class Accept(NamedTuple):
    """The mark of an accepting state: the rule, and how much of the match the token keeps.

    ``back`` symbols at the end belong to the trailing context. Where that differs from match to
    match it is None, and the token is the first ``head`` symbols; where ``head`` is None too, the
    place is found by running the two parts (see ``TrailingContext``).
    """

    rule: int
    back: int | None = 0
    head: int | None = None


@dataclass(slots=True)
class Nfa:
    """States numbered from 0, in parallel lists.

    ``chars[s]`` are moves on a set of symbols, ``empty[s]`` moves on nothing, ``looks[s]`` moves on
    nothing under a condition, ``accepts`` the accepting states.
    """

    chars: list[list[tuple[Ranges, int]]] = field(default_factory=list)
    empty: list[list[int]] = field(default_factory=list)
    looks: list[list[tuple[Look, int]]] = field(default_factory=list)
    accepts: dict[int, Accept] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.chars)

    def add(self) -> int:
        """Add a state and return its number."""
        if len(self.chars) >= MAX_STATES:
            raise SpecificationError(
                f"the automaton would have more than {MAX_STATES} states: lower the counts in "
                "repetitions like {n,m}, which are unrolled"
            )
        self.chars.append([])
        self.empty.append([])
        self.looks.append([])
        return len(self.chars) - 1


def build_nfa(rules: Sequence[Sequence[Branch]], groups: Sequence[Sequence[int]] = ()) -> Nfa:
    """Return the automaton of numbered rules.

    Args:
        rules: The branches of each rule.
        groups: Which rules are active in each start condition; one start state is made for each.
            By default one condition has all rules.
    """
    nfa = Nfa()
    entries = [
        [_rule_branch(nfa, number, branch) for branch in rule] for number, rule in enumerate(rules)
    ]
    for active in groups or [range(len(rules))]:
        start = nfa.add()
        nfa.starts.append(start)
        for number in active:
            nfa.empty[start].extend(entries[number])
    return nfa


def _rule_branch(nfa: Nfa, number: int, branch: Branch) -> int:
    start, end = nfa.add(), nfa.add()
    if branch.following is None:
        _add(nfa, branch.body, start, end)
        nfa.accepts[end] = Accept(number)
        return start
    middle = nfa.add()
    _add(nfa, branch.body, start, middle)
    _add(nfa, branch.following, middle, end)
    back = width(branch.following)
    head = width(branch.body) if back is None else None
    nfa.accepts[end] = Accept(number, back, head)
    return start


def _add(nfa: Nfa, node: Node, start: int, end: int) -> None:
    """Connect two states by everything that the node matches."""
    match node:
        case Chars(symbols):
            if symbols:
                nfa.chars[start].append((symbols, end))
        case Assertion(look):
            nfa.looks[start].append((look, end))
        case Concat(parts):
            for index, part in enumerate(parts):
                following = end if index == len(parts) - 1 else nfa.add()
                _add(nfa, part, start, following)
                start = following
            if not parts:
                nfa.empty[start].append(end)
        case Alternate(parts):
            for part in parts:
                # States of their own keep a loop in one part out of the others.
                first, last = nfa.add(), nfa.add()
                nfa.empty[start].append(first)
                nfa.empty[last].append(end)
                _add(nfa, part, first, last)
        case Repeat():
            _add_repeat(nfa, node, start, end)


def _add_repeat(nfa: Nfa, node: Repeat, start: int, end: int) -> None:
    at = start
    for _ in range(node.low):
        following = nfa.add()
        _add(nfa, node.body, at, following)
        at = following
    if node.high is None:
        loop, last = nfa.add(), nfa.add()
        nfa.empty[at].append(loop)
        nfa.empty[loop].append(end)
        nfa.empty[last].append(loop)
        _add(nfa, node.body, loop, last)
        return
    for _ in range(node.high - node.low):
        nfa.empty[at].append(end)
        first, following = nfa.add(), nfa.add()
        nfa.empty[at].append(first)
        _add(nfa, node.body, first, following)
        at = following
    nfa.empty[at].append(end)
