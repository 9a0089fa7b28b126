"""Polynomials over named dimensions, with floor, modulo, minimum and maximum as atoms.

An expression is a sum of monomials with rational coefficients. A monomial is a product of atoms;
an atom is a named dimension or a call (``floor``, ``mod``, ``min``, ``max``) whose arguments are
expressions again. Everything is built through functions that normalise, so two expressions that
normalise alike compare equal, and a result without atoms comes back as a plain number.

Named dimensions are sizes: integers that are at least zero. Symbolic divisors are taken to be
positive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor as _floor_number
from math import gcd, lcm
from typing import TypeAlias

from hagane.symbolic.printing import print_atom, print_sum

Number: TypeAlias = int | Fraction


@dataclass(frozen=True, slots=True)
class Atom:
    """A named dimension (no arguments) or a call of ``floor``, ``mod``, ``min`` or ``max``."""

    head: str
    arguments: tuple[Dim, ...] = ()

    @property
    def is_symbol(self) -> bool:
        """Whether this is a named dimension."""
        return not self.arguments

    @property
    def is_quotient(self) -> bool:
        """Whether this is a rounded quotient or its remainder."""
        return self.head in ("floor", "mod")

    def sort_key(self) -> tuple[bool, str, tuple[str, ...]]:
        """Return where the atom stands in a product: names first, by letter."""
        return (not self.is_symbol, self.head, tuple(map(str, self.arguments)))

    def __str__(self) -> str:
        return print_atom(self)


Monomial: TypeAlias = tuple[tuple[Atom, int], ...]
_ONE: Monomial = ()


class Expr:
    """An immutable, normalised expression; arithmetic with ``+ - * // %`` gives a ``Dim``.

    Ask whether two expressions are equal with ``definitely_equal`` and ``definitely_different``:
    ``==`` only says whether the normal forms are the same.
    """

    __slots__ = ("__dict__", "terms")

    # The operation this came from, for display only: (operator, operands, rounded quotients in it).
    written: tuple[str, tuple[Dim | Fraction, ...], int] | None = None

    def __init__(self, terms: Mapping[Monomial, Number]):
        self.terms: dict[Monomial, Number] = dict(
            sorted(terms.items(), key=lambda item: _monomial_key(item[0]))
        )

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that it depends on."""
        found: set[str] = set()
        for monomial in self.terms:
            for atom, _ in monomial:
                if atom.is_symbol:
                    found.add(atom.head)
                for argument in atom.arguments:
                    if isinstance(argument, Expr):
                        found |= argument.names
        return frozenset(found)

    @cached_property
    def weight(self) -> int:
        """How many atoms its text shows; a part counts wherever it stands, as a text repeats it."""
        return sum(
            1 + sum(argument.weight for argument in atom.arguments if isinstance(argument, Expr))
            for monomial in self.terms
            for atom, _ in monomial
        )

    @cached_property
    def _key(self) -> tuple[tuple[Monomial, Number], ...]:
        return tuple(self.terms.items())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expr) or self._hash != other._hash:
            return False
        return self._key == other._key

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Dim | Fraction) -> Dim:
        return _written("+", (self, other), add(self, other))

    def __radd__(self, other: Dim | Fraction) -> Dim:
        return _written("+", (other, self), add(other, self))

    def __neg__(self) -> Dim:
        return _written("negate", (self,), multiply(self, -1))

    def __sub__(self, other: Dim | Fraction) -> Dim:
        return _written("-", (self, other), add(self, multiply(other, -1)))

    def __rsub__(self, other: Dim | Fraction) -> Dim:
        return _written("-", (other, self), add(other, multiply(self, -1)))

    def __mul__(self, other: Dim | Fraction) -> Dim:
        return _written("*", (self, other), multiply(self, other))

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return floordiv(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return mod(self, other)

    def __rmod__(self, other: Dim) -> Dim:
        return mod(other, self)

    def __int__(self) -> int:
        raise TypeError(f"the size '{self}' is not a known number")

    @cached_property
    def _text(self) -> str:
        return print_sum(self.terms)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Expr({self})"


Dim: TypeAlias = int | Expr

# A formula with more rounded quotients than this is easier to read in normal form.
_MAX_WRITTEN = 3


def _written(operator: str, operands: tuple[Dim | Fraction, ...], result: Dim) -> Dim:
    """Remember in ``result`` how it was computed."""
    if (
        isinstance(result, Expr)
        and all(result is not operand for operand in operands)
        and _quotients(result)
    ):
        parts = [
            operand.written[2] if operand.written else _quotients(operand)
            for operand in operands
            if isinstance(operand, Expr)
        ]
        weight = sum(parts) + (operator in ("floor", "ceil"))
        inner = operands[0]
        if operator == "negate" and isinstance(inner, Expr) and inner.written:
            before, (source, *_), _ = inner.written
            if before == "negate":
                result.written = source.written if isinstance(source, Expr) else None
                return result
        if operator == "+" and (joined := _joined_quotient(*operands)) is not None:
            operator, operands = "floor", joined
        if 0 < weight <= _MAX_WRITTEN:
            result.written = (operator, operands, weight)
    return result


def _joined_quotient(
    left: Dim | Fraction, right: Dim | Fraction
) -> tuple[Dim | Fraction, ...] | None:
    """Return numerator and divisor of ``a//b + c``, which reads better as ``(a + c*b)//b``."""
    if isinstance(left, Expr) and isinstance(right, int) and right > 0 and left.written:
        operator, (top, *bottom), _ = left.written
        if operator == "floor" and isinstance(bottom[0], int):
            return top + right * bottom[0], bottom[0]
    return None


def _quotients(value: Expr) -> int:
    return sum(atom.is_quotient for monomial in value.terms for atom, _ in monomial)


def symbol(name: str) -> Expr:
    """Return the dimension called ``name``."""
    return Expr({((Atom(name), 1),): 1})


def _terms(value: Dim | Fraction) -> Mapping[Monomial, Number]:
    if isinstance(value, Expr):
        return value.terms
    return {_ONE: value} if value else {}


def _make(terms: Mapping[Monomial, Number]) -> Dim:
    kept = {
        monomial: _simple_number(coefficient)
        for monomial, coefficient in terms.items()
        if coefficient != 0
    }
    if not kept:
        return 0
    if len(kept) == 1 and _ONE in kept:
        return kept[_ONE]  # type: ignore[return-value]  # a Fraction only inside floor(...)
    return Expr(kept)


def _simple_number(value: Number) -> Number:
    return int(value) if value == int(value) else Fraction(value)


def _monomial_key(monomial: Monomial) -> tuple[int, tuple[object, ...]]:
    degree = sum(power for _, power in monomial)
    return (-degree, tuple((atom.sort_key(), -power) for atom, power in monomial))


def add(left: Dim | Fraction, right: Dim | Fraction) -> Dim:
    """Return the sum of two expressions."""
    terms = dict(_terms(left))
    for monomial, coefficient in _terms(right).items():
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return _make(terms)


def multiply(left: Dim | Fraction, right: Dim | Fraction) -> Dim:
    """Return the product of two expressions."""
    terms: dict[Monomial, Number] = {}
    for left_monomial, left_coefficient in _terms(left).items():
        for right_monomial, right_coefficient in _terms(right).items():
            monomial = _join(left_monomial, right_monomial)
            terms[monomial] = terms.get(monomial, 0) + left_coefficient * right_coefficient
    return _make(terms)


def _join(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].sort_key()))


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of ``dims`` (1 for none)."""
    total: Dim = 1
    for dim in dims:
        total = multiply(total, dim)
    return total


def floor(value: Dim | Fraction) -> Dim:
    """Return the largest integer that is at most ``value``."""
    if not isinstance(value, Expr):
        return _floor_number(value)
    denominator = lcm(*(Fraction(c).denominator for c in value.terms.values()))
    return floordiv(multiply(value, denominator), denominator)


def floordiv(left: Dim, right: Dim) -> Dim:
    """Return ``left / right`` rounded down.

    Rewrites, in this order: exact division by a monomial; terms divisible by a constant divisor
    leave the floor (``(4*n + 3)//4 = n``); nested floors by constants join
    (``n//2//3 = n//6``); common factors of a constant divisor cancel.
    """
    return _written("floor", (left, right), _floordiv(left, right))


def _floordiv(left: Dim, right: Dim) -> Dim:
    if not isinstance(left, Expr) and not isinstance(right, Expr):
        return _floor_number(Fraction(left) / Fraction(right))
    exact = _divide_exactly(left, right)
    if exact is not None and _is_integral(exact):
        return exact
    if isinstance(right, Expr):
        top, bottom = _reduced(left, right)
        if not isinstance(bottom, Expr):
            return _floordiv(top, bottom)
        return Expr({((Atom("floor", (top, bottom)), 1),): 1})
    if right < 0:
        return _floordiv(multiply(left, -1), -right)
    whole, rest = _split(left, right)
    if not isinstance(rest, Expr):
        return add(whole, _floor_number(Fraction(rest) / right))
    rest, divisor = _cancel(rest, right)
    if divisor == 1:
        return add(whole, rest)
    joined, product = _join_nested_floor(rest, divisor)
    if product != divisor:
        return add(whole, _floordiv(joined, product))
    return add(whole, Expr({((Atom("floor", (rest, divisor)), 1),): 1}))


def _reduced(left: Dim, right: Expr) -> tuple[Dim, Dim]:
    """Cancel common factors of numerator and divisor: ``6*b*n // (4*b)`` is ``3*n // 2``."""
    terms = [*_terms(left).items(), *right.terms.items()]
    if any(Fraction(coefficient).denominator != 1 for _, coefficient in terms):
        return left, right
    number = gcd(*(int(coefficient) for _, coefficient in terms))
    shared = dict(terms[0][0])
    for monomial, _ in terms[1:]:
        powers = dict(monomial)
        shared = {atom: min(power, powers.get(atom, 0)) for atom, power in shared.items()}
    common: Monomial = tuple((atom, power) for atom, power in shared.items() if power)
    if number == 1 and not common:
        return left, right

    def divided(value: Dim) -> Dim:
        result: dict[Monomial, Number] = {}
        for monomial, coefficient in _terms(value).items():
            rest = _divide_monomial(monomial, common)
            assert rest is not None
            result[rest] = int(coefficient) // number
        return _make(result)

    return divided(left), divided(right)


def ceildiv(left: Dim, right: Dim) -> Dim:
    """Return ``left / right`` rounded up."""
    if isinstance(right, int) and right < 0:
        left, right = multiply(left, -1), -right
    if isinstance(right, Expr):  # which may be negative
        return multiply(floordiv(multiply(left, -1), right), -1)
    return _written("ceil", (left, right), _floordiv(add(add(left, right), -1), right))


def mod(left: Dim, right: Dim) -> Dim:
    """Return the remainder of ``floordiv``, which has the sign of ``right``."""
    if not isinstance(left, Expr) and not isinstance(right, Expr):
        return left % right
    exact = _divide_exactly(left, right)
    if exact is not None and _is_integral(exact):
        return 0
    if exact is not None or not isinstance(right, Expr):
        # Through floor, so that h - h % 32 and 32*(h//32) are one normal form; n % (2*n) is n.
        return add(left, multiply(multiply(_floordiv(left, right), right), -1))
    return Expr({((Atom("mod", (left, right)), 1),): 1})


def _is_integral(value: Dim | Fraction) -> bool:
    return all(Fraction(c).denominator == 1 for c in _terms(value).values())


def _divide_exactly(left: Dim, right: Dim) -> Dim | None:
    """Return the polynomial q with ``q * right = left``, by long division, or None."""
    divisor = list(_terms(right).items())
    if not divisor:
        raise ZeroDivisionError("division of a dimension by zero")
    lead_monomial, lead_coefficient = divisor[0]
    quotient: Dim = 0
    rest = left
    for _ in range(64):
        if not isinstance(rest, Expr) and rest == 0:
            return quotient
        monomial, coefficient = next(iter(_terms(rest).items()))
        factor = _divide_monomial(monomial, lead_monomial)
        if factor is None:
            return None
        step = _make({factor: Fraction(coefficient) / lead_coefficient})
        quotient = add(quotient, step)
        rest = add(rest, multiply(multiply(step, right), -1))
    return None


def _divide_monomial(left: Monomial, right: Monomial) -> Monomial | None:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) - power
        if powers[atom] < 0:
            return None
    return tuple((atom, power) for atom, power in powers.items() if power)


def _split(value: Dim, divisor: int) -> tuple[Dim, Dim]:
    """Return (w, r) with ``value = divisor * w + r`` and r's coefficients in [0, divisor)."""
    whole: dict[Monomial, Number] = {}
    rest: dict[Monomial, Number] = {}
    for monomial, coefficient in _terms(value).items():
        if Fraction(coefficient).denominator != 1:
            rest[monomial] = coefficient
            continue
        quotient = int(coefficient) // divisor
        whole[monomial] = quotient
        rest[monomial] = coefficient - quotient * divisor
    return _make(whole), _make(rest)


def _cancel(value: Expr, divisor: int) -> tuple[Expr, int]:
    coefficients = [c for m, c in value.terms.items() if m != _ONE]
    if any(Fraction(c).denominator != 1 for c in coefficients):
        return value, divisor
    common = gcd(divisor, *(int(c) for c in coefficients))
    if common == 1:
        return value, divisor
    # floor((c*p + r) / (c*d)) = floor((p + floor(r/c)) / d), since p and d are integers.
    constant = value.terms.get(_ONE, 0)
    reduced: dict[Monomial, Number] = {
        m: Fraction(c, common) for m, c in value.terms.items() if m != _ONE
    }
    reduced[_ONE] = _floor_number(Fraction(constant) / common)
    result = _make(reduced)
    assert isinstance(result, Expr)
    return result, divisor // common


def _join_nested_floor(value: Expr, divisor: int) -> tuple[Expr, int]:
    """Rewrite ``(a//c + k)//d`` as ``(a + k*c)//(c*d)``."""
    inner = [m for m in value.terms if m != _ONE]
    if len(inner) != 1 or value.terms[inner[0]] != 1 or len(inner[0]) != 1:
        return value, divisor
    atom, power = inner[0][0]
    if atom.head != "floor" or power != 1:
        return value, divisor
    numerator, denominator = atom.arguments
    if isinstance(denominator, Expr):
        return value, divisor
    joined = add(numerator, multiply(value.terms.get(_ONE, 0), denominator))
    assert isinstance(joined, Expr)
    return joined, divisor * denominator
