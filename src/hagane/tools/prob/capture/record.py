"""The steps of a captured function, in order: named values, draws, observations, calls.

Every value that is not a plain formula of earlier ones becomes a step. Steps that can fail, or
that condition, are guarded by the path that they stand on, so running all of them in order has the
distribution of running the function; all other steps are total.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hagane.symbolic import Dim, Expr, symbol
from hagane.symbolic.expression import Atom, Monomial
from hagane.symbolic.logic import int_sum
from hagane.symbolic.questions import Knowledge
from hagane.symbolic.term import BOOL, INT, Term, const, variable, variables_of
from hagane.tools.prob.capture.facts import Facts, Range
from hagane.tools.prob.capture.writer import Writer
from hagane.tools.prob.language.source import Span
from hagane.tools.prob.language.syntax import Expression, Let

# Expressions take names to be at least zero, and simplify minima by that. An integer x of any sign
# is therefore written ``name - origin``, where name is x + origin and the origin is as large as
# it has to be. A fact of every such pair is a fact of x for any origin; read with an
# origin of zero, the name is x itself.
_ORIGIN = "<origin>"
_DRAWN = ("rand#", "choice#")


class Numbers(Knowledge):
    """Formulas of integers of any sign as terms over their names."""

    def term(self, value: Dim | Fraction) -> Term:
        """Return an integer expression as a term over its names.

        In a sum, results stand before draws and older ones before newer ones: draws that are
        used once move there, and need the partial sums alone.
        """
        if not isinstance(value, Expr):
            return super().term(value)
        total = const(0, INT)
        for monomial in sorted(value.terms, key=_place):
            total = int_sum(total, super().term(Expr({monomial: value.terms[monomial]})))
        return total

    def _atom(self, head: str, arguments: Sequence[Dim]) -> Term:
        if head == _ORIGIN:
            return const(0, INT)
        return super()._atom(head, arguments)


def _place(monomial: Monomial) -> tuple[bool, int]:
    drawn = any(atom.head.startswith(_DRAWN) for atom, _ in monomial)
    return drawn, max((_age(atom) for atom, _ in monomial), default=-1)


def _age(atom: Atom) -> int:
    if not atom.arguments:
        return int(atom.head.rpartition("#")[2]) if "#" in atom.head else 0
    inner = [a for v in atom.arguments if isinstance(v, Expr) for m in v.terms for a, _ in m]
    return max(map(_age, inner), default=0)


def integer(name: str) -> Expr:
    """Return the integer of a name, which may be negative."""
    found = symbol(name) - symbol(_ORIGIN)
    assert isinstance(found, Expr)
    return found


@dataclass(frozen=True, slots=True)
class Step:
    """A named value.

    Attributes:
        name: Its name in terms.
        span: Where the function makes it.
        terms: The terms it is made of.
        write: Returns it as an expression of the language.
        needed: Whether it counts even if nothing uses it: it can fail, or conditions.
    """

    name: str
    span: Span
    terms: tuple[Term, ...]
    write: Callable[[Writer], Expression]
    needed: bool


class Recording:
    """Takes steps down."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.steps: list[Step] = []
        self.labels: dict[str, str] = {}
        self.draws = 0
        self._names = itertools.count(1)

    def mark(self) -> int:
        """Return a place to go back to."""
        return len(self.steps)

    def back_to(self, mark: int) -> None:
        """Forget the steps since a place; their names are not used again."""
        del self.steps[mark:]

    def step(
        self,
        label: str,
        span: Span,
        terms: Sequence[Term],
        write: Callable[[Writer], Expression],
        *,
        needed: bool = False,
    ) -> str:
        """Add a step and return its name."""
        name = f"{label}#{next(self._names)}"
        self.steps.append(Step(name, span, tuple(terms), write, needed))
        return name

    def number(self, name: str, range_: Range) -> Expr:
        """Return the integer that a step gives, which lies in a range."""
        self.facts.ranges[name] = range_
        return integer(name)

    def formula(self, term: Term, span: Span, label: str) -> str:
        """Add a step that is a formula, and return its name."""
        return self.step(label, span, (term,), lambda writer: writer.written(term, span))

    def named_integer(self, term: Term, range_: Range, span: Span, label: str = "number") -> Dim:
        """Return an integer under a name of its own, if it is more than a name or a number."""
        if term.is_const:
            return int(term.data)
        if term.op == "var":
            return integer(term.data)
        return self.number(self.formula(term, span, label), range_)

    def named_truth(self, term: Term, span: Span, label: str = "case") -> Term:
        """Return a condition under a name of its own, if it is more than a name."""
        plain = term.args[0] if term.op == "not" else term
        if plain.is_const or plain.op == "var":
            return term
        name = self.formula(term, span, label)
        self.facts.definitions[name] = term
        return variable(name, BOOL)

    def call(self, term: Term, label: str) -> None:
        """Remember the function's name for a step that had none."""
        if term.op == "var" and "#" in term.data:
            self.labels.setdefault(term.data, label)

    def program(self, result: Callable[[Writer], Expression], terms: Sequence[Term]) -> Expression:
        """Return the steps that count, around a result made of ``terms``."""
        used = set(variables_of(terms))
        kept: list[Step] = []
        for step in reversed(self.steps):
            if step.needed or step.name in used:
                kept.append(step)
                used |= variables_of(step.terms).keys()
        writer = Writer(self._labelled(kept))
        whole = result(writer)
        for step in kept:
            whole = Let(step.span, writer.name(step.name), step.write(writer), whole)
        return whole

    def _labelled(self, steps: Sequence[Step]) -> Mapping[str, str]:
        return {
            step.name: f"{self.labels[step.name]}#{step.name.rpartition('#')[2]}"
            for step in steps
            if step.name in self.labels
        }
