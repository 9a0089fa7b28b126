"""Conditions on parameters: comparisons of formulas with zero, and their combinations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from hagane.tools.prob.language.operators import combine
from hagane.tools.prob.language.ratios import Number, Ratio
from hagane.tools.prob.language.syntax import (
    Binary,
    Expectation,
    Expression,
    If,
    Literal,
    Probability,
    Project,
    Unary,
    Variable,
)

_SIGNS: Mapping[str, tuple[int, ...]] = {
    "=": (0,),
    "!=": (-1, 1),
    "<": (-1,),
    "<=": (-1, 0),
    ">": (1,),
    ">=": (0, 1),
}
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Sign:
    """``formula operator 0``."""

    formula: Ratio
    operator: str

    def admits(self, sign: int) -> bool:
        """Tell whether the condition holds where the formula has a sign."""
        return sign in _SIGNS[self.operator]


@dataclass(frozen=True, slots=True)
class Both:
    """Two conditions, of which both are meant, or at least one."""

    left: Condition
    right: Condition
    needs_both: bool


Condition: TypeAlias = "bool | Sign | Both"


def signs_of(condition: Condition) -> Iterator[Sign]:
    """Yield the comparisons of a condition."""
    if isinstance(condition, Sign):
        yield condition
    elif isinstance(condition, Both):
        yield from signs_of(condition.left)
        yield from signs_of(condition.right)


def decided(condition: Condition, sign: Callable[[Ratio], int]) -> bool:
    """Return whether a condition holds where formulas have given signs."""
    if isinstance(condition, Sign):
        return condition.admits(sign(condition.formula))
    if isinstance(condition, Both):
        left, right = decided(condition.left, sign), decided(condition.right, sign)
        return left and right if condition.needs_both else left or right
    return condition


def both(left: Condition, right: Condition, *, needs_both: bool = True) -> Condition:
    """Return a conjunction, or a disjunction, without parts that say nothing."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, bool):
            return other if one is needs_both else one
    return left if left == right else Both(left, right, needs_both)


def condition_of(
    node: Expression, terms: Mapping[Expression, Number], values: Mapping[str, Any]
) -> Condition:
    """Return a claim as a condition on parameters.

    Args:
        node: The claim.
        terms: The value of each of its Prob and E.
        values: The values of its variables.
    """
    return _Conditions(terms, values).of(node)


class _Conditions:
    def __init__(self, terms: Mapping[Expression, Number], values: Mapping[str, Any]):
        self.terms = terms
        self.values = values

    def of(self, node: Expression, wanted: bool = True) -> Condition:
        match node:
            case Unary(operator="not"):
                return self.of(node.operand, not wanted)
            case Binary(operator="/\\" | "\\/"):
                joins = (node.operator == "/\\") is wanted
                left, right = self.of(node.left, wanted), self.of(node.right, wanted)
                return both(left, right, needs_both=joins)
            case Binary(operator="=>"):
                left, right = self.of(node.left, not wanted), self.of(node.right, wanted)
                return both(left, right, needs_both=not wanted)
            case Binary(operator=operator) if operator in _SIGNS:
                return self._compared(node, operator if wanted else _OPPOSITE[operator])
            case If():
                test, other = self.of(node.condition), self.of(node.condition, False)
                then, otherwise = self.of(node.then, wanted), self.of(node.otherwise, wanted)
                return both(both(test, then), both(other, otherwise), needs_both=False)
        return bool(self._value(node)) is wanted

    def _compared(self, node: Binary, operator: str) -> Condition:
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(left, bool | tuple) or isinstance(right, bool | tuple):
            return (left == right) is (operator == "=")
        difference = left - right
        if isinstance(difference, Ratio):
            number = difference.number
            if number is None:
                return Sign(difference, operator)
            difference = number
        return ((difference > 0) - (difference < 0)) in _SIGNS[operator]

    def _value(self, node: Expression) -> Any:
        match node:
            case Probability() | Expectation():
                return self.terms[node]
            case Literal(value=value):
                return value
            case Variable(name=name):
                return self.values[name]
            case Project():
                return self._value(node.tuple)[node.index]
            case Unary(operator="-"):
                return -self._value(node.operand)
            case Binary(operator=operator) if operator in ("+", "-", "*", "/", "//", "%"):
                return combine(node, self._value(node.left), self._value(node.right))
        found = self.of(node)
        if not isinstance(found, bool):
            raise TypeError("a condition on parameters where a value is needed")
        return found


def is_constant(value: object) -> bool:
    """Tell whether a number is the same for all parameters."""
    return isinstance(value, int | Fraction) or (
        isinstance(value, Ratio) and value.number is not None
    )
