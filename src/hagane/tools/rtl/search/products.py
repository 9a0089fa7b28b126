"""Conditions with products: where they are too hard, one factor is made a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hagane.symbolic.interpret import Substitution
from hagane.symbolic.logic import equal
from hagane.symbolic.smt import Answer, Solver
from hagane.symbolic.term import Term, const, postorder

if TYPE_CHECKING:
    from hagane.tools.rtl.search.search import Search

HARD = frozenset({"mul", "udiv", "sdiv", "urem", "srem"})


def solve(search: Search, solver: Solver, term: Term) -> Answer:
    """Ask the solver; where it takes too long, with one factor of products made concrete."""
    hard = [node for node in postorder((term,)) if node.op in HARD]
    limit = min(search.budget.query_seconds, max(0.1, search.time_left()))
    answer = solver.check((term,), seconds=limit if not hard else min(limit, 2.0))
    if answer.status != "unknown" or not hard:
        return answer
    for _ in range(12):
        if search.time_left() <= 0:
            break
        attempt = _with_concrete_factors(search, solver, term, hard)
        if attempt.status == "sat":
            return attempt
    return answer


def _with_concrete_factors(search: Search, solver: Solver, term: Term, hard: list[Term]) -> Answer:
    replaced = Substitution(
        {
            unknown: const(_small(search, unknown.width), unknown.sort)
            for node in hard
            for unknown in _unknowns(node.args[1])
        }
    )
    terms = [replaced(term)]
    for node in hard:
        for unknown in _unknowns(node.args[1]):
            terms.append(equal(unknown, replaced(unknown)))
    return solver.check(terms, seconds=min(1.0, max(0.1, search.time_left())))


def _unknowns(term: Term) -> list[Term]:
    return [node for node in postorder((term,)) if node.op == "var"]


def _small(search: Search, width: int) -> int:
    return search.random.choice(
        (0, 1, 2, 3, 5, (1 << width) - 1, 1 << (width - 1), search.random.getrandbits(width))
    )
