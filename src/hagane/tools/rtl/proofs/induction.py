"""Conditions that hold in every reachable cycle, proved together.

Of many candidates those that a start excludes are dropped, then those that some state breaks in
which all others held in the cycles before, until none is (Houdini). What is left excludes itself
for good, whatever the inputs: each condition may lean on all others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

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

    def base(self, start: Sequence[int], stop: float) -> bool:
        """Drop those that are met within the first cycles; return whether that was all."""
        first = Unrolled(self.circuit, start, resets_open=True)
        sat = Sat(first.gates)
        try:
            for cycle in range(self._depth):
                if not self._drop(sat, first, cycle, [], stop, None):
                    return False
        finally:
            sat.close()
        return True

    def step(self, stop: float, breaking: Breaking | None = None) -> bool:
        """Drop those that do not follow; return whether it came to an end.

        Args:
            stop: When to give up, on the monotonic clock.
            breaking: Returns further candidates that do not hold in the cycle after a state.
        """
        later = Unrolled(self.circuit, None, resets_open=True)
        sat = Sat(later.gates)
        try:
            numbers = list(self.alive)
            held: dict[int, int] = {}
            for number in numbers:
                held[number] = sat.selector()
            for cycle in range(self._depth):
                literals = later.at(cycle, [self.alive[n] for n in numbers])
                for number, literal in zip(numbers, literals, strict=True):
                    if literal:
                        sat.add([-held[number], -sat.literal(literal)])
            return self._drop(sat, later, self._depth, held, stop, breaking)
        finally:
            sat.close()

    def _drop(
        self,
        sat: Sat,
        unrolled: Unrolled,
        cycle: int,
        held: Mapping[int, int] | Sequence[int],
        stop: float,
        breaking: Breaking | None,
    ) -> bool:
        """Drop candidates that can hold in a cycle until none of the rest can."""
        numbers = list(self.alive)
        literals = dict(
            zip(numbers, unrolled.at(cycle, [self.alive[n] for n in numbers]), strict=True)
        )
        hits: dict[int, int] = {}
        for number, literal in literals.items():
            if literal:
                hits[number] = sat.selector()
                sat.add([-hits[number], sat.literal(literal)])
        asked = list(hits)
        turn = sat.selector()
        sat.add([-turn, *hits.values()])
        while hits:
            left = stop - time.monotonic()
            if left <= 0:
                return False
            assumed = [held[n] for n in self.alive] if isinstance(held, Mapping) else []
            found = sat.check([turn, *assumed], seconds=left)
            if found is None:
                return False
            if not found:
                return True
            broken = {n for n in asked if n in hits and sat.holds(literals[n])}
            if breaking is not None:
                broken |= breaking(self._state(sat, unrolled, cycle)) & hits.keys()
            for number in broken:
                sat.add([-hits.pop(number)])
                del self.alive[number]
        return True

    def _state(self, sat: Sat, unrolled: Unrolled, cycle: int) -> dict[str, int]:
        """Return the state at the start of a cycle, as found."""
        bits = iter(unrolled.states[cycle])
        return {
            name: sum(sat.holds(next(bits)) << k for k in range(len(part)))
            for name, part in self.circuit.state.items()
        }
