"""Where paths part and meet again, with what they share: the base of all of the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hagane.frontends.python.interpret.core.keys import Keys
from hagane.frontends.python.interpret.core.state import Exit
from hagane.frontends.python.interpret.running import OutOfTime
from hagane.frontends.python.report.findings import OWN, CheckError
from hagane.frontends.python.values.deques import are_alike, list_like
from hagane.frontends.python.values.heap import join_contents, join_unset
from hagane.frontends.python.values.objects import Function
from hagane.frontends.python.values.placeholders import other_path, stands_in
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Fields,
    ListRef,
    Ref,
    Truth,
    Unknown,
    Value,
)
from hagane.symbolic import Dim, Expr, definitely_equal, symbol
from hagane.symbolic.logic import choose
from hagane.symbolic.path import PathCondition
from hagane.symbolic.questions import Joined
from hagane.symbolic.substitute import evaluate, symbols_of
from hagane.symbolic.term import FALSE, TRUE, Term, variables_of

_MAX_TEXT = 300  # characters of the name of a number that is one of two
_MAX_JOINS = 32  # of which one size is made; more are one that nothing is known about


class Core(Keys):
    """The common state of all parts of the interpreter, and its paths."""

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


__all__ = ["Core", "Exit"]
