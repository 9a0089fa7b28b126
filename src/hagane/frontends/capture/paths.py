"""Branches of the program as branches of the graph."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hagane.errors import TypeInferenceError
from hagane.frontends.capture.emitter import GraphEmitter
from hagane.frontends.capture.scope import Scope, meeting_scope
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.heap import join_contents
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
)
from hagane.symbolic import Dim, Expr
from hagane.symbolic.logic import both, either, negate
from hagane.symbolic.path import PathCondition
from hagane.symbolic.questions import Knowledge
from hagane.symbolic.term import Term


class Paths(Interpreter):
    """Interprets a program over the nodes of a graph.

    Args:
        root: The folder that imports start from.
        tables: What names of libraries mean.
        names: Names of real arrays, by their identity.
    """

    emit: GraphEmitter

    def __init__(self, root: Path, tables: Tables, names: dict[int, str]):
        knowledge = Knowledge()
        super().__init__(knowledge, root, tables)
        self.emit = GraphEmitter(knowledge, self._assume, self.here, names)
        self.op = self.emit.op
        self.fail = self.emit.fail

    # Failures: what only a graph needs is an error of the expression.

    def _visit(self, node: ast.expr) -> Value:
        try:
            return super()._visit(node)
        except TypeInferenceError as error:
            raise CheckError("capture", str(error)) from None

    def _execute_one(self, statement: ast.stmt) -> None:
        try:
            super()._execute_one(statement)
        except TypeInferenceError as error:
            assert self.frame is not None
            found = CheckError("capture", str(error))
            self.collector.error(found, self.frame, statement, "")

    # Truth and numbers.

    def _tensor_truth(self, value: Tensor) -> bool | Term:
        found = super()._tensor_truth(value)
        if isinstance(found, bool):
            return found
        return self.emit.truth(value, str(found.data))

    def truth(self, value: Value) -> bool | Term:
        """Return whether ``value`` counts as true: known, or the condition under which it does."""
        if isinstance(value, Real) and value.tensor is not None:
            found = self.unknown_truth()
            return self.emit.truth(value.tensor, str(found.data))
        return super().truth(value)

    def tensor_number(self, value: Tensor, *, whole: bool) -> Value:
        """Return the only element of a tensor as a number."""
        known = value.known is not None and value.known.size == 1
        if known and value.known is not None and not isinstance(value.known.ravel()[0], float):
            return super().tensor_number(value, whole=whole)
        super().tensor_number(value, whole=whole)  # refuses more than one element
        if known:
            return super().tensor_number(value, whole=whole)
        if whole or value.dtype.is_integer():
            return self.emit.number(value, "item")
        return self.emit.real(value)

    # Forks.

    def fork(
        self, condition: Term, yes: Callable[[], Value], no: Callable[[], Value], text: str = ""
    ) -> Value:
        """Run ``yes`` where ``condition`` holds and ``no`` elsewhere, and join what they leave."""
        if text:
            self.name_condition(condition, text)
            self.collector.condition(text)
        start, entry = self.heap.snapshot(), self.knowledge.path
        branch = self.emit.branch(condition)
        self.knowledge.path = entry.taking(condition).within(branch.yes)
        a = yes()
        dead_a, contents_a, path_a = self.dead, self.heap.contents, self.knowledge.path
        self.heap.restore(start)
        self.dead = False
        self.knowledge.path = entry.taking(negate(condition)).within(branch.no)
        b = no()
        path_b = self.knowledge.path
        if dead_a:
            return b
        if self.dead:
            self.dead = False
            self.heap.restore(contents_a)
            self.knowledge.path = path_a
            return a
        self.knowledge.path = entry
        self.meet(condition, contents_a, self.heap.contents)
        value = self.join(condition, a, b)
        if path_a.scope is not branch.yes or path_b.scope is not branch.no:
            # Some of what came in has left: what follows is for the rest.
            rest = either(
                self._condition(path_a.scope, entry.scope),
                self._condition(path_b.scope, entry.scope),
            )
            guard = self.emit.branch(rest)
            self.knowledge.path = entry.taking(rest).within(guard.yes)
        return value

    @staticmethod
    def _condition(scope: Scope, around: Scope) -> Term:
        """Return the condition under which a scope is run, given that one around it is."""
        chain = scope.chain()
        inner = chain[: chain.index(around)]
        return both(*(s.condition for s in reversed(inner) if s.condition is not None))

    def meet(self, condition: Term, yes: dict[int, Any], no: dict[int, Any]) -> None:
        """Continue with the contents of two paths joined."""
        # What one side looked up of modules and real objects is there on both.
        met = join_contents(yes, no, lambda a, b: self.join(condition, a, b), condition)
        self.heap.restore(met)

    def merge(self, exits: Sequence[Exit], entry: PathCondition) -> Value:
        """Continue after several exits, of which at least one is there; return the joined value."""
        last = exits[-1]
        for other in reversed(exits[:-1]):
            last = self._merged(other, last, entry)
        self.heap.restore(last.contents)
        self.dead = False
        self.knowledge.path = last.path if len(exits) == 1 else entry
        return last.value

    def _merged(self, one: Exit, other: Exit, entry: PathCondition) -> Exit:
        scope = meeting_scope(one.path.scope, other.path.scope)
        if entry.scope.is_within(scope):
            scope = entry.scope
        condition = self._condition(one.path.scope, scope)
        self.knowledge.path = entry.within(scope)
        contents = join_contents(
            one.contents, other.contents, lambda a, b: self.join(condition, a, b), condition
        )
        value = self.join(condition, one.value, other.value)
        return Exit(other.kind, value, contents, self.knowledge.path)

    # Joins.

    def join(self, condition: Term, yes: Value, no: Value) -> Value:
        """Return the value that is ``yes`` where ``condition`` holds, else ``no``."""
        if yes is no or yes is MISSING or no is MISSING:
            return no if yes is MISSING else yes
        if isinstance(yes, Unknown) or isinstance(no, Unknown):
            return Choice(condition, yes, no)
        if isinstance(yes, float | Real) or isinstance(no, float | Real):
            if _is_real(yes) and _is_real(no):
                return self._join_reals(condition, yes, no)
            return Choice(condition, yes, no)
        return super().join(condition, yes, no)

    def _join_reals(self, condition: Term, yes: Value, no: Value) -> Value:
        if isinstance(yes, int | float) and isinstance(no, int | float) and yes == no:
            return yes
        a, b = self.emit.real_tensor(yes), self.emit.real_tensor(no)
        return Real(None, self.emit.choose(condition, a, b, ()))

    def _join_tensors(self, condition: Term, yes: Tensor, no: Tensor) -> Value:
        if yes.value is no.value and yes.kind == no.kind:
            return yes
        same_rank = yes.shape is not None and no.shape is not None and yes.rank == no.rank
        if not same_rank or yes.dtype != no.dtype or yes.kind != no.kind:
            return Choice(condition, yes, no)
        assert yes.shape is not None
        assert no.shape is not None
        shape = tuple(
            self.join_sizes(condition, a, b) for a, b in zip(yes.shape, no.shape, strict=True)
        )
        return self.emit.choose(condition, yes, no, shape)

    def join_sizes(self, condition: Term, yes: Dim, no: Dim) -> Dim:
        """Return the size that is ``yes`` where ``condition`` holds, else ``no``."""
        made = super().join_sizes(condition, yes, no)
        if isinstance(made, Expr) and made is not yes:
            self.knowledge.nameless.discard(str(made))
        return made

    # Numbers that are real.

    def binary(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return ``left op right``."""
        if _is_data(left) or _is_data(right):
            numbers = (int, float, Expr, Real, Truth)
            if isinstance(left, numbers) and isinstance(right, numbers):
                return self.emit.real_operation(kind, left, right)
        return super().binary(kind, left, right)

    def compare(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return a comparison of two values."""
        if _is_data(left) or _is_data(right):
            numbers = (int, float, Expr, Real, Truth)
            if isinstance(left, numbers) and isinstance(right, numbers):
                found = self.unknown_truth()
                result = self.emit.real_comparison(kind, left, right)
                return Truth(self.emit.truth(result, str(found.data)))
        return super().compare(kind, left, right)


def _is_data(value: Value) -> bool:
    return isinstance(value, Real) and value.tensor is not None


def _is_real(value: Value) -> bool:
    return isinstance(value, int | float | Expr | Real) and not isinstance(value, bool)


__all__ = ["Paths"]
