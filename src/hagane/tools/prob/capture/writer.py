"""Terms over named draws as expressions of the language."""

from __future__ import annotations

from collections.abc import Mapping

from hagane.symbolic.term import Term
from hagane.tools.prob.language.source import Span
from hagane.tools.prob.language.syntax import Binary, Expression, If, Literal, Unary, Variable

_OPERATORS = {"eq": "=", "lt": "<", "int_mul": "*", "int_div": "/", "int_mod": "%"}
_JUNCTIONS = {"and": "/\\", "or": "\\/"}


class Writer:
    """Writes terms down.

    Args:
        names: Names of variables in the program, where these differ from their own.
    """

    def __init__(self, names: Mapping[str, str]):
        self.names = names

    def name(self, name: str) -> str:
        """Return the name of a variable in the program."""
        return self.names.get(name, name)

    def written(self, term: Term, span: Span) -> Expression:
        """Return a term as an expression."""
        match term.op:
            case "const":
                return Literal(span, term.data)
            case "var":
                return Variable(span, self.name(term.data))
            case "not":
                return self._negation(term.args[0], span)
            case "and" | "or":
                parts = [self.written(arg, span) for arg in term.args]
                whole = parts[0]
                for part in parts[1:]:
                    whole = Binary(span, _JUNCTIONS[term.op], whole, part)
                return whole
            case "ite":
                return If(span, *(self.written(arg, span) for arg in term.args))
            case "int_add":
                return self._sum(term, span)
            case operator if operator in _OPERATORS:
                left, right = (self.written(arg, span) for arg in term.args)
                return Binary(span, _OPERATORS[operator], left, right)
        raise AssertionError(term.op)

    def _negation(self, term: Term, span: Span) -> Expression:
        if term.op == "lt":
            left, right = (self.written(arg, span) for arg in term.args)
            return Binary(span, "<=", right, left)
        if term.op == "eq":
            left, right = (self.written(arg, span) for arg in term.args)
            return Binary(span, "!=", left, right)
        return Unary(span, "not", self.written(term, span))

    def _sum(self, term: Term, span: Span) -> Expression:
        left, right = term.args
        if right.is_const and right.data < 0:
            return Binary(span, "-", self.written(left, span), Literal(span, -right.data))
        if right.op == "int_mul" and right.args[1].is_const and right.args[1].data == -1:
            less = self.written(right.args[0], span)
            return Binary(span, "-", self.written(left, span), less)
        return Binary(span, "+", self.written(left, span), self.written(right, span))
