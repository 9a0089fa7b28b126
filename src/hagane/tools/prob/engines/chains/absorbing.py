"""Markov chains with rewards, solved exactly: strongly connected components and elimination.

Of a chain that may run for ever the expected number of visits to each state is the least solution
of ``x = b + P' x`` (Kemeny and Snell, Finite Markov Chains, 1960, theorem 3.2.4). Components are
solved one after the other, each by eliminating the state that adds the fewest transitions.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

# Probability, next state, the reward of the transition.
Transition = tuple[Fraction, int, int]


@dataclass(frozen=True, slots=True)
class Visits:
    """How a chain that begins in its first state runs.

    Attributes:
        expected: How often each state is visited on average; 0 for states that no run leaves again.
        rewards: For each state, the sum over its visits of the reward until then, on average.
        unending: The probability of the runs that never end.
        pivots: The factors of the determinants of the equations that were solved.
    """

    expected: tuple[Fraction, ...]
    rewards: tuple[Fraction, ...]
    unending: Fraction
    pivots: tuple[Fraction, ...] = ()


class TooMuchWork(Exception):
    """A chain takes more steps than it may."""


def visits(
    transitions: Sequence[Sequence[Transition]],
    reward: int,
    restarts: frozenset[int],
    steps: int | None = None,
) -> Visits:
    """Return the expected visits of a chain.

    Args:
        transitions: Of each state; the probabilities of one state sum to 1, or there are none and
            runs end there. The first state is the start.
        reward: The reward at the start.
        restarts: States behind which the reward counts from 0 again.
        steps: How many sums the elimination of a component may take.

    Raises:
        TooMuchWork: It takes more.
    """
    count = len(transitions)
    expected, rewards = [Fraction(0)] * count, [Fraction(0)] * count
    if count:
        expected[0], rewards[0] = Fraction(1), Fraction(reward)
    unending = Fraction(0)
    pivots: list[Fraction] = []
    for component in components([[target for _, target, _ in each] for each in transitions]):
        inside = set(component)
        looped = any(target in inside for state in component for _, target, _ in transitions[state])
        if looped:
            if all(target in inside for state in component for _, target, _ in transitions[state]):
                unending += sum((expected[state] for state in component), Fraction(0))
                for state in component:
                    expected[state] = rewards[state] = Fraction(0)
                continue
            pivots += _solve(component, transitions, expected, rewards, restarts, steps)
        for state in component:
            weight = expected[state]
            carried = Fraction(0) if state in restarts else rewards[state]
            for share, target, gain in transitions[state]:
                if target not in inside or not looped:
                    expected[target] += weight * share
                    if carried or gain:
                        rewards[target] += (carried + weight * gain) * share
    return Visits(tuple(expected), tuple(rewards), unending, tuple(pivots))


def _solve(
    component: Sequence[int],
    transitions: Sequence[Sequence[Transition]],
    expected: list[Fraction],
    rewards: list[Fraction],
    restarts: frozenset[int],
    most: int | None,
) -> list[Fraction]:
    """Put the visits of a component in the place of the visits that enter it from outside.

    Returns:
        The pivots of the elimination.
    """
    inside = set(component)
    steps = _eliminated(component, inside, transitions, most)
    _substitute(steps, expected)
    for state in component:
        for share, target, gain in transitions[state]:
            if gain and target in inside:
                rewards[target] += expected[state] * share * gain
    # A restart inside a component would make another matrix; claims are reached once a run.
    assert not inside & restarts
    if any(rewards[state] for state in component):
        _substitute(steps, rewards)
    return [1 / step.scale for step in steps]


@dataclass(frozen=True, slots=True)
class _Step:
    """A state that was eliminated, with its transitions to and from the states that were left."""

    state: int
    scale: Fraction
    before: tuple[tuple[int, Fraction], ...]
    after: tuple[tuple[int, Fraction], ...]


def _eliminated(
    component: Sequence[int],
    inside: set[int],
    transitions: Sequence[Sequence[Transition]],
    most: int | None,
) -> list[_Step]:
    after: dict[int, dict[int, Fraction]] = {state: {} for state in component}
    before: dict[int, dict[int, Fraction]] = {state: {} for state in component}

    def add(source: int, target: int, share: Fraction) -> None:
        after[source][target] = after[source].get(target, Fraction(0)) + share
        before[target][source] = after[source][target]

    for state in component:
        for share, target, _ in transitions[state]:
            if target in inside:
                add(state, target, share)
    queue = [(len(before[state]) * len(after[state]), state) for state in component]
    heapq.heapify(queue)
    steps: list[_Step] = []
    sums = 0
    while queue:
        cost, state = heapq.heappop(queue)
        if state not in after:
            continue
        now = len(before[state]) * len(after[state])
        if now > cost:
            heapq.heappush(queue, (now, state))
            continue
        outs, ins = after.pop(state), before.pop(state)
        scale = 1 / (1 - outs.pop(state, Fraction(0)))
        ins.pop(state, None)
        sums += len(ins) * len(outs)
        if most is not None and sums > most:
            raise TooMuchWork
        for source in ins:
            del after[source][state]
        for target in outs:
            del before[target][state]
        for source, share in ins.items():
            scaled = share * scale
            for target, onward in outs.items():
                add(source, target, scaled * onward)
        steps.append(_Step(state, scale, tuple(ins.items()), tuple(outs.items())))
    return steps


def _substitute(steps: Sequence[_Step], values: list[Fraction]) -> None:
    """Solve ``x = values + P' x`` for the states of the steps, in place."""
    for step in steps:
        amount = values[step.state] * step.scale
        if amount:
            for target, share in step.after:
                values[target] += amount * share
    for step in reversed(steps):
        total = values[step.state]
        for source, share in step.before:
            total += values[source] * share
        values[step.state] = total * step.scale


def components(targets: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components of a graph, each before its successors.

    The algorithm is Tarjan's (1972), without recursion.
    """
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    held: list[int] = []
    open_: set[int] = set()
    found: list[list[int]] = []
    for root in range(len(targets)):
        if root in order:
            continue
        work = [(root, 0)]
        while work:
            state, at = work.pop()
            if at == 0:
                order[state] = low[state] = len(order)
                held.append(state)
                open_.add(state)
            for index in range(at, len(targets[state])):
                target = targets[state][index]
                if target not in order:
                    work += [(state, index + 1), (target, 0)]
                    break
                if target in open_:
                    low[state] = min(low[state], order[target])
            else:
                if low[state] == order[state]:
                    component: list[int] = []
                    while not component or component[-1] != state:
                        component.append(held.pop())
                    open_.difference_update(component)
                    found.append(component)
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[state])
    return found[::-1]
