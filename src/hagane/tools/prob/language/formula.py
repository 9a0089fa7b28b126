"""Formulas of claims: parts replaced, values bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

from hagane.tools.prob.language.operators import ZeroDivisor, evaluate
from hagane.tools.prob.language.program import (
    VALUE,
    Claim,
    Liveness,
    mentions_probability,
    walk,
)
from hagane.tools.prob.language.ratios import Ratio
from hagane.tools.prob.language.source import Source
from hagane.tools.prob.language.syntax import (
    Binary,
    Expectation,
    Expression,
    If,
    Let,
    Notice,
    Probability,
    Project,
    Tuple,
    Unary,
    Value,
    Variable,
)

Term: TypeAlias = "Probability | Expectation"
Interval: TypeAlias = "tuple[Fraction | None, Fraction | None]"

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def transform(
    node: Expression, replacement: Callable[[Expression], Expression | None]
) -> Expression:
    """Return a pure expression in which nodes are replaced, the outermost first."""
    found = replacement(node)
    if found is not None:
        return found

    def inner(part: Expression) -> Expression:
        return transform(part, replacement)

    match node:
        case Unary():
            return replace(node, operand=inner(node.operand))
        case Project():
            return replace(node, tuple=inner(node.tuple))
        case Binary():
            return replace(node, left=inner(node.left), right=inner(node.right))
        case If():
            condition, then = inner(node.condition), inner(node.then)
            return replace(node, condition=condition, then=then, otherwise=inner(node.otherwise))
        case Let():
            return replace(node, bound=inner(node.bound), body=inner(node.body))
        case Tuple(items=items):
            return replace(node, items=tuple(inner(item) for item in items))
        case Probability():
            given = node.condition and inner(node.condition)
            return replace(node, event=inner(node.event), condition=given)
        case Expectation():
            given = node.condition and inner(node.condition)
            return replace(node, term=inner(node.term), condition=given)
    return node


def substitute(node: Expression, values: Mapping[str, Expression]) -> Expression:
    """Return a formula with expressions in the place of variables."""
    return transform(
        node, lambda part: values.get(part.name) if isinstance(part, Variable) else None
    )


def domain_of(claim: Claim, values: Mapping[str, Value], most: int) -> list[Value] | None:
    """Return every value that a parameter's type admits, or None where they have no bounds.

    Args:
        claim: The parameter's type.
        values: The parameters before it.
        most: More values than this count as no bounds.
    """
    if claim.kind == "bool":
        candidates: list[Value] = [False, True]
    elif claim.kind == "int" and claim.formula is not None:
        low, high = _bounds(claim.formula, values)
        if low is None or high is None or high - low >= most:
            return None
        candidates = list(range(-(-low.numerator // low.denominator), int(high // 1) + 1))
    else:
        return None
    formula = claim.formula
    if formula is None or mentions_probability(formula):
        return candidates
    return [value for value in candidates if evaluate(formula, {**values, VALUE: value})]


def _bounds(formula: Expression, values: Mapping[str, Value]) -> Interval:
    """Return an interval outside which a formula about an integer is false."""
    if isinstance(formula, Binary):
        if formula.operator in ("/\\", "\\/"):
            low, high = _bounds(formula.left, values)
            other_low, other_high = _bounds(formula.right, values)
            if formula.operator == "/\\":
                return _tighter(low, other_low, max), _tighter(high, other_high, min)
            return _looser(low, other_low, min), _looser(high, other_high, max)
        for operator, subject, bound in (
            (formula.operator, formula.left, formula.right),
            (_FLIPPED.get(formula.operator), formula.right, formula.left),
        ):
            if isinstance(subject, Variable) and subject.name == VALUE:
                return _interval(operator, bound, values)
    return None, None


def _interval(operator: str | None, bound: Expression, values: Mapping[str, Value]) -> Interval:
    if operator is None or mentions_probability(bound):
        return None, None
    if not Liveness().free(bound) <= values.keys():
        return None, None
    try:
        limit = Fraction(evaluate(bound, values))
    except ZeroDivisor:
        return None, None
    low = limit if operator in (">", ">=", "=") else None
    high = limit if operator in ("<", "<=", "=") else None
    return low, high


def _tighter(a: Fraction | None, b: Fraction | None, pick: Any) -> Fraction | None:
    return b if a is None else a if b is None else pick(a, b)


def _looser(a: Fraction | None, b: Fraction | None, pick: Any) -> Fraction | None:
    return None if a is None or b is None else pick(a, b)


def comparisons(formula: Expression) -> Iterator[Binary]:
    """Yield the comparisons of a formula that are not inside Prob or E."""
    if isinstance(formula, Binary) and formula.operator in _COMPARISONS:
        yield formula
    elif isinstance(formula, Binary):
        yield from comparisons(formula.left)
        yield from comparisons(formula.right)
    elif hasattr(formula, "operand"):
        yield from comparisons(formula.operand)


def _has_parameters(node: Expression) -> bool:
    return any(isinstance(getattr(part, "value", None), Ratio) for part in walk(node))


def bound_notices(source: Source, formula: Expression) -> list[Notice]:
    """Return a notice for each comparison of a probability with a number that is none."""
    notices = []
    for node in comparisons(formula):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            constant = not Liveness().free(other) and not mentions_probability(other)
            if isinstance(side, Probability) and constant and not _has_parameters(other):
                with suppress(ZeroDivisor):
                    bound = Fraction(evaluate(other, {}))
                    if not 0 <= bound <= 1:
                        message = (
                            "a probability lies between 0 and 1, so "
                            f"'{source.slice(node.span)}' says nothing of the program"
                        )
                        notices.append(Notice(node.span, message))
    return notices
