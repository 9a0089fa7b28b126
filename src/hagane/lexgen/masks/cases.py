"""Values that a JSON schema admits, by type: a schema is one of several cases.

A case speaks of values inside by conjunctions of schemas, which are looked into when they are
needed, so that schemas may refer to themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from hagane.lexgen.masks.numbers import Numbers
from hagane.lexgen.masks.texts import ANYTHING, Texts

# Schemas that all hold, by number; False: its contrary.
Conjunction = frozenset[tuple[int, bool]]
TRUE: Conjunction = frozenset()
FALSE: Conjunction = frozenset({(-1, True)})


@dataclass(frozen=True)
class Null:
    """``null``."""

    weak: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Booleans:
    """Some truth values."""

    values: frozenset[bool] = frozenset({False, True})
    weak: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Strings:
    """Texts of a set, of ``low`` to ``high`` characters."""

    texts: Texts = ANYTHING
    low: int = 0
    high: int | None = None
    weak: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Arrays:
    """Arrays of ``low`` to ``high`` items: those of ``prefix`` in their places, then ``rest``.

    Of ``named`` ones the schema speaks of the first items alone: others are written only if there
    must be more.
    """

    prefix: tuple[Conjunction, ...] = ()
    rest: Conjunction = TRUE
    low: int = 0
    high: int | None = None
    named: bool = False
    weak: bool = field(default=False, compare=False)

    def item(self, place: int) -> Conjunction:
        """Return the conditions on the item at a place."""
        return self.prefix[place] if place < len(self.prefix) else self.rest


@dataclass(frozen=True)
class Objects:
    """Objects of ``low`` to ``high`` members.

    Attributes:
        members: Conditions on the values of named members, in the order of the schema.
        required: The members that must be there.
        others: Disjoint sets of names that together are all, with the constraints of members of
            such names that are not among ``members``, and whether a keyword speaks of them.
        named: The schema names members; then others are written only if it is ``open``.
        open: The schema speaks of other members.
        low: The least number of members.
        high: The most.
    """

    members: tuple[tuple[str, Conjunction], ...] = ()
    required: frozenset[str] = frozenset()
    others: tuple[tuple[Texts, Conjunction, bool], ...] = ((ANYTHING, TRUE, False),)
    named: bool = False
    open: bool = False
    low: int = 0
    high: int | None = None
    weak: bool = field(default=False, compare=False)

    def member(self, name: str) -> Conjunction:
        """Return the conditions on the value of a member."""
        held = self._by_name.get(name)
        if held is not None:
            return held
        for names, value, _ in self.others:
            if name in names:
                return value
        return TRUE

    @cached_property
    def _by_name(self) -> dict[str, Conjunction]:
        return dict(reversed(self.members))


Case = Null | Booleans | Numbers | Strings | Arrays | Objects


_ALL: tuple[Case, ...] = (Numbers(), Strings(), Arrays(), Objects())


def both(a: Case, b: Case) -> Case:
    """Return the values in both of two cases of one type."""
    weak = a.weak or b.weak
    for case, other in ((a, b), (b, a)):
        if case in _ALL:
            return other if other.weak == weak else replace(other, weak=weak)
    match a, b:
        case Null(), Null():
            return Null(weak)
        case Booleans(), Booleans():
            return Booleans(a.values & b.values, weak)
        case Numbers(), Numbers():
            return a & b
        case Strings(), Strings():
            texts = a.texts if b.texts is ANYTHING else b.texts if a.texts is ANYTHING else None
            return Strings(
                a.texts & b.texts if texts is None else texts,
                max(a.low, b.low),
                _lower(a.high, b.high),
                weak,
            )
        case Arrays(), Arrays():
            places = range(max(len(a.prefix), len(b.prefix)))
            return Arrays(
                tuple(a.item(place) | b.item(place) for place in places),
                a.rest | b.rest,
                max(a.low, b.low),
                _lower(a.high, b.high),
                (a.named and b.named) or ((a.named or b.named) and TRUE in (a.rest, b.rest)),
                weak,
            )
        case Objects(), Objects():
            return _both_objects(a, b, weak)
    raise AssertionError("cases of different types have no values in common")


def _both_objects(a: Objects, b: Objects, weak: bool) -> Objects:
    names = dict.fromkeys(name for name, _ in a.members)
    more = dict.fromkeys(name for name, _ in b.members)
    # What names a few members, as a contrary does, leaves the order to what names them all.
    names = more if names.keys() <= more.keys() else names | more
    others = [
        (common, left | right, known or also)
        for texts, left, known in a.others
        for those, right, also in b.others
        if not (common := _common(texts, those)).empty
    ]
    return Objects(
        tuple((name, a.member(name) | b.member(name)) for name in names),
        a.required | b.required,
        tuple(others),
        a.named or b.named,
        a.open or b.open,
        max(a.low, b.low),
        _lower(a.high, b.high),
        weak,
    )


def _common(a: Texts, b: Texts) -> Texts:
    return b if a is ANYTHING else a if b is ANYTHING else a & b


def _lower(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def is_possible(case: Case, possible: Callable[[Conjunction], bool]) -> bool:
    """Return whether there may be a value in a case.

    Args:
        case: The case.
        possible: Whether there may be a value inside.
    """
    match case:
        case Null():
            return True
        case Booleans(values):
            return bool(values)
        case Numbers():
            return case.possible
        case Strings(texts, low, high):
            return not texts.empty and (high is None or low <= high)
        case Arrays(_, _, low, high):
            fits = high is None or low <= high
            looked = range(min(low, len(case.prefix) + 1))
            return fits and all(possible(case.item(place)) for place in looked)
        case Objects(_, required, _, _, _, low, high):
            fits = high is None or max(low, len(required)) <= high
            return fits and all(possible(case.member(name)) for name in required)


def without_others(case: Objects) -> Objects:
    """Return a case whose objects have no members that no keyword speaks of."""
    others = tuple((names, held if known else FALSE, True) for names, held, known in case.others)
    return replace(case, others=others, open=True)
