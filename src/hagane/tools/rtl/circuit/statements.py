"""SystemVerilog statements: executed symbolically, every branch at once.

Both sides of a branch run on their own copy of the variables, and their writes are merged under
the branch's condition; the conjunction of conditions on the way is the guard of every coverage
point met there. A process thus needs one execution, and a point's guard says exactly which inputs
reach it.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NoReturn

from hagane.symbolic import bitvector as bv
from hagane.symbolic.logic import both, either, equal, negate
from hagane.symbolic.term import FALSE, TRUE, Term
from hagane.tools.rtl.circuit.assertions.covers import (
    Sampled,
    changes,
    clocking_of,
    is_cover,
    sampled,
)
from hagane.tools.rtl.circuit.assertions.monitors import Monitor, NotFollowed
from hagane.tools.rtl.circuit.elaborate import Position
from hagane.tools.rtl.circuit.machine import Exits, Machine, Outside, PointKey, Variable, refuse
from hagane.tools.rtl.circuit.subset import DELAYED, outside
from hagane.tools.rtl.circuit.values import Packed, Value, filled, layout_of

if TYPE_CHECKING:
    from hagane.tools.rtl.circuit.scope import Scope

_MOST_ITERATIONS = 200_000
_MOST_OPEN_ITERATIONS = 1_024
_DEEPEST_CALL = 64
_DPI = 128  # the flag of slang's functions that come from C


class Statements:
    """Executes the statements of one instance."""

    def __init__(self, scope: Scope):
        self._scope = scope
        self._x = scope.expressions
        # Of monitors, by assertion; a generate loop makes several at one place.
        self._registers: dict[Position, dict[Any, list[Variable]]] = {}

    def run(self, s: Any, m: Machine) -> None:
        """Execute a statement."""
        live = m.live()
        if live is FALSE:
            return
        method: Any = getattr(self, "_" + s.kind.name, None)
        if method is None:
            self._refuse(s, f"statement of kind {s.kind.name}")
        if live is TRUE:
            method(s, m)
            return
        with m.under(live):
            method(s, m)

    def _refuse(self, s: Any, what: str) -> NoReturn:
        refuse(self._scope.position(s.sourceRange.start), what)

    def _record(self, kind: str, location: Any, label: str, m: Machine, extra: Term = TRUE) -> None:
        position = self._scope.position(location)
        m.record(kind, position, label, self._scope.path, both(m.guard, extra))

    def _Empty(self, s: Any, m: Machine) -> None:  # noqa: N802
        pass

    def _List(self, s: Any, m: Machine) -> None:  # noqa: N802
        for inner in s.list:
            self.run(inner, m)

    def _Block(self, s: Any, m: Machine) -> None:  # noqa: N802
        if s.blockKind.name != "Sequential":
            self._refuse(s, "a fork")
        self.run(s.body, m)

    def _VariableDeclaration(self, s: Any, m: Machine) -> None:  # noqa: N802
        symbol = s.symbol
        variable = self._scope.declare(symbol)
        static = symbol.lifetime.name == "Static"
        if symbol.initializer is None:
            if not static:
                m.now.own[variable] = filled(variable.layout, 0)
            return
        if static and (m.depth or not m.once):
            self._refuse(
                s,
                f"'{symbol.name}', which gets its initial value once and keeps what it has later "
                "(declare it automatic, or write the value as a statement)",
            )
        m.now.own[variable] = self._x.value(symbol.initializer, m)

    def _ExpressionStatement(self, s: Any, m: Machine) -> None:  # noqa: N802
        e = s.expr
        if e.kind.name == "Assignment":
            self._record("statement", s.sourceRange.start, "assignment", m)
        elif e.kind.name == "Call" and not e.isSystemCall:
            self._record("statement", s.sourceRange.start, "call", m)
        self._x.value(e, m)

    def _Conditional(self, s: Any, m: Machine) -> None:  # noqa: N802
        conditions = []
        outer, m.reading = m.reading, set()
        for item in s.conditions:
            if item.pattern is not None:
                self._refuse(s, "a condition with a pattern")
            conditions.append(self._scope.decide(item.expr, m))
        decided, m.reading = m.reading, outer
        condition = both(*conditions)
        start = s.sourceRange.start
        deciding, m.deciding = m.deciding, m.deciding | decided
        for label in ("if", "else"):
            where = self._scope.position(start)
            m.watch(PointKey("line", where, label, self._scope.path), m.deciding)
        self._record("line", start, "if", m, condition)
        self._record("line", start, "else", m, negate(condition))
        self._record("branch", start, "true", m, condition)
        self._record("branch", start, "false", m, negate(condition))
        self._branch(condition, s.ifTrue, m)
        if s.ifFalse is not None:
            self._branch(negate(condition), s.ifFalse, m)
        m.deciding = deciding

    def _branch(self, condition: Term, s: Any, m: Machine) -> None:
        if condition is FALSE:
            # Never executed, but its points exist: they are dead.
            with m.unreachable():
                self.run(s, m)
            return
        if condition is TRUE:
            self.run(s, m)
            return
        with m.under(condition):
            self.run(s, m)

    def _Case(self, s: Any, m: Machine) -> None:  # noqa: N802
        colons = self._scope.colons(s)
        outer, m.reading = m.reading, set()
        taken_by, rest = self._arms(s, m)
        decided, m.reading = m.reading, outer
        if outer is not None:
            outer |= decided
        deciding, m.deciding = m.deciding, m.deciding | decided
        for colon in colons:
            where = self._scope.position(colon)
            m.watch(PointKey("line", where, "case", self._scope.path), m.deciding)
        arms = [(taken, item.stmt) for taken, item in zip(taken_by, s.items, strict=True)]
        for taken, colon in zip(taken_by, colons, strict=False):
            self._record("line", colon, "case", m, taken)
            self._record("branch", colon, "item", m, taken)
        if s.defaultCase is not None:
            self._record("line", colons[-1], "case", m, rest)
            self._record("branch", colons[-1], "item", m, rest)
        else:
            self._record("branch", s.sourceRange.start, "no item", m, rest)
        for taken, body in arms:
            if taken is FALSE:
                self._branch(taken, body, m)
        live = [(taken, body) for taken, body in arms if taken is not FALSE]
        m.alternatives(live, (rest, s.defaultCase), self.run)
        m.deciding = deciding

    def _arms(self, s: Any, m: Machine) -> tuple[list[Term], Term]:
        """Return under which condition each item of a case is taken, and none of them."""
        wild = {"Normal": "", "WildcardJustZ": "z", "WildcardXOrZ": "xz", "Inside": "xz"}
        kind = s.condition.name
        subject = self._x.bits(s.expr, m)
        signed = bool(s.expr.type.isSigned)
        taken_by: list[Term] = []
        rest = TRUE
        missed: list[Term] = []
        constants: set[Term] = set()
        exclusive = not wild[kind]
        for item in s.items:
            hit = FALSE
            for e in item.expressions:
                if kind == "Inside":
                    hit = either(hit, self._x.in_item(subject, signed, e, m))
                elif wild[kind]:
                    hit = either(hit, self._x.matches(subject, e, m, wild[kind]))
                else:
                    if self._x.unknown_digits(e) is not None:
                        continue  # no two-state value is one of x or z
                    label = self._x.bits(e, m)
                    exclusive = exclusive and label.is_const
                    if label in constants:
                        continue
                    if label.is_const:
                        constants.add(label)
                    hit = either(hit, equal(subject, label))
            if exclusive:
                # Different constants exclude each other: a table of thousands need not say so.
                taken_by.append(hit)
                missed.append(negate(hit))
                continue
            rest = both(rest, *missed)
            taken_by.append(both(rest, hit))
            missed = [negate(hit)]
        full = len(constants) >> subject.width > 0
        return taken_by, FALSE if full else both(rest, *missed)

    def _ForLoop(self, s: Any, m: Machine) -> None:  # noqa: N802
        for symbol in s.loopVars:
            variable = self._scope.declare(symbol)
            m.now.own[variable] = (
                self._x.value(symbol.initializer, m)
                if symbol.initializer is not None
                else filled(variable.layout, 0)
            )
        for e in s.initializers:
            self._x.value(e, m)
        self._loop(s, s.stopExpr, s.body, list(s.steps), m)

    def _WhileLoop(self, s: Any, m: Machine) -> None:  # noqa: N802
        self._loop(s, s.cond, s.body, [], m)

    def _DoWhileLoop(self, s: Any, m: Machine) -> None:  # noqa: N802
        self._loop(s, s.cond, s.body, [], m, first=True)

    def _RepeatLoop(self, s: Any, m: Machine) -> None:  # noqa: N802
        count = self._x.bits(s.count, m)
        if not count.is_const:
            self._refuse(s, "a repeat whose count is no constant")
        outer = m.exits
        m.exits = Exits(returned=outer.returned)
        for _ in range(int(count.data)):
            self._round(s, s.body, m)
        m.exits = Exits(m.exits.returned, outer.broken, outer.continued)

    def _loop(
        self,
        s: Any,
        stop: Any,
        body: Any,
        steps: list[Any],
        m: Machine,
        *,
        first: bool = False,
    ) -> None:
        outer = m.exits
        m.exits = Exits(returned=outer.returned)
        self._record("line", s.sourceRange.start, "block", m)
        returned = outer.returned
        open_rounds = 0
        entered = False
        # Statements that only some inputs reach are executed for those alone, and merged when all
        # is over: a variable that the loop counts with stays a constant on the way.
        with ExitStack() as rounds:
            while True:
                going = TRUE if first or stop is None else self._x.condition(stop, m)
                first = False
                going = both(going, m.live())
                if going is FALSE:
                    break
                open_rounds += going is not TRUE
                if open_rounds > _MOST_OPEN_ITERATIONS:
                    self._refuse(s, f"a loop without a bound below {_MOST_OPEN_ITERATIONS}")
                entered = True
                returned = self._descend(going, rounds, returned, m)
                self._round(s, body, m)
                going = m.live()
                if going is FALSE:
                    break
                returned = self._descend(going, rounds, returned, m)
                for e in steps:
                    self._x.value(e, m)
            returned = either(returned, m.exits.returned)
        if not entered:
            with m.unreachable():
                self.run(body, m)
        m.exits = Exits(returned, outer.broken, outer.continued)

    def _descend(self, condition: Term, rounds: ExitStack, returned: Term, m: Machine) -> Term:
        """Go on where ``condition`` holds; return under which condition a function has returned."""
        if condition is TRUE:
            return returned
        returned = either(returned, m.exits.returned)
        rounds.enter_context(m.under(condition))
        m.exits = Exits()
        return returned

    def _round(self, s: Any, body: Any, m: Machine) -> None:
        m.iterations += 1
        if m.iterations > _MOST_ITERATIONS:
            self._refuse(s, f"loops of more than {_MOST_ITERATIONS} rounds in all")
        m.exits.continued = FALSE
        self.run(body, m)
        m.exits.continued = FALSE

    def _ForeachLoop(self, s: Any, m: Machine) -> None:  # noqa: N802
        outer = m.exits
        m.exits = Exits(returned=outer.returned)
        self._foreach(s, list(s.loopDims), m)
        m.exits = Exits(m.exits.returned, outer.broken, outer.continued)

    def _foreach(self, s: Any, dims: list[Any], m: Machine) -> None:
        if not dims:
            self._round(s, s.body, m)
            return
        dim, rest = dims[0], dims[1:]
        if dim.loopVar is None:
            self._foreach(s, rest, m)
            return
        if dim.range is None:
            self._refuse(s, "a foreach over an array without fixed bounds")
        variable = self._scope.declare(dim.loopVar)
        step = 1 if dim.range.left <= dim.range.right else -1
        for index in range(dim.range.left, dim.range.right + step, step):
            m.now.own[variable] = bv.value(index, variable.layout.width)  # type: ignore[union-attr]
            self._foreach(s, rest, m)

    def _Return(self, s: Any, m: Machine) -> None:  # noqa: N802
        if s.expr is not None:
            value = self._x.value(s.expr, m)
            result = m.results[-1]
            if result is not None:
                m.now.own[result] = value
        m.exits.returned = either(m.exits.returned, m.since_call())

    def _Break(self, s: Any, m: Machine) -> None:  # noqa: N802
        m.exits.broken = either(m.exits.broken, m.since_call())

    def _Continue(self, s: Any, m: Machine) -> None:  # noqa: N802
        m.exits.continued = either(m.exits.continued, m.since_call())

    def _ImmediateAssertion(self, s: Any, m: Machine) -> None:  # noqa: N802
        condition = self._x.condition(s.cond, m)
        position = self._scope.position(s.sourceRange.start)
        if is_cover(s):
            self._record("cover", s.sourceRange.start, "cover", m, condition)
            if s.ifTrue is not None:
                self._branch(condition, s.ifTrue, m)
            return
        old = m.asserts.get(position, FALSE)
        m.asserts[position] = either(old, both(m.guard, negate(condition)))
        for action, when in ((s.ifTrue, condition), (s.ifFalse, negate(condition))):
            if action is not None and changes(action):
                self._branch(when, action, m)

    def _ConcurrentAssertion(self, s: Any, m: Machine) -> None:  # noqa: N802
        if clocking_of(s.propertySpec) is None and m.clocked and m.guard is TRUE:
            self.property(s, m)
            return
        self.notice(s, m.notices)

    def notice(self, s: Any, notices: dict[str, None], why: str = "") -> None:
        """Say of a concurrent assertion that it is left alone."""
        where = self._scope.position(s.sourceRange.start)
        what = "a cover property" if is_cover(s) else "a concurrent assertion"
        why = why or "it is not sampled at the rising edge of one clock, in every cycle"
        if any(a is not None and changes(a) for a in (s.ifTrue, s.ifFalse)):
            why += "; its action, which changes variables, is ignored"
        notices[f"{where}: {what} is not a target: {why}"] = None

    def property(self, s: Any, m: Machine) -> None:
        """Add the point of a cover, or the violation of an assertion, at the clock's edge."""
        for action in (s.ifTrue, s.ifFalse):
            if action is not None and changes(action):
                self._refuse(action, "a property's action that changes variables (write a process)")
        found = sampled(s.propertySpec) if is_cover(s) else None
        if found is not None and not any(
            outside(e, self._scope.position) for e in found.conditions
        ):
            self.cover(s, found, m)
            return
        if s.assertionKind.name not in ("Assert", "CoverProperty", "CoverSequence"):
            self.notice(s, m.notices, "it is an assumption")
            return
        position = self._scope.position(s.sourceRange.start)
        copies = self._registers.setdefault(position, {})
        registers = copies.setdefault(s, [])
        monitor = Monitor(self._scope, position, registers, list(copies).index(s))
        try:
            term = monitor.follow(s.propertySpec, m, covers=is_cover(s))
        except NotFollowed as problem:
            self.notice(s, m.notices, str(problem))
            return
        except Outside as problem:
            self.notice(s, m.notices, str(problem).partition(": ")[2])
            return
        if is_cover(s):
            self._record("cover", s.sourceRange.start, "cover", m, term)
            return
        m.asserts[position] = either(m.asserts.get(position, FALSE), both(m.guard, term))

    def cover(self, s: Any, found: Sampled, m: Machine) -> None:
        """Add the point of a property: it samples the values before the clock's edge."""
        before = Machine(m.base)
        condition = self._x.condition(found.condition, before)
        disabled = [self._x.condition(e, before) for e in found.disabled]
        holds = both(condition, *(negate(term) for term in disabled))
        self._record("cover", s.sourceRange.start, "cover", m, holds)

    def _Timed(self, s: Any, m: Machine) -> None:  # noqa: N802
        self._refuse(s, DELAYED)

    # Functions

    def call(self, e: Any, m: Machine) -> Value:
        """Run a function or task and return its value."""
        function = e.subroutine
        scope = self._scope.for_function(function)
        if m.dead:
            layout = layout_of(function.returnType)
            return bv.value(0, 1) if layout is None else filled(layout, 0)
        if int(function.flags) & _DPI:
            self._refuse(e, f"'{function.name}', a function in C (DPI)")
        if m.depth >= _DEEPEST_CALL:
            self._refuse(e, f"calls nested deeper than {_DEEPEST_CALL}")
        arguments = list(e.arguments)
        formals = list(function.arguments)
        values: list[Value | None] = []
        for formal, actual in zip(formals, arguments, strict=True):
            direction = formal.direction.name
            if direction == "In":
                values.append(self._x.value(actual, m))
            elif direction in ("InOut", "Ref"):
                values.append(self._resized(self._x.value(_lvalue(actual), m), actual, formal))
            else:
                values.append(None)
        saved: dict[Variable, Value | None] = {}
        for formal, value in zip(formals, values, strict=True):
            variable = scope.declare(formal)
            saved[variable] = m.now.get(variable)
            m.now.own[variable] = filled(variable.layout, 0) if value is None else value
        result = None
        if function.returnValVar is not None:
            result = scope.declare(function.returnValVar)
            saved[result] = m.now.get(result)
            m.now.own[result] = filled(result.layout, 0)
        outer, relative = m.exits, m.relative
        m.exits, m.relative = Exits(), TRUE
        m.results.append(result)
        m.depth += 1
        body = function.body
        where = scope.position(function.location)
        m.record("line", where, "block", scope.path, m.guard)
        scope.statements.run(body, m)
        m.depth -= 1
        m.results.pop()
        m.exits, m.relative = outer, relative
        returned: Value = bv.value(0, 1) if result is None else m.read(result)
        for formal, actual in zip(formals, arguments, strict=True):
            if formal.direction.name in ("Out", "InOut", "Ref"):
                self._take(actual, m.read(scope.declare(formal)), m)
        for variable, value in saved.items():
            if value is not None:
                m.now.own[variable] = value
        return returned

    def _take(self, actual: Any, value: Value, m: Machine) -> None:
        """Assign the value of an output argument to what it is connected to."""
        if actual.kind.name == "Assignment":
            outer, m.held_value = m.held_value, value
            value = self._x.value(actual.right, m)
            m.held_value = outer
        self._x.assign(_lvalue(actual), value, m)

    @staticmethod
    def _resized(value: Value, actual: Any, formal: Any) -> Value:
        """Return the value of an argument with the width of the formal one."""
        layout = layout_of(formal.type)
        if isinstance(layout, Packed) and isinstance(value, Term) and layout.width != value.width:
            return bv.resize(value, layout.width, signed=bool(_lvalue(actual).type.isSigned))
        return value


def _lvalue(e: Any) -> Any:
    """Return the target that an output argument is connected to."""
    return e.left if e.kind.name == "Assignment" else e
