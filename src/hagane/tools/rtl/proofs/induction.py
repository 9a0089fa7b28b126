"""Conditions that hold in every reachable cycle, proved together.

Candidates that a start excludes are dropped, then candidates that some state breaks in
which all others held in the cycles before, until none is (Houdini). The rest exclude themselves
for good, for all inputs: each condition may lean on all others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from hagane.tools.rtl.proofs.circuit import Circuit, Unrolled
from hagane.tools.rtl.proofs.sat import Sat

Breaking = Callable[[dict[str, int]], set[int]]


class Together:
    """Candidates for conditions that never hold.

    Args:
        circuit: The circuit.
        candidates: Literals of the circuit, by number.
        depth: Over how many cycles before they are assumed.
    """

    def __init__(self, circuit: Circuit, candidates: Mapping[int, int], depth: int = 1):
        self.circuit = circuit
        self.alive = dict(candidates)
        self._depth = depth
        self._done = 0  # cycles of the base
        self._base: _Round | None = None
        self._step: _Round | None = None

    def prove(
        self, start: Sequence[int | None], stop: float, breaking: Breaking | None = None
    ) -> bool:
        """Drop the candidates that do not follow; return whether it came to an end.

        A call that found no end before ``stop`` may be made again, and goes on.

        Args:
            start: The bits of the state at the start, None for open ones.
            stop: When to give up, on the monotonic clock.
            breaking: Returns further candidates that do not hold in the cycle after a state.
        """
        if self._base is None:
            self._base = _Round(self, Unrolled(self.circuit, start, resets_open=True))
        while self._done < self._depth:
            if not self._base.drop(self._done, stop, None):
                return False
            self._done += 1
        if self._step is None:
            self._step = _Round(self, Unrolled(self.circuit, None, resets_open=True))
            self._step.hold(self._depth)
        return self._step.drop(self._depth, stop, breaking)

    def forget(self, numbers: Iterable[int]) -> None:
        """Drop candidates that a run has met."""
        for number in numbers:
            self.alive.pop(number, None)


class _Round:
    """Questions about candidates over some cycles."""

    def __init__(self, together: Together, unrolled: Unrolled):
        self._together = together
        self._unrolled = unrolled
        self._sat = Sat(unrolled.gates)
        self._held: dict[int, int] = {}
        self._asked: dict[int, tuple[int, dict[int, int], dict[int, int]]] = {}

    def hold(self, depth: int) -> None:
        """Let the candidates be assumed in the first cycles."""
        alive = self._together.alive
        self._held = {number: self._sat.selector() for number in alive}
        for cycle in range(depth):
            literals = self._unrolled.at(cycle, list(alive.values()))
            for number, literal in zip(alive, literals, strict=True):
                if literal:
                    self._sat.add([-self._held[number], -self._sat.literal(literal)])

    def _ready(self, cycle: int) -> tuple[int, dict[int, int], dict[int, int]]:
        if cycle not in self._asked:
            alive, sat = self._together.alive, self._sat
            found = self._unrolled.at(cycle, list(alive.values()))
            literals = {n: x for n, x in zip(alive, found, strict=True) if x}
            hits = {number: sat.selector() for number in literals}
            for number, hit in hits.items():
                sat.add([-hit, sat.literal(literals[number])])
            turn = sat.selector()
            sat.add([-turn, *hits.values()])
            self._asked[cycle] = (turn, hits, literals)
        return self._asked[cycle]

    def drop(self, cycle: int, stop: float, breaking: Breaking | None) -> bool:
        """Drop candidates that can hold in a cycle until none of the rest can."""
        sat, alive = self._sat, self._together.alive
        turn, hits, literals = self._ready(cycle)
        while True:
            for number in [n for n in hits if n not in alive]:
                sat.add([-hits.pop(number)])
            left = stop - time.monotonic()
            if not hits:
                return True
            if left <= 0:
                return False
            assumed = [self._held[n] for n in alive if n in self._held]
            found = sat.check([turn, *assumed], seconds=left)
            if found is None:
                return False
            if not found:
                return True
            broken = {n for n in hits if sat.holds(literals[n])}
            if breaking is not None:
                broken |= breaking(self._state(cycle)) & hits.keys()
            for number in broken:
                del alive[number]

    def _state(self, cycle: int) -> dict[str, int]:
        """Return the state at the start of a cycle, as found."""
        bits = iter(self._unrolled.states[cycle])
        return {
            name: sum(self._sat.holds(next(bits)) << k for k in range(len(part)))
            for name, part in self._together.circuit.state.items()
        }
