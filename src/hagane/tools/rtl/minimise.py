"""Smaller test sets for the same goals."""

from __future__ import annotations

from collections.abc import Sequence

from hagane.tools.rtl.simulate import Goal, Simulator, Test, goals_of


def minimise(
    simulator: Simulator,
    tests: Sequence[Test],
    met: Sequence[set[Goal]],
    goals: set[Goal],
    prologue: int,
) -> list[Test]:
    """Return few tests that together meet the ``goals`` that ``tests`` meet (``met``).

    Greedy set cover, then one pass that drops every test whose goals the others meet; a test is
    cut after the last cycle that matters.
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
    return _cut(simulator, [tests[index] for index in chosen], goals, prologue)


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
