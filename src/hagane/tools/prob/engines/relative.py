"""Differences that cancel: a variable that matters only relative to another one is not kept.

After ``let b = a + rand(0, 10)``, an expression such as ``(b + rand(0, 5)) - (a + rand(0, 5))``
needs how far b is from a, and neither of them. Where every use of b and a is of that kind, this
rewrites the program to draw the distance alone, so the dynamic programme keeps one number in
place of two: the speed trap with positions up to 1,000 goes from two million rows to thousands.
"""

from __future__ import annotations

from hagane.symbolic import Dim, Expr, symbol, symbols_of
from hagane.tools.prob.language.program import Apply, Liveness, Record, rebuilt, walk
from hagane.tools.prob.language.source import Span
from hagane.tools.prob.language.syntax import Binary, Expression, Let, Literal, Unary, Variable

_Addend = tuple[str, Expression]


def relative(node: Expression) -> Expression:
    """Return an expression of the same distribution, in which distances replace positions."""
    if not isinstance(node, Let):
        return rebuilt(node, relative)
    found = _as_distance(node)
    if found is not None:
        return relative(found)
    return rebuilt(node, relative)


def _as_distance(node: Let) -> Let | None:
    """Return ``let b = a + e in …`` as ``let d = e in …`` if ``a`` is not needed after it."""
    known, drawn = _addends(node.bound)
    origin = symbols_of(known)
    if not origin or not drawn or _named_elsewhere(node.body, node.name):
        return None
    distance = f"{node.name} relative"
    place = Binary(node.span, "+", _written(known, node.span), Variable(node.span, distance))
    body = _cancelled(_put(node.body, node.name, place))
    if Liveness().free(body) & origin:
        return None
    return Let(node.span, distance, _sum(0, drawn, node.span), body)


def _named_elsewhere(body: Expression, name: str) -> bool:
    """Tell whether claims or functions speak of a variable by its name."""
    for node in walk(body):
        if isinstance(node, Record) and name in node.site.claim.variables:
            return True
        if isinstance(node, Apply) and (name in node.function.captured or name == node.below):
            return True
    return False


def _put(node: Expression, name: str, value: Expression) -> Expression:
    if isinstance(node, Variable):
        return value if node.name == name else node
    return rebuilt(node, lambda part: _put(part, name, value))


def _cancelled(node: Expression) -> Expression:
    """Return an expression whose sums are in normal form."""
    if isinstance(node, Binary) and node.operator in ("+", "-"):
        known, others = _addends(node)
        return _sum(known, [(sign, rebuilt(e, _cancelled)) for sign, e in others], node.span)
    return rebuilt(node, _cancelled)


def _addends(node: Expression) -> tuple[Dim, list[_Addend]]:
    """Split a sum into a polynomial of variables and the rest, in its order."""
    known: Dim = 0
    others: list[_Addend] = []
    waiting = [("+", node)]
    while waiting:
        sign, part = waiting.pop()
        match part:
            case Binary(operator="+" | "-" as operator):
                opposite = "-" if sign == "+" else "+"
                waiting.append((sign if operator == "+" else opposite, part.right))
                waiting.append((sign, part.left))
            case Unary(operator="-", operand=operand):
                waiting.append(("-" if sign == "+" else "+", operand))
            case _:
                value = _polynomial(part)
                if value is None:
                    others.append((sign, part))
                else:
                    known = known + value if sign == "+" else known - value
    return known, others


def _polynomial(node: Expression) -> Dim | None:
    match node:
        case Literal(value=value) if isinstance(value, int) and not isinstance(value, bool):
            return value
        case Variable(name=name):
            return symbol(name)
        case Binary(operator="*"):
            left, right = _polynomial(node.left), _polynomial(node.right)
            return None if left is None or right is None else left * right
    return None


def _sum(known: Dim, others: list[_Addend], span: Span) -> Expression:
    total: Expression | None = None
    if not others or known != 0:
        total = _written(known, span)
    for sign, part in others:
        if total is None:
            total = part if sign == "+" else Unary(span, "-", part)
        else:
            total = Binary(span, sign, total, part)
    assert total is not None
    return total


def _written(value: Dim, span: Span) -> Expression:
    """Return a polynomial as an expression."""
    if not isinstance(value, Expr):
        return Literal(span, value)
    total: Expression | None = None
    for monomial, coefficient in value.terms.items():
        assert isinstance(coefficient, int)
        term: Expression | None = None
        for atom, power in monomial:
            for _ in range(power):
                factor = Variable(span, atom.head)
                term = factor if term is None else Binary(span, "*", term, factor)
        if term is None:
            term = Literal(span, coefficient)
        elif coefficient != 1:
            term = Binary(span, "*", Literal(span, coefficient), term)
        total = term if total is None else Binary(span, "+", total, term)
    assert total is not None
    return total
