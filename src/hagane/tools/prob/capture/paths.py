"""Where paths of a captured function part and meet: conditions and joined values get names.

A path is a chain of named truth values, each of which says by itself that the path is taken, so
the last of them guards operations that can fail. Returns, breaks and continues are folded into one
exit at once: few values stay alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.domain import Plain
from hagane.frontends.python.values.heap import is_same_number, join_contents
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    ListRef,
    Real,
    Truth,
    Unknown,
    Value,
)
from hagane.symbolic import Dim, Expr, definitely_equal
from hagane.symbolic.logic import both, choose, either, negate
from hagane.symbolic.path import PathCondition
from hagane.symbolic.term import TRUE, Term
from hagane.tools.prob.capture.facts import Facts, union
from hagane.tools.prob.capture.python_function import PythonFunction
from hagane.tools.prob.capture.record import Numbers, Recording
from hagane.tools.prob.capture.refusal import NoTensors, Refusing
from hagane.tools.prob.language.source import Span

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter

_UNBOUND = Unknown("the name is not defined on every path to here", told=True)
# Of one function; one with more is run instead, which takes less time.
_MOST_FORKS = 4_000


class Paths(Plain):
    """Follows the paths of a function.

    Args:
        found: The function.
        core: The interpreter.
    """

    annotated = False

    def __init__(self, found: PythonFunction, core: Interpreter):
        super().__init__(core)
        self.found = found
        self.knowledge = Numbers()
        self.collector = Refusing(self.knowledge, found, lambda: core.frame)
        self.emit = NoTensors(self.knowledge, self.collector)
        self.record = Recording()
        self._facts: dict[tuple[Term, ...], Facts] = {(): self.record.facts}
        self._meeting: tuple[Facts, Facts] | None = None
        self.dictionaries: set[int] = set()
        self._forks = 0

    # Refusals.

    def refuse(self, message: str) -> NoReturn:
        """End the capture where the interpreter is."""
        self.collector.refuse(message)

    def truth(self, value: Value) -> Term:
        """End the capture: a condition is not known."""
        del value
        self.refuse("this condition cannot be followed; compare integers and truth values")

    @property
    def span(self) -> Span:
        """Where in the function's file the interpreter is."""
        return self.collector.span()

    # Facts.

    @property
    def guard(self) -> Term:
        """The condition under which the current path is taken."""
        return _guard(self.knowledge.path)

    @property
    def facts(self) -> Facts:
        """The facts of the current path."""
        return self._facts_on(self.knowledge.path)

    def _facts_on(self, path: PathCondition) -> Facts:
        decisions = path.decisions
        while decisions not in self._facts:
            decisions = decisions[:-1]
        return self._facts[decisions]

    def learn(self, condition: Term) -> None:
        """Take in a condition that holds from here on."""
        self.replace_facts(self.facts.assuming(condition))

    def replace_facts(self, facts: Facts) -> None:
        """Set the facts of the current path."""
        self._facts[self.knowledge.path.decisions] = facts

    def decide(self, condition: Term) -> bool | Term:
        """Return the condition, as a plain truth value where the path decides it."""
        decided = self.facts.truth(condition)
        return condition if decided is None else decided

    def flag(self, condition: Term) -> Term:
        """Return a condition under a name."""
        return self.record.named_truth(condition, self.span)

    # Forks.

    def fork(
        self, condition: Term, yes: Callable[[], Value], no: Callable[[], Value], text: str
    ) -> Value:
        """Run ``yes`` where ``condition`` holds and ``no`` elsewhere, and join their states."""
        del text
        self._forks += 1
        if self._forks > _MOST_FORKS:
            self.refuse(
                f"the function parts into more than {_MOST_FORKS:,} paths, as texts do that draws "
                "make ever longer; tell values apart by integers"
            )
        start, entry = self.core.heap.snapshot(), self.knowledge.path
        condition = self.flag(condition)
        ways = self._way(entry, condition), self._way(entry, negate(condition))
        self.knowledge.path = ways[0]
        a = yes()
        dead_a, contents_a, path_a = self.core.dead, self.core.heap.contents, self.knowledge.path
        self.core.heap.restore(start)
        self.core.dead = False
        self.knowledge.path = ways[1]
        b = no()
        if dead_a:
            return b
        if self.core.dead:
            self.core.dead = False
            self.core.heap.restore(contents_a)
            self.knowledge.path = path_a
            return a
        path_b = self.knowledge.path
        self.knowledge.path = entry
        with self._joining(path_a, path_b):
            self.core.heap.restore(self._met(condition, contents_a, self.core.heap.contents))
            value = self.core.join(condition, a, b)
        if (path_a, path_b) != ways:
            self.knowledge.path = self._together(entry, path_a, path_b)
        return value

    def _way(self, entry: PathCondition, condition: Term) -> PathCondition:
        """Return a path one decision further, and note its facts."""
        known = self._facts_on(entry).assuming(condition)
        path = entry.taking(self.flag(both(_guard(entry), condition)))
        self._facts[path.decisions] = known.assuming(_guard(path))
        return path

    def _together(
        self, entry: PathCondition, left: PathCondition, right: PathCondition
    ) -> PathCondition:
        """Return the union of two paths."""
        if entry in (left, right):
            return entry
        return entry.taking(self.flag(either(_guard(left), _guard(right))))

    @contextmanager
    def _joining(self, yes: PathCondition, no: PathCondition) -> Iterator[None]:
        before = self._meeting
        self._meeting = self._facts_on(yes), self._facts_on(no)
        try:
            yield
        finally:
            self._meeting = before

    def leave(self, kind: str, value: Value, exits: list[Exit]) -> None:
        """End the current path here, together with earlier paths that left the same way."""
        path, contents = self.knowledge.path, self.core.heap.contents
        self.core.dead = True
        for place, other in enumerate(exits):
            if other.kind == kind:
                exits[place] = self._joined_exit(Exit(kind, value, contents, path), other)
                return
        exits.append(Exit(kind, value, contents, path))

    def _joined_exit(self, new: Exit, old: Exit) -> Exit:
        condition = _guard(new.path)
        shared = _shared(new.path, old.path)
        with self._joining(new.path, old.path):
            value = self.core.join(condition, new.value, old.value)
            contents = self._met(condition, new.contents, old.contents)
        return Exit(new.kind, value, contents, self._together(shared, new.path, old.path))

    def merge(self, exits: Sequence[Exit], entry: PathCondition) -> Value:
        """Continue after several exits, of which at least one is there; return the joined value."""
        last = exits[-1]
        for other in reversed(exits[:-1]):
            last = self._joined_exit(other, last)
        self.core.heap.restore(last.contents)
        self.core.dead = False
        self.knowledge.path = last.path
        return last.value

    # Joins.

    def _met(self, condition: Term, yes: dict[int, Any], no: dict[int, Any]) -> dict[int, Any]:
        # Names of modules and of real objects are there on every path, read or not.
        known = self.read_only()
        apart: dict[int, Any] = {
            key: {**no[key], **content}
            for key, content in yes.items()
            if key in no and key in known
        }
        apart |= {
            key: Choice(condition, content, no[key])
            for key, content in yes.items()
            if key not in apart
            and key in no
            and content is not no[key]
            and self._differ(key, content, no[key])
        }
        joined = join_contents(
            {key: content for key, content in yes.items() if key not in apart},
            no,
            lambda a, b: self.core.join(condition, a, b),
            condition,
        )
        return {**joined, **apart}

    def read_only(self) -> set[int]:
        """Return the keys of modules and real objects: their members are looked up, not made."""
        lifted = self.core.lifted.values()
        outside = {value.key for _, value in lifted if isinstance(value, Instance)}
        return outside | {module.key for module in self.core.modules.values()}

    def _differ(self, key: int, yes: Any, no: Any) -> bool:
        """Whether two contents have no common form: other lengths, other keys."""
        if isinstance(yes, dict) and isinstance(no, dict):
            return key in self.dictionaries and yes.keys() != no.keys()
        return not (isinstance(yes, tuple) and isinstance(no, tuple) and len(yes) == len(no))

    def join(self, condition: Term, yes: Value, no: Value) -> Value:
        """Return the value that is ``yes`` where ``condition`` holds, else ``no``."""
        if yes is MISSING or no is MISSING:
            return Choice(
                condition, _UNBOUND if yes is MISSING else yes, _UNBOUND if no is MISSING else no
            )
        if isinstance(yes, Unknown) or isinstance(no, Unknown) or isinstance(yes, ListRef):
            return Choice(condition, yes, no)
        if isinstance(yes, bool | Truth) and isinstance(no, bool | Truth):
            a, b = (self.core.as_term(self.core.truth(value)) for value in (yes, no))
            return self.core.as_truth(self.flag(choose(condition, a, b)))
        if isinstance(yes, bool | Truth) is not isinstance(no, bool | Truth):
            return Choice(condition, yes, no)  # True is not 1 where a program asks
        if _is_number(yes) and _is_number(no):
            return self.join_numbers(condition, self.counted(yes), self.counted(no))
        if isinstance(yes, float | Real) and isinstance(no, float | Real):
            return yes if is_same_number(yes, no) else Real()
        return self.core.join_parts(condition, yes, no)

    def join_numbers(self, condition: Term, yes: Dim, no: Dim) -> Dim:
        """Return the integer that is ``yes`` where ``condition`` holds, else ``no``."""
        if definitely_equal(yes, no):
            return yes
        where = self._meeting
        if where is None:
            facts = self.facts
            where = facts.assuming(condition), facts.assuming(negate(condition))
        a, b = self.knowledge.term(yes), self.knowledge.term(no)
        range_ = union(where[0].range_of(a), where[1].range_of(b))
        return self.record.named_integer(choose(condition, a, b), range_, self.span)

    def counted(self, value: Value) -> Value:
        """Return a truth value as 0 or 1, other values as they are."""
        if isinstance(value, Truth):
            return self.join_numbers(value.term, 1, 0)
        return int(value) if isinstance(value, bool) else value


def _is_number(value: Value) -> bool:
    return isinstance(value, int | Expr | Truth)


def _guard(path: PathCondition) -> Term:
    return path.decisions[-1] if path.decisions else TRUE


def _shared(left: PathCondition, right: PathCondition) -> PathCondition:
    """Return the decisions that two paths begin with."""
    count = 0
    for a, b in zip(left.decisions, right.decisions, strict=False):
        if a is not b:
            break
        count += 1
    return PathCondition(left.decisions[:count])
