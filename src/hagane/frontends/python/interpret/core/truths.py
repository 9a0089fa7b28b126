"""Conditions: the truth of values, what the path decides of it, and how it is written."""

from __future__ import annotations

import ast
from typing import Any

from hagane.frontends.python.interpret.core.state import State
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Choice,
    DictRef,
    Host,
    ListRef,
    Many,
    Real,
    SetRef,
    Tensor,
    Truth,
    Unknown,
    Value,
)
from hagane.symbolic import Expr
from hagane.symbolic.logic import choose, negate
from hagane.symbolic.term import BOOL, FALSE, TRUE, Term, variable

# The text of a condition that nobody has written.
_UNTOLD = "what the data decides"


class Truths(State):
    """Says which values count as true."""

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


__all__ = ["Truths"]
