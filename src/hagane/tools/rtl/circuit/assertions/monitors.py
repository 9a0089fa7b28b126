"""Concurrent assertions as circuits beside the design: registers that follow their attempts.

Of a sequence that has to be met, all attempts at one time that are in the same set of positions are
one register: no two of them differ from then on. An attempt fails on the cycle on which no position
is left and the sequence was not met; one that may go on for ever does not fail.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

from hagane.symbolic import bitvector as bv
from hagane.symbolic.logic import both, either, negate
from hagane.symbolic.term import FALSE, TRUE, Term
from hagane.tools.rtl.circuit.assertions import sequences as seq
from hagane.tools.rtl.circuit.assertions.sequences import Sequence, TooManyPositions
from hagane.tools.rtl.circuit.elaborate import Position
from hagane.tools.rtl.circuit.machine import Machine, Target, Variable
from hagane.tools.rtl.circuit.subset import outside
from hagane.tools.rtl.circuit.values import Packed

if TYPE_CHECKING:
    from hagane.tools.rtl.circuit.scope import Scope

_MOST_SETS = 64
_MOST_CONDITIONS = 6


class NotFollowed(Exception):
    """A property, or a part of one, that is not followed; the message says which."""


_JOINS = ("Or", "And", "Intersect", "Within", "Throughout")


def _is_sequence(spec: Any) -> bool:
    """Tell whether a property is a sequence."""
    kind, op = spec.kind.name, getattr(getattr(spec, "op", None), "name", "")
    if kind == "Binary":
        return op in _JOINS and _is_sequence(spec.left) and _is_sequence(spec.right)
    if kind == "Simple" and spec.expr.kind.name == "AssertionInstance":
        return _is_sequence(spec.expr.body)
    return kind in ("Simple", "SequenceConcat", "SequenceWithMatch", "FirstMatch")


class Monitor:
    """The registers of one assertion.

    Args:
        scope: The instance that the assertion stands in.
        position: Its place.
        registers: Kept from one execution of the process to the next.
        copy: Its number among those that a generate loop makes at its place.
    """

    def __init__(self, scope: Scope, position: Position, registers: list[Variable], copy: int = 0):
        self.scope = scope
        self.position = position
        self.registers = registers
        self.copy = copy

    def follow(self, spec: Any, m: Machine, *, covers: bool) -> Term:
        """Return when an assertion fails, or the property of a cover is met.

        Raises:
            NotFollowed: It is outside the subset.
        """
        self._used = 0
        self._m = m
        self._before = Machine(m.base, past=self._delayed)
        self._disabled: Term = FALSE
        self._clock = ""
        spec = self._unwrapped(spec)
        try:
            return self._met(spec, TRUE) if covers else self._failing(spec, TRUE)
        except TooManyPositions:
            raise NotFollowed("a sequence of more than 256 cycles") from None

    def _unwrapped(self, spec: Any) -> Any:
        """Return a property behind its clock and its ``disable iff``."""
        while True:
            kind = spec.kind.name
            if kind == "Clocking":
                clock = str(spec.clocking.syntax).strip()
                if self._clock not in ("", clock):
                    raise NotFollowed("a property of several clocks")
                self._clock = clock
            if kind == "DisableIff":
                self._disabled = either(self._disabled, self._condition(spec.condition))
                spec = spec.expr
            elif kind == "Clocking":
                spec = spec.expr
            elif kind == "Simple" and spec.expr.kind.name == "AssertionInstance":
                if spec.repetition is not None:
                    return spec
                if list(spec.expr.localVars):
                    raise NotFollowed("local variables of a property")
                spec = spec.expr.body
            else:
                return spec

    # Registers.

    def _register(self, width: int) -> Variable:
        if self._used == len(self.registers):
            place = f"{self.position}" if self.copy == 0 else f"{self.position}, {self.copy}"
            name = f"hagane_sva[{place}][{self.scope.path}][{self._used}]"
            self.registers.append(
                Variable(name, Packed(width, False), self.position, scope="", hidden=True)
            )
        found = self.registers[self._used]
        self._used += 1
        return found

    def _delayed(self, value: Term) -> Term:
        """Return the value that a term had one cycle ago."""
        register = self._register(value.width)
        before = self._m.base(register)
        assert isinstance(before, Term)
        self._m.write(Target(register, (), register.layout), value, blocking=False)
        return before

    def _flag(self) -> tuple[Term, Callable[[Term], None]]:
        """Return a bit as it is now, and a function that sets it for the next cycle."""
        register = self._register(1)
        now = self._m.base(register)
        assert isinstance(now, Term)

        def set_(value: Term) -> None:
            following = bv.from_bool(both(value, negate(self._disabled)))
            self._m.write(Target(register, (), register.layout), following, blocking=False)

        return bv.to_bool(now), set_

    def _condition(self, e: Any) -> Term:
        problems = outside(e, self.scope.position, past=True)
        if problems:
            raise NotFollowed(problems[0].split(": ", 1)[1])
        return self.scope.expressions.condition(e, self._before)

    # Properties.

    def _failing(self, spec: Any, start: Term) -> Term:
        """Return when a property that is attempted on some cycles fails."""
        spec = self._unwrapped(spec)
        kind, op = spec.kind.name, getattr(getattr(spec, "op", None), "name", "")
        if kind == "Binary" and op in ("OverlappedImplication", "NonOverlappedImplication"):
            return self._failing(spec.right, self._triggered(spec, start))
        if kind == "Unary" and op == "Not":
            return self._met(spec.expr, start)
        if kind == "Unary" and op == "NextTime" and spec.range is None:
            return self._failing(spec.expr, self._later(start))
        if kind == "Unary" and op == "Always" and spec.range is None:
            now, set_ = self._flag()
            always = either(start, now)
            set_(always)
            return self._failing(spec.expr, always)
        if kind == "Conditional":
            condition = self._condition(spec.condition)
            found = self._failing(spec.ifExpr, both(start, condition))
            if spec.elseExpr is None:
                return found
            return either(found, self._failing(spec.elseExpr, both(start, negate(condition))))
        if kind == "Binary" and op == "And" and not _is_sequence(spec):
            return either(self._failing(spec.left, start), self._failing(spec.right, start))
        if kind == "Binary" and op in ("Until", "UntilWith"):
            held, ends = self._plain(spec.left), self._plain(spec.right)
            last = both(held, ends) if op == "UntilWith" else ends
            loop = seq.repeated(seq.cycle(both(held, negate(ends))), 0, None)
            return self._unmet(seq.after(loop, seq.cycle(last)), start)
        return self._unmet(self._sequence(spec, goal=True), start)

    def _met(self, spec: Any, start: Term) -> Term:
        """Return when a property that is attempted on some cycles is met, not in vain."""
        spec = self._unwrapped(spec)
        kind, op = spec.kind.name, getattr(getattr(spec, "op", None), "name", "")
        if kind == "Binary" and op in ("OverlappedImplication", "NonOverlappedImplication"):
            return self._met(spec.right, self._triggered(spec, start))
        return self._matched(self._sequence(spec), start)

    def _triggered(self, spec: Any, start: Term) -> Term:
        """Return when the right side of an implication is attempted."""
        met = self._matched(self._sequence(self._unwrapped(spec.left)), start)
        return self._later(met) if spec.op.name == "NonOverlappedImplication" else met

    def _later(self, start: Term) -> Term:
        now, set_ = self._flag()
        set_(start)
        return now

    def _matched(self, a: Sequence, start: Term) -> Term:
        """Return when some attempt of a sequence is met."""
        if a.empty:
            raise NotFollowed("a sequence that may be empty")
        bits = {at: self._flag() for at in a.conditions}
        active: dict[int, Term] = {}
        for at, condition in a.conditions.items():
            reached = [bits[before][0] for before, to in a.follow.items() if at in to]
            if at in a.first:
                reached.append(start)
            live = both(condition, negate(self._disabled))
            active[at] = both(live, either(FALSE, *reached))
        for at, (_, set_) in bits.items():
            set_(active[at])
        return either(FALSE, *(active[at] for at in sorted(a.last)))

    def _unmet(self, a: Sequence, start: Term) -> Term:
        """Return when some attempt of a sequence fails."""
        if a.empty:
            raise NotFollowed("a sequence that may be empty")
        moves: dict[frozenset[int], list[tuple[Term, frozenset[int] | None]]] = {}
        waiting = [a.first]
        while waiting:
            places = waiting.pop()
            if places in moves:
                continue
            moves[places] = self._moves(a, places)
            if len(moves) > _MOST_SETS:
                raise NotFollowed("a sequence with too many sets of positions")
            waiting += [to for _, to in moves[places] if to]
        bits = {places: self._flag() for places in moves}
        failing: Term = FALSE
        into: dict[frozenset[int], Term] = dict.fromkeys(moves, FALSE)
        for places, ways in moves.items():
            here = bits[places][0]
            if places == a.first:
                here = either(here, start)
            here = both(here, negate(self._disabled))
            for condition, to in ways:
                if to is None:
                    failing = either(failing, both(here, condition))
                elif to:
                    into[to] = either(into[to], both(here, condition))
        for places, (_, set_) in bits.items():
            set_(into[places])
        return failing

    def _moves(
        self, a: Sequence, places: frozenset[int]
    ) -> list[tuple[Term, frozenset[int] | None]]:
        """Return where attempts go from a set of positions: None fails, the empty set is met."""
        conditions = dict.fromkeys(a.conditions[at] for at in sorted(places))
        open_ = [condition for condition in conditions if condition not in (TRUE, FALSE)]
        if len(open_) > _MOST_CONDITIONS:
            raise NotFollowed(f"a sequence that waits for more than {_MOST_CONDITIONS} conditions")
        found: dict[frozenset[int] | None, Term] = {}
        for values in product((False, True), repeat=len(open_)):
            known = {TRUE: True, FALSE: False, **dict(zip(open_, values, strict=True))}
            reading = [at for at in places if known[a.conditions[at]]]
            to: frozenset[int] | None = frozenset().union(*(a.follow[at] for at in reading))
            if any(at in a.last for at in reading):
                to = frozenset()
            elif not reading:
                to = None
            literals = [
                term if value else negate(term) for term, value in zip(open_, values, strict=True)
            ]
            condition = both(TRUE, *literals)
            found[to] = either(found.get(to, FALSE), condition)
        return [(condition, to) for to, condition in found.items()]

    # Sequences.

    def _plain(self, spec: Any) -> Term:
        """Return a property that is a condition of one cycle."""
        spec = self._unwrapped(spec)
        if spec.kind.name != "Simple" or spec.repetition is not None:
            raise NotFollowed("'until' between more than conditions")
        return self._condition(spec.expr)

    def _sequence(self, spec: Any, *, goal: bool = False) -> Sequence:
        kind, op = spec.kind.name, getattr(getattr(spec, "op", None), "name", "")
        if kind == "Simple":
            if spec.expr.kind.name == "AssertionInstance":
                if list(spec.expr.localVars):
                    raise NotFollowed("local variables of a sequence")
                found = self._sequence(self._unwrapped(spec.expr.body))
            else:
                found = seq.cycle(self._condition(spec.expr))
            return self._repeated(found, spec.repetition)
        if kind == "SequenceWithMatch":
            if list(spec.matchItems):
                raise NotFollowed("assignments in a sequence")
            return self._repeated(self._sequence(spec.expr), spec.repetition)
        if kind == "SequenceConcat":
            whole: Sequence | None = None
            for element in spec.elements:
                low, high = int(element.delay.min), element.delay.max
                item = self._sequence(self._unwrapped(element.sequence))
                if whole is None and low == 0 and high == 0:
                    whole = item
                else:
                    whole = seq.delayed(whole, low, None if high is None else int(high), item)
            assert whole is not None
            return whole
        if kind == "Clocking":
            return self._sequence(self._unwrapped(spec))
        if kind == "FirstMatch" and goal and not list(spec.matchItems):
            return self._sequence(spec.seq)
        if kind == "Binary" and op == "Throughout":
            return seq.throughout(self._plain(spec.left), self._sequence(spec.right))
        if kind == "Binary" and op in ("Or", "And", "Intersect", "Within"):
            join = {
                "Or": seq.alternative,
                "And": seq.all_of,
                "Intersect": seq.together,
                "Within": seq.within,
            }[op]
            return join(self._sequence(spec.left), self._sequence(spec.right))
        raise NotFollowed(f"{kind} {op}".strip() + " in a property")

    def _repeated(self, a: Sequence, repetition: Any) -> Sequence:
        if repetition is None:
            return a
        low, high = int(repetition.range.min), repetition.range.max
        high = None if high is None else int(high)
        kind = repetition.kind.name
        if kind == "Consecutive":
            return seq.repeated(a, low, high)
        (condition,) = a.conditions.values()
        other = seq.cycle(negate(condition))
        found = seq.repeated(seq.after(seq.repeated(other, 0, None), a), low, high)
        if kind == "GoTo":
            return found
        return seq.after(found, seq.repeated(other, 0, None))
