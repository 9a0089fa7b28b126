"""Tests that meet their goals whatever registers without an initial value begin with."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from hagane.tools.rtl.circuit.simulate import Goal, Test
from hagane.tools.rtl.proofs.circuit import Circuit
from hagane.tools.rtl.proofs.unknowns import Unknowns
from hagane.tools.rtl.search.search import Search

_TRIED = 48  # random rows at once
_FAILURES = 40


def certain_tests(
    search: Search, tests: Sequence[Test], seconds: float
) -> tuple[list[Test], frozenset[Goal], str]:
    """Return tests, the goals that they meet for certain, and a notice.

    Random rows are added for goals that the given tests meet by the values that registers happen to
    have.
    """
    stop = time.monotonic() + seconds
    unknowns = Unknowns(Circuit(search.model), search.goals)
    if tests and search.model.clocks:
        unknowns.warm(tests[0][0])
    rows, judged = [row for test in tests for row in test], 0
    for row in rows:
        if time.monotonic() > stop:
            break
        unknowns.row(row)
        judged += 1
    added: list[Test] = []
    if judged == len(rows):
        added += _added(search, unknowns, stop)
    count = len(search.model.unset)
    notice = (
        f"{count} register{'' if count == 1 else 's'} and elements of memories begin with any value"
    )
    if judged < len(rows):
        notice += f"; {len(rows) - judged} rows were not judged for that: time was up"
    return [*tests, *added], frozenset(unknowns.met), notice


def _added(search: Search, unknowns: Unknowns, stop: float) -> Iterator[Test]:
    """Yield random rows, as far as they meet for certain anything that was met by chance."""
    engine, failures = search.engine, 0
    lost = engine.goals(search.corpus.met) - unknowns.met
    while lost and failures < _FAILURES and time.monotonic() < stop:
        state, useful = unknowns.state(), 0
        rows = engine.test(engine.random_rows(search.random.getrandbits(60), _TRIED))
        for number, row in enumerate(rows, 1):
            unknowns.row(row)
            if lost & unknowns.met:
                useful, lost = number, lost - unknowns.met
        unknowns.back(state)
        failures = 0 if useful else failures + 1
        if useful:
            for row in rows[:useful]:
                unknowns.row(row)
            yield rows[:useful]


__all__ = ["certain_tests"]
