"""Continuous distributions, and which expressions as written are continuous values."""

from __future__ import annotations

from hagane.tools.prob.language.scope import Scope, Template
from hagane.tools.prob.language.syntax import (
    Annotated,
    BaseType,
    Binary,
    Call,
    Expression,
    If,
    Let,
    Project,
    Unary,
    Variable,
)

# Continuous distributions, and the names of their arguments.
LAWS = {
    "uniform": ("least", "greatest"),
    "normal": ("mean", "deviation"),
    "exponential": ("rate",),
}


def is_real(node: Expression, scope: Scope) -> bool:
    """Tell whether an expression as written is a continuous value, before it is resolved."""
    match node:
        case Variable(name=name):
            return name in scope.values and scope.values[name][1] == "real"
        case Call(function=name) if name in scope.functions:
            found = scope.functions[name]
            if isinstance(found, Template):
                result = found.node.result
                return isinstance(result, BaseType) and result.name == "real"
            return found.result.kind == "real"
        case Call(function=name):
            return name in LAWS
        case Unary(operator="-", operand=operand) | Annotated(expression=operand):
            return is_real(operand, scope)
        case Binary(operator="+" | "-" | "*" | "/", left=left, right=right):
            return is_real(left, scope) or is_real(right, scope)
        case If(then=left, otherwise=right):
            return is_real(left, scope) or is_real(right, scope)
        case Project(tuple=Variable(name=name), index=index) if name in scope.values:
            kind = scope.values[name][1]
            return isinstance(kind, tuple) and index < len(kind) and kind[index] == "real"
        case Let(name=name, bound=bound, body=body):
            kind = "real" if is_real(bound, scope) else "int"
            return is_real(body, scope.bind(name, bound, kind))
    return False
