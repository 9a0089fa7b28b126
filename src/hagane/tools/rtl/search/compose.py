"""One short test that meets every goal of a sequential circuit, where a solver can compose it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hagane.symbolic.logic import either
from hagane.symbolic.smt import Solver
from hagane.symbolic.term import FALSE, Term
from hagane.tools.rtl.circuit.simulate import Test
from hagane.tools.rtl.search.search import Search
from hagane.tools.rtl.search.unroll import Unrolling

_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)
_MOST_CONDITIONS = 1_500
_QUERY_SECONDS = 2.0


def compose(search: Search, goals: int, more: Callable[[], bool]) -> Test | None:
    """Return one short test that meets all bits of ``goals``, if one is found in time.

    Each goal is asked for in one or another of a few cycles after the prologue; a run confirms.
    """
    engine, prologue, root = search.engine, search.prologue, search.corpus.root
    left = goals & ~root.met
    conditions = list(
        dict.fromkeys(
            search.goals[engine.goals_at[bit][0]] for bit in engine.goals_at if left >> bit & 1
        )
    )
    unrolling = Unrolling(search, engine.values(root.state))
    for length in _LENGTHS:
        if len(conditions) * length > _MOST_CONDITIONS or not more():
            return None
        found = _rows(unrolling, conditions, length)
        if found is not None:
            test = (*prologue, *(search.complete(found, f"#{n}") for n in range(length)))
            rows = engine.rows(test)
            if not goals & ~engine.run(rows, engine.warm(rows[0]))[0]:
                return test
    return None


def _rows(unrolling: Unrolling, conditions: Sequence[Term], length: int) -> dict[str, int] | None:
    """Return inputs with which each condition holds in one of the first ``length`` cycles."""
    wanted = [
        either(*(unrolling.at(cycle, condition) for cycle in range(length)))
        for condition in conditions
    ]
    if FALSE in wanted:
        return None
    answer = Solver("rtl").check(wanted, seconds=_QUERY_SECONDS)
    return dict(answer.assignment or {}) if answer.status == "sat" else None
