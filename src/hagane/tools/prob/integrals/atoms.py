"""Constants of closed forms, and bounds of their values to any number of digits."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, TypeAlias

from hagane.tools.prob.integrals.regions import Region, bounds_of

Interval: TypeAlias = tuple[Fraction, Fraction]

# Digits that mpmath computes beyond those whose correctness is relied on.
_SPARE = 10


@dataclass(frozen=True, slots=True, order=True)
class Atom:
    """A constant.

    Attributes:
        kind: ``exp``: e to the number. ``Phi``: the standard normal distribution at the root of the
            number. ``density``: ``exp(-s/2) / sqrt(2 pi v)`` of numbers s and v. ``asin``: the arc
            sine of the root of the number, over pi. ``region``: the measure of a region.
        numbers: Its arguments.
        region: The region, where it is one.
    """

    kind: str
    numbers: tuple[Fraction, ...] = ()
    region: Region | None = None

    def __str__(self) -> str:
        if self.kind == "exp":
            return f"exp({self.numbers[0]})"
        if self.kind == "Phi":
            return f"Phi({_root(self.numbers[0])})"
        if self.kind == "asin":
            return f"asin({_root(self.numbers[0])})/pi"
        if self.kind == "density":
            exponent, variance = self.numbers
            above = f"exp({-exponent / 2})" if exponent else "1"
            return f"{above}/sqrt({2 * variance}*pi)"
        return "region"


def exponential(exponent: Fraction) -> Atom:
    """Return e to a power that is not 0."""
    return Atom("exp", (exponent,))


def _root(square: Fraction) -> str:
    above, below = isqrt(square.numerator), isqrt(square.denominator)
    if above**2 == square.numerator and below**2 == square.denominator:
        return str(Fraction(above, below))
    return f"sqrt({square})"


@lru_cache(10_000)
def enclosure(atom: Atom, digits: int) -> Interval:
    """Return bounds of a constant that lie ``10**-digits`` apart, relatively; wider for regions."""
    if atom.region is not None:
        return bounds_of(atom.region, digits)
    import mpmath  # type: ignore[import-untyped]

    with mpmath.workdps(digits + _SPARE):
        value = _fraction(_value(mpmath, atom))
    off = abs(value) / 10**digits
    return value - off, value + off


def _value(mpmath: Any, atom: Atom) -> Any:
    first = mpmath.mpf(atom.numbers[0].numerator) / atom.numbers[0].denominator
    if atom.kind == "exp":
        return mpmath.exp(first)
    if atom.kind == "Phi":
        return mpmath.ncdf(mpmath.sqrt(first))
    if atom.kind == "asin":
        return mpmath.asin(mpmath.sqrt(first)) / mpmath.pi
    variance = mpmath.mpf(atom.numbers[1].numerator) / atom.numbers[1].denominator
    return mpmath.exp(-first / 2) / mpmath.sqrt(2 * mpmath.pi * variance)


def _fraction(value: Any) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    size = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -size if sign else size
