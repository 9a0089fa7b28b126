"""Rational functions of a program's parameters, as the values of its probabilities.

SymPy's sparse fields of fractions keep them in lowest terms, with coefficients in the rationals.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from hagane.errors import HaganeError


class ParameterDecides(HaganeError, TypeError):
    """A comparison of a parameter where one answer is needed for all of its values."""

    def __init__(self, what: str):
        super().__init__(
            f"{what} depends on a parameter, whose value is not known; parameters stand in "
            "probabilities, and in claims outside Prob and E"
        )


@dataclass(frozen=True, eq=False)
class Parameters:
    """The parameters of a program, each with the least and the greatest value that it may take."""

    names: tuple[str, ...]
    ranges: tuple[tuple[Fraction, Fraction], ...]

    @cached_property
    def _field(self) -> Any:
        # SymPy takes half a second to load.
        from sympy import QQ  # type: ignore[import-untyped]
        from sympy.polys.fields import FracField  # type: ignore[import-untyped]
        from sympy.polys.orderings import lex  # type: ignore[import-untyped]

        return FracField(self.names, QQ, lex)

    def ratio(self, name: str) -> Ratio:
        """Return a parameter as a function of them all."""
        return Ratio(self, self._field.gens[self.names.index(name)])

    def constant(self, value: Fraction | int) -> Ratio:
        """Return a number as a function of the parameters."""
        return Ratio(self, self.of(value))

    def of(self, value: Fraction | int) -> Any:
        """Return a number as SymPy has it."""
        domain = self._field.domain
        return self._field.ground_new(domain(value.numerator, value.denominator))

    @property
    def middle(self) -> tuple[Fraction, ...]:
        """Return a point inside the ranges, where few formulas are zero by chance."""
        return tuple(
            low + (high - low) * Fraction(17 + 2 * place, 37 + 5 * place)
            for place, (low, high) in enumerate(self.ranges)
        )


# A number, or a function of the parameters.
Number: TypeAlias = "Fraction | Ratio"


class Ratio:
    """A quotient of polynomials in the parameters; it calculates with integers and fractions.

    It has no order: comparisons raise :class:`ParameterDecides`. It counts as true where it is
    anything but the constant zero.
    """

    __slots__ = ("_hash", "element", "parameters")

    def __init__(self, parameters: Parameters, element: Any):
        self.parameters = parameters
        self.element = element
        self._hash: int | None = None

    def _with(self, other: Any) -> Any:
        if isinstance(other, Ratio):
            return other.element
        if isinstance(other, int | Fraction):
            return self.parameters.of(other)
        return None

    def _made(self, element: Any) -> Ratio:
        return Ratio(self.parameters, element)

    def __add__(self, other: object) -> Ratio:
        if isinstance(other, int | Fraction) and not other:
            return self
        element = self._with(other)
        return NotImplemented if element is None else self._made(self.element + element)

    __radd__ = __add__

    def __mul__(self, other: object) -> Ratio:
        element = self._with(other)
        return NotImplemented if element is None else self._made(self.element * element)

    __rmul__ = __mul__

    def __neg__(self) -> Ratio:
        return self._made(-self.element)

    def __sub__(self, other: object) -> Ratio:
        element = self._with(other)
        return NotImplemented if element is None else self._made(self.element - element)

    def __rsub__(self, other: object) -> Ratio:
        return -(self - other)

    def __truediv__(self, other: object) -> Ratio:
        element = self._with(other)
        if element is None:
            return NotImplemented
        if not element:
            raise ZeroDivisionError(f"{self} / 0")
        return self._made(self.element / element)

    def __rtruediv__(self, other: object) -> Ratio:
        element = self._with(other)
        if element is None:
            return NotImplemented
        if not self.element:
            raise ZeroDivisionError(f"{other} / 0")
        return self._made(element / self.element)

    def __pow__(self, exponent: int) -> Ratio:
        return self._made(self.element**exponent)

    def __bool__(self) -> bool:
        return bool(self.element)

    def __eq__(self, other: object) -> bool:
        element = self._with(other)
        return NotImplemented if element is None else bool(self.element == element)

    def __hash__(self) -> int:
        if self._hash is None:
            number = self.number
            self._hash = hash(self.element) if number is None else hash(number)
        return self._hash

    def _compared(self, other: Any, compare: Callable[[Any, Any], bool]) -> bool:
        mine, theirs = self.number, other.number if isinstance(other, Ratio) else other
        if mine is None or theirs is None:
            raise ParameterDecides(f"the comparison of {self} with {other}")
        return compare(mine, theirs)

    def __lt__(self, other: object) -> bool:
        return self._compared(other, operator.lt)

    def __le__(self, other: object) -> bool:
        return self._compared(other, operator.le)

    def __gt__(self, other: object) -> bool:
        return self._compared(other, operator.gt)

    def __ge__(self, other: object) -> bool:
        return self._compared(other, operator.ge)

    def __floordiv__(self, other: object) -> Ratio:
        raise ParameterDecides(f"the quotient of {self} and {other}, rounded,")

    __mod__ = __rmod__ = __rfloordiv__ = __floordiv__

    def __float__(self) -> float:
        """Return its value in the middle of the ranges, where engines need some number."""
        return float(self.at(self.parameters.middle))

    @property
    def number(self) -> Fraction | None:
        """Return its value if that is the same for all parameters."""
        if not self.element.numer.is_ground or not self.element.denom.is_ground:
            return None
        above, below = self.element.numer.coeff(1), self.element.denom.coeff(1)
        return Fraction(int(above.numerator), int(above.denominator)) / Fraction(
            int(below.numerator), int(below.denominator)
        )

    @property
    def numerator(self) -> Polynomial:
        """Return the polynomial above the line."""
        return _terms(self.element.numer)

    @property
    def denominator(self) -> Polynomial:
        """Return the polynomial below the line."""
        return _terms(self.element.denom)

    @property
    def bottom(self) -> Ratio:
        """Return the polynomial below the line, as a function."""
        return self._made(self.element.field(self.element.denom))

    def at(self, point: Sequence[Fraction]) -> Fraction:
        """Return its value for values of the parameters.

        Raises:
            ZeroDivisionError: The denominator is zero there.
        """
        return value_at(self.numerator, point) / value_at(self.denominator, point)

    def factors(self) -> tuple[Fraction, list[tuple[Ratio, int]]]:
        """Return a number and irreducible polynomials; below the line powers are negative."""
        scale, found = Fraction(1), []
        for polynomial, sign in ((self.element.numer, 1), (self.element.denom, -1)):
            number, factors = polynomial.factor_list()
            scale *= Fraction(int(number.numerator), int(number.denominator)) ** sign
            for factor, power in factors:
                made = self._made(self.element.field(factor))
                # The sign that it has in the middle of the ranges reads as 1 - p, not p - 1.
                if value_at(made.numerator, self.parameters.middle) < 0:
                    made, scale = -made, scale * (-1) ** power
                found.append((made, sign * power))
        return scale, found

    def __str__(self) -> str:
        number = self.number
        if number is not None:
            return str(number)
        scale, factors = self.factors()
        above = [_power(factor, power) for factor, power in factors if power > 0]
        below = [_power(factor, -power) for factor, power in factors if power < 0]
        sign = "-" if scale < 0 else ""
        scale = abs(scale)
        if scale.numerator != 1 or not above:
            above.insert(0, str(scale.numerator))
        if scale.denominator != 1:
            below.insert(0, str(scale.denominator))
        if len(factors) == 1 and not below and len(above) == 1 and above[0].startswith("("):
            return sign + above[0] if sign else above[0][1:-1]
        top, bottom = "*".join(above), "*".join(below)
        if not below:
            return sign + top
        return f"{sign}{top}/{f'({bottom})' if len(below) > 1 else bottom}"

    def __repr__(self) -> str:
        return f"Ratio({self})"


# Exponents of the parameters, and the coefficient.
Polynomial: TypeAlias = Mapping[tuple[int, ...], Fraction]


def _terms(polynomial: Any) -> Polynomial:
    return {
        tuple(powers): Fraction(int(value.numerator), int(value.denominator))
        for powers, value in polynomial.terms()
    }


def value_at(polynomial: Polynomial, point: Sequence[Fraction]) -> Fraction:
    """Return the value of a polynomial."""
    total = Fraction(0)
    for powers, value in polynomial.items():
        for base, power in zip(point, powers, strict=True):
            value *= base**power
        total += value
    return total


def _power(factor: Ratio, power: int) -> str:
    text = str(factor.element.numer.as_expr()).replace("**", "^")
    if len(factor.numerator) > 1:
        text = f"({text})"
    return text if power == 1 else f"{text}^{power}"
