"""Loops of a circuit under constant inputs, taken many times in one step.

Where a row of inputs that is held brings a state back after some cycles, but for registers that
moved by constant amounts (a counter, an address), the solver says for how many rounds that goes on.
Each state on the way is reachable, though no simulator gets there in a lifetime.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def rounds_of(circuit: Circuit, loop: Loop, seconds: float) -> int:
    """Return for how many rounds a loop surely goes on: 0 where nothing is proved."""
    gates = Gates()
    count = [gates.input() for _ in range(_ROUNDS)]
    blast = Blaster(gates, {"rounds": count})
    start: list[int] = []
    expected: list[int] = []
    for name, part in circuit.state.items():
        width, value = len(part), loop.state[name]
        step = loop.steps.get(name, 0)
        if not step:
            same = [value >> k & 1 for k in range(width)]
            start += same
            expected += same
            continue
        number = bv.resize(variable("rounds", bits(_ROUNDS)), width, signed=False)
        moved = bv.multiply(number, const(step, bits(width)))
        start += blast(bv.add(const(value, bits(width)), moved))
        expected += blast(bv.add(const(value + step, bits(width)), moved))
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
            rounds = min(rounds, sum(sat.holds(bit) << k for k, bit in enumerate(count)))
            if rounds == 0:
                return 0
            # A smaller number of rounds after which it goes another way.
            sat.require([_below(blast, rounds)])
        return 0
    finally:
        sat.close()


def _below(blast: Blaster, rounds: int) -> int:
    sort = bits(_ROUNDS)
    return blast(less(variable("rounds", sort), const(rounds, sort), signed=False))[0]
