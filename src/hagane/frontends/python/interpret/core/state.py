"""The state of an interpretation: heap, frames, findings; and what is told of it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from hagane.frontends.python.interpret.domain import Domain
from hagane.frontends.python.interpret.reading.streams import Streams
from hagane.frontends.python.interpret.running import Budget, Observer
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.from_outside import FromOutside
from hagane.frontends.python.values.heap import MEMBERS, Heap
from hagane.frontends.python.values.objects import Frame, ModuleRef
from hagane.frontends.python.values.printing import show_type
from hagane.frontends.python.values.values import (
    Absent,
    DictRef,
    ListRef,
    Many,
    Place,
    Unknown,
    Value,
)
from hagane.symbolic import Dim
from hagane.symbolic.path import PathCondition
from hagane.symbolic.term import Term


@dataclass(frozen=True, slots=True)
class Exit:
    """One way in which a block ended early: kind, result, and the state then."""

    kind: str  # return, break, continue, raise
    value: Value
    contents: dict[int, Any]
    path: PathCondition


def _refused(code: str, message: str) -> NoReturn:
    raise CheckError(code, message)


class State(Streams):
    """The common state of all parts of the interpreter.

    Args:
        domain: Makes the domain of the interpretation, given the interpreter.
    """

    observer: Observer

    def __init__(self, domain: Callable[[Any], Domain]):
        super().__init__()
        self.heap = Heap()
        self.heap.refuse = _refused
        self.taken_whole: ast.GeneratorExp | None = None  # of which a call takes all items at once
        self.copies: dict[int, int] = {}  # of which object one is a deep copy, by their keys
        self.from_outside = FromOutside()
        self.results: dict[int, Value] = {}  # what generators return, by the iterator's key
        self.endless: set[ast.AST] = set()  # functions whose recursion has no end in sight
        self.dead = False
        self.steps = 0  # statements run so far
        self.budget: Budget | None = None
        self.frame: Frame | None = None
        self.handlers: list[Any] = []  # the try statements around, innermost last
        self.attempts = 0  # of loops, in which errors of libraries are noted as the program's are
        self.cleanups: list[Any] = []  # what runs where a path leaves the blocks around
        self.caught: list[CheckError] = []  # the exceptions that are being handled
        self.loops: list[list[Exit]] = []
        self.variables = self.heap.new({})  # context variables that the program set
        self.kept: dict[Any, list[Any]] = {}  # results of functions that functools keeps
        self.tags: dict[tuple[Any, str], Value] = {}  # attributes that the program gave tensors
        self._absents: dict[tuple[int, str], Absent] = {}
        self._function_names: dict[tuple[Any, int], int] = {}  # where their attributes lie
        self.opened: set[int] = set()  # objects with attributes whose names are not known
        self._texts: dict[Term, str] = {}
        self._compared: dict[int, bool] = {}  # classes whose objects are compared by identity
        self.unused: ast.expr | None = None  # an expression that is a statement
        self.tested: ast.expr | None = None  # an expression of which the truth alone counts
        self._joins: dict[str, int] = {}  # of how many joins a joined size is made
        self.modules: dict[str, ModuleRef] = {}
        self.lazy: dict[str, tuple[ast.Import | ast.ImportFrom, ...]] = {}  # at a name's first use
        self.matches: dict[ast.Match, list[ast.stmt]] = {}  # match statements as branches
        self.domain = domain(self)
        self.knowledge = self.domain.knowledge
        self.collector = self.domain.collector
        self.emit = self.domain.emit
        self.op = self.emit.op
        self.fail = self.emit.fail

    # Objects.

    def new_list(self, items: Sequence[Value] | Many = ()) -> ListRef:
        """Return a new list."""
        return ListRef(self.heap.new(items if isinstance(items, Many) else tuple(items)))

    def new_dict(self, items: Mapping[Any, Value] | None = None, kind: str = "dict") -> DictRef:
        """Return a new dictionary."""
        made = DictRef(self.heap.new(dict(items or {})), kind)
        if kind != MEMBERS:
            self.heap.dictionaries.add(made.key)
        return made

    # Reporting.

    def assume(self, text: str) -> None:
        """Tell the reader an assumption."""
        if self.frame is not None:
            self.collector.assume(self.here(), text)

    def here(self) -> Any:
        """Return the place of the expression of the user's that is being evaluated."""
        return self.collector.place_of(self.frame)

    def calls(self) -> Sequence[Place]:
        """Return the calls that led there, the innermost first."""
        return self.collector.calls_to(self.frame)

    def show(self, value: Value) -> str:
        """Return the printed type of ``value``."""
        return show_type(value, self.heap, self.knowledge)

    def lost(self, reason: str) -> Unknown:
        """Return an unknown value and tell the reader why it is not known."""
        self.collector.open_question(self.here(), reason, self.collector.within(self.frame))
        return Unknown(reason, told=not self.collector.muted)

    @property
    def counters(self) -> dict[str, Dim]:
        """Turns of summarised loops by the name of the turn."""
        return self.emit.counters


__all__ = ["Exit", "State"]
