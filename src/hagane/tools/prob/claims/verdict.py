"""Verdicts and reports of a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from hagane.tools.prob.claims.judge import Measured
from hagane.tools.prob.claims.modular import Range
from hagane.tools.prob.engines.run import show_fraction, show_measured, show_value
from hagane.tools.prob.language.program import Program, shown
from hagane.tools.prob.language.syntax import Notice, Value


@dataclass(frozen=True, slots=True)
class Culprit:
    """The outcome that contributes most to a failure.

    Attributes:
        text: The outcome: the value, and the other terms of the claim.
        probability: Its probability.
        run: The draws of the most probable run that ends in it; empty where none is known.
    """

    text: str
    probability: Fraction
    run: str


@dataclass(frozen=True, slots=True)
class Formula:
    """A Prob or E of a claim as a function of the program's parameters."""

    term: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one claim.

    Attributes:
        line: Where the claim stands, from 1.
        column: The same, in the line.
        type: The type as written.
        subject: Its subject: an expression, a function, an argument.
        role: annotation, result or argument.
        holds: Whether it is true, and follows from the types of the functions called.
        probabilities: Each Prob and E of the claim with its true value, in the circumstances
            that come nearest to the bound, or that fail.
        ranges: Where functions are called that are known by their type: the bounds of each of
            these may lie for all that the types admit.
        circumstances: Those circumstances: parameters and fixed variables, by name.
        cases: How many combinations of arguments and fixed values were checked.
        exhaustive: Whether these are all that the types admit.
        engine: The engine used.
        reason: Why this engine.
        note: A remark, or "".
        culprit: For a failure, the outcome that contributes most.
        formulas: Of a program with parameters, each Prob and E of the claim.
        where: The values of the parameters for which these hold.
    """

    line: int
    column: int
    type: str
    subject: str
    role: str
    holds: bool
    probabilities: tuple[Measured, ...]
    ranges: tuple[Range, ...]
    circumstances: Mapping[str, Value]
    cases: int
    exhaustive: bool
    engine: str
    reason: str
    note: str
    culprit: Culprit | None = None
    formulas: tuple[Formula, ...] = ()
    where: str = ""

    def __str__(self) -> str:
        """Return the verdict as people read it, without its place."""
        return "\n".join([f"{'holds' if self.holds else 'FAILS'}: {self.type}", *self._details()])

    def _details(self) -> Iterator[str]:
        ranges = self.ranges or (None,) * len(self.probabilities)
        for item, bounds in zip(self.probabilities, ranges, strict=True):
            yield f"  {item.text} = {show_measured(item.value, item.within)}"
            if bounds is not None:
                low, high = map(show_fraction, bounds)
                yield f"    by the types of the functions called: {low} to {high}"
        for formula in self.formulas:
            yield f"  {formula.term} = {formula.text}"
        if self.where:
            yield f"  for {self.where}"
        if self.circumstances:
            yield f"  at {show_circumstances(self.circumstances)}"
        if self.role != "annotation" or self.cases > 1:
            plural = "" if self.cases == 1 else "s"
            which = "all that the types admit" if self.exhaustive else "those that occur"
            yield f"  {self.role} {self.subject}: {self.cases} case{plural}, {which}"
        if self.note:
            yield f"  {self.note}"
        if self.culprit is not None:
            chance = show_fraction(self.culprit.probability)
            yield f"  contributing most: {self.culprit.text}, probability {chance}"
            if self.culprit.run:
                yield f"    for instance {self.culprit.run}"
        yield f"  engine: {self.engine} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Report:
    """All verdicts of a program, in the order of its text."""

    program: Program
    verdicts: tuple[Verdict, ...]
    notices: tuple[Notice, ...]

    @property
    def holds(self) -> bool:
        """Tell whether every claim holds."""
        return all(verdict.holds for verdict in self.verdicts)

    def __str__(self) -> str:
        """Return all verdicts as people read them."""
        name = self.program.source.name
        return "\n".join(f"{name}:{each.line}:{each.column}: {each}" for each in self.verdicts)


def show_circumstances(circumstances: Mapping[str, Value]) -> str:
    """Return ``n = 3, k = true``."""
    return ", ".join(f"{shown(name)} = {show_value(v)}" for name, v in circumstances.items())
