"""Bounds of polynomials over boxes, by their coefficients in Bernstein's basis."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb
from typing import TypeAlias

from hagane.tools.prob.language.ratios import Polynomial

# The least and the greatest value of each parameter.
Box: TypeAlias = tuple[tuple[Fraction, Fraction], ...]


def range_over(polynomial: Polynomial, box: Box) -> tuple[Fraction, Fraction]:
    """Return numbers between which a polynomial stays on a box; at its corners they are taken.

    The values lie in the convex hull of the coefficients (Garloff, 1986).
    """
    count = len(box)
    degrees = [max((powers[i] for powers in polynomial), default=0) for i in range(count)]
    moved = dict(polynomial)
    for place in range(count):
        moved = _moved(moved, place, box[place])
        moved = _raised(moved, place, degrees[place])
    every = product(*(range(degree + 1) for degree in degrees))
    found = [moved.get(powers, Fraction(0)) for powers in every]
    return min(found), max(found)


def _moved(
    polynomial: Polynomial, place: int, side: tuple[Fraction, Fraction]
) -> dict[tuple[int, ...], Fraction]:
    """Put ``low + (high - low) t`` in the place of a parameter."""
    low, width = side[0], side[1] - side[0]
    found: dict[tuple[int, ...], Fraction] = {}
    for powers, value in polynomial.items():
        power = powers[place]
        for k in range(power + 1):
            share = value * comb(power, k) * low ** (power - k) * width**k
            if share:
                key = (*powers[:place], k, *powers[place + 1 :])
                found[key] = found.get(key, Fraction(0)) + share
    return found


def _raised(polynomial: Polynomial, place: int, degree: int) -> dict[tuple[int, ...], Fraction]:
    """Change from powers of a parameter on [0, 1] to Bernstein's basis."""
    found: dict[tuple[int, ...], Fraction] = {}
    for powers, value in polynomial.items():
        for k in range(powers[place], degree + 1):
            key = (*powers[:place], k, *powers[place + 1 :])
            share = value * Fraction(comb(k, powers[place]), comb(degree, powers[place]))
            found[key] = found.get(key, Fraction(0)) + share
    return found


def halves(box: Box) -> tuple[Box, Box]:
    """Return the two halves of a box, cut across its widest side."""
    place = max(range(len(box)), key=lambda each: box[each][1] - box[each][0])
    low, high = box[place]
    middle = (low + high) / 2
    return (
        (*box[:place], (low, middle), *box[place + 1 :]),
        (*box[:place], (middle, high), *box[place + 1 :]),
    )
