"""Means of polynomials of draws over regions: parts that share no comparison are multiplied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import factorial

from hagane.tools.prob.integrals.atoms import Atom
from hagane.tools.prob.integrals.closed import Closed
from hagane.tools.prob.integrals.gaussian import moment, normal_integral
from hagane.tools.prob.integrals.polytopes import NoClosedForm, integral
from hagane.tools.prob.integrals.real import Terms
from hagane.tools.prob.integrals.regions import (
    NORMAL,
    UNIFORM,
    Linear,
    Region,
    strongest,
    supports,
)


class NoBounds(Exception):
    """The mean of a product over a region of which only the measure can be bounded."""


class Measure:
    """Integrals over regions of draws; those of a part are remembered."""

    def __init__(self) -> None:
        self._known: dict[tuple[Region, tuple[int, ...]], Closed] = {}

    def mean(self, laws: Sequence[str], positive: Sequence[Linear], terms: Terms) -> Closed:
        """Return the integral of a polynomial of draws over a region.

        Args:
            laws: The law of each draw.
            positive: The forms that are positive in the region.
            terms: The polynomial.

        Raises:
            NoBounds: It has no closed form that is known here, and no bounds.
        """
        groups = _groups(positive)
        tied = {draw for forms in groups for form in forms for draw, _ in form.terms}
        whole = Closed.of(0)
        for draws, value in terms.items():
            powers = Counter(draws)
            product = Closed.of(value)
            for draw, power in powers.items():
                if draw not in tied:
                    product *= _moment(laws[draw], power)
            for forms in groups:
                if not product:
                    break
                product *= self._part(laws, forms, powers)
            whole += product
        return whole

    def _part(self, laws: Sequence[str], forms: Sequence[Linear], powers: Counter[int]) -> Closed:
        draws = sorted({draw for form in forms for draw, _ in form.terms})
        number = {draw: index for index, draw in enumerate(draws)}
        renamed = [
            Linear.of({number[draw]: value for draw, value in form.terms}, form.constant)
            for form in forms
        ]
        region = Region(tuple(laws[draw] for draw in draws), tuple(strongest(renamed)))
        key = region, tuple(powers[draw] for draw in draws)
        if key not in self._known:
            self._known[key] = _integral(region, dict(enumerate(key[1])))
        return self._known[key]


def _integral(region: Region, powers: Mapping[int, int]) -> Closed:
    laws = dict(enumerate(region.laws))
    try:
        if NORMAL not in region.laws:
            return integral(laws, [*region.positive, *supports(laws)], powers)
        if set(region.laws) == {NORMAL}:
            return normal_integral(region.positive, powers)
    except NoClosedForm:
        pass
    if any(powers.values()):
        raise NoBounds
    return Closed.atom(Atom("region", region=region))


def _moment(law: str, power: int) -> Fraction:
    if law == UNIFORM:
        return Fraction(1, power + 1)
    return moment(power) if law == NORMAL else Fraction(factorial(power))


def _groups(positive: Sequence[Linear]) -> list[list[Linear]]:
    """Return the forms in groups that share no draw."""
    groups: list[tuple[set[int], list[Linear]]] = []
    for form in positive:
        draws = {draw for draw, _ in form.terms}
        joined = (draws, [form])
        others = []
        for group in groups:
            if group[0] & draws:
                joined = (joined[0] | group[0], [*group[1], *joined[1]])
            else:
                others.append(group)
        groups = [*others, joined]
    return [forms for _, forms in groups]
