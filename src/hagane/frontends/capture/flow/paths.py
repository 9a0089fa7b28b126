"""Branches of the program as branches of the graph."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from hagane.errors import TypeInferenceError
from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.capture.emitting.scope import Scope, meeting_scope
from hagane.frontends.capture.emitting.telling import Telling
from hagane.frontends.capture.flow.empty import Empty
from hagane.frontends.capture.flow.holding import ruled
from hagane.frontends.capture.flow.lists import Lists
from hagane.frontends.capture.flow.mixtures import NUMPY, is_numpy_scalar, mixes
from hagane.frontends.capture.flow.slots import Contents, number_kind
from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.domain import Plain
from hagane.frontends.python.report.collect import Collector
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.deques import are_alike, list_like
from hagane.frontends.python.values.heap import is_same_number, join_contents
from hagane.frontends.python.values.memory import COMPLEX, STALE, WRITTEN, base_of, is_same_view
from hagane.frontends.python.values.objects import Class, Instance
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    ListRef,
    Many,
    Real,
    Tensor,
    Unknown,
    Value,
)
from hagane.symbolic import Dim, Expr
from hagane.symbolic.logic import both, either, negate
from hagane.symbolic.path import PathCondition
from hagane.symbolic.questions import Knowledge
from hagane.symbolic.term import Term

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter


class Paths(Plain):
    """Follows a program over the nodes of a graph.

    Args:
        names: Names of real arrays, by their identity.
        core: The interpreter.
    """

    def __init__(self, names: dict[int, str], core: Interpreter):
        super().__init__(core)
        self.knowledge = Knowledge()
        self.collector = Collector(self.knowledge)
        self.emit = GraphEmitter(self.knowledge, core.assume, core.here, core.calls, names)
        self.emit.written = lambda: core.heap.contents[WRITTEN]
        self.empty = Empty(self.knowledge, self.emit)
        self.lists = Lists(core, self.emit)
        self.lists.merged = self.merged
        self.emit.described = self.lists.described
        core.heap.links = self.lists.links
        core.heap.ruled = ruled
        self.telling = Telling(core, self.emit)
        self.after: Callable[[str], None] | None = None  # is told of statements that were run
        self._node: ast.AST | None = None  # the innermost one that is interpreted
        self._sides: tuple[dict[int, Any], dict[int, Any]] | None = None  # paths that meet
        self._pairs: dict[tuple[int, int], Value] = {}  # objects joined where they do
        self._joins: dict[tuple[ir.Value, ir.Value], Tensor] = {}  # tensors joined where they do
        self.forks = 0  # how often paths have parted
        self._mark = 0  # objects below it were there before the paths parted

    def interpret(self, node: ast.expr | ast.stmt) -> Value:
        """Interpret a node; code without an operator of the graph is an error."""
        around, self._node = self._node, node
        try:
            if isinstance(node, ast.Assert):
                return self._assert(node)
            made = self.core.visit(node)
        except TypeInferenceError as error:
            raise CheckError("capture", str(error)) from None
        finally:
            self._node = around
        if self.after is not None and isinstance(node, ast.stmt) and self.core.frame is not None:
            self.after(f"{self.core.frame.file}:{node.lineno}")
        return made

    def _assert(self, node: ast.Assert) -> None:
        value = self.core.evaluate(node.test)
        term = self.core.decide(self.core.truth(value))
        if isinstance(term, Term) and self.core.is_awaited(AssertionError):
            text = f"the assertion fails: {self.collector.text(node.test)}"
            self.core.fail_where(self.core.as_truth(negate(term)), AssertionError, text)
        elif isinstance(term, Term) and not self.emit.asserts:
            self.telling.tell("assert", [value])
        self.core.require(value, self.collector.text(node.test))

    # Truth.

    def truth(self, value: Value) -> Term:
        """Return the condition under which a tensor or float counts as true, as a value."""
        found = self.core.new_truth()
        scalar = value.tensor if isinstance(value, Real) else value
        return self.emit.truth(scalar, str(found.data)) if isinstance(scalar, Tensor) else found

    def decide(self, condition: Term) -> bool | Term:
        """Return a condition, or its truth where known sizes decide it."""
        return self.empty.decide(condition, self.core.decided, self._node)

    # Forks.

    def fork(
        self, condition: Term, yes: Callable[[], Value], no: Callable[[], Value], text: str
    ) -> Value:
        """Run ``yes`` where ``condition`` holds and ``no`` elsewhere, and join their states."""
        core = self.core
        self.forks += 1
        if text:
            core.name_condition(condition, text)
            self.collector.condition(text)
        self.lists.links.refresh()
        start, entry, mark = core.heap.snapshot(), self.knowledge.path, core.heap.mark()
        branch = self.emit.branch(condition)
        self.knowledge.path = entry.taking(condition).within(branch.yes)
        a = self._up_to_date(yes)
        dead_a, contents_a, path_a = core.dead, core.heap.contents, self.knowledge.path
        core.heap.restore(start)
        core.dead = False
        self.knowledge.path = entry.taking(negate(condition)).within(branch.no)
        with self.lists.links.without(mark):
            b = self._up_to_date(no)
        path_b = self.knowledge.path
        if dead_a:
            return b
        if core.dead:
            core.dead = False
            core.heap.restore(contents_a)
            self.knowledge.path = path_a
            return a
        self.knowledge.path = entry
        contents_b = core.heap.contents
        core.heap.restore(self._met(condition, contents_a, contents_b, mark))
        value = self._joined(condition, a, b, (contents_a, contents_b), mark)
        if path_a.scope is not branch.yes or path_b.scope is not branch.no:
            # Some runs have left: later code is for the rest.
            rest = either(
                self._condition(path_a.scope, entry.scope),
                self._condition(path_b.scope, entry.scope),
            )
            guard = self.emit.branch(rest)
            self.knowledge.path = entry.taking(rest).within(guard.yes)
        return value

    def _up_to_date(self, path: Callable[[], Value]) -> Value:
        """Run a path; bring the objects that it leaves up to date, which the join reads."""
        result = path()
        if not self.core.dead:
            self.lists.links.refresh()
        return result

    @staticmethod
    def _condition(scope: Scope, around: Scope) -> Term:
        """Return the condition under which a scope is run, given that one around it is."""
        chain = scope.chain()
        inner = chain[: chain.index(around)]
        return both(*(s.condition for s in reversed(inner) if s.condition is not None))

    def leave(self, kind: str, value: Value, exits: list[Exit]) -> None:
        """End the current path here."""
        self.lists.links.refresh()
        exits.append(self.core.exit(kind, value))
        self.core.dead = True

    def merge(self, exits: Sequence[Exit], entry: PathCondition) -> Value:
        """Continue after several exits, of which at least one is there; return the joined value."""
        core, last = self.core, exits[-1]
        for other in reversed(exits[:-1]):
            last = self._merged(other, last, entry)
        core.heap.restore(last.contents)
        core.dead = False
        if len(exits) == 1:
            self.knowledge.path = last.path
            return last.value
        self.knowledge.path = entry
        some = either(*(self._condition(e.path.scope, entry.scope) for e in exits))
        if core.decided(some) is not True:  # other paths went elsewhere
            guard = self.emit.branch(some)
            self.knowledge.path = entry.taking(some).within(guard.yes)
        return last.value

    def _merged(self, one: Exit, other: Exit, entry: PathCondition) -> Exit:
        scope = meeting_scope(one.path.scope, other.path.scope)
        if entry.scope.is_within(scope):
            scope = entry.scope
        condition = self._condition(one.path.scope, scope)
        self.knowledge.path = entry.within(scope)
        contents = self._met(condition, one.contents, other.contents)
        sides = one.contents, other.contents
        with self.lists.links.joining() as behind:
            value = self._joined(condition, one.value, other.value, sides)
        contents[STALE] = contents[STALE] | behind
        return Exit(other.kind, value, contents, self.knowledge.path)

    # Joins.

    def _met(
        self, condition: Term, yes: dict[int, Any], no: dict[int, Any], mark: int = 0
    ) -> dict[int, Any]:
        """Return the contents of two paths joined; of objects below the mark both had any."""
        core = self.core

        def lists(a: Value, b: Value) -> Value:
            found = self.lists.joined(condition, a, b, self._sides)
            return Choice(condition, a, b) if found is None else found

        core.heap.originals.fill(yes, no)
        core.heap.originals.fill(no, yes)
        core.heap.complete(yes, no)
        before = self._sides, self._pairs, self._mark, self._joins
        self._sides, self._pairs, self._mark, self._joins = (yes, no), {}, mark, {}
        try:
            with self.lists.links.joining() as behind:
                joined = join_contents(yes, no, partial(core.join, condition), condition, lists)
            if self.lists.links.mixed:
                behind |= {key for key, one in joined.items() if self.lists.links.is_mixed(one)}
            joined[STALE] = joined[STALE] | behind
            for key in core.heap.dictionaries & yes.keys() & no.keys():
                one, other = yes[key], no[key]
                if one is other or isinstance(one, Many) or isinstance(other, Many):
                    continue
                if type(one) is Choice or type(other) is Choice or [*one] != [*other]:
                    joined[key] = Choice(condition, one, other)
            return joined
        finally:
            self._sides, self._pairs, self._mark, self._joins = before

    def _joined(
        self,
        condition: Term,
        yes: Value,
        no: Value,
        sides: tuple[dict[int, Any], dict[int, Any]],
        mark: int = 0,
    ) -> Value:
        """Return the results of two paths joined, given the contents of objects on each."""
        before = self._sides, self._pairs, self._mark, self._joins
        self._sides, self._pairs, self._mark, self._joins = sides, {}, mark, {}
        try:
            return self.core.join(condition, yes, no)
        finally:
            self._sides, self._pairs, self._mark, self._joins = before

    def join(self, condition: Term, yes: Value, no: Value) -> Value:
        """Return the value that is ``yes`` where ``condition`` holds, else ``no``."""
        if yes is MISSING or no is MISSING:
            return no if yes is MISSING else yes
        if isinstance(yes, Unknown) or isinstance(no, Unknown):
            return Choice(condition, yes, no)
        if isinstance(yes, Tensor) is not isinstance(no, Tensor):
            yes, no = self._as_one(yes, no)
        if isinstance(yes, float | Real) or isinstance(no, float | Real):
            if _is_real(yes) and _is_real(no):
                return self._join_reals(condition, yes, no)
            return Choice(condition, yes, no)
        if isinstance(yes, Tensor) and isinstance(no, Tensor):
            return self._join_tensors(condition, yes, no)
        if _is_real(yes) and _is_real(no):
            return self._join_integers(condition, yes, no)
        if isinstance(yes, ListRef | DictRef | Instance) and type(yes) is type(no):
            return self._join_objects(condition, yes, no)
        return self.core.join_parts(condition, yes, no)

    def _list_of(self, condition: Term, a: Value, b: Value) -> Value:
        """Return the content of one of two lists."""
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            pairs = zip(a, b, strict=True)
            return tuple(self.core.join(condition, x, y) for x, y in pairs)
        found = self.lists.joined(condition, a, b, self._sides)
        return Choice(condition, a, b) if found is None else found

    def _join_objects(self, condition: Term, yes: Value, no: Value) -> Value:
        """Return a new object that has the content of one of two.

        Two that both paths had are had by others, too, and stay what they are.
        """
        if yes.key == no.key:
            return yes
        if max(yes.key, no.key) < self._mark:
            return Choice(condition, yes, no)
        found = self._pairs.get((yes.key, no.key))
        if found is None:
            found = self._joined_object(condition, yes, no)
            self.lists.links.stand_for(found, yes, no, sides=self._sides)
            if self._sides is not None:
                self._pairs[yes.key, no.key] = found
        return found

    def merged(self, value: Choice, contents: Contents) -> Value:
        """Return one container that has the content of one of two, as it is in ``contents``."""
        before = self._sides, self._pairs, self._mark, self._joins
        held, present = dict(contents), contents is self.core.heap.contents
        self._sides = None if present else (held, held)
        self._pairs, self._mark, self._joins = {}, 0, {}
        try:
            return self._one_of(value)
        finally:
            self._sides, self._pairs, self._mark, self._joins = before

    def _one_of(self, value: Choice) -> Value:
        sides = [self._one_of(v) if isinstance(v, Choice) else v for v in (value.yes, value.no)]
        return self._join_objects(value.condition, *sides)

    def _joined_object(self, condition: Term, yes: Value, no: Value) -> Value:
        core, held = self.core, self.core.heap.contents
        left, right = self._sides or (held, held)  # each side has objects as it left them
        a, b = left.get(yes.key, held.get(yes.key)), right.get(no.key, held.get(no.key))
        if isinstance(yes, ListRef):
            found = self._list_of(condition, a, b)
            if isinstance(found, Choice) or not are_alike((yes, no)):
                return Choice(condition, yes, no)
            made = list_like(core.heap, yes, found)
            if self.lists.links.is_mixed(found):
                held[STALE] = held[STALE] | {made.key}
                self.lists.links.behind.add(made.key)
            return made
        if type(a) is not dict or type(b) is not dict or a.keys() != b.keys():
            return Choice(condition, yes, no)
        if isinstance(yes, Instance) and not (yes.cls is no.cls and _is_value(yes)):
            return Choice(condition, yes, no)
        joined = {name: core.join(condition, a[name], b[name]) for name in a}
        if isinstance(yes, Instance):
            return Instance(core.heap.new(joined), yes.cls)
        return core.new_dict(joined, yes.kind)

    def _as_one(self, yes: Value, no: Value) -> tuple[Value, Value]:
        """Return a tensor of one element and a number of Python as two of one kind."""
        tensor, number = (yes, no) if isinstance(yes, Tensor) else (no, yes)
        kind = number_kind(number)
        if tensor.shape != () or not kind or tensor.kind not in _SCALARS:
            return yes, no
        made = self._number_of(tensor, number, kind)
        if made is None:
            made = number
        elif _SCALARS[tensor.kind]:
            return (made, no) if tensor is yes else (yes, made)
        return (yes, made) if tensor is yes else (made, no)

    def _number_of(self, tensor: Tensor, number: Value, kind: str) -> Value:
        """Return a scalar of NumPy as a number, or a number as one of PyTorch; None if neither."""
        whole = tensor.dtype.is_integer()
        if not _SCALARS[tensor.kind]:
            if (whole and kind != "int") or kind == "bool":
                return None
            if not mixes(tensor.dtype, number, frozenset()):
                return None  # it would be rounded; each path goes on with its own
            made = self.core.op("Cast", self.emit.as_scalar(number, kind), to=tensor.dtype)
            made.kind = tensor.kind
            return made
        also = self.emit.also(number)
        simple = is_numpy_scalar(tensor) and kind != "bool"
        if not simple or not (tensor.dtype in also or mixes(tensor.dtype, None, also)):
            return None
        found = self.core.tensor_number(tensor, whole=whole)
        return self.emit.of_kinds(found, also | {tensor.dtype})

    def _join_reals(self, condition: Term, yes: Value, no: Value) -> Value:
        if isinstance(yes, int | float) and is_same_number(yes, no):
            return yes
        also = self.emit.also(yes) | self.emit.also(no)
        if isinstance(yes, int | Expr) or isinstance(no, int | Expr):
            also |= {int}
        a, b = self.emit.real_tensor(yes), self.emit.real_tensor(no)
        return Real(None, self.emit.choose(condition, a, b, ()), also)

    def _join_integers(self, condition: Term, yes: Dim, no: Dim) -> Value:
        also = self.emit.also(yes) | self.emit.also(no)
        made = self._join_sizes(condition, yes, no)
        return self.emit.of_kinds(made, also | {int}) if also else made

    def _join_tensors(self, condition: Term, yes: Tensor, no: Tensor) -> Value:
        if yes.value is no.value and yes.kind == no.kind:
            return yes
        chosen = self._joins.get((yes.value, no.value))
        if chosen is not None and yes.kind == no.kind == chosen.kind:
            return chosen
        same_rank = yes.shape is not None and no.shape is not None and yes.rank == no.rank
        if not same_rank or yes.dtype != no.dtype or yes.kind != no.kind:
            return Choice(condition, yes, no)
        assert yes.shape is not None
        assert no.shape is not None
        shape = tuple(
            self._join_sizes(condition, a, b) for a, b in zip(yes.shape, no.shape, strict=True)
        )
        left, right = self._sides or (self.core.heap.contents,) * 2
        if yes.dtype in COMPLEX:
            joined = self.core.tables.complex_parts.chosen(
                self.core, yes, no, partial(self._join_tensors, condition)
            )
            return replace(joined, shape=shape)
        made = self._view(condition, yes, no)
        if made is None:
            written = left[WRITTEN], right[WRITTEN]
            made = self.emit.choose(condition, yes, no, shape, written=written)
        if self._sides is not None:
            self._joins[yes.value, no.value] = made
        return made

    def _view(self, condition: Term, yes: Tensor, no: Tensor) -> Tensor | None:
        """Return one view of two wholes that a name holds, as a view of one of them."""
        a, b = base_of(yes.value), base_of(no.value)
        if a is yes.value or a is b or self._sides is None:
            return None
        if not is_same_view(yes.value, a, no.value, b):
            return None
        whole = next(self._wholes(a, b), None)
        if whole is None:
            return None
        joined = self._join_tensors(condition, *whole)
        if not isinstance(joined, Tensor):
            return None
        return self.core.tables.view_of(self.core, yes, whole[0], joined)

    def _wholes(self, a: ir.Value, b: ir.Value) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the tensors of names that have one value on one path, another on the other."""
        assert self._sides is not None
        left, right = self._sides
        for key, content in left.items():
            other = right.get(key)
            if type(content) is not dict or type(other) is not dict or content is other:
                continue
            for name, value in content.items():
                x, y = value, other.get(name)
                if isinstance(x, Tensor) and isinstance(y, Tensor) and (x.value, y.value) == (a, b):
                    yield x, y

    def _join_sizes(self, condition: Term, yes: Dim, no: Dim) -> Dim:
        made = self.core.join_sizes(condition, yes, no)
        if isinstance(made, Expr) and made is not yes:
            self.knowledge.nameless.discard(str(made))
        return made


# Whether a library's tensor of one element is a number like Python's.
_SCALARS = {NUMPY: True, "torch.Tensor": False}


def _is_value(found: Instance) -> bool:
    """Whether an object is of a class whose objects are their fields."""
    return isinstance(found.cls, Class) and bool(found.cls.fields)


def _is_real(value: Value) -> bool:
    return isinstance(value, int | float | Expr | Real) and not isinstance(value, bool)


__all__ = ["Paths"]
