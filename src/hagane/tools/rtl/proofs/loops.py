"""Loops of a circuit under constant inputs, taken many times in one step.

Where a row of inputs that is held brings a state back after some cycles, but for registers that
moved by constant amounts (a counter, an address), the solver says for how many rounds that goes on.
Each state on the way is reachable, though no simulator gets there in a lifetime.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass

from hagane.symbolic import bitvector as bv
from hagane.symbolic.logic import less
from hagane.symbolic.term import bits, const, variable
from hagane.tools.rtl.proofs.blast import Blaster
from hagane.tools.rtl.proofs.circuit import Circuit, Unrolled
from hagane.tools.rtl.proofs.gates import Gates
from hagane.tools.rtl.proofs.sat import Sat

_ROUNDS = 64  # bits of the number of rounds


@dataclass(frozen=True, slots=True)
class Loop:
    """A state, a row that is held, and by how much registers move in a round of some cycles."""

    state: Mapping[str, int]
    row: Mapping[str, int]
    period: int
    steps: Mapping[str, int]

    def after(self, circuit: Circuit, rounds: int) -> dict[str, int]:
        """Return the state after so many rounds."""
        moved = dict(self.state)
        for name, step in self.steps.items():
            moved[name] = (moved[name] + rounds * step) % (1 << len(circuit.state[name]))
        return moved


class Rounds:
    """The states of a loop over the number of rounds, as gates."""

    def __init__(self, circuit: Circuit, loop: Loop):
        self.gates = Gates()
        self.count = [self.gates.input() for _ in range(_ROUNDS)]
        self._blast = Blaster(self.gates, {"rounds": self.count})
        self.start: list[int] = []
        self.expected: list[int] = []
        for name, part in circuit.state.items():
            width, value = len(part), loop.state[name]
            step = loop.steps.get(name, 0)
            if not step:
                same = [value >> k & 1 for k in range(width)]
                self.start += same
                self.expected += same
                continue
            number = bv.resize(variable("rounds", bits(_ROUNDS)), width, signed=False)
            moved = bv.multiply(number, const(step, bits(width)))
            self.start += self._blast(bv.add(const(value, bits(width)), moved))
            self.expected += self._blast(bv.add(const(value + step, bits(width)), moved))

    def below(self, rounds: int) -> int:
        """Return the literal of fewer rounds."""
        sort = bits(_ROUNDS)
        return self._blast(less(variable("rounds", sort), const(rounds, sort), signed=False))[0]

    def found(self, sat: Sat) -> int:
        """Return the number of rounds in an assignment."""
        return sum(sat.holds(bit) << k for k, bit in enumerate(self.count))


def rounds_of(circuit: Circuit, loop: Loop, seconds: float) -> int:
    """Return for how many rounds a loop surely goes on: 0 where nothing is proved."""
    states = Rounds(circuit, loop)
    gates, start, expected = states.gates, states.start, states.expected
    ahead = Unrolled(circuit, start, gates=gates)
    reached = ahead.after(loop.period - 1)
    sat = Sat(gates)
    try:
        for inputs in ahead.inputs:
            for name, part in inputs.items():
                for at, literal in enumerate(part):
                    if literal > 1:
                        sat.require([literal ^ 1 ^ (loop.row.get(name, 0) >> at & 1)])
        pairs = zip(reached, expected, strict=True)
        sat.require([gates.some(gates.differ(x, y) for x, y in pairs)])
        rounds = 1 << (_ROUNDS - 1)
        for _ in range(2 * _ROUNDS):
            found = sat.check(seconds=seconds)
            if found is None:
                return 0
            if not found:
                return rounds
            rounds = min(rounds, states.found(sat))
            if rounds == 0:
                return 0
            # A smaller number of rounds after which it goes another way.
            sat.require([states.below(rounds)])
        return 0
    finally:
        sat.close()


def targets(
    circuit: Circuit, loop: Loop, rounds: int, goals: Mapping[int, int], seconds: float
) -> Generator[tuple[int, dict[str, int]], Collection[int], None]:
    """Yield numbers of rounds, each with a row that meets a goal after so many.

    Sent back to it are the goals that are still wanted, by number.
    """
    states = Rounds(circuit, loop)
    ahead = Unrolled(circuit, states.start, gates=states.gates)
    literals = dict(zip(goals, ahead.at(0, list(goals.values())), strict=True))
    sat = Sat(states.gates)
    try:
        sat.require([states.below(rounds + 1)])
        left = {number for number, literal in literals.items() if literal}
        while left:
            turn = sat.selector()
            sat.require([literals[number] for number in left], unless=turn)
            if not sat.check([turn], seconds=seconds):
                return
            row = {
                name: sum(sat.holds(bit) << k for k, bit in enumerate(part))
                for name, part in ahead.inputs[0].items()
            }
            met = {number for number in left if sat.holds(literals[number])}
            wanted = yield states.found(sat), row
            left = (left & set(wanted)) - met
    finally:
        sat.close()
