"""Measures and moments of independent standard normal draws in closed form.

Known are: intervals of one linear form, with moments up to the second (any for a single draw), and
wedges of two or three half-spaces through the origin (Sheppard, 1899).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import prod

from hagane.tools.prob.integrals.atoms import Atom
from hagane.tools.prob.integrals.closed import Closed
from hagane.tools.prob.integrals.polytopes import NoClosedForm
from hagane.tools.prob.integrals.regions import Linear, strongest

# The arc sines of roots that are rational parts of pi.
_ANGLES = {
    Fraction(0): Fraction(0),
    Fraction(1, 4): Fraction(1, 6),
    Fraction(1, 2): Fraction(1, 4),
    Fraction(3, 4): Fraction(1, 3),
    Fraction(1): Fraction(1, 2),
}


def moment(power: int) -> Fraction:
    """Return the mean of a power of a standard normal draw."""
    return Fraction(0) if power % 2 else Fraction(prod(range(power - 1, 0, -2)))


def normal_integral(positive: Sequence[Linear], powers: Mapping[int, int]) -> Closed:
    """Return the mean of a product of powers where all forms are positive, and 0 elsewhere.

    Args:
        positive: The forms, of standard normal draws.
        powers: The power of each draw in the product.

    Raises:
        NoClosedForm: It is of another form than those known here.
    """
    forms = strongest(positive)
    factors = [draw for draw, power in powers.items() for _ in range(power)]
    first = Linear(forms[0].terms)
    if all(_ratio(form, first) is not None for form in forms):
        return _interval(first, forms, factors)
    if not factors and len(forms) <= 3 and not any(form.constant for form in forms):
        return _wedge(forms)
    raise NoClosedForm


def _ratio(form: Linear, other: Linear) -> Fraction | None:
    """Return the number by which one form, without its constant, is another; None if it is not."""
    ratio = form.terms[0][1] / other.terms[0][1]
    return ratio if other.scaled(ratio).terms == form.terms else None


def _interval(form: Linear, positive: Sequence[Linear], factors: Sequence[int]) -> Closed:
    """Return the integral where one form lies between bounds."""
    low: Fraction | None = None
    high: Fraction | None = None
    for each in positive:
        ratio = _ratio(each, form)
        assert ratio is not None
        bound = -each.constant / ratio
        if ratio > 0:
            low = bound if low is None else max(low, bound)
        else:
            high = bound if high is None else min(high, bound)
    if low is not None and high is not None and low >= high:
        return Closed.of(0)
    variance = sum((value**2 for _, value in form.terms), Fraction(0))
    share = (Closed.of(1) if high is None else _below(high, variance)) - (
        Closed.of(0) if low is None else _below(low, variance)
    )
    at_low, at_high = _density(low, variance), _density(high, variance)
    own = [form.coefficient(draw) for draw in factors]
    if not factors:
        return share
    if len(factors) == 1:
        return own[0] * (at_low - at_high)
    second = share + (low or 0) * at_low - (high or 0) * at_high
    if len(factors) == 2:
        both = own[0] * own[1] / variance
        same = Fraction(int(factors[0] == factors[1]))
        return both * second + (same - both) * share
    if len(form.terms) == 1 and variance == 1:
        found = [share, at_low - at_high]
        for power in range(2, len(factors) + 1):
            ends = (low or 0) ** (power - 1) * at_low - (high or 0) ** (power - 1) * at_high
            found.append(ends + (power - 1) * found[power - 2])
        return own[0] ** len(factors) * found[len(factors)]
    raise NoClosedForm


def _below(bound: Fraction, variance: Fraction) -> Closed:
    """Return the probability that a form of a variance is less than a bound."""
    if not bound:
        return Closed.of(Fraction(1, 2))
    value = Closed.atom(Atom("Phi", (bound**2 / variance,)))
    return value if bound > 0 else 1 - value


def _density(bound: Fraction | None, variance: Fraction) -> Closed:
    """Return the density of a form at a bound; 0 at infinity."""
    if bound is None:
        return Closed.of(0)
    return Closed.atom(Atom("density", (bound**2 / variance, variance)))


def _wedge(forms: Sequence[Linear]) -> Closed:
    """Return the measure where two or three forms through the origin are positive."""
    angles = [_angle(left, right) for left, right in combinations(forms, 2)]
    total = Closed.of(0)
    for angle in angles:
        total += angle
    if len(forms) == 2:
        return Fraction(1, 4) + total / 2
    return Fraction(1, 8) + total / 4


def _angle(left: Linear, right: Linear) -> Closed:
    """Return the arc sine of the correlation of two forms, over pi."""
    product = sum((value * right.coefficient(draw) for draw, value in left.terms), Fraction(0))
    sizes = [sum((v**2 for _, v in form.terms), Fraction(0)) for form in (left, right)]
    square = product**2 / (sizes[0] * sizes[1])
    known = _ANGLES.get(square)
    value = Closed.atom(Atom("asin", (square,))) if known is None else Closed.of(known)
    return value if product > 0 else -value
