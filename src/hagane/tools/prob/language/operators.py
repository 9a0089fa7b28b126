"""Operators: their operands, their results and their meaning."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from hagane.tools.prob.language.program import Kind
from hagane.tools.prob.language.source import ProgramTypeError, Source
from hagane.tools.prob.language.syntax import (
    Binary,
    Expression,
    If,
    Let,
    Literal,
    Project,
    Tuple,
    Unary,
    Value,
    Variable,
)

_ARITHMETIC = ("+", "-", "*", "/", "%")
_LOGIC = ("/\\", "\\/", "=>")
_EQUALITY = ("=", "!=")
_NUMBERS = ("int", "rational", "real")


def describe(kind: Kind) -> str:
    """Return a kind as messages show it."""
    if isinstance(kind, str):
        return kind
    return f"({', '.join(describe(item) for item in kind)})"


def check_unary(source: Source, node: Unary, kind: Kind) -> Kind:
    """Return the kind of ``-a`` or ``not a``."""
    wanted = ("bool",) if node.operator == "not" else _NUMBERS
    if kind not in wanted:
        raise ProgramTypeError(
            f"'{node.operator}': expected {wanted[0]}, got {describe(kind)}",
            source,
            node.operand.span,
        )
    return kind


def check_binary(source: Source, node: Binary, left: Kind, right: Kind, *, exact: bool) -> Kind:
    """Return the kind of an operator's result.

    Args:
        source: The program.
        node: The operator as written.
        left: The kind of its left operand.
        right: The kind of its right operand.
        exact: Whether ``/`` divides rationals here.
    """
    word = node.operator
    if word in _LOGIC:
        _need(source, node, left, right, ("bool",))
        return "bool"
    if word in _ARITHMETIC:
        numbers = _NUMBERS if exact else ("int",)
        _need(source, node, left, right, numbers)
        if "real" in (left, right):
            if word == "%" or (word == "/" and right == "real"):
                raise ProgramTypeError(
                    f"'{word}': continuous values are added, subtracted, multiplied, and divided "
                    "by numbers",
                    source,
                    node.span,
                )
            return "real"
        return "rational" if "rational" in (left, right) or (exact and word == "/") else "int"
    if word in _EQUALITY:
        if left != right and not (left in _NUMBERS and right in _NUMBERS):
            raise ProgramTypeError(
                f"'{word}' compares values of one kind, got {describe(left)} and {describe(right)}",
                source,
                node.span,
            )
        return "bool"
    _need(source, node, left, right, _NUMBERS)
    return "bool"


def _need(source: Source, node: Binary, left: Kind, right: Kind, wanted: tuple[str, ...]) -> None:
    for operand, kind in ((node.left, left), (node.right, right)):
        if kind not in wanted:
            raise ProgramTypeError(
                f"'{node.operator}': expected {wanted[0]}, got {describe(kind)}"
                f"{_remedy(source.slice(operand.span), wanted[0], kind)}",
                source,
                operand.span,
            )


def _remedy(text: str, wanted: str, kind: Kind) -> str:
    """Return how one writes a value of another kind, where there is a way."""
    if wanted == "int" and kind == "bool":
        return f"; to count it, write (if {text} then 1 else 0)"
    if wanted == "bool" and kind in _NUMBERS:
        return f"; compare it, as in {text} > 0"
    if isinstance(kind, tuple):
        return f"; take an item of it, as in {text}.0"
    return ""


# Operators that cannot fail; & | <= on bool evaluate both operands.
PLAIN: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "/\\": operator.and_,
    "\\/": operator.or_,
    "=>": operator.le,
}


class ZeroDivisor(Exception):
    """A division by zero, at a node; engines turn it into a DivisionByZero with a run."""

    def __init__(self, node: Binary):
        super().__init__()
        self.node = node


def combine(node: Binary, left: Any, right: Any) -> Any:
    """Return the result of an operator for two values.

    ``//`` and ``%`` round towards minus infinity, so ``(-7) // 2 = -4`` and ``(-7) % 2 = 1``;
    ``/`` is exact and stands in claims and probabilities.
    """
    match node.operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "//" | "%" | "/" if right == 0:
            raise ZeroDivisor(node)
        case "//":
            return left // right
        case "%":
            return left % right
        case "/":
            return (Fraction(left) if isinstance(left, int) else left) / right
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "/\\":
            return left and right
        case "\\/":
            return left or right
        case "=>":
            return not left or right
    raise AssertionError(node.operator)


def evaluate(node: Expression, values: Mapping[str, Value]) -> Any:
    """Return the value of an expression that draws and calls nothing.

    Raises:
        ZeroDivisor: It divides by zero.
    """
    match node:
        case Literal(value=value):
            return value
        case Variable(name=name):
            return values[name]
        case Binary():
            left = evaluate(node.left, values)
            return combine(node, left, evaluate(node.right, values))
        case Unary(operator="not"):
            return not evaluate(node.operand, values)
        case Unary():
            return -evaluate(node.operand, values)
        case If():
            chosen = node.then if evaluate(node.condition, values) else node.otherwise
            return evaluate(chosen, values)
        case Tuple(items=items):
            done = []
            for item in items:
                done.append(evaluate(item, values))
            return tuple(done)
        case Project():
            return evaluate(node.tuple, values)[node.index]
        case Let():
            return evaluate(node.body, {**values, node.name: evaluate(node.bound, values)})
    raise AssertionError(f"{type(node).__name__} is not evaluated in one value")
