"""Exact integrals over polytopes, of polynomials times powers of e, one draw after the other.

The draw runs from the greatest of its lower bounds to the least of its upper ones; a part of the
region is made for each choice of these, and the integral over it is of the same form in the draws
that are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import comb, factorial
from typing import TypeAlias

from hagane.tools.prob.integrals.atoms import exponential
from hagane.tools.prob.integrals.closed import Closed
from hagane.tools.prob.integrals.regions import EXPONENTIAL, Linear, has_inside, irredundant

# Powers of draws, and the exponent of e beside them.
_Key: TypeAlias = tuple[tuple[tuple[int, int], ...], Linear]
_Integrand: TypeAlias = dict[_Key, Fraction]

# Terms of all parts together.
_MOST_TERMS = 40_000


class NoClosedForm(Exception):
    """An integral that is not of a form that is known here."""


def integral(
    laws: Mapping[int, str], positive: Sequence[Linear], powers: Mapping[int, int]
) -> Closed:
    """Return the integral of a product of powers of uniform and exponential draws over a region.

    Args:
        laws: The law of each draw.
        positive: The forms that are positive in the region, supports included.
        powers: The power of each draw in the product.

    Raises:
        NoClosedForm: The region falls into too many parts.
    """
    density = Linear.of(
        {draw: Fraction(-(law == EXPONENTIAL)) for draw, law in laws.items()}, Fraction(0)
    )
    key = tuple(sorted((draw, power) for draw, power in powers.items() if power))
    return _Parts().integral(sorted(laws), irredundant(positive), {(key, density): Fraction(1)})


class _Parts:
    def __init__(self) -> None:
        self.count = 0

    def integral(
        self, draws: list[int], positive: Sequence[Linear], integrand: _Integrand
    ) -> Closed:
        if not draws:
            total: dict[tuple[object, ...], Fraction] = {}
            for (_, exponent), value in integrand.items():
                at = (exponential(exponent.constant),) if exponent.constant else ()
                total[at] = total.get(at, Fraction(0)) + value
            return Closed(total)  # type: ignore[arg-type]
        draw = min(draws, key=lambda each: _ways(each, positive))
        lower, upper, rest = _limits(draw, positive)
        left = [each for each in draws if each != draw]
        whole = Closed.of(0)
        for low in lower:
            highs: list[Linear | None] = [*upper] or [None]
            for high in highs:
                forms = [*rest, *(low.plus(each, Fraction(-1)) for each in lower if each != low)]
                if high is not None:
                    forms += [each.plus(high, Fraction(-1)) for each in upper if each != high]
                    forms.append(high.plus(low, Fraction(-1)))
                if not has_inside(forms):
                    continue
                forms = irredundant([form for form in forms if form.terms])
                inner = self._antiderivative(integrand, draw, low, Fraction(-1))
                if high is not None:
                    upper_end = self._antiderivative(integrand, draw, high, Fraction(1))
                    for key, value in upper_end.items():
                        inner[key] = inner.get(key, Fraction(0)) + value
                elif any(exponent.coefficient(draw) >= 0 for _, exponent in integrand):
                    raise NoClosedForm
                inner = {key: value for key, value in inner.items() if value}
                whole += self.integral(left, forms, inner)
        return whole

    def _antiderivative(
        self, integrand: _Integrand, draw: int, at: Linear, factor: Fraction
    ) -> _Integrand:
        """Return the antiderivative in a draw, at a value of it, times a factor."""
        found: _Integrand = {}
        powers_of: dict[int, dict[tuple[tuple[int, int], ...], Fraction]] = {}
        for (powers, exponent), value in integrand.items():
            own = dict(powers).get(draw, 0)
            others = tuple(item for item in powers if item[0] != draw)
            rate = exponent.coefficient(draw)
            parts = [(own + 1, Fraction(1, own + 1))]
            if rate:
                exponent = exponent.without(draw).plus(at, rate)
                parts = [(k, _by_parts(own, k, rate)) for k in range(own + 1)]
            for power, share in parts:
                if power not in powers_of:
                    powers_of[power] = _power(at, power)
                self.count += 1 + len(powers_of[power])
                if self.count > _MOST_TERMS:
                    raise NoClosedForm
                for key, amount in powers_of[power].items():
                    whole = (_times(others, key), exponent)
                    term = factor * value * share * amount
                    found[whole] = found.get(whole, Fraction(0)) + term
        return found


def _by_parts(power: int, k: int, rate: Fraction) -> Fraction:
    """Return the factor of ``x**k`` in the antiderivative of ``x**power * exp(rate * x)``."""
    return Fraction((-1) ** (power - k) * factorial(power), factorial(k)) / rate ** (power - k + 1)


def _ways(draw: int, positive: Sequence[Linear]) -> int:
    signs = [form.coefficient(draw) > 0 for form in positive if form.coefficient(draw)]
    # A draw without an upper bound comes first: its powers of e fall.
    return sum(signs) * max(1, len(signs) - sum(signs))


def _limits(
    draw: int, positive: Sequence[Linear]
) -> tuple[list[Linear], list[Linear], list[Linear]]:
    """Return the lower and the upper bounds of a draw, and the forms that do not speak of it."""
    lower: dict[Linear, None] = {}
    upper: dict[Linear, None] = {}
    rest = []
    for form in positive:
        own = form.coefficient(draw)
        if not own:
            rest.append(form)
            continue
        (lower if own > 0 else upper)[form.without(draw).scaled(-1 / own)] = None
    return list(lower), list(upper), rest


def _power(form: Linear, power: int) -> dict[tuple[tuple[int, int], ...], Fraction]:
    """Return the power of a form as a polynomial."""
    known: dict[tuple[tuple[int, int], ...], Fraction] = {(): Fraction(1)}
    total: dict[tuple[tuple[int, int], ...], Fraction] = {}
    # The constant is taken to each power, the rest by repeated products.
    rest = Linear(form.terms)
    for degree in range(power + 1):
        share = comb(power, degree) * form.constant ** (power - degree)
        if share:
            for key, value in known.items():
                total[key] = total.get(key, Fraction(0)) + share * value
        if degree < power:
            grown: dict[tuple[tuple[int, int], ...], Fraction] = {}
            for key, value in known.items():
                for draw, factor in rest.terms:
                    more = _times(key, ((draw, 1),))
                    grown[more] = grown.get(more, Fraction(0)) + value * factor
            known = grown
    return total


def _times(
    left: tuple[tuple[int, int], ...], right: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    if not left or not right:
        return left or right
    powers = dict(left)
    for draw, power in right:
        powers[draw] = powers.get(draw, 0) + power
    return tuple(sorted(powers.items()))
