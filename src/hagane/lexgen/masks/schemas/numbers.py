"""Texts of JSON numbers between bounds, and of multiples.

Numbers with bounds or factors are written without exponents.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from hagane.errors import InvalidArgument
from hagane.lexgen.masks.texts import NOTHING, Texts, after, literals, matching, multiples

_INTEGER = r"-?(?:0|[1-9][0-9]*)"
_NUMBER = _INTEGER + r"(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_FRACTION = r"(?:\.[0-9]+)?"


@dataclass(frozen=True)
class Numbers:
    """A set of numbers.

    Attributes:
        low: The least number, or None.
        low_open: ``low`` itself is not in the set.
        high: The greatest number, or None.
        high_open: ``high`` itself is not in the set.
        integer: Whole numbers alone.
        fractional: Numbers that are not whole alone.
        factors: The numbers of which all are multiples.
        without: Numbers that are not in the set.
        said: What schemas say of the type, as of other cases.
    """

    low: Fraction | None = None
    low_open: bool = False
    high: Fraction | None = None
    high_open: bool = False
    integer: bool = False
    fractional: bool = False
    factors: frozenset[Fraction] = frozenset()
    without: frozenset[Fraction] = frozenset()
    said: int = field(default=0, compare=False)

    def __and__(self, other: Numbers) -> Numbers:
        low, low_open = _closer(self.low, self.low_open, other.low, other.low_open, 1)
        high, high_open = _closer(self.high, self.high_open, other.high, other.high_open, -1)
        return Numbers(
            low,
            low_open,
            high,
            high_open,
            self.integer or other.integer,
            self.fractional or other.fractional,
            self.factors | other.factors,
            self.without | other.without,
            max(self.said, other.said),
        )

    @property
    def possible(self) -> bool:
        """Whether there may be a number in the set."""
        if self.integer and self.fractional:
            return False
        if self.low is None or self.high is None:
            return True
        if self.low == self.high:
            one = self.low
            return (
                not (self.low_open or self.high_open)
                and one not in self.without
                and (not self.integer or one.denominator == 1)
                and (not self.fractional or one.denominator != 1)
                and all((one / factor).denominator == 1 for factor in self.factors)
            )
        return self.low < self.high and (not self.integer or self._whole()[0] <= self._whole()[1])

    def _whole(self) -> tuple[int, int]:
        """Return the least and the greatest whole number of a bounded set."""
        low, high = self.low or Fraction(0), self.high or Fraction(0)
        least, most = -(-low.numerator // low.denominator), high.numerator // high.denominator
        return (
            least + (self.low_open and low == least),
            most - (self.high_open and high == most),
        )

    @lru_cache(1024)  # noqa: B019
    def texts(self, where: str) -> Texts:
        """Return the texts of the set's numbers.

        Raises:
            InvalidArgument: A factor is too large for an automaton.
        """
        if self.low is not None and self.low == self.high:
            return literals([written(self.low, where)]) if self.possible else NOTHING
        if self.low is None and self.high is None and not self.factors:
            found = matching(_INTEGER if self.integer else _NUMBER, whole=True)
        else:
            found = _signed(self._between(negative=False), self._between(negative=True))
            for factor in self.factors:
                unsigned = _multiples(factor, self.integer, where)
                found &= _signed(unsigned, unsigned)
        if self.fractional:
            found &= matching(_INTEGER + r"\.[0-9]*[1-9][0-9]*", whole=True)
        if self.without:
            # A number has many texts: those of its digits, with zeros behind, and exponents.
            found &= matching(_INTEGER + _FRACTION, whole=True)
            for one in self.without:
                found = found - matching(_all_texts(one, where), whole=True)
        return found

    def _between(self, negative: bool) -> Texts:
        """Return the texts of the distances from 0 of the numbers of one sign."""
        low, low_open, high, high_open = self.low, self.low_open, self.high, self.high_open
        if negative:
            low, low_open, high, high_open = high, high_open, low, low_open
            low, high = (None if each is None else -each for each in (low, high))
        if high is not None and (high < 0 or (high == 0 and (high_open or negative))):
            return NOTHING
        fraction = "" if self.integer else _FRACTION
        whole = f"(?:0|[1-9][0-9]*){fraction}"
        found = matching(whole, whole=True)
        if low is not None and (low > 0 or (low == 0 and low_open)):
            found &= _at_least(low, low_open, self.integer)
        if high is not None:
            found &= _at_most(high, high_open, self.integer)
        return found


def _closer(
    a: Fraction | None, a_open: bool, b: Fraction | None, b_open: bool, sign: int
) -> tuple[Fraction | None, bool]:
    """Return the bound of two that leaves fewer numbers."""
    if a is None or b is None:
        return (b, b_open) if a is None else (a, a_open)
    if a == b:
        return a, a_open or b_open
    return (a, a_open) if (a - b) * sign > 0 else (b, b_open)


def _signed(positive: Texts, negative: Texts) -> Texts:
    return positive | (after("-", negative) if not negative.empty else NOTHING)


def _digits(value: Fraction, where: str = "#") -> tuple[int, str]:
    """Return the whole part of a decimal of at least 0, and the digits after the point."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        raise InvalidArgument(f"JSON schema, {where}: expected a decimal, got {value}")
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    whole, after_point = divmod(int(value * 10**places), 10**places)
    return whole, f"{after_point:0{places}d}" if places else ""


