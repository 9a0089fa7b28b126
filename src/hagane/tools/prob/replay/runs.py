"""A run of a Python function, which decides its draws, and the states where runs meet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from hagane.tools.prob.draws import leave_discrete
from hagane.tools.prob.engines.chains.absorbing import Transition
from hagane.tools.prob.language.ratios import Number, Ratio
from hagane.tools.prob.replay.alike import Strange
from hagane.tools.prob.replay.frozen import Unfrozen, freeze
from hagane.tools.prob.replay.names import drawn_values
from hagane.tools.prob.replay.narrowed import Narrowed

if TYPE_CHECKING:
    from hagane.tools.prob.replay.explore import Explorer

# Choices of a run: the outcome of each draw, and how many it had.
Picks = tuple[tuple[int, int], ...]

LITTLE = 1e-15
_IDLE_TURNS = 1_000  # without a draw, before the same state is looked for
_MOST_IDLE = 300_000
_MOST_DRAWS = 20_000  # of one run


class Unrepeatable(Exception):
    """Runs with the same draws differ, or a run does something that draws do not decide."""


@dataclass(slots=True)
class State:
    """A place where runs meet: how to come there, and how often its runs passed marks before."""

    picks: Picks
    marks: int
    chance: float
    nexts: list[Transition] = field(default_factory=list)


class Stop(BaseException):
    """Ends a run that met another; raised by ``Run.stop`` alone."""


class Run:
    """A run, as the decider of its draws."""

    def __init__(
        self, chain: Explorer, state: int, since: Picks, weight: Fraction, chance: float
    ) -> None:
        self.chain = chain
        self.given = (*chain.states[state].picks, *since)
        self.picks = list(self.given)
        self.at = 0
        self.marks = 0
        self.loops: dict[int, Any] = {}
        self.frame: Any = None
        self.idle = 0
        self.seen: set[Any] = set()
        self.stopped = False
        self.fault: BaseException | None = None  # which the program may have caught
        self._noise = 1
        self._stand(state, weight, chance, bool(since))

    def _stand(self, state: int, weight: Fraction, chance: float, drew: bool) -> None:
        self.state, self.weight, self.chance, self.drew = state, weight, chance, drew
        self.base: Fraction | int = 0

    def stop(self) -> NoReturn:
        """End the run. A program that catches that goes on, which counts no more."""
        self.stopped = True
        raise Stop

    def _some(self, size: int) -> int:
        """Return any outcome of a draw of a run that is stopped: such that its loops end."""
        self._noise = (self._noise * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._noise >> 33) % size

    def uniform(self, size: int) -> int:
        """Return the outcome of a draw among equally likely ones."""
        if self.stopped:
            return self._some(size)
        if self.at < len(self.picks):
            return self._given(size)
        since = self._since()
        self.weight /= size
        self.chance /= size
        if size > 1:
            self.chain.wait(self.state, (*since, (1, size)), self.weight, self.chance, size - 2)
        return self._take(0, size)

    def weighted(self, chances: Sequence[Number]) -> int:
        """Return the outcome of a draw."""
        size = len(chances)
        if self.stopped:
            return self._some(size)
        if self.at < len(self.picks):
            return self._given(size)
        chain = self.chain
        for share in chances:
            if isinstance(share, Ratio):
                chain.shares[share] = None
        first = next(place for place, chance in enumerate(chances) if chance)
        since = self._since()
        for place in range(size - 1, first, -1):
            if chances[place]:
                chain.wait(
                    self.state,
                    (*since, (place, size)),
                    self.weight * chances[place],  # type: ignore[arg-type]
                    self.chance * float(chances[place]),
                )
        self.weight *= chances[first]  # type: ignore[assignment]
        self.chance *= float(chances[first])
        return self._take(first, size)

    def drawn(self, place: int, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return an even draw; of values that nothing tells apart the first.

        Args:
            place: That of the group of variables that hold such values.
            name: What is drawn.
            function: Draws.
            arguments: Its arguments.
        """
        try:
            values = drawn_values(name, arguments)
            parts = self.chain.marked.alike.drawn(place, sys._getframe(1).f_locals, values)
        except (Strange, TypeError, ValueError):
            parts = []
        if len(parts) < 2:
            return function(*arguments) if not parts else values[0]
        return values[parts[self.weighted([Fraction(len(p), len(values)) for p in parts])][0]]

    def continuous(self, law: str) -> Narrowed:
        """Return a number drawn evenly from 0 to 1, whose comparisons are draws."""
        if law != "uniform":
            leave_discrete()
        return Narrowed()

    def _given(self, size: int) -> int:
        """Return the outcome that this run repeats."""
        self.chain.steps += 1
        index, had = self.picks[self.at]
        if had != size:
            self.fault = Unrepeatable("runs with the same draws differ")
            raise self.fault
        self.at += 1
        return index

    def _since(self) -> Picks:
        """Return the outcomes since the state of this run, which draws anew."""
        self.chain.steps += 1
        if self.at > _MOST_DRAWS:
            self.chain.leave(self)
            self.stop()
        return tuple(self.picks[len(self.chain.states[self.state].picks) :])

    def _take(self, outcome: int, size: int) -> int:
        """Take an outcome, or leave the run for later if it is hardly probable."""
        self.picks.append((outcome, size))
        self.at += 1
        self.drew = True
        if self.chain.is_behind(self.chance / LITTLE):
            self.chain.wait(self.state, self._since(), self.weight, self.chance)
            self.stop()
        return outcome

    def mark(self, number: int) -> bool:
        """Stand at a turn of a loop: a state that is new, or known, where the run ends."""
        frame = sys._getframe(1)
        chain = self.chain
        if self.frame is None:
            self.frame = frame
        if frame is not self.frame or self.stopped:
            return True
        self.marks += 1
        chain.steps += 1
        known = chain.states[self.state].marks
        if self.marks == known:
            self.base = chain.counter_of(frame)
            return True
        if self.marks < known or self.at < len(self.picks):
            return True
        if self.drew or chain.every:
            self._meet(number, frame)
        else:
            self._turn(number, frame)
        return True

    def key(self, number: int, frame: Any, without: str = "") -> Any:
        """Return what a mark and the variables there are known by; None if that cannot be told."""
        marked = self.chain.marked
        held = frame.f_locals
        live = marked.live[frame.f_lasti] - self.chain.counters - {without}
        rest, same = marked.alike.key({name: held[name] for name in live if name in held})
        loops = [(f"{loop}", self.loops[loop]) for loop in marked.loops[number]]
        try:
            return number, same, freeze((*sorted(rest.items()), *loops))
        except (Unfrozen, RecursionError):
            return None

    def _meet(self, number: int, frame: Any) -> None:
        chain = self.chain
        if chain.folds(self, number, frame):
            self.stop()
        key = self.key(number, frame)
        if key is None:
            return
        count = chain.counter_of(frame)
        known = chain.numbers.get(key)
        chain.reach(self, ("state", key), count - self.base)
        if known is not None:
            self.stop()
        state = chain.numbers[key]
        chain.states[state] = State(tuple(self.picks), self.marks, self.chance)
        if chain.is_behind(self.chance) or chain.is_full:
            chain.wait(state, (), Fraction(1), self.chance)
            self.stop()
        self._stand(state, Fraction(1), self.chance, drew=False)
        self.base = count
        self.idle = 0
        self.seen.clear()

    def _turn(self, number: int, frame: Any) -> None:
        """Stand at a turn without a draw since the last state."""
        self.idle += 1
        if self.idle > _IDLE_TURNS:
            key = self.key(number, frame)
            if key in self.seen and key is not None:
                self.chain.reach(self, ("endless",), 0)
                self.stop()
            self.seen.add(key)
        if self.idle > _MOST_IDLE:
            self.fault = Unrepeatable(f"a loop turns {_MOST_IDLE:,} times without a draw")
            raise self.fault

    def items(self, loop: int, items: Any) -> Any:
        """Return the iterator of a ``for`` loop, which is part of the states inside it."""
        self.loops[loop] = found = iter(items)
        return found
