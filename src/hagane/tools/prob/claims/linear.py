"""Claims as linear constraints on an unknown distribution.

With the parameters known, ``Prob(a) <= 1/2`` says that a weighted sum of the probabilities of the
outcomes is at most zero; so do comparisons of sums of Prob and E under one condition. Products of
probabilities do not, and neither do sums under different conditions; those are not handled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from hagane.tools.prob.language.formula import Term
from hagane.tools.prob.language.operators import evaluate
from hagane.tools.prob.language.program import Liveness, mentions_probability
from hagane.tools.prob.language.syntax import (
    Binary,
    Expectation,
    Expression,
    Probability,
    Unary,
)

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}


class NotLinear(Exception):
    """A claim that is no combination of linear constraints."""


@dataclass(frozen=True, slots=True)
class Sure:
    """A condition that every outcome meets."""

    condition: Expression
    wanted: bool = True

    def admits(self, values: Mapping[str, Any]) -> bool:
        """Tell whether an outcome may be."""
        return bool(evaluate(self.condition, values)) is self.wanted


@dataclass(frozen=True, slots=True)
class Linear:
    """``sum of factors * terms + constant`` compared with zero, all given ``condition``."""

    factors: tuple[tuple[Term, Fraction], ...]
    constant: Fraction
    operator: str
    condition: Expression | None

    def gain(self, values: Mapping[str, Any]) -> Fraction:
        """Return an outcome's share of the sum, times the probability of the condition."""
        if self.condition is not None and not evaluate(self.condition, values):
            return Fraction(0)
        total = self.constant
        for term, factor in self.factors:
            subject = term.event if isinstance(term, Probability) else term.term
            total += factor * evaluate(subject, values)
        return total


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds."""

    parts: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Some part holds."""

    parts: tuple[Requirement, ...]


Requirement: TypeAlias = "Sure | Linear | All | Some"


def requirement(formula: Expression, given: Mapping[str, Any], wanted: bool = True) -> Requirement:
    """Return the requirement of a formula on a distribution.

    Args:
        formula: The formula of a claim.
        given: The values of parameters and fixed variables.
        wanted: False for the formula's negation.

    Raises:
        NotLinear: It cannot be said in constraints.
    """
    if not mentions_probability(formula):
        if not wanted and not Liveness().free(formula) <= given.keys():
            # That some outcome breaks a condition is no constraint on each of them.
            raise NotLinear
        return Sure(formula, wanted)
    match formula:
        case Unary(operator="not", operand=operand):
            return requirement(operand, given, not wanted)
        case Binary(operator="/\\" | "\\/" | "=>" as operator):
            left = requirement(formula.left, given, wanted is not (operator == "=>"))
            right = requirement(formula.right, given, wanted)
            if (operator == "/\\") is wanted:
                return All((left, right))
            both = (left, right)
            if not all(isinstance(part, Linear | Some | Sure) for part in both):
                raise NotLinear
            if all(isinstance(part, Sure) for part in both):
                raise NotLinear
            return Some(both)
        case Binary(operator=operator) if operator in _NEGATED:
            return _comparison(formula, given, wanted)
    raise NotLinear


def _comparison(formula: Binary, given: Mapping[str, Any], wanted: bool) -> Linear:
    operator = formula.operator if wanted else _NEGATED[formula.operator]
    factors, constant = _form(formula.left, given)
    others, other = _form(formula.right, given)
    for term, factor in others.items():
        factors[term] = factors.get(term, Fraction(0)) - factor
    # Two terms under one condition are written with two trees of it; one text is one condition.
    conditions = {_identity(term.condition) for term in factors}
    if len(conditions) > 1:
        raise NotLinear
    condition = next((term.condition for term in factors), None)
    return Linear(tuple(factors.items()), constant - other, operator, condition)


def _identity(condition: Expression | None) -> Any:
    if condition is None:
        return None
    fields = []
    for name in type(condition).__dataclass_fields__:
        value = getattr(condition, name)
        if name != "span":
            fields.append(_identity(value) if hasattr(value, "span") else value)
    return (type(condition).__name__, *[repr(entry) for entry in fields])


def _form(node: Expression, given: Mapping[str, Any]) -> tuple[dict[Term, Fraction], Fraction]:
    """Return an arithmetic expression as factors of its terms and a constant."""
    if not mentions_probability(node):
        if not Liveness().free(node) <= given.keys():
            raise NotLinear
        return {}, Fraction(evaluate(node, given))
    match node:
        case Probability() | Expectation():
            return {node: Fraction(1)}, Fraction(0)
        case Unary(operator="-", operand=operand):
            factors, constant = _form(operand, given)
            return {term: -factor for term, factor in factors.items()}, -constant
        case Binary(operator="+" | "-" as operator):
            sign = 1 if operator == "+" else -1
            factors, constant = _form(node.left, given)
            others, other = _form(node.right, given)
            for term, factor in others.items():
                factors[term] = factors.get(term, Fraction(0)) + sign * factor
            return factors, constant + sign * other
        case Binary(operator="*" | "/" as operator):
            factors, constant = _form(node.left, given)
            others, other = _form(node.right, given)
            if operator == "*" and not factors:
                factors, constant, others, other = others, other, factors, constant
            if others or (operator == "/" and other == 0):
                raise NotLinear
            scale = other if operator == "*" else 1 / other
            scaled = {term: factor * scale for term, factor in factors.items()}
            return scaled, constant * scale
    raise NotLinear
