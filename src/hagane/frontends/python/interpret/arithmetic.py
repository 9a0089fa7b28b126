"""Operators of Python on numbers, sizes and containers; tensors are left to their library."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Device,
    DType,
    Real,
    Tensor,
    Truth,
    Value,
    is_plain,
)
from hagane.symbolic import Dim, Expr, ceildiv, floordiv, mod
from hagane.symbolic.expression import multiply
from hagane.symbolic.logic import both, either, negate
from hagane.symbolic.questions import Knowledge, denominator
from hagane.symbolic.term import FALSE, TRUE, Term

BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("truediv", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.LShift: ("lshift", operator.lshift),
    ast.RShift: ("rshift", operator.rshift),
    ast.BitOr: ("or", operator.or_),
    ast.BitAnd: ("and", operator.and_),
    ast.BitXor: ("xor", operator.xor),
}
COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
}
SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@",
}  # fmt: skip
# A float whose fraction is longer than this stands for a decimal that binary cannot hold.
_MAX_DENOMINATOR = 1 << 20


def is_number(value: Value) -> bool:
    """Whether ``value`` is a number, known or not."""
    return isinstance(value, int | float | Expr | Real | Truth)


def apply_plain(function: Callable[..., Any], *values: Value) -> Value:
    """Apply Python's own operation to known values.

    Raises:
        CheckError: Python refuses it.
    """
    try:
        return function(*values)
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise CheckError(_code(error), f"{type(error).__name__}: {error}") from None


def _code(error: Exception) -> str:
    return "type" if isinstance(error, TypeError) else "value"


def binary_numbers(kind: type[ast.operator], left: Value, right: Value) -> Value:
    """Return an operation on two numbers, of which some may depend on sizes."""
    if is_plain(left) and is_plain(right):
        return apply_plain(BINARY[kind][1], left, right)
    left, right = _counted(left), _counted(right)
    if isinstance(left, int | Expr) and isinstance(right, int | Expr):
        found = _binary_sizes(kind, left, right)
        if found is not None:
            return found
        return Real()
    return _binary_reals(kind, exact(left), exact(right))


def _counted(value: Value) -> Value:
    # A truth value that depends on sizes counts as a float here: nobody multiplies shapes by it.
    return Real() if isinstance(value, Truth) else value


def _binary_sizes(kind: type[ast.operator], left: Dim, right: Dim) -> Value | None:
    if kind in (ast.FloorDiv, ast.Mod, ast.Div) and right == 0:
        raise CheckError("value", "ZeroDivisionError: division by zero")
    match kind:
        case ast.Add:
            return left + right
        case ast.Sub:
            return left - right
        case ast.Mult:
            return left * right
        case ast.FloorDiv:
            return _negated_ceiling(left, right)
        case ast.Mod:
            return mod(left, right)
        case ast.Pow if isinstance(right, int) and 0 <= right <= 8:
            result: Dim = 1
            for _ in range(right):
                result = result * left
            return result
        case ast.Div:
            return _quotient(left, right)
        case ast.LShift if isinstance(right, int) and right >= 0:
            return left * (1 << right)
        case ast.RShift if isinstance(right, int) and right >= 0:
            return floordiv(left, 1 << right)
    return None


def _negated_ceiling(left: Dim, right: Dim) -> Dim:
    """Return ``left // right``; ``-n // 2`` is remembered as a ceiling of ``n / 2``."""
    negative = isinstance(left, Expr) and all(c < 0 for c in left.terms.values())
    if negative and isinstance(right, int) and right > 0:
        return -ceildiv(-left, right)
    return floordiv(left, right)


def _quotient(left: Dim, right: Dim) -> Value:
    if isinstance(right, int):
        scaled = multiply(left, Fraction(1, right))
        return Real(scaled) if isinstance(scaled, Expr) else float(scaled)
    whole = floordiv(left, right)
    if whole * right == left:
        return Real(whole) if isinstance(whole, Expr) else float(whole)
    return Real()


def exact(value: Value) -> Dim | Fraction | None:
    """Return a number as a formula with rational coefficients, None where it has none."""
    if isinstance(value, Real):
        return value.formula
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return None
        fraction = Fraction(value)
        if fraction.denominator > _MAX_DENOMINATOR:
            near = fraction.limit_denominator(1000)
            return near if float(near) == value else None
        return fraction
    return value if isinstance(value, int | Expr) else None


