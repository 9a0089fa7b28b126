"""Test sets of hagane rtl beside pure random testing, as a table.

Run: ``python benchmarks/rtl.py TOP FILE…`` (``-I`` folders in the environment variable
``RTL_INCLUDE``, separated by colons). Random testing gets the same seconds as the search; its
smallest set is what greedy minimisation leaves of the tests that met something new. Both sets are
counted by hagane's evaluation, which the replay confirms for the first.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

from hagane.tools.rtl import Budget, cover, read_sources
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.simulate import Goal, Simulator, Test, goals_of


def random_testing(
    simulator: Simulator, goals: set[Goal], seconds: float
) -> tuple[set[Goal], list[Test], int]:
    """Return what random rows meet in the given time, the useful tests, and how many ran."""
    generator = random.Random(1)
    stop = time.monotonic() + seconds
    met: set[Goal] = set()
    useful: list[Test] = []
    ran = 0
    length = 26 if simulator.model.sequential else 1
    resets = {reset.name: reset.active for reset in simulator.model.resets}
    while time.monotonic() < stop:
        rows = []
        for number in range(length):
            row = {i.name: generator.getrandbits(i.width) for i in simulator.model.inputs}
            for name, active in resets.items():
                row[name] = active if number < 2 else 1 - active
            rows.append(row)
        test = tuple(rows)
        fresh = (goals_of(simulator, simulator.run(test)) & goals) - met
        ran += 1
        if fresh:
            met |= fresh
            useful.append(test)
    return met, useful, ran


def main() -> None:
    top, *files = sys.argv[1:]
    include = [Path(p) for p in os.environ.get("RTL_INCLUDE", "").split(":") if p]
    sources = read_sources([Path(file) for file in files], top, include, ["SYNTHESIS"])
    result = cover(sources, Budget(60.0))
    _, model = load(sources)
    simulator = Simulator(model, {})
    goals = set(result.found.covered)
    met, useful, ran = random_testing(simulator, goals, result.seconds)
    print("| circuit | goals reachable | hagane: tests, cycles, s | random: met, useful, run |")
    print("|---|---|---|---|")
    cycles = sum(len(test) for test in result.tests)
    print(
        f"| {top} | {len(goals)} | {len(result.tests)}, {cycles}, {result.seconds:.1f} "
        f"| {len(met)}, {len(useful)}, {ran} |"
    )


if __name__ == "__main__":
    main()
