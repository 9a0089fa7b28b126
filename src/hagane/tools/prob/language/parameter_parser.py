"""Parameters of a program: ``param p, q from 1/10 to 9/10;`` before it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from hagane.tools.prob.language.operators import ZeroDivisor, evaluate
from hagane.tools.prob.language.source import ProgramSyntaxError
from hagane.tools.prob.language.syntax import (
    Binary,
    Expression,
    Literal,
    Unary,
    Unknown,
    children,
)
from hagane.tools.prob.language.type_parser import TypeParser


class ParameterParser(TypeParser):
    """Reads parameters; the text behind them is for the parser of programs."""

    def unknowns(self) -> list[Unknown]:
        """Read ``param p, q from 1/10 to 9/10;``, as often as it comes."""
        found: dict[str, Unknown] = {}
        while self.peek().text == "param" and self.peek(1).kind == "NAME":
            self.next()
            names = [self.expect("NAME", "the name of a parameter")]
            while self.accept(","):
                names.append(self.expect("NAME", "the name of a parameter"))
            low, high = Fraction(0), Fraction(1)
            if self.peek().text == "from":
                self.next()
                low = self._number()
                if self.peek().text != "to":
                    raise self.unexpected("'to' and the greatest value, as in from 0 to 1/2")
                self.next()
                high = self._number()
            if low >= high:
                raise ProgramSyntaxError(
                    f"a parameter from {low} to {high} has no values between; let the first "
                    "number be below the second",
                    self.source,
                    names[0].span.to(self.last.span),
                )
            for name in names:
                if name.text in found:
                    raise ProgramSyntaxError(
                        f"the parameter '{name.text}' is there already", self.source, name.span
                    )
                found[name.text] = Unknown(name.span, name.text, low, high)
            self.expect(";", "';' after the parameters, as in param p;")
        return list(found.values())

    def _number(self) -> Fraction:
        """Read a number, as in ``-1/10`` or ``0.25``."""
        start = self.peek()
        node = self.expression()
        if not all(isinstance(part, Literal | Unary | Binary) for part in _all_of(node)):
            raise ProgramSyntaxError(
                "expected a number, as in 1/10", self.source, start.span.to(self.last.span)
            )
        try:
            return Fraction(evaluate(node, {}))
        except ZeroDivisor as error:
            raise ProgramSyntaxError("this divides by zero", self.source, error.node.span) from None


def _all_of(node: Expression) -> Iterator[Expression]:
    yield node
    for child in children(node):
        yield from _all_of(child)