def _binary_reals(
    kind: type[ast.operator], left: Dim | Fraction | None, right: Dim | Fraction | None
) -> Value:
    if left is None or right is None:
        return Real()
    found: Any = None
    match kind:
        case ast.Add:
            found = left + right
        case ast.Sub:
            found = left - right
        case ast.Mult:
            found = left * right
        case ast.Div if isinstance(right, int | Fraction) and right:
            found = multiply(left, 1 / Fraction(right))
        case ast.FloorDiv if isinstance(right, int | Fraction) and right:
            found = round_down(multiply(left, 1 / Fraction(right)))
    if found is None:
        return Real()
    return Real(found) if isinstance(found, Expr) else float(found)


def round_down(value: Dim | Fraction) -> Dim:
    """Return the largest integer that is at most ``value``."""
    scale = denominator(value)
    return floordiv(multiply(value, scale), scale)


def round_up(value: Dim | Fraction) -> Dim:
    """Return the smallest integer that is at least ``value``."""
    scale = denominator(value)
    return ceildiv(multiply(value, scale), scale)


def compare_values(
    knowledge: Knowledge, kind: type[ast.cmpop], left: Value, right: Value
) -> bool | Term | None:
    """Return whether a comparison holds, or the condition; None where nobody can tell."""
    if is_plain(left) and is_plain(right):
        return bool(apply_plain(COMPARE[kind][1], left, right))
    if isinstance(left, Truth) or isinstance(right, Truth):
        return _compare_truths(kind, left, right)
    if is_number(left) and is_number(right):
        a, b = exact(left), exact(right)
        return None if a is None or b is None else _compare_sizes(knowledge, kind, a, b)
    if kind in (ast.Eq, ast.NotEq):
        same = equal_values(knowledge, left, right)
        if same is None or kind is ast.Eq:
            return same
        return negate(same) if isinstance(same, Term) else not same
    return None


def _compare_truths(kind: type[ast.cmpop], left: Value, right: Value) -> Term | None:
    terms = []
    for value in (left, right):
        if not isinstance(value, Truth | bool):
            return None
        terms.append(value.term if isinstance(value, Truth) else TRUE if value else FALSE)
    a, b = terms
    same = either(both(a, b), both(negate(a), negate(b)))
    return same if kind is ast.Eq else negate(same) if kind is ast.NotEq else None


def _compare_sizes(
    knowledge: Knowledge, kind: type[ast.cmpop], left: Dim | Fraction, right: Dim | Fraction
) -> Term | bool:
    scale = denominator(left) * denominator(right)
    a, b = multiply(left, scale), multiply(right, scale)
    match kind:
        case ast.Eq:
            return knowledge.equal(a, b)
        case ast.NotEq:
            return negate(knowledge.equal(a, b))
        case ast.Lt:
            return knowledge.less(a, b)
        case ast.LtE:
            return knowledge.less(a, b, strict=False)
        case ast.Gt:
            return knowledge.less(b, a)
    return knowledge.less(b, a, strict=False)


def equal_values(knowledge: Knowledge, left: Value, right: Value) -> bool | Term | None:
    """Return whether two values are equal, as Python's ``==`` has it."""
    if any(isinstance(left, kind) and isinstance(right, kind) for kind in (tuple, list)):
        if len(left) != len(right):
            return False
        terms: list[Term] = []
        for a, b in zip(left, right, strict=True):
            same = compare_values(knowledge, ast.Eq, a, b)
            if same is None or same is False:
                return same
            if isinstance(same, Term):
                terms.append(same)
        found = both(*terms)
        return True if found is TRUE else False if found is FALSE else found
    if isinstance(left, DType | Device) and isinstance(right, DType | Device):
        return left == right
    if isinstance(left, Device) and isinstance(right, str):
        return left.name == right
    if left is right:
        return True
    if left is None or right is None or isinstance(left, str) or isinstance(right, str):
        return False
    if _kind(left) != _kind(right) and _kind(left) and _kind(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return False
        return equal_values(knowledge, list(left.values()), [right[key] for key in left])
    return None


def _kind(value: Value) -> str:
    """Return the kind of values that a value may be equal to; empty for other objects."""
    if isinstance(value, int | float | complex | Expr | Real | Truth | Fraction):
        return "number"
    kinds = (list, tuple, dict, set | frozenset, str, bytes, range, slice)
    return next((str(kind) for kind in kinds if isinstance(value, kind)), "")


def negate_number(value: Value) -> Value:
    """Return ``-value``."""
    if isinstance(value, Expr):
        return -value
    if isinstance(value, Real):
        return Real() if value.formula is None else Real(multiply(value.formula, -1))  # type: ignore[arg-type]
    return Real() if isinstance(value, Truth) else apply_plain(operator.neg, value)


def known_place(index: Value) -> Value:
    """Return the whole number that a tensor is known to hold; other indices as they are."""
    known = index.known if isinstance(index, Tensor) else None
    if known is None or known.shape != () or known.dtype.kind not in "iu":
        return index
    return int(known)
