"""Sequential circuits: random runs, a solver that looks ahead from their states, and proofs.

Random runs and the solver share coverage and states: each continues from the states that the other
reached. Goals that both leave are proved dead by an induction over all open goals and over
relations that the states showed, or looked for cycle by cycle from reset; a goal that the full
look-ahead from reset excludes is dead within that many cycles, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hagane.tools.rtl.circuit.simulate import Dead
from hagane.tools.rtl.proofs.ahead import Ahead, Reached
from hagane.tools.rtl.proofs.circuit import Circuit
from hagane.tools.rtl.proofs.induction import Together
from hagane.tools.rtl.proofs.relations import relations
from hagane.tools.rtl.proofs.unknowns import after_prologue
from hagane.tools.rtl.search.held import hold
from hagane.tools.rtl.search.loops import accelerate

if TYPE_CHECKING:
    from hagane.tools.rtl.search.corpus import Node
    from hagane.tools.rtl.search.search import Search

_FIRST_VECTORS = 300_000
_VECTORS = 200_000
_SAMPLES = 1_200
_NOT_REACHED = "the solver's inputs do not reach it in a run"


def explore(search: Search) -> None:
    """Cover goals of a sequential circuit, or prove them dead, as far as time allows."""
    whole = search.time_left()
    search.burst(whole * 0.15, _FIRST_VECTORS)
    if not search.open:
        return
    plan = _Plan(search)
    plan.prove(1, whole * 0.1)
    stages: list[Callable[[], object]] = [
        lambda: plan.prove(2, whole * 0.15),
        lambda: hold(search, whole * 0.1),
        lambda: accelerate(search, plan.circuit, whole * 0.2),
        lambda: plan.from_reset(whole * 0.25),  # it gives up what is out of its reach
        lambda: plan.look_ahead(10, whole * 0.2),
        lambda: plan.prove(3, whole * 0.15),
        lambda: plan.look_ahead(24, whole * 0.2),
        lambda: search.burst(
            search.time_left() * 0.5, max(0, search.budget.vectors - search.found.random_vectors)
        ),
    ]
    while search.open and search.time_left() > 0:
        search.found.rounds += 1
        progress = plan.look_ahead(4, whole * 0.08)
        progress += search.burst(whole * 0.05, _VECTORS)
        if 1 not in plan.proved:
            plan.prove(1, whole * 0.08)
        if search.found.rounds == 2:
            progress += accelerate(search, plan.circuit, whole * 0.08)
        if search.found.rounds == 4:
            progress += hold(search, whole * 0.05)
        search.tell()
        if not progress:
            if not stages:
                break
            stages.pop(0)()
            search.tell()
    plan.explain()


class _Plan:
    """The solver's part of a search."""

    def __init__(self, search: Search):
        self.search = search
        self.circuit = Circuit(search.model)
        self._ahead: dict[int, Ahead] = {}
        self._from_reset = 0
        self._excused: set[int] = set()
        self._together: dict[int, Together] = {}
        self.proved: set[int] = set()
        self._blocked = 0

    def literals(self) -> dict[int, int]:
        """Return the circuit's literals of the open goals by their bits."""
        search = self.search
        return {
            search.engine.bit_of[goal]: self.circuit.bits(search.goals[goal])[0]
            for goal in search.open_goals()
        }

    # Ahead from states reached

    def look_ahead(self, depth: int, seconds: float) -> int:
        """Ask from states reached for goals up to so many cycles ahead; return the finds."""
        search = self.search
        stop = time.monotonic() + min(seconds, search.time_left())
        ahead = self._ahead.get(depth)
        if ahead is None:
            ahead = self._ahead[depth] = Ahead(self.circuit, self.literals())
        fresh = 0
        while search.open and time.monotonic() < stop:
            node = self._next(depth)
            if node is None:
                break
            fresh += self._from_node(ahead, node, depth, stop)
        return fresh

    def _next(self, depth: int) -> Node | None:
        """Return the newest node whose kind of state was looked at least."""
        nodes = [node for node in self.search.corpus.nodes if node.depth < depth]
        return min(nodes[-256:], key=lambda node: (node.depth, -node.length), default=None)

    def _from_node(self, ahead: Ahead, node: Node, depth: int, stop: float) -> int:
        search, fresh = self.search, 0
        values = self.circuit.values(search.engine.values(node.state))
        self._close(ahead)
        cycle = node.depth
        while cycle < depth and time.monotonic() < stop:
            answer = ahead.ask(cycle, min(2.0, max(0.05, stop - time.monotonic())), values)
            if isinstance(answer, Reached) and answer.rows is not None:
                found = search.try_rows(node, answer.rows)
                if found is None:
                    self._excuse(answer.goals)
                fresh += found is not None
                self._close(ahead)
                continue
            if isinstance(answer, Reached):
                self._blocked += 1
            cycle += 1
            node.depth = cycle
        return fresh

    def _close(self, ahead: Ahead) -> None:
        left = self.search.open
        ahead.close([n for n in ahead.goals if not left >> n & 1 or n in self._excused])

    def _excuse(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            self._excused.add(number)
            self.search.excuse(self.search.engine.goals_at[number][0], _NOT_REACHED)

    # From reset, a cycle deeper each time

    def from_reset(self, seconds: float) -> None:
        """Look from reset up to the limit; goals out of reach are dead so far."""
        search, limit = self.search, self.search.budget.cycles
        stop = time.monotonic() + min(seconds, search.time_left())
        start = self._start()
        variants = [False]
        if any(reset.asynchronous for reset in search.model.resets):
            variants.append(True)
        for resets_open in variants:
            ahead = Ahead(self.circuit, self.literals(), start, resets_open=resets_open)
            for cycle in range(limit):
                if not self._at(ahead, cycle, stop):
                    return
                if resets_open is variants[-1]:
                    self._from_reset = cycle + 1
        for goal in search.open_goals():
            if search.engine.bit_of[goal] not in self._excused:
                search.bury(goal, Dead(limit, f"unreachable in {limit} cycles from reset"))

    def _at(self, ahead: Ahead, cycle: int, stop: float) -> bool:
        """Look for every open goal in a cycle; return whether that was done."""
        search = self.search
        while True:
            self._close(ahead)
            left = stop - time.monotonic()
            if left <= 0:
                return False
            answer = ahead.ask(cycle, left)
            if answer is False:
                return True
            if not isinstance(answer, Reached) or answer.rows is None:
                return False
            if search.try_rows(search.corpus.root, answer.rows) is None:
                self._excuse(answer.goals)

    def _start(self) -> Sequence[int | None]:
        search = self.search
        if search.any_start:
            return after_prologue(self.circuit, search.prologue if search.model.resets else ())
        if search.model.resets and search.prologue:
            return self.circuit.values(search.engine.values(search.corpus.root.state))
        return self.circuit.values(
            {name: search.model.initial[name] for name in self.circuit.state}
        )

    # Proofs

    def prove(self, depth: int, seconds: float) -> None:
        """Prove open goals dead by an induction over all of them and relations seen in states.

        One that found no end within its time goes on when it is asked for again.
        """
        search = self.search
        stop = time.monotonic() + min(seconds, search.time_left())
        together = self._together.get(depth)
        if together is None:
            candidates = self.literals()
            for number in [number for number, literal in candidates.items() if literal == 0]:
                goal = search.engine.goals_at[number][0]
                search.bury(goal, Dead(None, "no state and no input reaches it"))
                del candidates[number]
            if not candidates:
                return
            samples = self._samples(stop)
            for at, literal in enumerate(relations(self.circuit, samples, stop)):
                candidates[-1 - at] = literal
            together = self._together[depth] = Together(self.circuit, candidates, depth)
        left = search.open
        together.forget([n for n in together.alive if n >= 0 and not left >> n & 1])

        def breaking(state: dict[str, int]) -> set[int]:
            words, met = search.engine.state(state), 0
            for _ in range(16):
                rows = search.engine.random_rows(search.random.getrandbits(60), 1)
                met |= search.engine.run(rows, words)[0]
            return {number for number in together.alive if number >= 0 and met >> number & 1}

        if not together.prove(self._start(), stop, breaking):
            return
        self.proved.add(depth)
        others = len(together.alive) - 1
        why = f"by induction over {depth + 1} cycles"
        if others:
            why += f", together with {others} other conditions"
        for number in list(together.alive):
            if number >= 0 and number not in self._excused:
                search.bury(search.engine.goals_at[number][0], Dead(None, why))
        for ahead in self._ahead.values():
            self._close(ahead)

    def _samples(self, stop: float) -> list[dict[str, int]]:
        """Return states that runs reached: those kept, and more from random rows."""
        half = time.monotonic() + (stop - time.monotonic()) / 4
        search, engine = self.search, self.search.engine
        nodes = search.corpus.nodes
        samples = [engine.values(node.state) for node in nodes[-_SAMPLES:]]
        for _ in range(engine.pace(_SAMPLES)):
            if time.monotonic() > half:
                break
            node = search.random.choice(nodes)
            rows = engine.random_rows(search.random.getrandbits(60), search.random.randint(1, 64))
            samples.append(engine.values(engine.run(rows, node.state)[1]))
        return samples

    def explain(self) -> None:
        """Say of the goals that are left why they are."""
        search = self.search
        why = f"time was up after {self._from_reset} cycles from reset"
        if search.time_left() > 0:
            why = "neither reached nor proved dead by any of the methods"
        for goal in search.open_goals():
            if goal not in search.found.dead and goal not in search.found.unknown:
                search.excuse(goal, why)
