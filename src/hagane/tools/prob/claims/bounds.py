"""Claims of distributions that are known up to runs of a small probability."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

from hagane.tools.prob.language.formula import Interval, Term
from hagane.tools.prob.language.operators import combine
from hagane.tools.prob.language.syntax import (
    Binary,
    Expectation,
    Expression,
    If,
    Literal,
    Probability,
    Unary,
    Value,
    Variable,
)

# Of a truth value: True, False, or None where the open runs decide.
_Known: TypeAlias = "Interval | bool | None"
_ANY: Interval = (None, None)


def within(term: Term, amount: Fraction, weight: Fraction, unknown: Fraction) -> Interval:
    """Return the bounds of a Prob or E.

    Args:
        term: The Prob or E.
        amount: The weight of the event, or the weighted sum, among the runs that are known.
        weight: The weight of the condition among them.
        unknown: The weight of the runs that are not known.
    """
    if not unknown:
        return amount / weight, amount / weight
    if isinstance(term, Expectation):
        return _ANY
    whole = weight + unknown
    return amount / whole, (amount + unknown) / whole


def decide(
    formula: Expression, values: Mapping[Term, Interval], state: Mapping[str, Value]
) -> bool | None:
    """Return whether a claim holds for all that its Prob and E may be; None if that differs."""
    found = _known(formula, values, state)
    assert not isinstance(found, tuple)
    return found


def _known(node: Expression, values: Mapping[Term, Interval], state: Mapping[str, Value]) -> _Known:
    match node:
        case Probability() | Expectation():
            return values[node]
        case Literal(value=bool() as value):
            return value
        case Literal(value=value):
            return Fraction(value), Fraction(value)
        case Variable(name=name):
            own = state[name]
            if isinstance(own, bool):
                return own
            return None if isinstance(own, tuple) else (Fraction(own), Fraction(own))
        case Unary(operator="not"):
            found = _known(node.operand, values, state)
            return None if found is None else not found
        case Unary():
            found = _known(node.operand, values, state)
            return (_minus(found[1]), _minus(found[0])) if isinstance(found, tuple) else None
        case If():
            condition = _known(node.condition, values, state)
            then, otherwise = (
                _known(branch, values, state) for branch in (node.then, node.otherwise)
            )
            if isinstance(condition, bool):
                return then if condition else otherwise
            return then if then == otherwise else None
        case Binary():
            left, right = (_known(side, values, state) for side in (node.left, node.right))
            if node.operator in ("/\\", "\\/", "=>"):
                return _connected(node.operator, left, right)
            if isinstance(left, tuple) and isinstance(right, tuple):
                return _combined(node, left, right)
            both = isinstance(left, bool) and isinstance(right, bool)
            return combine(node, left, right) if both else None
    return None


def _minus(bound: Fraction | None) -> Fraction | None:
    return None if bound is None else -bound


def _connected(operator: str, left: _Known, right: _Known) -> bool | None:
    if operator == "=>":
        return _connected("\\/", None if left is None else not left, right)
    decisive = operator == "\\/"
    if left is decisive or right is decisive:
        return decisive
    return None if left is None or right is None else not decisive


def _combined(node: Binary, left: Interval, right: Interval) -> _Known:
    if node.operator in ("<", "<=", ">", ">=", "=", "!="):
        return _compared(node.operator, left, right)
    if node.operator == "+":
        return _sum(left[0], right[0]), _sum(left[1], right[1])
    if node.operator == "-":
        return _sum(left[0], _minus(right[1])), _sum(left[1], _minus(right[0]))
    corners: list[Any] = []
    for a, b in product(left, right):
        if a is None or b is None:
            return _ANY
        if node.operator == "/" and (right[0] or 0) <= 0 <= (right[1] or 0):
            return _ANY
        corners.append(combine(node, a, b))
    if node.operator not in ("*", "/") and len(set(corners)) > 1:
        return _ANY
    return min(corners), max(corners)


def _sum(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else a + b


def _compared(operator: str, left: Interval, right: Interval) -> bool | None:
    if operator in (">", ">="):
        return _compared({">": "<", ">=": "<="}[operator], right, left)
    below = left[1] is not None and right[0] is not None and left[1] < right[0]
    touches = left[1] is not None and left[1] == right[0]
    above = left[0] is not None and right[1] is not None and left[0] > right[1]
    meets = left[0] is not None and left[0] == right[1]
    if operator == "<":
        return True if below else False if above or meets else None
    if operator == "<=":
        return True if below or touches else False if above else None
    same = left[0] is not None and left[0] == left[1] == right[0] == right[1]
    equal = True if same else False if below or above else None
    if operator == "=":
        return equal
    return None if equal is None else not equal
