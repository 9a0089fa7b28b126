"""Concrete runs of a cycle model: which points a test meets, which values signals take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, count
from typing import TypeAlias

from hagane.symbolic.interpret import compile_terms
from hagane.symbolic.term import FALSE, Term
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.machine import PointKey

Row: TypeAlias = Mapping[str, int]
Test: TypeAlias = tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Bit:
    """A goal of toggle coverage: one bit of a signal takes one value."""

    signal: str
    index: int
    value: int


Goal: TypeAlias = "PointKey | Bit | Violation"


@dataclass(frozen=True, slots=True)
class Violation:
    """A goal of assertion search: the assertion of that name fails."""

    name: str


@dataclass(frozen=True, slots=True)
class Dead:
    """A proof that no input reaches a goal: for good, or in so many cycles after reset."""

    cycles: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Cycle:
    """The effect of one row: points met, assertions violated, signals, and the state after it."""

    points: tuple[int, ...]
    violations: tuple[int, ...]
    signals: tuple[int, ...]
    after: dict[str, int]


class Simulator:
    """Runs tests on a cycle model with plain integers."""

    def __init__(self, model: CycleModel, violations: Mapping[str, Term]):
        self.model = model
        self.point_keys = [key for key, term in model.points.items() if term is not FALSE]
        self.violation_names = list(violations)
        self.signal_names = list(model.signals)
        self.widths = [term.width for term in model.signals.values()]
        self._state_names = list(model.state)
        roots = [
            *(model.points[key] for key in self.point_keys),
            *violations.values(),
            *model.signals.values(),
            *model.state.values(),
        ]
        self._run = compile_terms(roots)
        self._next = compile_terms(list(model.state.values()))
        self._after_reset = compile_terms(list(model.after_reset.values()))
        first = len(self.point_keys)
        second = first + len(self.violation_names)
        third = second + len(self.signal_names)
        self._cuts = (first, second, third)
        self._asynchronous = [reset for reset in model.resets if reset.asynchronous]

    def start(self) -> dict[str, int]:
        """Return the state when the power comes on."""
        return dict(self.model.initial)

    def advance(self, state: Mapping[str, int], row: Row) -> dict[str, int]:
        """Return the state after a row."""
        values = self._next({**row, **state})
        return dict(zip(self._state_names, values, strict=True))

    def cycle(self, state: Mapping[str, int], row: Row) -> Cycle:
        """Run one row; an asynchronous reset acts before the clock does."""
        if any(row.get(reset.name, 0) == reset.active for reset in self._asynchronous):
            struck = self._after_reset({**row, **state})
            state = {**state, **dict(zip(self.model.after_reset, struck, strict=True))}
        values = self._run({**row, **state})
        first, second, third = self._cuts
        return Cycle(
            values[:first],
            values[first:second],
            values[second:third],
            dict(zip(self._state_names, values[third:], strict=True)),
        )

    def after_prologue(self, prologue: Test) -> dict[str, int]:
        """Return the state after the first cycles of every test."""
        state = self.warm(prologue[0]) if prologue else self.start()
        for row in prologue:
            state = self.cycle(state, row).after
        return state

    def run(self, test: Test, state: Mapping[str, int] | None = None) -> list[Cycle]:
        """Run a test from the state after power-on (or ``state``)."""
        if state is None:
            state = self.warm(test[0]) if test else self.start()
        cycles = []
        for row in test:
            cycles.append(self.cycle(state, row))
            state = cycles[-1].after
        return cycles

    def warm(self, row: Row) -> dict[str, int]:
        """Return the state after the one uncounted cycle before the first test."""
        return self.advance(self.start(), row) if self.model.clocks else self.start()

    def run_all(self, tests: Sequence[Test]) -> list[list[Cycle]]:
        """Run tests one after the other, as the test bench does."""
        state = self.warm(tests[0][0]) if tests and tests[0] else self.start()
        runs = []
        for test in tests:
            cycles = self.run(test, state)
            runs.append(cycles)
            if cycles:
                state = cycles[-1].after
        return runs


class Hits:
    """The goals that cycles meet."""

    __slots__ = ("ones", "points", "violations", "zeros")

    def __init__(self, simulator: Simulator):
        self.points: set[int] = set()
        self.violations: set[int] = set()
        self.ones = [0] * len(simulator.signal_names)
        self.zeros = [0] * len(simulator.signal_names)

    def add(self, cycle: Cycle) -> None:
        """Count one cycle."""
        self.points.update(compress(count(), cycle.points))
        self.violations.update(compress(count(), cycle.violations))
        for index, value in enumerate(cycle.signals):
            self.ones[index] |= value
            self.zeros[index] |= ~value

    def goals(self, simulator: Simulator) -> set[Goal]:
        """Return the goals met."""
        met: set[Goal] = {simulator.point_keys[i] for i in self.points}
        met.update(Violation(simulator.violation_names[i]) for i in self.violations)
        for index, name in enumerate(simulator.signal_names):
            for bit in range(simulator.widths[index]):
                if self.ones[index] >> bit & 1:
                    met.add(Bit(name, bit, 1))
                if self.zeros[index] >> bit & 1:
                    met.add(Bit(name, bit, 0))
        return met


def goals_of(simulator: Simulator, cycles: Sequence[Cycle]) -> set[Goal]:
    """Return the goals that some cycles meet."""
    hits = Hits(simulator)
    for cycle in cycles:
        hits.add(cycle)
    return hits.goals(simulator)
