"""The place of an expression's operator, at which Verilator counts a choice."""

from __future__ import annotations

from typing import Any

_TRANSPARENT = ("$signed", "$unsigned")


def operator_location(syntax: Any) -> Any:
    """Return where the outermost operator of an expression stands, without brackets around it.

    That is the operator of two operands, the ``?`` of a choice, the bracket of a select, the last
    of the names joined by ``.`` and ``::``; of anything else it is the beginning. Conversions stand
    where their operands do.
    """
    kind = type(syntax).__name__
    if kind == "ParenthesizedExpressionSyntax":
        return operator_location(syntax.expression)
    if kind == "BinaryExpressionSyntax":
        return syntax.operatorToken.location
    if kind == "ConditionalExpressionSyntax":
        return syntax.question.location
    if kind == "InsideExpressionSyntax":
        return syntax.inside.location
    if kind == "IdentifierSelectNameSyntax":
        return list(syntax.selectors)[-1].openBracket.location
    if kind == "ElementSelectExpressionSyntax":
        return syntax.select.openBracket.location
    if kind in ("ScopedNameSyntax", "CastExpressionSyntax"):
        return operator_location(syntax.right)
    if kind == "SignedCastExpressionSyntax":
        return operator_location(syntax.inner)
    if kind == "MemberAccessExpressionSyntax":
        return syntax.name.location
    if kind == "InvocationExpressionSyntax":
        if str(syntax.left).strip() in _TRANSPARENT:
            # slang wraps an argument as a property of a sequence of one expression.
            argument = next(
                item.expr for item in syntax.arguments.parameters if hasattr(item, "expr")
            )
            while hasattr(argument, "expr"):
                argument = argument.expr
            return operator_location(argument)
        return operator_location(syntax.left)
    if kind == "MultipleConcatenationExpressionSyntax":
        return syntax.concatenation.sourceRange.start
    return syntax.sourceRange.start
