"""Numbers in closed form: quotients of polynomials in a few constants such as ``exp(-1/2)``.

Two different powers of e with rational exponents are linearly independent over the rationals
(Lindemann and Weierstrass), so a sum of such that is zero has no terms. Other numbers are compared
by their digits, and those that agree in all digits are left undecided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from hagane.errors import HaganeError
from hagane.tools.prob.integrals.atoms import Atom, Interval, enclosure, exponential

# A product of constants, sorted, and its factor.
Monomial: TypeAlias = tuple[Atom, ...]
Polynomial: TypeAlias = Mapping[Monomial, Fraction]

_DIGITS = (16, 32, 64, 128)
_MOST_TERMS = 4


class Undecided(HaganeError, ArithmeticError):
    """Two numbers that are too near to each other to be told apart."""

    def __init__(self, number: Closed):
        super().__init__(f"{number.text} is too near to 0")
        self.number = number


class Closed:
    """A number in closed form.

    It calculates with integers and fractions. Comparisons raise :class:`Undecided` where all
    digits that are computed agree.
    """

    __slots__ = ("bottom", "top")

    def __init__(self, top: Polynomial, bottom: Polynomial | None = None):
        if bottom is not None and set(bottom) == {()}:
            top, bottom = {key: value / bottom[()] for key, value in top.items()}, None
        self.top = {key: value for key, value in top.items() if value}
        self.bottom = bottom if self.top else None

    @classmethod
    def of(cls, number: Closed | Fraction | int) -> Closed:
        """Return a number in this form."""
        return number if isinstance(number, Closed) else cls({(): Fraction(number)})

    @classmethod
    def atom(cls, atom: Atom, factor: Fraction | int = 1) -> Closed:
        """Return a multiple of a constant."""
        return cls({(atom,): Fraction(factor)})

    def __add__(self, other: object) -> Closed:
        if not isinstance(other, Closed | Fraction | int):
            return NotImplemented
        other = Closed.of(other)
        if self.bottom == other.bottom:
            return Closed(_sum(self.top, other.top), self.bottom)
        mine, theirs = self.bottom or _ONE, other.bottom or _ONE
        top = _sum(_product(self.top, theirs), _product(other.top, mine))
        return Closed(top, _product(mine, theirs))

    __radd__ = __add__

    def __neg__(self) -> Closed:
        return Closed({key: -value for key, value in self.top.items()}, self.bottom)

    def __sub__(self, other: object) -> Closed:
        if not isinstance(other, Closed | Fraction | int):
            return NotImplemented
        return self + -Closed.of(other)

    def __rsub__(self, other: object) -> Closed:
        return -self + other

    def __mul__(self, other: object) -> Closed:
        if not isinstance(other, Closed | Fraction | int):
            return NotImplemented
        other = Closed.of(other)
        bottom = None
        if self.bottom is not None or other.bottom is not None:
            bottom = _product(self.bottom or _ONE, other.bottom or _ONE)
        return Closed(_product(self.top, other.top), bottom)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Closed:
        if not isinstance(other, Closed | Fraction | int):
            return NotImplemented
        other = Closed.of(other)
        if not other.top:
            raise ZeroDivisionError(f"{self.text} / 0")
        if self.bottom == other.bottom:
            return Closed(self.top, other.top)._lowest()
        top = _product(self.top, other.bottom or _ONE)
        return Closed(top, _product(other.top, self.bottom or _ONE))._lowest()

    def __rtruediv__(self, other: object) -> Closed:
        if not isinstance(other, Fraction | int):
            return NotImplemented
        return Closed.of(other) / self

    def _lowest(self) -> Closed:
        """Return the same number without constants that are factors above and below."""
        if self.bottom is None:
            return self
        if self.top.keys() == self.bottom.keys():
            factors = {value / self.bottom[key] for key, value in self.top.items()}
            if len(factors) == 1:
                return Closed.of(factors.pop())
        common = Counter(next(iter(self.bottom)))
        for key in (*self.top, *self.bottom):
            common &= Counter(key)
        if not common:
            return self
        top, bottom = (
            {_left(key, common): value for key, value in part.items()}
            for part in (self.top, self.bottom)
        )
        return Closed(top, bottom)

    def __bool__(self) -> bool:
        return bool(self.top)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Closed | Fraction | int):
            return NotImplemented
        return self._sign_beside(other) == 0

    def __hash__(self) -> int:
        return hash(self.number) if self.number is not None else hash(frozenset(self.top.items()))

    def __lt__(self, other: Closed | Fraction | int) -> bool:
        return self._sign_beside(other) < 0

    def __le__(self, other: Closed | Fraction | int) -> bool:
        return self._sign_beside(other) <= 0

    def __gt__(self, other: Closed | Fraction | int) -> bool:
        return self._sign_beside(other) > 0

    def __ge__(self, other: Closed | Fraction | int) -> bool:
        return self._sign_beside(other) >= 0

    def _sign_beside(self, other: Closed | Fraction | int) -> int:
        difference = self - other
        if not difference.top:
            return 0
        for digits in _DIGITS:
            low, high = difference.enclosure(digits)
            if low > 0 or high < 0:
                return 1 if low > 0 else -1
        raise Undecided(difference)

    def __float__(self) -> float:
        low, high = self.enclosure(_DIGITS[0])
        return float((low + high) / 2)

    @property
    def number(self) -> Fraction | None:
        """Return its value if it is a fraction."""
        if not self.top:
            return Fraction(0)
        return self.top[()] if self.bottom is None and set(self.top) == {()} else None

    @property
    def is_bounded_only(self) -> bool:
        """Tell whether bounds of it are known and no closed form."""
        keys = [*self.top, *(self.bottom or ())]
        return any(atom.kind == "region" for key in keys for atom in key)

    def enclosure(self, digits: int) -> Interval:
        """Return bounds of its value.

        Args:
            digits: How many decimal digits its constants are computed to.
        """
        top = _enclosed(self.top, digits)
        if self.bottom is None:
            return top
        low, high = _enclosed(self.bottom, digits)
        if low <= 0 <= high:
            raise Undecided(Closed(self.bottom))
        ends = [a / b for a in top for b in (low, high)]
        return min(ends), max(ends)

    @property
    def text(self) -> str:
        """Return the formula, or "" where it has more terms than people read."""
        size = len(self.top) + len(self.bottom or ())
        if self.is_bounded_only or size > _MOST_TERMS:
            return ""
        top = _shown(self.top)
        if self.bottom is None:
            return top
        above = f"({top})" if len(self.top) > 1 else top
        below = _shown(self.bottom)
        return f"{above}/({below})"

    def __str__(self) -> str:
        return self.text or str(float(self))


_ONE: Polynomial = {(): Fraction(1)}


def _sum(left: Polynomial, right: Polynomial) -> dict[Monomial, Fraction]:
    total = dict(left)
    for key, value in right.items():
        total[key] = total.get(key, Fraction(0)) + value
    return total


def _product(left: Polynomial, right: Polynomial) -> dict[Monomial, Fraction]:
    total: dict[Monomial, Fraction] = {}
    for one, value in left.items():
        for other, factor in right.items():
            key = _joined(one, other)
            total[key] = total.get(key, Fraction(0)) + value * factor
    return {key: value for key, value in total.items() if value}


def _joined(left: Monomial, right: Monomial) -> Monomial:
    """Return a product, in which powers of e are one power."""
    if not left or not right:
        return left or right
    exponent, others = Fraction(0), []
    for atom in (*left, *right):
        if atom.kind == "exp":
            exponent += atom.numbers[0]
        else:
            others.append(atom)
    if exponent:
        others.append(exponential(exponent))
    return tuple(sorted(others))


def _left(key: Monomial, common: Counter[Atom]) -> Monomial:
    return tuple(sorted((Counter(key) - common).elements()))


def _enclosed(polynomial: Polynomial, digits: int) -> Interval:
    low = high = Fraction(0)
    for atoms, factor in polynomial.items():
        interval = (factor, factor)
        for atom in atoms:
            ends = [a * b for a in interval for b in enclosure(atom, digits)]
            interval = min(ends), max(ends)
        low, high = low + interval[0], high + interval[1]
    return low, high


def _shown(polynomial: Polynomial) -> str:
    parts: list[str] = []
    for atoms, factor in sorted(polynomial.items(), key=lambda item: (len(item[0]), str(item[0]))):
        product = "*".join(str(atom) for atom in atoms)
        size = abs(factor)
        amount = str(size) if not product else product if size == 1 else f"{size}*{product}"
        sign = "-" if factor < 0 else "+" if parts else ""
        parts.append(f"{sign} {amount}" if parts else f"{sign}{amount}")
    return " ".join(parts) or "0"
