"""Runs in which some bits are not known: registers that begin with any value.

Each bit is a pair: whether it can be 1, and whether it can be 0. A gate's pair follows from those
of its arguments, so a bit that can have one value alone has it however the registers begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.simulate import Bit, Goal, Row, Test
from hagane.tools.rtl.proofs.circuit import Circuit
from hagane.tools.rtl.proofs.gates import AND, INPUT, XOR


class Unknowns:
    """A circuit's state with unknown bits, row by row, and the goals that are met for certain.

    Args:
        circuit: The circuit.
        goals: The goals to look for, with their conditions.
    """

    def __init__(self, circuit: Circuit, goals: Mapping[Goal, Term]):
        model = circuit.model
        self._circuit = circuit
        self._resets = [reset for reset in model.resets if reset.asynchronous]
        self._signals = {
            (goal.signal, goal.index): circuit.bits(model.signals[goal.signal])[goal.index]
            for goal in goals
            if isinstance(goal, Bit)
        }
        self._conditions = {
            goal: circuit.bits(term)[0] for goal, term in goals.items() if not isinstance(goal, Bit)
        }
        gates = circuit.gates
        leaves = {0: 0}
        wanted = [*circuit.following, *self._signals.values(), *self._conditions.values()]
        self._order = self._gates(wanted, leaves)
        self._struck = self._gates(circuit.struck, leaves)
        size = len(gates.kind)
        self._high, self._low = [False] * size, [False] * size
        self._low[0] = True  # node 0 is false
        self.met: set[Goal] = set()
        self.start()

    def _gates(self, literals: Sequence[int], known: Mapping[int, int]) -> list[tuple[int, ...]]:
        gates = self._circuit.gates
        return [
            (node, gates.kind[node], *gates.arguments[node])
            for node in gates.cone(literals, known)
            if gates.kind[node] != INPUT
        ]

    def start(self) -> None:
        """Go back to the moment in which the power comes on."""
        model = self._circuit.model
        for name, part in self._circuit.state.items():
            unset, value = name in model.unset, model.initial[name]
            for at, bit in enumerate(part):
                self._put(bit, None if unset else value >> at & 1)

    def state(self) -> list[int | None]:
        """Return the bits of the state as they are for certain; None for the others."""
        return [self._value(bit) for bit in self._circuit.state_bits]

    def back(self, state: Sequence[int | None]) -> None:
        """Go back to a state."""
        for bit, value in zip(self._circuit.state_bits, state, strict=True):
            self._put(bit, value)

    def _put(self, literal: int, value: int | None) -> None:
        self._high[literal >> 1] = value != 0
        self._low[literal >> 1] = value != 1

    def _value(self, literal: int) -> int | None:
        can = (self._low[literal >> 1], self._high[literal >> 1])
        return None if all(can) else int(can[1]) ^ (literal & 1)

    def _run(self, order: Sequence[tuple[int, ...]]) -> None:
        can = (self._high, self._low)
        high, low = can
        for node, kind, *arguments in order:
            if kind == AND:
                a, b = arguments
                high[node] = can[a & 1][a >> 1] and can[b & 1][b >> 1]
                low[node] = can[~a & 1][a >> 1] or can[~b & 1][b >> 1]
                continue
            if kind == XOR:
                a, b = arguments
                a1, a0, b1, b0 = can[a & 1][a >> 1], can[~a & 1][a >> 1], high[b >> 1], low[b >> 1]
                if b & 1:
                    b1, b0 = b0, b1
                high[node] = (a1 and b0) or (a0 and b1)
                low[node] = (a1 and b1) or (a0 and b0)
                continue
            c, yes, no = arguments
            c1, c0 = can[c & 1][c >> 1], can[~c & 1][c >> 1]
            high[node] = (c1 and can[yes & 1][yes >> 1]) or (c0 and can[no & 1][no >> 1])
            low[node] = (c1 and can[~yes & 1][yes >> 1]) or (c0 and can[~no & 1][no >> 1])

    def _follow(self, literals: Sequence[int]) -> None:
        values = [self._value(literal) for literal in literals]
        for bit, value in zip(self._circuit.state_bits, values, strict=True):
            self._put(bit, value)

    def _inputs(self, row: Row) -> None:
        for name, bits in self._circuit.inputs.items():
            for at, bit in enumerate(bits):
                self._put(bit, row.get(name, 0) >> at & 1)

    def warm(self, row: Row) -> None:
        """Go through the uncounted cycle before the first test."""
        self._inputs(row)
        self._run(self._order)
        self._follow(self._circuit.following)

    def row(self, row: Row) -> None:
        """Go through a row; an asynchronous reset acts before the clock does."""
        self._inputs(row)
        if any(row.get(reset.name, 0) == reset.active for reset in self._resets):
            self._run(self._struck)
            self._follow(self._circuit.struck)
        self._run(self._order)
        self.met.update(goal for goal, bit in self._conditions.items() if self._value(bit) == 1)
        for (name, index), bit in self._signals.items():
            value = self._value(bit)
            if value is not None:
                self.met.add(Bit(name, index, value))
        self._follow(self._circuit.following)


def after_prologue(circuit: Circuit, prologue: Test) -> list[int | None]:
    """Return the state after the first rows of a test, as far as it is the same for all starts."""
    unknowns = Unknowns(circuit, {})
    if prologue and circuit.model.clocks:
        unknowns.warm(prologue[0])
    for row in prologue:
        unknowns.row(row)
    return unknowns.state()
