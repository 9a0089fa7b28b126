"""The interface of the compiled engine without a compiler: the same runs, slower."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np

from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.simulate import Cycle, Goal, Simulator, goals_of
from hagane.tools.rtl.compiled.engine import Engine, Record, Words


class PlainEngine(Engine):
    """Runs on the simulator with plain numbers."""

    def __init__(self, model: CycleModel, goals: Mapping[Goal, Term], simulator: Simulator):
        self._simulator = simulator
        super().__init__(model, goals)

    def _build(self, text: str, terms: int) -> None:
        del text, terms

    def pace(self, cycles: int) -> int:
        """Return how many cycles to run at once."""
        return cycles // 100

    def warm(self, row: Words) -> Words:
        """Return the state after the one uncounted cycle before the first test."""
        return self.state(self._simulator.warm(self.test(row[None, :])[0]))

    def _cycles(self, rows: Words, start: Words) -> list[Cycle]:
        return self._simulator.run(self.test(rows), self.values(start))

    def run(self, rows: Words, start: Words) -> tuple[int, Words]:
        """Return the bits of the goals that rows meet from a state, and the state after them."""
        cycles = self._cycles(rows, start)
        after = self.state(cycles[-1].after) if cycles else start.copy()
        return self.bits(goals_of(self._simulator, cycles)), after

    def trace(self, rows: Words, start: Words) -> tuple[list[Cycle], Words]:
        """Return every cycle of rows from a state, and the state after them."""
        cycles = self._cycles(rows, start)
        return cycles, self.state(cycles[-1].after) if cycles else start.copy()

    def states(self, rows: Words, start: Words) -> Words:
        """Return the state after each row."""
        return np.stack([self.state(cycle.after) for cycle in self._cycles(rows, start)])

    def until(self, rows: Words, start: Words, wanted: int) -> int:
        """Return after how many rows every wanted bit was met, 0 if some is not."""
        for number, cycle in enumerate(self._cycles(rows, start), start=1):
            wanted &= ~self.bits(goals_of(self._simulator, [cycle]))
            if not wanted:
                return number
        return 0

    def burst(
        self, starts: Words, seed: int, cycles: int, length: int, met: int, most: int = 256
    ) -> tuple[int, list[Record], int]:
        """Run random rows from given states; return the cycles, new finds, and all bits met."""
        choice, done = random.Random(seed), 0
        records: list[Record] = []
        while done < cycles and len(records) < most:
            start, run_seed = choice.randrange(len(starts)), choice.getrandbits(60)
            rows = self.random_rows(run_seed, length)
            for number, cycle in enumerate(self._cycles(rows, starts[start]), start=1):
                fresh = self.bits(goals_of(self._simulator, [cycle])) & ~met
                if fresh:
                    met |= fresh
                    records.append(Record(start, run_seed, number, self.state(cycle.after)))
            done += length
        return done, records, met

    def random_rows(self, seed: int, count: int) -> Words:
        """Return the first rows of the random run of that seed."""
        source = random.Random(seed)
        resting = {reset.name: 1 - reset.active for reset in self.model.resets}
        held = {item.name: source.choice((1.0, 0.1)) for item in self.model.inputs}
        row: dict[str, int] = {}
        made = []
        for _ in range(count):
            row = {
                item.name: row[item.name]
                if item.name in row and source.random() > held[item.name]
                else source.getrandbits(item.width)
                for item in self.model.inputs
            } | resting
            made.append(row)
        return self.rows(made) if made else np.zeros((0, self.row_words), np.uint64)
