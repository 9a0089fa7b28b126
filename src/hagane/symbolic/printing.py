"""Expressions in normal form as text, which ``parse_dim`` reads back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hagane.symbolic.expression import Atom, Dim, Monomial, Number


def print_atom(atom: Atom) -> str:
    """Return a name, a rounded quotient, a remainder, or a call of ``min`` or ``max``."""
    if atom.is_symbol:
        return atom.head
    if atom.head == "floor":
        return f"{_operand(atom.arguments[0])}//{_operand(atom.arguments[1])}"
    if atom.head == "mod":
        return f"{_operand(atom.arguments[0])} % {_operand(atom.arguments[1])}"
    return f"{atom.head}({', '.join(map(str, atom.arguments))})"


def _operand(value: Dim) -> str:
    text = str(value)
    if isinstance(value, int):
        return text
    (monomial, coefficient), *others = value.terms.items()
    if not others and coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1:
        atom = monomial[0][0]
        if atom.is_symbol or atom.head in ("min", "max"):
            return text
    return f"({text})"


def print_sum(terms: Mapping[Monomial, Number]) -> str:
    """Return a sum of products, positive terms first."""
    parts: list[str] = []
    # Positive terms first, so that a leading minus sign is rare.
    ordered = [item for item in terms.items() if item[1] > 0]
    ordered += [item for item in terms.items() if item[1] < 0]
    for monomial, coefficient in ordered:
        sign = "-" if coefficient < 0 else "+"
        text = _print_product(monomial, coefficient if coefficient > 0 else -coefficient)
        if not parts and sign == "-" and len(monomial) == 1 and monomial[0][0].is_quotient:
            text = f"({text})"  # a leading minus binds more tightly than // and %
        parts += [sign, text] if parts or sign == "-" else [text]
    return " ".join(parts).replace("- ", "-", 1) if parts[0] == "-" else " ".join(parts)


def _print_product(monomial: Monomial, coefficient: Number) -> str:
    factors = [str(coefficient)] if coefficient != 1 or not monomial else []
    for atom, power in monomial:
        text = str(atom)
        if atom.is_quotient and (len(monomial) > 1 or coefficient != 1 or power > 1):
            text = f"({text})"
        factors.append(text if power == 1 else f"{text}**{power}")
    return "*".join(factors)
