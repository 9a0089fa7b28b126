"""Values that a JSON schema admits, by type: a schema is one of several cases.

A case speaks of values inside by conjunctions of schemas, which are looked into when they are
needed, so that schemas may refer to themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from hagane.lexgen.masks.schemas.numbers import Numbers
from hagane.lexgen.masks.texts import ANYTHING, Texts

# What schemas say of the type of a case: nothing, that others are meant, or that it may be.
UNSAID, OTHERS, SAID = 0, 1, 2
# Schemas that all hold, by number; False: its contrary.
Conjunction = frozenset[tuple[int, bool]]
TRUE: Conjunction = frozenset()
FALSE: Conjunction = frozenset({(-1, True)})


@dataclass(frozen=True)
class Null:
    """``null``."""

    said: int = field(default=UNSAID, compare=False)


@dataclass(frozen=True)
class Booleans:
    """Some truth values."""

    values: frozenset[bool] = frozenset({False, True})
    said: int = field(default=UNSAID, compare=False)


@dataclass(frozen=True)
class Strings:
    """Texts of a set, of ``low`` to ``high`` characters."""

    texts: Texts = ANYTHING
    low: int = 0
    high: int | None = None
    said: int = field(default=UNSAID, compare=False)


@dataclass(frozen=True)
class Arrays:
    """Arrays of ``low`` to ``high`` items: those of ``prefix`` in their places, then ``rest``.

    Of ``named`` ones the schema speaks of the first items alone: others are written only if there
    must be more. Keywords evaluate the first ``known`` items (None: all), as ``unevaluatedItems``
    has it. No two items of those that ``differ`` are equal.
    """

    prefix: tuple[Conjunction, ...] = ()
    rest: Conjunction = TRUE
    low: int = 0
    high: int | None = None
    named: bool = False
    known: int | None = 0
    differ: bool = False
    said: int = field(default=UNSAID, compare=False)

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
        unheard: Those of ``members`` that nothing evaluates (``unevaluatedProperties``).
    """

    members: tuple[tuple[str, Conjunction], ...] = ()
    required: frozenset[str] = frozenset()
    others: tuple[tuple[Texts, Conjunction, bool], ...] = ((ANYTHING, TRUE, False),)
    named: bool = False
    open: bool = False
    low: int = 0
    high: int | None = None
    unheard: frozenset[str] = frozenset()
    said: int = field(default=UNSAID, compare=False)

    def member(self, name: str) -> Conjunction:
        """Return the conditions on the value of a member."""
        held = self.by_name.get(name)
        if held is not None:
            return held
        for names, value, _ in self.others:
            if name in names:
                return value
        return TRUE

    @cached_property
    def by_name(self) -> dict[str, Conjunction]:
        """The conditions of members by their names."""
        return dict(reversed(self.members))


Case = Null | Booleans | Numbers | Strings | Arrays | Objects


_ALL: tuple[Case, ...] = (Numbers(), Strings(), Arrays(), Objects())


def both(a: Case, b: Case) -> Case:
    """Return the values in both of two cases of one type."""
    said = max(a.said, b.said)
    for case, other in ((a, b), (b, a)):
        if case in _ALL:
            return other if other.said == said else replace(other, said=said)
    match a, b:
        case Null(), Null():
            return Null(said)
        case Booleans(), Booleans():
            return Booleans(a.values & b.values, said)
        case Numbers(), Numbers():
            return a & b
        case Strings(), Strings():
            texts = a.texts if b.texts is ANYTHING else b.texts if a.texts is ANYTHING else None
            return Strings(
                a.texts & b.texts if texts is None else texts,
                max(a.low, b.low),
                _lower(a.high, b.high),
                said,
            )
        case Arrays(), Arrays():
            places = range(max(len(a.prefix), len(b.prefix)))
            return Arrays(
                tuple(a.item(place) | b.item(place) for place in places),
                a.rest | b.rest,
                max(a.low, b.low),
                _lower(a.high, b.high),
                (a.named and b.named) or ((a.named or b.named) and TRUE in (a.rest, b.rest)),
                None if None in (a.known, b.known) else max(a.known or 0, b.known or 0),
                a.differ or b.differ,
                said,
            )
        case Objects(), Objects():
            return _both_objects(a, b, said)
    raise AssertionError("cases of different types have no values in common")


def _both_objects(a: Objects, b: Objects, said: int) -> Objects:
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
        _unheard(a, b),
        said,
    )


def _unheard(a: Objects, b: Objects) -> frozenset[str]:
    """Return the names that one of two cases has, and neither evaluates."""
    found = a.unheard | b.unheard
    if found:
        found = frozenset(name for name in found if not (_hears(a, name) or _hears(b, name)))
    return found


def _hears(case: Objects, name: str) -> bool:
    """Return whether keywords evaluate a member."""
    if name in case.by_name:
        return name not in case.unheard
    return any(known and name in names for names, _, known in case.others)


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


def distinct(cases: Iterable[Case]) -> list[Case]:
    """Return the different ones of some cases, one of which holds, with the most that is said."""
    found: dict[Case, Case] = {}
    for case in cases:
        before = found.get(case)
        if before is None or before.said == OTHERS != case.said:
            found[case] = case
    return list(found.values())


def unevaluated(case: Case, kind: type[Case], held: Conjunction) -> Case:
    """Return a case in which conditions hold of all items or members that nothing evaluates."""
    match case:
        case Arrays(prefix, _, _, _, _, int() as known) if kind is Arrays:
            first = tuple(case.item(place) for place in range(known))
            more = tuple(item | held for item in prefix[known:])
            rest = case.rest | held
            return replace(case, prefix=first + more, rest=rest, named=False, known=None)
        case Objects(members, _, others) if kind is Objects:
            return replace(
                case,
                members=tuple((n, v | held if n in case.unheard else v) for n, v in members),
                others=tuple((n, v if known else v | held, True) for n, v, known in others),
                open=True,
                unheard=frozenset(),
            )
    return case


def forgotten(case: Case) -> Case:
    """Return a case of which nothing counts as evaluated, as what a contrary says of it."""
    match case:
        case Arrays():
            return replace(case, known=0)
        case Objects(members, _, others):
            return replace(
                case,
                others=tuple((names, held, False) for names, held, _ in others),
                unheard=frozenset(name for name, _ in members),
            )
    return case
