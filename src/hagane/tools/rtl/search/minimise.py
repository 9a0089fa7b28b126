"""Smaller test sets for the same goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from hagane.tools.rtl.search.simulate import Goal, Simulator, Test, goals_of


def minimise(
    simulator: Simulator,
    tests: Sequence[Test],
    met: Sequence[set[Goal]],
    goals: set[Goal],
    prologue: int,
    more: Callable[[], bool] = lambda: True,
) -> list[Test]:
    """Return few tests that together meet the ``goals`` that ``tests`` meet (``met``).

    Greedy set cover, then one pass that drops every test whose goals the others meet; a test is
    cut after the last cycle that matters, and rows are left out of it while ``more`` says so.
    """
    left = set().union(*met) if met else set()
    chosen: list[int] = []
    remaining = {index: set(item) for index, item in enumerate(met)}
    while left:
        best = max(remaining, key=lambda i: (len(remaining[i]), -len(tests[i])))
        gain = remaining.pop(best)
        if not gain:
            break
        chosen.append(best)
        left -= gain
        for item in remaining.values():
            item -= gain
    counts: dict[Goal, int] = {}
    for index in chosen:
        for goal in met[index]:
            counts[goal] = counts.get(goal, 0) + 1
    for index in sorted(chosen, key=lambda i: len(met[i])):
        if all(counts[goal] > 1 for goal in met[index]):
            chosen.remove(index)
            for goal in met[index]:
                counts[goal] -= 1
    chosen.sort()
    short = _cut(simulator, [tests[index] for index in chosen], goals, prologue)
    return _thin(simulator, short, goals, more) if simulator.model.sequential else short


def _cut(simulator: Simulator, tests: list[Test], goals: set[Goal], prologue: int) -> list[Test]:
    """Cut every test after the last cycle that meets a goal met nowhere else."""
    per_cycle = [
        [goals_of(simulator, [cycle]) & goals for cycle in simulator.run(test)] for test in tests
    ]
    counts: dict[Goal, int] = {}
    for cycles in per_cycle:
        for met in cycles:
            for goal in met:
                counts[goal] = counts.get(goal, 0) + 1
    result = []
    for test, cycles in zip(tests, per_cycle, strict=True):
        length = len(cycles)
        while length > max(1, prologue) and all(counts[goal] > 1 for goal in cycles[length - 1]):
            length -= 1
            for goal in cycles[length]:
                counts[goal] -= 1
        result.append(test[:length])
    return result


def _thin(
    simulator: Simulator, tests: list[Test], goals: set[Goal], more: Callable[[], bool]
) -> list[Test]:
    """Leave out rows that a test of a sequential circuit does without, and tests left empty.

    Runs of rows go first, then single ones; the first row, in which the reset acts, stays.
    """
    met = [goals_of(simulator, simulator.run(test)) & goals for test in tests]
    counts = Counter(goal for item in met for goal in item)
    result = []
    for test, mine in sorted(zip(tests, met, strict=True), key=lambda pair: -len(pair[0])):
        needed = {goal for goal in mine if counts[goal] == 1}
        kept, kept_met = test, mine
        size = len(test) // 2
        while size and needed:
            start = len(kept) - size
            while start >= 1 and more():
                trial = (*kept[:start], *kept[start + size :])
                reached = goals_of(simulator, simulator.run(trial)) & goals
                if needed <= reached:
                    kept, kept_met = trial, reached
                start -= size
            size //= 2
        counts.subtract(mine)
        if needed:
            counts.update(kept_met)
            result.append(kept)
    return result
