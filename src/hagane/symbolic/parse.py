"""Dimensions read from text, as ``str`` prints them."""

from __future__ import annotations

import ast

from hagane.symbolic.bounds import maximum, minimum
from hagane.symbolic.expression import (
    Dim,
    Expr,
    ceildiv,
    floordiv,
    mod,
    product,
    symbol,
)


def as_dim(value: int | str | Expr) -> Dim:
    """Return ``value`` as a dimension; a string is parsed as an expression over names."""
    return parse_dim(value) if isinstance(value, str) else value


def parse_dim(text: str) -> Dim:
    """Return the expression written in ``text``.

    Names, integers, ``+ - * // %``, parentheses, ``min``, ``max`` and ``ceildiv`` form an
    expression, as ``str`` prints it. Any other text (exporters write names such as
    ``"batch.1"``) is one name as a whole.
    """
    try:
        return _parse_node(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return symbol(text)


def _parse_node(node: ast.expr) -> Dim:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            return symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _parse_node(operand) * -1
        case ast.BinOp(left=left, op=operator, right=right):
            return _apply(operator, _parse_node(left), _parse_node(right))
        case ast.Call(func=ast.Name(id="min"), args=arguments) if arguments:
            return minimum(*map(_parse_node, arguments))
        case ast.Call(func=ast.Name(id="max"), args=arguments) if arguments:
            return maximum(*map(_parse_node, arguments))
        case ast.Call(func=ast.Name(id="ceildiv"), args=[left, right]):
            return ceildiv(_parse_node(left), _parse_node(right))
    raise ValueError(ast.dump(node))


def _apply(operator: ast.operator, left: Dim, right: Dim) -> Dim:
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv():
            return floordiv(left, right)
        case ast.Mod():
            return mod(left, right)
        case ast.Pow() if isinstance(right, int) and 0 <= right <= 16:
            return product([left] * right)
    raise ValueError(ast.dump(operator))
