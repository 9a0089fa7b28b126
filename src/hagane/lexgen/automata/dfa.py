"""Deterministic automata over classes of symbols, and their minimisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hagane.lexgen.automata.alphabet import Alphabet
from hagane.lexgen.automata.nfa import Accept

if TYPE_CHECKING:
    from hagane.lexgen.automata.determinise import Before

DEAD = -1


@dataclass(frozen=True, slots=True)
class Dfa:
    """A partial deterministic automaton: ``delta[state][class]`` is a state, or -1 for none.

    ``accepts[state]`` lists the rules that the state accepts, best first; ``starts[k][c]`` is the
    start state of condition ``k`` after a place of kind ``contexts[c]``, or -1 where nothing can
    match.
    """

    alphabet: Alphabet
    delta: list[list[int]]
    accepts: list[tuple[Accept, ...]]
    starts: list[list[int]]
    contexts: tuple[Before, ...]
    minimized: bool = False

    @property
    def n_states(self) -> int:
        """The number of states; the dead state, from which nothing can match, is not counted."""
        return len(self.delta)

    @property
    def n_classes(self) -> int:
        """The number of classes of characters (the end of the input is not counted)."""
        return len(set(self.alphabet.ids[:-1]))

    def trimmed(self) -> Dfa:
        """Return the automaton without states that cannot be reached or cannot accept."""
        alive = _alive(self)
        reachable = [
            state
            for state in _reachable(self.delta, [s for row in self.starts for s in row])
            if state in alive
        ]
        number = {state: index for index, state in enumerate(reachable)}
        return replace(
            self,
            delta=[[number.get(to, DEAD) for to in self.delta[state]] for state in reachable],
            accepts=[self.accepts[state] for state in reachable],
            starts=[[number.get(state, DEAD) for state in row] for row in self.starts],
        )

    def winners_only(self) -> Dfa:
        """Return the automaton whose states accept their best rule only."""
        return replace(self, accepts=[accepts[:1] for accepts in self.accepts]).trimmed()


def _reachable(delta: Sequence[Sequence[int]], starts: Sequence[int]) -> list[int]:
    """Return the states in the order of a breadth-first walk, which makes numbering canonical."""
    order = list(dict.fromkeys(state for state in starts if state >= 0))
    seen = set(order)
    for state in order:  # grows while it runs
        for to in delta[state]:
            if to >= 0 and to not in seen:
                seen.add(to)
                order.append(to)
    return order


def _alive(dfa: Dfa) -> set[int]:
    before: list[set[int]] = [set() for _ in dfa.delta]
    for state, row in enumerate(dfa.delta):
        for to in set(row):
            if to >= 0:
                before[to].add(state)
    stack = [state for state, accepts in enumerate(dfa.accepts) if accepts]
    alive = set(stack)
    while stack:
        for state in before[stack.pop()]:
            if state not in alive:
                alive.add(state)
                stack.append(state)
    return alive


def minimise(dfa: Dfa) -> Dfa:
    """Return the smallest automaton with the same matches, by Hopcroft's partition refinement.

    Classes of characters that the smaller automaton no longer tells apart are joined.

    Source: J. Hopcroft, "An n log n algorithm for minimizing states in a finite automaton" (1971).
    The dead state needs no block: every block of the first partition is a splitter once.
    """
    dfa = dfa.trimmed()
    inverse: list[dict[int, list[int]]] = [{} for _ in range(dfa.alphabet.n_classes)]
    for state, row in enumerate(dfa.delta):
        for id, to in enumerate(row):
            if to >= 0:
                inverse[id].setdefault(to, []).append(state)
    first: dict[tuple[Accept, ...], set[int]] = {}
    for state, accepts in enumerate(dfa.accepts):
        first.setdefault(accepts, set()).add(state)
    blocks = list(first.values())
    block_of = [0] * dfa.n_states
    for number, block in enumerate(blocks):
        for state in block:
            block_of[state] = number
    waiting = set(range(len(blocks)))
    while waiting:
        splitter = list(blocks[waiting.pop()])
        for sources in inverse:
            hit: dict[int, set[int]] = {}
            for state in splitter:
                for source in sources.get(state, ()):
                    hit.setdefault(block_of[source], set()).add(source)
            for number, inside in hit.items():
                block = blocks[number]
                if len(inside) == len(block):
                    continue
                rest = block - inside
                small, large = sorted((inside, rest), key=len)
                blocks[number] = large
                blocks.append(small)
                for state in small:
                    block_of[state] = len(blocks) - 1
                # A waiting block is replaced by both halves; otherwise the smaller one is enough.
                waiting.add(len(blocks) - 1)
    members = [next(iter(block)) for block in blocks]
    smaller = replace(
        dfa,
        delta=[[block_of[to] if to >= 0 else DEAD for to in dfa.delta[s]] for s in members],
        accepts=[dfa.accepts[state] for state in members],
        starts=[[block_of[s] if s >= 0 else DEAD for s in row] for row in dfa.starts],
        minimized=True,
    )
    return _join_classes(smaller.trimmed())


def _join_classes(dfa: Dfa) -> Dfa:
    """Join classes with equal columns; the class of the end stays apart."""
    columns: dict[object, int] = {}
    groups = []
    kept = []
    for id in range(dfa.alphabet.n_classes):
        column = (tuple(row[id] for row in dfa.delta), id == dfa.alphabet.end_class)
        if column not in columns:
            columns[column] = len(columns)
            kept.append(id)
        groups.append(columns[column])
    return replace(
        dfa,
        alphabet=dfa.alphabet.merged(groups),
        delta=[[row[id] for id in kept] for row in dfa.delta],
    )
