"""Bounds of expressions, and what follows from them: extremes, and whether two can be equal."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from hagane.symbolic.expression import Atom, Dim, Expr, Number, add, multiply

# Calls that have an upper bound; first those whose bound may cancel others.
_TAKEN = ("mod", "min", "floor")


def minimum(*values: Dim) -> Dim:
    """Return the smallest of ``values``."""
    return _extreme("min", values)


def maximum(*values: Dim) -> Dim:
    """Return the largest of ``values``."""
    return _extreme("max", values)


def absolute(value: Dim) -> Dim:
    """Return ``value`` without its sign."""
    return abs(value) if isinstance(value, int) else maximum(value, multiply(value, -1))


def _extreme(head: str, values: Iterable[Dim]) -> Dim:
    flat: list[Dim] = []
    for value in values:
        atom = _single_atom(value)
        flat += atom.arguments if atom is not None and atom.head == head else (value,)
    kept: list[Dim] = []
    for value in flat:
        if any(_dominates(head, other, value) for other in kept):
            continue
        kept = [other for other in kept if not _dominates(head, value, other)] + [value]
    if len(kept) == 1:
        return kept[0]
    return Expr({((Atom(head, tuple(sorted(kept, key=str))), 1),): 1})


def _dominates(head: str, left: Dim, right: Dim) -> bool:
    """Whether ``left`` makes ``right`` needless in a minimum or maximum."""
    atom = _single_atom(right)
    if atom is not None and {head, atom.head} == {"min", "max"} and left in atom.arguments:
        return True  # max(n, min(n, m)) = n, and the other way round
    difference = add(left, multiply(right, -1))
    lowest = lower_bound(difference if head == "max" else multiply(difference, -1))
    return lowest is not None and lowest >= 0


def lower_bound(value: Dim | Fraction) -> Number | None:
    """Return a number that ``value`` never falls below, if a cheap rule gives one.

    Where a floor, a remainder or a minimum is taken away, what it never exceeds is taken away
    instead: ``4*n - 4*(3*n//4)`` is at least ``n``, and ``n - 2 % n`` at least 1.
    """
    if not isinstance(value, Expr):
        return value
    total: Number = 0
    taken: list[Atom] = []
    for monomial, coefficient in value.terms.items():
        if not monomial:
            total += coefficient
        elif coefficient < 0:
            if not _is_one(monomial) or monomial[0][0].head not in _TAKEN:
                return None
            taken.append(monomial[0][0])
        elif not all(_is_nonnegative(atom) for atom, _ in monomial):
            return None
    return total if not taken else _without(value, min(taken, key=lambda a: _TAKEN.index(a.head)))


def _without(value: Expr, atom: Atom) -> Number | None:
    """Return the bound of a sum from which an atom is taken away, by the bounds of that atom."""
    coefficient = value.terms[((atom, 1),)]
    rest = add(value, Expr({((atom, 1),): -coefficient}))
    for most in _never_exceeded(atom):
        found = lower_bound(add(rest, multiply(most, coefficient)))
        if found is not None:
            return found
    return None


def _never_exceeded(atom: Atom) -> Iterable[Dim | Fraction]:
    """Yield values that an atom is at most."""
    if atom.head == "floor" and isinstance(atom.arguments[1], int):
        yield multiply(atom.arguments[0], Fraction(1, atom.arguments[1]))
    elif atom.head == "mod":
        yield add(atom.arguments[1], -1)
    elif atom.head == "min":
        yield from atom.arguments


def _is_nonnegative(atom: Atom) -> bool:
    if atom.is_symbol:
        return True
    bounds = [lower_bound(argument) for argument in atom.arguments]
    if atom.head == "mod":
        return bounds[1] is not None
    if atom.head == "max":
        return any(bound is not None and bound >= 0 for bound in bounds)
    return all(bound is not None and bound >= 0 for bound in bounds)


def _is_one(monomial: tuple[tuple[Atom, int], ...]) -> bool:
    """Whether a product is an atom by itself."""
    return len(monomial) == 1 and monomial[0][1] == 1


def _single_atom(value: Dim) -> Atom | None:
    if isinstance(value, Expr) and len(value.terms) == 1:
        ((monomial, coefficient),) = value.terms.items()
        if coefficient == 1 and _is_one(monomial):
            return monomial[0][0]
    return None


def definitely_equal(left: Dim, right: Dim) -> bool:
    """Whether ``left`` and ``right`` are equal for every value of the names."""
    difference = add(left, multiply(right, -1))
    return not isinstance(difference, Expr) and difference == 0


def definitely_different(left: Dim, right: Dim) -> bool:
    """Whether cheap rules show that no value of the names makes the two equal."""
    difference = add(left, multiply(right, -1))
    if not isinstance(difference, Expr):
        return difference != 0
    for value in (difference, multiply(difference, -1)):
        lowest = lower_bound(value)
        if lowest is not None and lowest > 0:
            return True
    return False
