"""Path conditions, and the three answers about them: proved, refuted, unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from hagane.symbolic.logic import both, negate
from hagane.symbolic.term import TRUE, Term

if TYPE_CHECKING:
    from hagane.symbolic.smt import Solver


class Verdict(Enum):
    """A solver's answer on a claim."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict, with the counterexample of a refutation or the reason of an unknown."""

    verdict: Verdict
    counterexample: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PathCondition:
    """The decisions taken on the way to a place, oldest first.

    ``scope`` is the place of an interpreter's writes, such as the body of a branch.
    """

    decisions: tuple[Term, ...] = ()
    scope: Any = None

    @property
    def term(self) -> Term:
        """All decisions as one condition."""
        return both(*self.decisions)

    def taking(self, decision: Term) -> PathCondition:
        """Return the path one decision further."""
        return self if decision is TRUE else PathCondition((*self.decisions, decision), self.scope)

    def within(self, scope: Any) -> PathCondition:
        """Return the same path in another scope."""
        return PathCondition(self.decisions, scope)

    def turning(self, index: int) -> PathCondition:
        """Return the path up to decision ``index``, which goes the other way."""
        return PathCondition((*self.decisions[:index], negate(self.decisions[index])))


def prove(solver: Solver, path: PathCondition, claim: Term, *, seconds: float = 10.0) -> Finding:
    """Say whether ``claim`` holds wherever ``path`` leads.

    A refutation carries numbers for the unknowns with which the path is taken and the claim fails.
    """
    answer = solver.check((path.term, negate(claim)), seconds=seconds)
    if answer.status == "unsat":
        return Finding(Verdict.PROVED)
    if answer.status == "sat":
        return Finding(Verdict.REFUTED, answer.assignment or {})
    return Finding(Verdict.UNKNOWN, reason=answer.reason)
