"""Names, constants and coverage points of one instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hagane.symbolic.logic import both, negate
from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.elaborate import Position
from hagane.tools.rtl.circuit.expressions import Expressions
from hagane.tools.rtl.circuit.machine import Machine, Outside, PointKey, Variable
from hagane.tools.rtl.circuit.places import operator_location
from hagane.tools.rtl.circuit.statements import Statements
from hagane.tools.rtl.circuit.subset import BENCH
from hagane.tools.rtl.circuit.values import Value, layout_of

if TYPE_CHECKING:
    from hagane.tools.rtl.circuit.design import Design


def _default_clocking(body: Any) -> Any:
    """Return the event of the ``default clocking`` of an instance, or None."""
    for member in body:
        if member.kind.name == "ClockingBlock" and "default" in str(member.syntax.globalOrDefault):
            return member.event
    return None


class Scope:
    """Names and coverage points of one instance."""

    def __init__(self, design: Design, path: str, body: Any):
        self._design = design
        self._body = body
        self.path = path
        self.clocking = _default_clocking(body)
        self._constants: dict[Any, Any] = {}
        self._colons: dict[Any, list[Any]] = {}
        self.expressions = Expressions(self, self._call)
        self.statements = Statements(self)

    def _call(self, e: Any, m: Machine) -> Value:
        return self.statements.call(e, m)

    def position(self, location: Any) -> Position:
        """Return a place in the sources."""
        return self._design.elaborated.position(location)

    def find(self, symbol: Any) -> Variable | None:
        """Return the variable of a symbol."""
        found = self._design.variables.get(symbol)
        if found is not None:
            return found
        kind = symbol.kind.name
        if kind == "ModportPort" and symbol.internalSymbol is not None:
            return self.find(symbol.internalSymbol)
        if kind in ("Variable", "FormalArgument", "Net", "Iterator"):
            return self.declare(symbol)
        return None

    def declare(self, symbol: Any) -> Variable:
        """Return the variable of a local symbol, made on first sight."""
        found = self._design.variables.get(symbol)
        if found is None:
            layout = layout_of(symbol.type)
            position = self.position(symbol.location)
            if layout is None:
                raise Outside(position, f"'{symbol.name}' of type {symbol.type} ({BENCH})")
            outer = getattr(symbol.parentScope, "kind", None)
            if outer is not None and outer.name in ("Package", "CompilationUnit"):
                raise Outside(
                    position,
                    f"'{symbol.name}', a variable of a package or file with too many bits; declare "
                    "it in a module",
                )
            found = Variable(str(symbol.name), layout, position, local=True)
            self._design.variables[symbol] = found
        return found

    def constant(self, e: Any) -> Any:
        """Return slang's value of an expression that is constant, else None."""
        if e not in self._constants:
            from pyslang import ast

            found = e.constant
            if found is None or found.value is None:
                found = e.eval(ast.EvalContext(self._body))
            self._constants[e] = found if found is not None and found.value is not None else None
        return self._constants[e]

    def for_function(self, function: Any) -> Scope:
        """Return the scope that a function's body is executed in."""
        del function
        return self

    def colons(self, s: Any) -> list[Any]:
        """Return where simulators say the items of a case are, the default's place last."""
        if s not in self._colons:
            plain, default = [], []
            for item in s.syntax.items:
                colon = getattr(item, "colon", None)
                if type(item).__name__ == "DefaultCaseItemSyntax":
                    default.append(item.sourceRange.start)
                elif colon is not None:
                    plain.append(colon.location)
            self._colons[s] = plain + default
        return self._colons[s]

    def record_choice(self, e: Any, m: Machine, condition: Term) -> None:
        """Add the two points of a ``?:``."""
        where = self.position(e.sourceRange.start)
        place = where
        if e.syntax is not None:
            syntax = e.syntax
            while type(syntax).__name__ == "ParenthesizedExpressionSyntax":
                syntax = syntax.expression
            place = self.position(operator_location(syntax.left))
        for label, taken in (("?: true", condition), ("?: false", negate(condition))):
            m.record("branch", where, label, self.path, both(m.guard, taken))
            m.operands[PointKey("branch", where, label, self.path)] = place

    def decide(self, e: Any, m: Machine) -> Term:
        """Return a branch's condition, and add the points of the conditions it is made of."""
        with m.tentatively():
            self._atoms(e, m)
        return self.expressions.condition(e, m)

    def _atoms(self, e: Any, m: Machine) -> Term:
        """Add a point for either outcome of every condition under ``&&``, ``||`` and ``!``."""
        kind, op = e.kind.name, getattr(getattr(e, "op", None), "name", "")
        if kind == "Conversion" and e.isImplicit:
            return self._atoms(e.operand, m)
        if kind == "BinaryOp" and op in ("LogicalAnd", "LogicalOr"):
            a = self._atoms(e.left, m)
            reaches_right = a if op == "LogicalAnd" else negate(a)
            with m.under(reaches_right):
                b = self._atoms(e.right, m)
            return both(a, b) if op == "LogicalAnd" else negate(both(negate(a), negate(b)))
        if kind == "UnaryOp" and op == "LogicalNot":
            return negate(self._atoms(e.operand, m))
        term = self.expressions.condition(e, m)
        where = self.position(e.sourceRange.start)
        m.record("condition", where, "true", self.path, both(m.guard, term))
        m.record("condition", where, "false", self.path, both(m.guard, negate(term)))
        return term
