"""A few cycles ahead from states that runs reached: any goal that is still open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hagane.tools.rtl.proofs.circuit import Circuit, Unrolled
from hagane.tools.rtl.proofs.sat import Sat


@dataclass(frozen=True, slots=True)
class Reached:
    """Rows of inputs that lead to open ``goals``; None where the solver gave up."""

    rows: tuple[dict[str, int], ...] | None
    goals: tuple[int, ...] = ()


class Ahead:
    """Asks which open goals are met exactly some cycles after a state.

    Args:
        circuit: The circuit.
        goals: The literals of the goals, by number.
        start: The state's bits; open where it is None, and then given with each question.
    """

    def __init__(
        self,
        circuit: Circuit,
        goals: Mapping[int, int],
        start: Sequence[int | None] | None = None,
        *,
        resets_open: bool = False,
    ):
        self._circuit = circuit
        self.unrolled = Unrolled(circuit, start, resets_open=resets_open)
        self.sat = Sat(self.unrolled.gates)
        self.goals = dict(goals)
        self._wanted: list[tuple[int, dict[int, int]]] = []

    def close(self, goals: Sequence[int]) -> None:
        """Ask for some goals no longer."""
        for number in goals:
            if self.goals.pop(number, None) is None:
                continue
            for _, hits in self._wanted:
                hit = hits.pop(number, None)
                if hit is not None:
                    self.sat.add([-hit])

    def _ready(self, cycle: int) -> tuple[int, dict[int, int]]:
        while len(self._wanted) <= cycle:
            at = len(self._wanted)
            numbers = list(self.goals)
            literals = self.unrolled.at(at, [self.goals[n] for n in numbers])
            selector, hits = self.sat.selector(), {}
            for number, literal in zip(numbers, literals, strict=True):
                if literal == 0:
                    continue
                hits[number] = hit = self.sat.selector()
                self.sat.add([-hit, self.sat.literal(literal)])
            self.sat.add([-selector, *hits.values()])
            self._wanted.append((selector, hits))
        return self._wanted[cycle]

    def ask(
        self,
        cycle: int,
        seconds: float,
        state: Sequence[int] | None = None,
        only: int | None = None,
    ) -> Reached | bool:
        """Return rows that meet an open goal in the cycle, or False where there are none.

        Args:
            cycle: Counted from 0.
            seconds: How long the solver may take.
            state: The bits of the state, where it was left open.
            only: A goal; any where it is None.
        """
        selector, hits = self._ready(cycle)
        if not hits or (only is not None and only not in hits):
            return False
        assumed = [selector if only is None else hits[only]]
        if state is not None:
            for literal, value in zip(self.unrolled.start, state, strict=True):
                number = self.sat.known(literal)
                if number is not None:
                    assumed.append(number if value else -number)
        found = self.sat.check(assumed, seconds=seconds)
        if found is None:
            return Reached(None)
        if not found:
            return False
        literals = self.unrolled.at(cycle, [self.goals[n] for n in hits])
        met = tuple(n for n, x in zip(hits, literals, strict=True) if self.sat.holds(x))
        return Reached(self._rows(cycle), met)

    def _rows(self, cycle: int) -> tuple[dict[str, int], ...]:
        holds = self.sat.holds
        return tuple(
            {
                name: sum(holds(bit) << k for k, bit in enumerate(bits))
                for name, bits in self.unrolled.inputs[at].items()
            }
            for at in range(cycle + 1)
        )
