"""The state of an interpretation: heap, path, findings; where paths part and meet again."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from hagane.frontends.python.interpret.domain import Domain
from hagane.frontends.python.interpret.fitting import refuse_unhashable
from hagane.frontends.python.interpret.reading.streams import Streams
from hagane.frontends.python.interpret.running import Budget, Observer, OutOfTime
from hagane.frontends.python.report.findings import OWN, CheckError
from hagane.frontends.python.values.deques import are_alike, list_like
from hagane.frontends.python.values.from_outside import FromOutside
from hagane.frontends.python.values.hashed import Step, hashed
from hagane.frontends.python.values.heap import MEMBERS, Heap, join_contents, join_unset
from hagane.frontends.python.values.placeholders import other_path, stands_in
from hagane.frontends.python.values.printing import show_type
from hagane.frontends.python.values.values import (
    MISSING,
    Absent,
    Choice,
    Class,
    DictRef,
    Fields,
    Frame,
    Function,
    Host,
    Instance,
    ListRef,
    Many,
    ModuleRef,
    Place,
    Real,
    Ref,
    SetRef,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_compared_by_value,
    is_key,
)
from hagane.symbolic import Dim, Expr, definitely_equal, symbol
from hagane.symbolic.logic import choose, negate
from hagane.symbolic.path import PathCondition
from hagane.symbolic.questions import Joined
from hagane.symbolic.substitute import evaluate, symbols_of
from hagane.symbolic.term import BOOL, FALSE, TRUE, Term, variable, variables_of

_MAX_TEXT = 300  # characters of the name of a number that is one of two
_MAX_JOINS = 32  # of which one size is made; more are one that nothing is known about


@dataclass(frozen=True, slots=True)
class Exit:
    """One way in which a block ended early: kind, result, and the state then."""

    kind: str  # return, break, continue, raise
    value: Value
    contents: dict[int, Any]
    path: PathCondition


def _refused(code: str, message: str) -> NoReturn:
    raise CheckError(code, message)


# The text of a condition that nobody has written.
_UNTOLD = "what the data decides"


class Core(Streams):
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

    def is_by_identity(self, key: Value) -> bool:
        """Whether a value is a key by its identity: a tensor, which graphs write anew instead."""
        return isinstance(key, Tensor) and not self.emit.builds

    def is_member(self, item: Value) -> bool:
        """Whether sets know a value: a known one, or a tensor of PyTorch, which equals itself."""
        if isinstance(item, Tensor):
            return self.is_by_identity(item) and item.kind == "torch.Tensor"
        refuse_unhashable(item)
        return is_key(item)

    def key_in(self, keys: Iterable[Value], key: Value) -> Value:
        """Return the one of ``keys`` that a key equals, the key itself if it is another.

        ``MISSING`` stands for one of which only the run knows whether it is one of them.
        """
        if is_key(key):
            return key
        refuse_unhashable(key)
        if not is_compared_by_value(key):
            return MISSING
        for other in keys:
            same = other is key or self.truth(self.compare(ast.Eq, key, other))
            if same is True:
                return other
            if same is not False:
                return MISSING
        return key

    def with_keys(self, pairs: Iterable[tuple[Value, Value]]) -> dict[Any, Value] | None:
        """Return a dictionary of pairs, None where only the run knows its keys."""
        made: dict[Any, Value] = {}
        for key, value in pairs:
            known = key if isinstance(key, Tensor) else self.key_in(made, key)
            if known is MISSING:
                return None
            made[known] = value
        return made

    def equals_itself_alone(self, item: Value) -> bool:
        """Whether a value is an object of the program that no method compares with others."""
        if not isinstance(item, Instance) or not isinstance(item.cls, Class):
            return False
        known = self._compared.get(item.cls.key)
        if known is None:
            known = "by value" not in item.cls_flags and self.method_of(item, "__eq__") is MISSING
            self._compared[item.cls.key] = known
        return known

    def new_set(
        self, items: Sequence[Value], *, frozen: bool = False, step: Step | None = None
    ) -> SetRef:
        """Return a new set of known values, made by a step, or of one item after the other."""
        made = Step(None, "set", (list(items),)) if step is None else step
        return SetRef(self.heap.new(hashed(items, made)), frozen)

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

    # Truth.

    def truth(self, value: Value) -> bool | Term:
        """Return whether ``value`` counts as true: known, or the condition under which it does."""
        value = self.parted(value)
        if isinstance(value, Choice):
            value = self.settle(value)
        match value:
            case Truth(term=term):
                return True if term is TRUE else False if term is FALSE else term
            case Expr():
                return negate(self.knowledge.equal(value, 0))
            case Choice(condition=condition, yes=yes, no=no):
                return choose(
                    condition, self.as_term(self.truth(yes)), self.as_term(self.truth(no))
                )
            case Tensor():
                return self._tensor_truth(value)
            case Real() | Unknown():
                return self.domain.truth(value)
            case ListRef() | SetRef() | DictRef():
                content = self.heap[value]
                if isinstance(content, Many):
                    return negate(self.knowledge.equal(content.length, 0))
                if isinstance(content, Choice):
                    return self.unknown_truth()
                return bool(content)
            case Host(object=found):
                return bool(found)
            case None | bool() | int() | float() | complex() | str() | bytes():
                return bool(value)
            case tuple() | range() | frozenset():
                return bool(value)
        return self.truth_of_object(value)

    def truth_of_object(self, value: Value) -> bool | Term:
        """Return whether an object counts as true."""
        del value
        return True

    def _tensor_truth(self, value: Tensor) -> bool | Term:
        if value.shape is not None and any(isinstance(d, int) and d != 1 for d in value.shape):
            raise CheckError(
                "value",
                "the truth value of a tensor with more than one element is ambiguous",
                remedy="ask .any() or .all() of it",
                tensors=(value,),
            )
        if value.known is not None and value.known.size == 1 and value.known.dtype != object:
            return bool(value.known.ravel()[0])
        return self.domain.truth(value)

    def condition(self, test: ast.expr) -> bool | Term:
        """Return whether an expression counts as true, as :meth:`truth` has it."""
        before, self.tested = self.tested, test
        try:
            return self.truth(self.evaluate(test))
        finally:
            self.tested = before

    def unknown_truth(self) -> Term:
        """Return a condition that nothing is known about."""
        return self.domain.truth(None)

    def new_truth(self) -> Term:
        """Return a condition under a new name."""
        name = f"?{len(self._texts)}"
        term = variable(name, BOOL)
        self._texts[term] = _UNTOLD
        return term

    @staticmethod
    def as_term(condition: bool | Term) -> Term:
        """Return a condition as a term."""
        return condition if isinstance(condition, Term) else TRUE if condition else FALSE

    def decide(self, condition: bool | Term) -> bool | Term:
        """Return the condition, as a plain truth value where the path decides it."""
        return condition if isinstance(condition, bool) else self.domain.decide(condition)

    def decided(self, condition: Term) -> bool | Term:
        """Return a condition, or its truth where the path or known sizes decide it."""
        taken = self.knowledge.path.decisions
        if condition in taken:  # a condition of several parts, which the solver may not take apart
            return True
        if negate(condition) in taken:
            return False
        if not self.knowledge.possible(negate(condition)):
            return True
        if not self.knowledge.possible(condition):
            return False
        return condition

    def settle(self, value: Value) -> Value:
        """Return the alternative that the path leaves of a choice, if it leaves one."""
        while isinstance(value, Choice):
            decided = self.decide(value.condition)
            if isinstance(decided, Term):
                return value
            value = value.yes if decided else value.no
        return value

    def name_condition(self, condition: Term, text: str) -> None:
        """Remember how a condition is written, for messages."""
        for term, told in ((condition, text), (negate(condition), f"not ({text})")):
            if self._texts.get(term, _UNTOLD) == _UNTOLD:
                self._texts[term] = told

    def path_text(self) -> str:
        """Return the decisions of the current path as written."""
        texts = [self._texts[d] for d in self.knowledge.path.decisions if d in self._texts]
        return " and ".join(text for text in texts if text != _UNTOLD)

    # Paths.

    def look_at_clock(self) -> None:
        """Raise ``OutOfTime`` once the interpretation has taken all of its time."""
        if self.budget is not None and self.budget.is_spent:
            raise OutOfTime(
                f"the analysis took more than {self.budget.seconds:g} s of computing and ended "
                "here: loops inside loops, or branches of which each doubles the paths; check a "
                "part of the program by itself, as in FILE.py:function",
                self.here(),
            )

    def fork(
        self, condition: Term, yes: Callable[[], Value], no: Callable[[], Value], text: str = ""
    ) -> Value:
        """Run ``yes`` where ``condition`` holds and ``no`` elsewhere, and join their states."""
        if self.handlers:
            yes, no = partial(self._side, yes), partial(self._side, no)
        return self.domain.fork(condition, yes, no, text)

    def _side(self, run: Callable[[], Value]) -> Value:
        """Run one of two paths; an exception that a handler takes ends this one alone."""
        try:
            return run()
        except CheckError as error:
            if self.catches(error) or not self.dead:
                raise
            return Unknown(error.message, told=True, failed=True)

    def meet(self, condition: Term, yes: dict[int, Any], no: dict[int, Any]) -> None:
        """Continue with the contents of two paths joined."""
        joined = join_contents(yes, no, lambda a, b: self.join(condition, a, b), condition)
        if self.frame is not None:
            join_unset(yes, no, joined, self.frame.key, condition)
        self.heap.restore(joined)

    def merge(self, exits: Sequence[Exit], entry: PathCondition) -> Value:
        """Continue after several exits, of which at least one is there; return the joined value."""
        return self.domain.merge(exits, entry)

    def leave(self, kind: str, value: Value, exits: list[Exit]) -> None:
        """End the current path here."""
        raise NotImplementedError

    def exit(self, kind: str, value: Value = None) -> Exit:
        """Return the current path as an exit."""
        return Exit(kind, value, self.heap.contents, self.knowledge.path)

    def either(self, value: Value, function: Callable[[Value], Value]) -> Value:
        """Apply ``function`` to a value, or to both alternatives of a choice."""
        value = self.settle(value)
        if not isinstance(value, Choice):
            return function(value)
        self.look_at_clock()
        whole, yes, no = value, value.yes, value.no
        return self.fork(
            value.condition,
            lambda: self._with_one(yes, whole, function),
            lambda: self._with_one(no, whole, function),
        )

    def _with_one(self, value: Value, whole: Choice, function: Callable[[Value], Value]) -> Value:
        """Apply ``function`` to an alternative; a path ends where Python fails with None there."""
        builds = self.emit.builds
        if not (value is None if builds else stands_in(value, whole, self.knowledge.invented)):
            return self.either(value, function)
        try:
            return function(value)
        except CheckError as error:
            if error.code in OWN or self.catches(error):
                raise
            if not self.dead:
                self.emit.note_raise(f"TypeError: {error.message}")
                told = other_path(self.path_text())
                self.collector.assume(self.here(), f"{told}, else {error.message}")
            self.dead = True
            return MISSING

    def present(self, value: Choice) -> Value:
        """Return the items' owner that a value is; paths on which it is None end."""

        def found(one: Value) -> Value:
            if one is None:
                raise CheckError("type", "None is not iterable")
            return one

        return self.either(value, found)

    def parted(self, value: Value) -> Value:
        """Return a dictionary whose keys the data decide as a choice of copies, to be read."""
        content = self.heap.contents.get(value.key) if isinstance(value, DictRef) else None
        if type(content) is not Choice:
            return value

        def copied(held: Any) -> Value:
            if type(held) is Choice:
                return Choice(held.condition, copied(held.yes), copied(held.no))
            return DictRef(self.heap.new(held), value.kind)

        return copied(content)

    def names_of_function(self, function: Function) -> dict[str, Value]:
        """Return the attributes that the program gave a function."""
        found: dict[str, Value] = self.heap[self.key_of_names(function)]
        return found

    def key_of_names(self, function: Function) -> int:
        """Return where the attributes of a function lie."""
        place = (function.node, function.scope.key)
        key = self._function_names.get(place)
        if key is None or key not in self.heap.contents:
            key = self._function_names[place] = self.heap.new({})
            self.heap.originals.keep(key, {})  # it has none where other paths are the first to ask
        return key

    # Joins.

    def join(self, condition: Term, yes: Value, no: Value) -> Value:
        """Return the value that is ``yes`` where ``condition`` holds, else ``no``."""
        return yes if yes is no else self.domain.join(condition, yes, no)

    def join_parts(self, condition: Term, yes: Value, no: Value) -> Value:
        """Return truth values, containers and equal constants joined; else a choice."""
        if isinstance(yes, bool | Truth) and isinstance(no, bool | Truth):
            return self.as_truth(
                choose(condition, self.as_term(self.truth(yes)), self.as_term(self.truth(no)))
            )
        if isinstance(yes, tuple) and isinstance(no, tuple) and len(yes) == len(no):
            joined = [self.join(condition, a, b) for a, b in zip(yes, no, strict=True)]
            if isinstance(yes, Fields) and isinstance(no, Fields) and yes.names == no.names:
                return Fields(joined, yes.names, yes.real if yes.real is no.real else None)
            return tuple(joined)
        if isinstance(yes, Ref) and isinstance(no, Ref) and yes.key == no.key:
            return yes
        if type(yes) is type(no) and isinstance(yes, str | bytes) and yes == no:
            return yes
        if isinstance(yes, ListRef) and isinstance(no, ListRef):
            return self._join_lists(condition, yes, no)
        return Choice(condition, yes, no)

    def _join_lists(self, condition: Term, yes: ListRef, no: ListRef) -> Value:
        a, b = self.heap.contents.get(yes.key), self.heap.contents.get(no.key)
        if not are_alike((yes, no)):
            return Choice(condition, yes, no)
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            items = [self.join(condition, x, y) for x, y in zip(a, b, strict=True)]
            return list_like(self.heap, yes, items)
        return Choice(condition, yes, no)

    def joined_of(self, size: Expr) -> Choice | None:
        """Return the numbers of which a size is one, as the data decide; None for other sizes."""
        names = [name for name in symbols_of(size) if name in self.knowledge.joined]
        if len(names) != 1:
            return None
        found = self.knowledge.joined[names[0]]
        yes, no = (evaluate(size, {names[0]: part}) for part in (found.yes, found.no))
        return Choice(found.condition, yes, no)

    @staticmethod
    def as_truth(term: Term) -> bool | Truth:
        """Return a condition as a value."""
        return True if term is TRUE else False if term is FALSE else Truth(term)

    def join_sizes(self, condition: Term, yes: Dim, no: Dim) -> Dim:
        """Return the size that is ``yes`` where ``condition`` holds, else ``no``."""
        if definitely_equal(yes, no):
            return yes
        piece = self.emit.pieces.joined(yes, no)
        if piece is not None:
            return piece
        weight = 1 + sum(self._joins.get(part, 0) for part in symbols_of(yes) | symbols_of(no))
        if (
            weight > _MAX_JOINS and not self.emit.builds
        ):  # any number: formulas that double from join to join end here
            unknown = self.emit.fresh("joined")
            self.knowledge.lowest[str(unknown)] = None
            return unknown
        text = self._texts.get(condition, "a condition")
        name = f"({yes} if {text} else {no})"
        if weight > _MAX_JOINS or len(name) > _MAX_TEXT:  # texts would double from join to join
            name = f"either_{len(self.knowledge.joined)}"
        found = Joined(condition, yes, no)
        while self.knowledge.joined.get(name, found) != found:
            name += "'"
        self._joins[name] = weight
        self.knowledge.joined[name] = found
        self.knowledge.lowest[name] = None
        if any(unknown.startswith("?") for unknown in variables_of((condition,))):
            self.knowledge.invented.add(name)
            self.knowledge.nameless.add(name)
        return symbol(name)
