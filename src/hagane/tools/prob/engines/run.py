"""Runs of a program as weights: the most probable one is kept where many meet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from math import log10
from typing import TypeAlias

from hagane.tools.prob.language.source import Source, Span
from hagane.tools.prob.language.syntax import Value

# Digits of a numerator or denominator that people still read.
_MOST_DIGITS = 40

# A trace of draws: nothing, one draw, or two traces one after the other.
Trace: TypeAlias = "tuple[Span, Value] | Joined | None"


@dataclass(frozen=True, slots=True)
class Joined:
    """Two traces, the first before the second."""

    before: Trace
    after: Trace


@dataclass(frozen=True, slots=True)
class Run:
    """A weight that remembers its draws; it adds as a maximum and multiplies as a product.

    Engines that use only sums and products of weights therefore find most probable runs when
    they are given these in place of integers.
    """

    weight: int
    trace: Trace = None

    def __add__(self, other: int | Run) -> Run:
        if isinstance(other, int):
            return self
        return self if self.weight >= other.weight else other

    __radd__ = __add__

    def __mul__(self, other: int | Run) -> Run:
        if isinstance(other, int):
            return Run(self.weight * other, self.trace)
        if other.trace is None:
            return Run(self.weight * other.weight, self.trace)
        joined = other.trace if self.trace is None else Joined(self.trace, other.trace)
        return Run(self.weight * other.weight, joined)

    __rmul__ = __mul__

    def draws(self) -> list[tuple[Span, Value]]:
        """Return the draws, in order."""
        found: list[tuple[Span, Value]] = []
        stack: list[Trace] = [self.trace]
        while stack:
            trace = stack.pop()
            if isinstance(trace, Joined):
                stack += [trace.after, trace.before]
            elif trace is not None:
                found.append(trace)
        return found


def show_decimal(value: Fraction) -> str:
    """Return a number to ten digits, however large or small it is."""
    with localcontext(prec=10, Emax=MAX_EMAX, Emin=MIN_EMIN):
        number = (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
        return f"{number:f}" if -6 < number.adjusted() < 16 else f"{number:e}"


def show_distance(value: Fraction) -> str:
    """Return a small number to one digit."""
    with localcontext(prec=1, Emax=MAX_EMAX, Emin=MIN_EMIN):
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.0e}"


def show_fraction(value: Fraction) -> str:
    """Return a number as a fraction, or to ten digits where it has more than people read."""
    if max(abs(value.numerator), value.denominator) < 10**_MOST_DIGITS:
        return str(value)
    return f"about {show_decimal(value)}"


def show_measured(value: Fraction, within: Fraction = Fraction(0)) -> str:
    """Return a number as ``1/3 = 0.3333333333``, or the digits alone where the fraction is long.

    A number that may be off by ``within`` has digits alone too.
    """
    if within:
        return f"{show_decimal(value)} (within {show_distance(within)})"
    exact = show_fraction(value)
    if exact.startswith("about"):
        digits = len_of(value.numerator), len_of(value.denominator)
        return (
            f"{show_decimal(value)} (exactly a fraction of {digits[0]:,} over {digits[1]:,} digits)"
        )
    return f"{exact} = {show_decimal(value)}"


def len_of(number: int) -> int:
    """Return how many decimal digits a whole number has."""
    digits = max(1, int(abs(number).bit_length() * log10(2)))
    return digits + int(abs(number) >= 10**digits)


def exact_text(value: Fraction) -> str:
    """Return a number as a fraction however long it is, where programs read it."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return str(value)
    finally:
        sys.set_int_max_str_digits(before)


def show_value(value: Value) -> str:
    """Return a value as the language writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"({', '.join(show_value(item) for item in value)})"
    return str(value)


def show_draws(source: Source, draws: Sequence[tuple[Span, Value]], limit: int = 12) -> str:
    """Return draws as ``rand(0, 5) = 3 (line 2), ...``; nothing for none."""
    shown = [
        f"{source.slice(span)} = {show_value(value)} (line {source.position(span.start)[0]})"
        for span, value in draws[:limit]
    ]
    if len(draws) > limit:
        shown.append(f"… {len(draws) - limit} more")
    return ", ".join(shown)
