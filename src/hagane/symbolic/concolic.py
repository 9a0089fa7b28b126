"""Concolic values: a number (or none) beside the term it came from."""

from __future__ import annotations

from dataclasses import dataclass

from hagane.symbolic.interpret import evaluate
from hagane.symbolic.logic import negate
from hagane.symbolic.path import PathCondition
from hagane.symbolic.term import Assignment, Sort, Term, const, variable


@dataclass(frozen=True, slots=True)
class Concolic:
    """A term and, where known, the number it has in the current run."""

    term: Term
    concrete: int | None = None

    @classmethod
    def unknown(cls, name: str, sort: Sort, concrete: int | None = None) -> Concolic:
        """Return the unknown ``name``, with its number in this run."""
        return cls(variable(name, sort), concrete)

    @classmethod
    def known(cls, value: int, sort: Sort) -> Concolic:
        """Return a constant."""
        return cls(const(value, sort), value)

    @classmethod
    def run(cls, term: Term, assignment: Assignment) -> Concolic:
        """Return ``term`` with the number it has under ``assignment``."""
        return cls(term, evaluate(term, assignment))

    def decide(self, path: PathCondition) -> tuple[bool, PathCondition]:
        """Return which way a branch on this value goes in the current run, and the path after it.

        Raises:
            ValueError: The value is not known in this run.
        """
        if self.concrete is None:
            raise ValueError(f"a run needs a number to decide on {self.term!r}")
        taken = bool(self.concrete)
        return taken, path.taking(self.term if taken else negate(self.term))
