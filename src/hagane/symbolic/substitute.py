"""Names in expressions: which there are, and expressions with numbers in their place."""

from __future__ import annotations

from collections.abc import Mapping

from hagane.symbolic.expression import (
    Atom,
    Dim,
    Expr,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
)


def symbols_of(value: Dim) -> frozenset[str]:
    """Return the names that ``value`` depends on."""
    if not isinstance(value, Expr):
        return frozenset()
    names: set[str] = set()
    for monomial in value.terms:
        for atom, _ in monomial:
            if atom.is_symbol:
                names.add(atom.head)
            for argument in atom.arguments:
                names |= symbols_of(argument)
    return frozenset(names)


def evaluate(value: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """Return ``value`` with the names in ``sizes`` replaced; other names stay."""
    if not isinstance(value, Expr):
        return value
    total: Dim = 0
    for monomial, coefficient in value.terms.items():
        term: Dim = 1
        for atom, power in monomial:
            replaced = _evaluate_atom(atom, sizes)
            for _ in range(power):
                term = term * replaced
        total = total + multiply(term, coefficient)
    return total


def _evaluate_atom(atom: Atom, sizes: Mapping[str, Dim]) -> Dim:
    if atom.is_symbol:
        return sizes.get(atom.head, Expr({((atom, 1),): 1}))
    arguments = [evaluate(argument, sizes) for argument in atom.arguments]
    match atom.head:
        case "floor":
            return floordiv(arguments[0], arguments[1])
        case "mod":
            return mod(arguments[0], arguments[1])
        case "min":
            return minimum(*arguments)
        case _:
            return maximum(*arguments)
