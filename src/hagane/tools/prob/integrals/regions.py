"""Regions of independent draws that linear inequalities leave, and bounds of their measure.

One draw is integrated by its distribution function; boxes of the others are halved, those first
in which most is open. Masses of boxes are floating-point numbers whose errors are allowed for.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from statistics import NormalDist
from typing import TypeAlias

UNIFORM, NORMAL, EXPONENTIAL = "uniform", "normal", "exponential"

_NORMAL = NormalDist()
_CELLS = {16: 1_000, 32: 4_000}
_MOST_CELLS = 8_000
# More than the errors of distribution functions and of sums over all boxes.
_SLACK = 1e-10


@dataclass(frozen=True, slots=True, order=True)
class Linear:
    """A linear form of draws: coefficients by number of the draw, ascending, and a constant."""

    terms: tuple[tuple[int, Fraction], ...]
    constant: Fraction = Fraction(0)

    @classmethod
    def of(cls, terms: Mapping[int, Fraction], constant: Fraction) -> Linear:
        """Return a form without terms that are zero."""
        kept = tuple(sorted((draw, value) for draw, value in terms.items() if value))
        return cls(kept, constant)

    def scaled(self, factor: Fraction) -> Linear:
        """Return a multiple."""
        return Linear(tuple((d, v * factor) for d, v in self.terms), self.constant * factor)

    def plus(self, other: Linear, factor: Fraction = Fraction(1)) -> Linear:
        """Return the sum with a multiple of another form."""
        terms = dict(self.terms)
        for draw, value in other.terms:
            terms[draw] = terms.get(draw, Fraction(0)) + value * factor
        return Linear.of(terms, self.constant + other.constant * factor)

    def coefficient(self, draw: int) -> Fraction:
        """Return the coefficient of a draw."""
        return next((value for each, value in self.terms if each == draw), Fraction(0))

    def without(self, draw: int) -> Linear:
        """Return the form without a draw."""
        return Linear(tuple(item for item in self.terms if item[0] != draw), self.constant)

    @property
    def normal(self) -> Linear:
        """Return the positive multiple whose first coefficient is 1 or -1."""
        return self.scaled(1 / abs(self.terms[0][1])) if self.terms else self


@dataclass(frozen=True, slots=True, order=True)
class Region:
    """Where all forms are positive; draw ``k`` has the ``k``-th law."""

    laws: tuple[str, ...]
    positive: tuple[Linear, ...]


def supports(laws: Mapping[int, str]) -> list[Linear]:
    """Return the forms that are positive where draws can lie."""
    found = []
    for draw, law in laws.items():
        if law != NORMAL:
            found.append(Linear(((draw, Fraction(1)),)))
        if law == UNIFORM:
            found.append(Linear(((draw, Fraction(-1)),), Fraction(1)))
    return found


# Inequalities after which a region is taken for one with an inside.
_MOST_FORMS = 400


def has_inside(positive: Sequence[Linear]) -> bool:
    """Return whether forms can all be positive at once (Fourier and Motzkin's elimination)."""
    forms = {form.normal for form in positive}
    while True:
        if any(not form.terms and form.constant <= 0 for form in forms):
            return False
        forms = _strongest(form for form in forms if form.terms)
        counts: dict[int, list[int]] = {}
        for form in forms:
            for draw, value in form.terms:
                counts.setdefault(draw, [0, 0])[value > 0] += 1
        if not counts:
            return True
        draw = min(counts, key=lambda each: counts[each][0] * counts[each][1])
        above = [form for form in forms if form.coefficient(draw) > 0]
        below = [form for form in forms if form.coefficient(draw) < 0]
        forms = {form for form in forms if not form.coefficient(draw)}
        if len(above) * len(below) + len(forms) > _MOST_FORMS:
            return True
        for low in above:
            for high in below:
                factor = low.coefficient(draw) / -high.coefficient(draw)
                forms.add(low.plus(high, factor).normal)


def _strongest(forms: object) -> set[Linear]:
    least: dict[tuple[tuple[int, Fraction], ...], Linear] = {}
    for form in forms:  # type: ignore[attr-defined]
        known = least.get(form.terms)
        if known is None or form.constant < known.constant:
            least[form.terms] = form
    return set(least.values())


def strongest(forms: Sequence[Linear]) -> list[Linear]:
    """Return forms, but for each that is positive wherever a parallel one is."""
    return sorted(_strongest(form.normal for form in forms))


def irredundant(forms: Sequence[Linear]) -> list[Linear]:
    """Return forms, but for each that is positive wherever all others are."""
    kept = strongest(forms)
    for form in list(kept):
        others = [each for each in kept if each != form]
        if not has_inside([*others, form.scaled(Fraction(-1))]):
            kept = others
    return kept


# Bounds of a box: for each draw but the inner one, from where to where it lies.
_Box: TypeAlias = tuple[tuple[float, float], ...]


def bounds_of(region: Region, digits: int) -> tuple[Fraction, Fraction]:
    """Return bounds of the measure of a region; more digits look at more boxes."""
    return _bounds(region, _CELLS.get(digits, _MOST_CELLS))


@lru_cache(1_000)
def _bounds(region: Region, cells: int) -> tuple[Fraction, Fraction]:
    used = sorted({draw for form in region.positive for draw, _ in form.terms})
    inner = max(used, key=lambda draw: sum(bool(f.coefficient(draw)) for f in region.positive))
    outer = [draw for draw in used if draw != inner]
    search = _Search(region, inner, outer)
    start: _Box = tuple(_support(region.laws[draw]) for draw in outer)
    order = count()
    low, high = search.measured(start)
    heap = [(low - high, next(order), start, low, high)]
    least, most = low, high
    while heap and len(heap) < cells and most - least > 1e-13:
        _, _, box, low, high = heapq.heappop(heap)
        least, most = least - low, most - high
        for half in search.halves(box):
            low, high = search.measured(half)
            least, most = least + low, most + high
            heapq.heappush(heap, (low - high, next(order), half, low, high))
    least = math.fsum(item[3] for item in heap)
    most = math.fsum(item[4] for item in heap)
    return Fraction(max(least - _SLACK, 0.0)), Fraction(min(most + _SLACK, 1.0))


class _Search:
    """Measures boxes of a region."""

    def __init__(self, region: Region, inner: int, outer: Sequence[int]):
        self.law = region.laws[inner]
        self.laws = [region.laws[draw] for draw in outer]
        place = {draw: index for index, draw in enumerate(outer)}
        self.above: list[tuple[list[tuple[int, float]], float]] = []  # inner is more than these
        self.below: list[tuple[list[tuple[int, float]], float]] = []
        self.others: list[tuple[list[tuple[int, float]], float]] = []
        for form in region.positive:
            own = form.coefficient(inner)
            rest = form.without(inner)
            if own:
                rest = rest.scaled(-1 / own)
            terms = [(place[draw], float(value)) for draw, value in rest.terms]
            kind = self.above if own > 0 else self.below if own < 0 else self.others
            kind.append((terms, float(rest.constant)))

    def measured(self, box: _Box) -> tuple[float, float]:
        """Return the least and the greatest measure of the region's part in a box."""
        mass = 1.0
        for law, (low, high) in zip(self.laws, box, strict=True):
            mass *= max(0.0, _below(law, high) - _below(law, low))
        surely = True
        for form in self.others:
            low, high = _range(form, box)
            if high <= 0:
                return 0.0, 0.0
            surely &= low > 0
        above = [_range(form, box) for form in self.above]
        below = [_range(form, box) for form in self.below]
        start, stop = _support(self.law)
        widest = self._between(
            max([start, *(low for low, _ in above)]), min([stop, *(high for _, high in below)])
        )
        if not surely:
            return 0.0, mass * widest
        narrowest = self._between(
            max([start, *(high for _, high in above)]), min([stop, *(low for low, _ in below)])
        )
        return mass * narrowest, mass * widest

    def _between(self, low: float, high: float) -> float:
        return max(0.0, _below(self.law, high) - _below(self.law, low))

    def halves(self, box: _Box) -> list[_Box]:
        """Return a box cut in the middle of the draw that the forms depend on most."""
        widths = [0.0] * len(box)
        for terms, _ in (*self.above, *self.below, *self.others):
            for place, value in terms:
                low, high = box[place]
                widths[place] = max(widths[place], abs(value) * min(high - low, 1e9))
        place = widths.index(max(widths))
        law, (low, high) = self.laws[place], box[place]
        middle = _middle(law, low, high)
        return [(*box[:place], part, *box[place + 1 :]) for part in ((low, middle), (middle, high))]


def _support(law: str) -> tuple[float, float]:
    if law == UNIFORM:
        return 0.0, 1.0
    return (0.0 if law == EXPONENTIAL else -math.inf), math.inf


def _below(law: str, value: float) -> float:
    """Return the probability of less than a value."""
    if law == NORMAL:
        return math.erfc(-value / math.sqrt(2)) / 2
    if value <= 0:
        return 0.0
    return min(value, 1.0) if law == UNIFORM else -math.expm1(-value)


def _middle(law: str, low: float, high: float) -> float:
    if math.isfinite(low) and math.isfinite(high):
        return (low + high) / 2
    share = (_below(law, low) + _below(law, high)) / 2
    if law == EXPONENTIAL:
        return -math.log1p(-share) if 0 < share < 1 else low + 1.0
    if 0 < share < 1:
        found = _NORMAL.inv_cdf(share)
        if low < found < high:
            return found
    return low + 1.0 if math.isfinite(low) else high - 1.0


def _range(form: tuple[list[tuple[int, float]], float], box: _Box) -> tuple[float, float]:
    """Return the least and the greatest value of a form over a box, with room for rounding."""
    terms, constant = form
    low = high = constant
    size = abs(constant)
    for place, value in terms:
        first, last = box[place]
        ends = value * first, value * last
        low, high = low + min(ends), high + max(ends)
        size += (
            max(abs(end) for end in ends if math.isfinite(end))
            if any(map(math.isfinite, ends))
            else 0.0
        )
    room = size * 1e-14
    return low - room, high + room