def written(value: Fraction, where: str = "#") -> str:
    """Return a decimal as text, without zeros at its end."""
    whole, digits = _digits(abs(value), where)
    return f"{'-' if value < 0 else ''}{whole}{'.' if digits else ''}{digits}"


def _at_least(low: Fraction, strict: bool, integer: bool) -> Texts:
    whole, digits = _digits(low)
    if integer:
        return matching(natural_range(whole + (bool(digits) or strict), None), whole=True)
    ways = [f"(?:{natural_range(whole + 1, None)}){_FRACTION}"]
    more = "[0-9]*[1-9][0-9]*" if strict else "[0-9]*"
    if not digits:
        ways.append(rf"{whole}\.{more}" if strict else f"{whole}{_FRACTION}")
    for place, digit in enumerate(digits):
        if digit < "9":
            ways.append(rf"{whole}\.{digits[:place]}[{chr(ord(digit) + 1)}-9][0-9]*")
    if digits:
        ways.append(rf"{whole}\.{digits}{more}")
    return matching("|".join(ways), whole=True)


def _at_most(high: Fraction, strict: bool, integer: bool) -> Texts:
    whole, digits = _digits(high)
    if integer:
        most = whole - (strict and not digits)
        return matching(natural_range(0, most), whole=True) if most >= 0 else NOTHING
    ways = [f"(?:{natural_range(0, whole - 1)}){_FRACTION}"] if whole else []
    if not digits:
        ways += [] if strict else [rf"{whole}(?:\.0+)?"]
    else:
        ways.append(str(whole))
    for place, digit in enumerate(digits):
        if digit > "0":
            ways.append(rf"{whole}\.{digits[:place]}[0-{chr(ord(digit) - 1)}][0-9]*")
        if place:
            ways.append(rf"{whole}\.{digits[:place]}")
    if digits and not strict:
        ways.append(rf"{whole}\.{digits}0*")
    return matching("|".join(ways), whole=True) if ways else NOTHING


def _multiples(factor: Fraction, integer: bool, where: str) -> Texts:
    if integer:
        numerator, places = factor.numerator, 0
    else:
        _, digits = _digits(factor, where)
        places = len(digits)
        numerator = int(factor * 10**places)
    if numerator * (places + 2) > 20_000:
        raise InvalidArgument(
            f"JSON schema, {where}: multiples of {float(factor):g} need too many states; "
            "use a smaller factor, or check the number afterwards"
        )
    return multiples(numerator, places)


def _all_texts(value: Fraction, where: str) -> str:
    whole, digits = _digits(abs(value), where)
    sign = "-" if value < 0 else "-?" if value == 0 else ""
    return rf"{sign}{whole}\.{digits}0*" if digits else rf"{sign}{whole}(?:\.0+)?"


def natural_range(low: int, high: int | None) -> str:
    """Return an expression that matches the whole numbers from ``low`` (at least 0) to ``high``."""
    if high is None:
        digits = len(str(low))
        longer = f"[1-9][0-9]{{{digits},}}"
        return f"{natural_range(low, 10**digits - 1)}|{longer}"
    parts = []
    while low <= high:
        # The widest block of numbers that start alike: low = prefix, then ``free`` free digits.
        free = 0
        while low % 10 ** (free + 1) == 0 and low and low + 10 ** (free + 1) - 1 <= high:
            free += 1
        step = 10**free
        first = low // step % 10
        count = min(9 - first, (high - low + 1) // step - 1) if low else min(9, high)
        last = first + count
        prefix = str(low // step)[:-1]
        digit = str(first) if first == last else f"[{first}-{last}]"
        parts.append(prefix + digit + (f"[0-9]{{{free}}}" if free else ""))
        low += step * (count + 1)
    return "|".join(parts)
