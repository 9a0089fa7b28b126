"""Sequences of cycles as automata: each position reads one cycle, on which its condition holds.

An automaton has no moves without reading (Glushkov, 1961), so that its positions are the registers
of a circuit that follows a sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count, product

from hagane.symbolic.logic import both
from hagane.symbolic.term import FALSE, TRUE, Term

_MOST = 256
_numbers = count()


class TooManyPositions(Exception):
    """A sequence of more positions than are followed."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence.

    Attributes:
        conditions: The condition on the cycle that each position reads.
        first: The positions that may read the first cycle.
        last: The positions that may read the last one.
        follow: The positions that may read the cycle after each position's.
        empty: Whether the sequence may read no cycle at all.
    """

    conditions: Mapping[int, Term]
    first: frozenset[int]
    last: frozenset[int]
    follow: Mapping[int, frozenset[int]]
    empty: bool = False


def cycle(condition: Term) -> Sequence:
    """Return the sequence of one cycle."""
    at = next(_numbers)
    one = frozenset((at,))
    return Sequence({at: condition}, one, one, {at: frozenset()})


def copied(a: Sequence) -> Sequence:
    """Return the same sequence with positions of its own."""
    new = {at: next(_numbers) for at in a.conditions}

    def renamed(places: Iterable[int]) -> frozenset[int]:
        return frozenset(new[at] for at in places)

    return Sequence(
        {new[at]: condition for at, condition in a.conditions.items()},
        renamed(a.first),
        renamed(a.last),
        {new[at]: renamed(to) for at, to in a.follow.items()},
        a.empty,
    )


def after(a: Sequence, b: Sequence) -> Sequence:
    """Return ``a ##1 b``."""
    follow = {**a.follow, **b.follow}
    for at in a.last:
        follow[at] |= b.first
    return _checked(
        Sequence(
            {**a.conditions, **b.conditions},
            a.first | b.first if a.empty else a.first,
            b.last | a.last if b.empty else b.last,
            follow,
            a.empty and b.empty,
        )
    )


def fused(a: Sequence, b: Sequence) -> Sequence:
    """Return ``a ##0 b``: the last cycle of one is the first of the other."""
    conditions = {**a.conditions, **b.conditions}
    follow = {**a.follow, **b.follow}
    first, last = set(a.first), set(b.last)
    for left, right in product(sorted(a.last), sorted(b.first)):
        at = next(_numbers)
        conditions[at] = both(a.conditions[left], b.conditions[right])
        follow[at] = b.follow[right]
        for before in a.follow:
            if left in a.follow[before]:
                follow[before] |= {at}
        if left in a.first:
            first.add(at)
        if right in b.last:
            last.add(at)
    return _checked(Sequence(conditions, frozenset(first), frozenset(last), follow))


def alternative(a: Sequence, b: Sequence) -> Sequence:
    """Return ``a or b``."""
    return _checked(
        Sequence(
            {**a.conditions, **b.conditions},
            a.first | b.first,
            a.last | b.last,
            {**a.follow, **b.follow},
            a.empty or b.empty,
        )
    )


def repeated(a: Sequence, low: int, high: int | None) -> Sequence:
    """Return ``a[*low:high]``; None is no bound."""
    if len(a.conditions) * max(low, high or 0) > _MOST:
        raise TooManyPositions
    whole = nothing()
    for _ in range(low):
        whole = after(whole, copied(a))
    if high is None:
        loop = copied(a)
        follow = {at: to | loop.first if at in loop.last else to for at, to in loop.follow.items()}
        return after(whole, Sequence(loop.conditions, loop.first, loop.last, follow, True))
    rest = nothing()
    for _ in range(high - low):
        one = after(copied(a), rest)
        rest = Sequence(one.conditions, one.first, one.last, one.follow, True)
    return after(whole, rest)


def nothing() -> Sequence:
    """Return the sequence of no cycle."""
    return Sequence({}, frozenset(), frozenset(), {}, True)


def anything(low: int, high: int | None) -> Sequence:
    """Return some number of cycles without conditions."""
    return repeated(cycle(TRUE), low, high)


def delayed(a: Sequence | None, low: int, high: int | None, b: Sequence) -> Sequence:
    """Return ``a ##[low:high] b``; without an ``a`` the delay counts from the first cycle."""
    if a is None:
        return after(anything(low, high), b)
    if low > 0:
        between = anything(low - 1, None if high is None else high - 1)
        return after(a, after(between, b))
    at_once = fused(a, b)
    if high == 0:
        return at_once
    return alternative(at_once, delayed(copied(a), 1, high, copied(b)))


def together(a: Sequence, b: Sequence) -> Sequence:
    """Return ``a intersect b``: both read the same cycles."""
    numbers: dict[tuple[int, int], int] = {}

    def pairs(left: Iterable[int], right: Iterable[int]) -> frozenset[int]:
        return frozenset(numbers.setdefault(pair, next(_numbers)) for pair in product(left, right))

    first = pairs(a.first, b.first)
    follow: dict[int, frozenset[int]] = {}
    waiting = list(numbers)
    while waiting:
        if len(numbers) > _MOST:
            raise TooManyPositions
        left, right = waiting.pop()
        known = set(numbers)
        follow[numbers[left, right]] = pairs(a.follow[left], b.follow[right])
        waiting += [pair for pair in numbers if pair not in known]
    return trimmed(
        Sequence(
            {at: both(a.conditions[p], b.conditions[q]) for (p, q), at in numbers.items()},
            first,
            frozenset(at for (p, q), at in numbers.items() if p in a.last and q in b.last),
            follow,
            a.empty and b.empty,
        )
    )


def trimmed(a: Sequence) -> Sequence:
    """Return a sequence without positions from which it cannot be met."""
    alive = {at for at in a.last if a.conditions[at] is not FALSE}
    waiting = list(alive)
    into: dict[int, list[int]] = {}
    for at, to in a.follow.items():
        for each in to:
            into.setdefault(each, []).append(at)
    while waiting:
        for at in into.get(waiting.pop(), ()):
            if at not in alive and a.conditions[at] is not FALSE:
                alive.add(at)
                waiting.append(at)
    return Sequence(
        {at: condition for at, condition in a.conditions.items() if at in alive},
        a.first & alive,
        a.last & alive,
        {at: to & alive for at, to in a.follow.items() if at in alive},
        a.empty,
    )


def all_of(a: Sequence, b: Sequence) -> Sequence:
    """Return ``a and b``: it ends where the later one does."""
    return alternative(
        together(a, after(copied(b), anything(0, None))),
        together(after(copied(a), anything(0, None)), b),
    )


def within(a: Sequence, b: Sequence) -> Sequence:
    """Return ``a within b``."""
    return together(after(anything(0, None), after(a, anything(0, None))), b)


def throughout(condition: Term, a: Sequence) -> Sequence:
    """Return ``condition throughout a``."""
    held = {at: both(condition, each) for at, each in a.conditions.items()}
    return Sequence(held, a.first, a.last, a.follow, a.empty)


def _checked(a: Sequence) -> Sequence:
    if len(a.conditions) > _MOST:
        raise TooManyPositions
    return a
