"""Smaller tests for the same goals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hagane.tools.rtl.compiled.engine import Engine, Words


def minimise(
    engine: Engine,
    tests: Sequence[Words],
    wanted: int,
    prologue: int,
    more: Callable[[], bool] = lambda: True,
) -> list[Words]:
    """Return shorter tests that together meet the same of the ``wanted`` bits.

    A test is cut after the last row that matters; rows are left out of it while ``more`` says so,
    runs of them first, then single ones. The first row, in which a reset acts, stays.
    """
    kept = sorted(tests, key=lambda rows: -len(rows))
    met = [_met(engine, rows) & wanted for rows in kept]
    result: list[Words] = []
    for number, rows in enumerate(kept):
        others = 0
        for at, bits in enumerate(met):
            others |= bits if at != number else 0
        need = met[number] & ~others
        if not need:
            met[number] = 0
            continue
        short = rows[: max(_until(engine, rows, need), prologue, 1)]
        if engine.model.sequential:
            short = _thinned(engine, short, need, more)
        met[number] = _met(engine, short) & wanted
        result.append(short)
    return result


def _met(engine: Engine, rows: Words) -> int:
    return engine.run(rows, engine.warm(rows[0]))[0] if len(rows) else 0


def _until(engine: Engine, rows: Words, need: int) -> int:
    return engine.until(rows, engine.warm(rows[0]), need)


def _thinned(engine: Engine, rows: Words, need: int, more: Callable[[], bool]) -> Words:
    size = len(rows) // 2
    while size:
        start = len(rows) - size
        while start >= 1 and more():
            trial = np.concatenate([rows[:start], rows[start + size :]])
            enough = _until(engine, trial, need)
            if enough:
                rows = trial[:enough]
                start = min(start, len(rows))
            start -= size
        size //= 2
    return rows
