"""The domain of types and symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.emitting.emit import Emitter
from hagane.frontends.python.report.collect import Collector
from hagane.frontends.python.shapes.loops import Loops
from hagane.frontends.python.values.heap import is_same_number
from hagane.frontends.python.values.objects import Instance, names_of_tuple
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Real,
    Tensor,
    Unknown,
    Value,
)
from hagane.symbolic import Expr
from hagane.symbolic.logic import both, either, negate
from hagane.symbolic.path import PathCondition
from hagane.symbolic.questions import Knowledge
from hagane.symbolic.term import FALSE, TRUE, Term

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter


class Shapes(Loops):
    """Follows a program over types: of tensors it knows sizes, as formulas, and no content.

    Args:
        knowledge: The facts of sizes.
        core: The interpreter.
    """

    def __init__(self, knowledge: Knowledge, core: Interpreter):
        super().__init__(core)
        self.knowledge = knowledge
        self.collector = Collector(knowledge)
        self.emit = Emitter(knowledge, core.assume)
        self.collector.following.tensors = self.emit.tensors

    # Truth.

    def truth(self, value: Value) -> Term:
        """Return a condition that nothing is known about."""
        del value
        return self.core.new_truth()

    def decide(self, condition: Term) -> bool | Term:
        """Return a condition, or its truth where the path or the example's sizes decide it."""
        core, known = self.core, self.knowledge
        if known.concolic and known.decides(condition):
            taken = known.holds_in_sample(condition)
            decision = condition if taken else negate(condition)
            self.collector.decision(core.here(), known.path, decision)
            known.path = known.path.taking(decision)
            return taken
        return core.decided(condition)

    # Paths.

    def fork(
        self, condition: Term, yes: Callable[[], Value], no: Callable[[], Value], text: str
    ) -> Value:
        """Run ``yes`` where a condition holds and ``no`` elsewhere, and join their states."""
        core = self.core
        if text:
            core.name_condition(condition, text)
            self.collector.condition(text)
        start, entry = core.heap.snapshot(), self.knowledge.path
        self.knowledge.path = entry.taking(condition)
        a = yes()
        dead_a, contents_a, path_a = core.dead, core.heap.contents, self.knowledge.path
        core.heap.restore(start)
        core.dead = False
        self.knowledge.path = entry.taking(negate(condition))
        b = no()
        if dead_a:
            return b
        if core.dead:
            core.dead = False
            core.heap.restore(contents_a)
            self.knowledge.path = path_a
            return a
        core.meet(condition, contents_a, core.heap.contents)
        self.knowledge.path = entry
        return core.join(condition, a, b)

    def leave(self, kind: str, value: Value, exits: list[Exit]) -> None:
        """End the current path here."""
        exits.append(self.core.exit(kind, value))
        self.core.dead = True

    def merge(self, exits: Sequence[Exit], entry: PathCondition) -> Value:
        """Continue after several exits; return the joined value."""
        core, last = self.core, exits[-1]
        core.heap.restore(last.contents)
        value = last.value
        core.dead = False
        self.knowledge.path = last.path if len(exits) == 1 else entry
        for other in reversed(exits[:-1]):
            condition = both(*other.path.decisions[len(entry.decisions) :])
            if condition is TRUE:
                condition = core.unknown_truth()
            core.meet(condition, other.contents, core.heap.contents)
            value = core.join(condition, other.value, value)
        return value

    def join(self, condition: Term, yes: Value, no: Value) -> Value:
        """Return the value that is ``yes`` where a condition holds, else ``no``."""
        if yes is MISSING or no is MISSING:
            return no if yes is MISSING else yes
        if isinstance(yes, Unknown) or isinstance(no, Unknown):
            lost, other = (yes, no) if isinstance(yes, Unknown) else (no, yes)
            return other if lost.failed else lost
        if _is_int(yes) and _is_int(no):
            return self.core.join_sizes(condition, yes, no)
        if isinstance(yes, Tensor) and isinstance(no, Tensor):
            return self._join_tensors(condition, yes, no)
        if isinstance(yes, float | Real) and isinstance(no, float | Real):
            return yes if is_same_number(yes, no) else Real()
        if isinstance(yes, Choice) or isinstance(no, Choice):
            absent = [_absence(yes), _absence(no)]
            if absent != [FALSE, FALSE]:
                return self._join_optional(condition, yes, no)
        if isinstance(yes, Instance) and isinstance(no, Instance) and yes.key != no.key:
            names = names_of_tuple(yes)
            if names is not None and yes.cls is no.cls:
                return self._join_tuples(condition, yes, no, names)
        return self.core.join_parts(condition, yes, no)

    def _join_tuples(
        self, condition: Term, yes: Instance, no: Instance, names: Sequence[str]
    ) -> Instance:
        """Return two named tuples of one class as one, which nobody can change, like them."""
        heap = self.core.heap
        a, b = heap[yes], heap[no]
        parts = {name: self.join(condition, a[name], b[name]) for name in names}
        return Instance(heap.new(parts), yes.cls)

    def _join_optional(self, condition: Term, yes: Value, no: Value) -> Value:
        """Return two values that may be None as one that may be, with the rest joined.

        A value that loops join again and again stays of two alternatives.
        """
        missing = either(both(condition, _absence(yes)), both(negate(condition), _absence(no)))
        rest = self.join(condition, _presence(yes), _presence(no))
        return Choice(missing, None, rest)

    def _join_tensors(self, condition: Term, yes: Tensor, no: Tensor) -> Value:
        same_rank = yes.shape is not None and no.shape is not None and yes.rank == no.rank
        if not same_rank or yes.dtype != no.dtype or yes.kind != no.kind:
            return Choice(condition, yes, no)
        assert yes.shape is not None
        assert no.shape is not None
        alike = yes.shape == no.shape and yes.device == no.device and yes.known is no.known
        if alike and (yes.value is no.value or yes.dtype.is_floating_point()):
            self.emit.share(yes, yes, no)
            return yes  # nothing follows from the content of floats but sizes that masks count
        shape = tuple(
            self.core.join_sizes(condition, a, b) for a, b in zip(yes.shape, no.shape, strict=True)
        )
        device = yes.device if yes.device == no.device else ""
        known = yes.known if yes.known is no.known else None
        joined = self.emit.new(yes.dtype, shape, kind=yes.kind, device=device, known=known)
        joined.origin, joined.parameter = yes.origin, yes.parameter and no.parameter
        joined.strides = yes.strides if yes.strides == no.strides else None
        self.emit.share(joined, yes, no)
        return joined


def _absence(value: Value) -> Term:
    """Return the condition under which a value is None, as far as its first choice tells."""
    if value is None:
        return TRUE
    if not isinstance(value, Choice) or (value.yes is not None and value.no is not None):
        return FALSE
    return value.condition if value.yes is None else negate(value.condition)


def _presence(value: Value) -> Value:
    """Return a value where it is not None; ``MISSING`` if it always is."""
    if value is None:
        return MISSING
    if _absence(value) is FALSE:
        return value
    return value.no if value.yes is None else value.yes


def _is_int(value: Value) -> bool:
    return isinstance(value, int | Expr) and not isinstance(value, bool)
