"""A circuit as gates, and unrolled over several cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.proofs.blast import Blaster
from hagane.tools.rtl.proofs.gates import FALSE, Copy, Gates


class Circuit:
    """One cycle of a model as gates over the bits of its inputs and its state."""

    def __init__(self, model: CycleModel):
        self.model = model
        self.gates = Gates()
        self.inputs = {i.name: [self.gates.input() for _ in range(i.width)] for i in model.inputs}
        self.state = {
            name: [self.gates.input() for _ in range(max(1, term.width))]
            for name, term in model.state.items()
        }
        self._blast = Blaster(self.gates, {**self.inputs, **self.state})
        self.following: list[int] = []
        for term in model.state.values():
            self.following += self._blast(term)
        self.state_bits = [bit for part in self.state.values() for bit in part]
        self.struck: list[int] = []
        for name, part in self.state.items():
            after = model.after_reset.get(name)
            self.struck += part if after is None else self._blast(after)

    def bits(self, term: Term) -> list[int]:
        """Return a term's bits."""
        return self._blast(term)

    def values(self, state: Mapping[str, int]) -> list[int]:
        """Return the bits of a state, in the order of ``state_bits``."""
        return [state[name] >> k & 1 for name, part in self.state.items() for k in range(len(part))]


class Unrolled:
    """A circuit over cycles, from a state that is given or open.

    Bits of the start that are None are open. Where ``resets_open``, asynchronous resets may act in
    any cycle, before the clock does; otherwise they rest.
    """

    def __init__(
        self,
        circuit: Circuit,
        start: Sequence[int | None] | None,
        *,
        resets_open: bool = False,
        gates: Gates | None = None,
    ):
        self.circuit = circuit
        self.gates = Gates() if gates is None else gates
        self._resets_open = resets_open
        bits = [None] * len(circuit.state_bits) if start is None else start
        self.start = [self.gates.input() if bit is None else bit for bit in bits]
        self.states = [list(self.start)]
        self.inputs: list[dict[str, list[int]]] = []
        self._copies: list[Copy] = []

    def _extend(self) -> None:
        circuit, gates = self.circuit, self.gates
        number = len(self._copies)
        if number:
            self.states.append(self._copies[-1](circuit.following))
        resets = {r.name: r.active for r in circuit.model.resets if r.asynchronous}
        inputs: dict[str, list[int]] = {}
        mapping: dict[int, int] = {}
        for name, bits in circuit.inputs.items():
            if name in resets and not self._resets_open:
                inputs[name] = [1 - resets[name]]
            else:
                inputs[name] = [gates.input() for _ in bits]
            mapping.update(zip(bits, inputs[name], strict=True))
        state = self.states[-1]
        if resets and self._resets_open:
            before = Copy(circuit.gates, gates, mapping | _paired(circuit.state_bits, state))
            state = before(circuit.struck)
        self.inputs.append(inputs)
        copy = Copy(circuit.gates, gates, mapping | _paired(circuit.state_bits, state))
        self._copies.append(copy)

    def at(self, cycle: int, literals: Sequence[int]) -> list[int]:
        """Return literals of the circuit as they are in a cycle, counted from 0."""
        while len(self._copies) <= cycle:
            self._extend()
        return self._copies[cycle](literals)

    def after(self, cycle: int) -> list[int]:
        """Return the bits of the state after a cycle."""
        self.at(cycle, ())
        return self._copies[cycle](self.circuit.following)


def _paired(keys: Sequence[int], values: Sequence[int]) -> dict[int, int]:
    return dict(zip(keys, values, strict=True))


__all__ = ["FALSE", "Circuit", "Unrolled"]
