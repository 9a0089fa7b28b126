"""Draws that nothing reads, left out: of a large network most variables say nothing of one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hagane.tools.prob.language.program import Liveness, Record, walk
from hagane.tools.prob.language.syntax import (
    Binary,
    Choose,
    Expression,
    Flip,
    If,
    Let,
    Literal,
    Project,
    Rand,
    Tuple,
    Unary,
    Variable,
)

# Operators that have a value for all operands of their kinds.
_TOTAL = frozenset(("+", "-", "*", "=", "!=", "<", "<=", ">", ">=", "/\\", "\\/", "=>"))


def without_idle(node: Expression, liveness: Liveness | None = None) -> Expression:
    """Return an expression without variables that nothing reads and whose values cannot fail.

    Those are left out too that only such variables read. Claims read what they speak of.
    """
    liveness = liveness or Liveness()
    chain: list[Let] = []
    while isinstance(node, Let):
        chain.append(node)
        node = node.body
    if isinstance(node, Record):
        inner = without_idle(node.expression, liveness)
        node = node if inner is node.expression else replace(node, expression=inner)
    for let in reversed(chain):
        if let.name in liveness.free(node) or not _is_idle(let.bound):
            node = let if node is let.body else Let(let.span, let.name, let.bound, node)
    return node


def _is_idle(bound: Expression) -> bool:
    """Whether a value may stay out: its runs have no errors, observations, claims or calls."""
    return all(map(_cannot_fail, walk(bound)))


def _cannot_fail(node: Expression) -> bool:
    match node:
        case Literal() | Variable() | Tuple() | Project() | Unary() | If() | Let():
            return True
        case Binary(operator=operator):
            return operator in _TOTAL or _constant(node) is not None
        case Flip(probability=probability):
            chance = _constant(probability)
            return chance is not None and 0 <= chance <= 1
        case Rand(low=low, high=high):
            first, last = _constant(low), _constant(high)
            return first is not None and last is not None and first <= last
        case Choose(branches=branches):
            chances = [_constant(chance) for chance, _ in branches]
            known = [chance for chance in chances if chance is not None and chance >= 0]
            return len(known) == len(chances) and sum(known) == 1
    return False


def _constant(node: Expression) -> Fraction | None:
    """Return the number that an expression is whatever is drawn, as probabilities divide."""
    match node:
        case Literal(value=value):
            return Fraction(value)
        case Unary(operator="-", operand=operand):
            found = _constant(operand)
            return None if found is None else -found
        case Binary(operator=operator, left=left, right=right):
            a, b = _constant(left), _constant(right)
            if a is None or b is None or (operator == "/" and not b):
                return None
            return {"+": a + b, "-": a - b, "*": a * b, "/": a / (b or 1)}.get(operator)
    return None
