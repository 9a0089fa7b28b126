"""The Markov chain of a Python function: its runs, one for each sequence of draws.

A run repeats given choices and then takes the first outcome of each draw; the others wait, the most
probable first. At marks, runs whose variables are equal are one state, so that loops end even where
no number of turns is always enough. Where that leaves too many states, the rest is left open, and
its probability bounds all others.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hagane.tools.prob.draws import ObservationFailed, deciding
from hagane.tools.prob.engines.chains.absorbing import TooMuchWork, Transition, visits
from hagane.tools.prob.language.ratios import Ratio
from hagane.tools.prob.replay.chance import OtherChance, no_other_chance, refuse_generators
from hagane.tools.prob.replay.marked import (
    CONTAINS,
    COUNTED,
    DRAWN,
    ITEMS,
    MARK,
    RETURNED,
    STEP,
    UNORDERED,
    Marked,
)
from hagane.tools.prob.replay.older import older, outside
from hagane.tools.prob.replay.outcomes import Outcomes
from hagane.tools.prob.replay.reached import reached
from hagane.tools.prob.replay.runs import LITTLE, Picks, Run, State, Stop, Unrepeatable
from hagane.tools.prob.replay.unseen import contains, shown

_MOST_STEPS = 1_500_000  # draws and turns of all runs together
_MOST_STEPS_OF_FORMULAS, _MOST_FORMULAS = 40_000, 1_000  # steps and states with parameters
_FEW_STEPS = 200_000  # after which runs that are hardly probable may stay open
_FRUITLESS_STEPS = 200_000  # since a run came to its end, or to a state
PRECISE = Fraction(1, 10**12)  # of the probability of all that stay open
_MOST_STATES = 100_000
_MOST_SECONDS = 30.0  # of processor time, for all runs together
_RUNS_A_LOOK = 16  # at the clock, and at what is older than a run
_RUNS_LOOKED_AFTER = 100  # each of the first ones
_MOST_SUMS = 300_000  # of the elimination of one component while runs are open
_CHECKED = 20  # runs that are run twice; fewer are run as many times together
_MOST_SECONDS_OF_CHECKS = 0.2


class Uncounted(Exception):
    """A variable that was taken for a counter holds something else than whole numbers."""


@dataclass(slots=True)
class _Counted:
    """A result that counts."""

    value: Any


class Explorer:
    """Follows the runs of a function for given arguments.

    ``failure`` is the exception of a run that ended in one.

    Args:
        marked: The function.
        arguments: Its arguments.
        counts: Whether means of counters are enough.
        most: How many runs may be followed.
        clock: Tells the processor time, in seconds.
    """

    run: type[Run] = Run
    every = False  # mark is a state, also without a draw since the last one

    def __init__(
        self,
        marked: Marked,
        arguments: Sequence[Any],
        *,
        counts: bool,
        most: int,
        clock: Callable[[], float] = time.process_time,
    ):
        self.clock = clock
        self.until = clock() + _MOST_SECONDS
        self.late = False
        self.marked = marked
        self.arguments = arguments
        self.counters = marked.counters if counts else frozenset[str]()
        self.most = most
        self.most_steps = _MOST_STEPS
        self.steps = 0
        self.arrived = 0  # the step at which a run last came to its end, or to a state
        self.runs = 0
        self.states: list[State] = [State((), 0, 1.0)]
        self.numbers: dict[Any, int] = {}
        self.waiting: list[tuple[float, int, int, Picks, Fraction, int]] = []
        self.rest = 0.0
        self.failure: Exception | None = None
        self.tangled = False  # states lead back to each other in too many ways
        # Probabilities that are functions of parameters.
        self.shares: dict[Ratio, None] = {}
        self._checked: list[tuple[Picks, Any]] = []

    def ended(self, run: Run, value: Any, failure: Exception | None) -> None:
        """Look at a run that came to its end."""

    def folds(self, run: Run, number: int, frame: Any) -> bool:
        """Tell whether a mark was taken for something else than a state."""
        return False

    def step(self, value: Any) -> Any:
        """Return what a statement adds to a variable that walks."""
        return value

    def returned(self, value: Any) -> Any:
        """Return a result in which a variable that walks takes part."""
        return value

    def counter_of(self, frame: Any) -> Fraction | int:
        """Return the value of the counter of a function's frame."""
        total: Fraction | int = 0
        for name in self.counters:
            total += _whole(frame.f_locals[name])
        return total

    def wait(
        self, state: int, since: Picks, weight: Fraction, chance: float, more: int = 0
    ) -> None:
        """Leave a run for later, and with it as many as the last draw has more outcomes like it."""
        self.rest += chance * (1 + more)
        self._push(state, since, weight, chance, more)

    def _push(self, state: int, since: Picks, weight: Fraction, chance: float, more: int) -> None:
        # Among equals the last goes first, so that few wait.
        item = (-chance, -len(self.waiting) - self.runs, state, since, weight, more)
        heapq.heappush(self.waiting, item)

    def _next(self) -> Run:
        """Return the most probable of the runs that wait."""
        chance, _, state, since, weight, more = heapq.heappop(self.waiting)
        self.rest += chance
        if more:
            place, size = since[-1]
            self._push(state, (*since[:-1], (place + 1, size)), weight, -chance, more - 1)
        return self.run(self, state, since, weight, -chance)

    @property
    def is_full(self) -> bool:
        """Tell whether there are as many states as may be followed."""
        return len(self.states) > _MOST_STATES

    def is_behind(self, chance: float) -> bool:
        """Tell whether a run that waits is more probable."""
        return bool(self.waiting) and -self.waiting[0][0] > chance

    def reach(self, run: Run, key: Any, gain: Fraction | int) -> None:
        """Note that a run went from its state to another."""
        self.arrived = self.steps
        own = key[1] if key[0] == "state" else key
        if own not in self.numbers:
            self.numbers[own] = len(self.states)
            self.states.append(State((), 0, 0.0))
        self.states[run.state].nexts.append((run.weight, self.numbers[own], gain))  # type: ignore[arg-type]

    def leave(self, run: Run) -> None:
        """Leave a run open."""
        self.reach(run, ("open",), 0)

    def explore(self) -> Outcomes:
        """Follow all runs, or as many as there may be.

        Raises:
            Unrepeatable: Runs with the same draws differ.
            Uncounted: Counters hold something else than whole numbers.
            OtherChance: The function draws in another way.
        """
        refuse_generators(outside(self.marked.function))
        known = reached(self.marked.function)
        self.wait(0, (), Fraction(1), 1.0)
        enough = _FEW_STEPS
        while True:
            with no_other_chance(deciding.get, known):
                before = older(self.marked.function)
                while self.waiting and self.failure is None and not self._is_enough(enough):
                    self._follow(self._next())
                    if self.runs < _RUNS_LOOKED_AFTER or self.runs % _RUNS_A_LOOK == 0:
                        self._compare(before)
                self._compare(before)
                self._check()
            found = self._solved()
            if self.shares or found.open <= PRECISE or self._is_most() or self._is_over():
                return found
            # The most probable way to a state says little of it where runs go round for long.
            enough *= 4

    def _compare(self, before: Mapping[str, Any]) -> None:
        """Refuse a function whose run changed what is older than it: states do not hold that."""
        now = older(self.marked.function)
        for name in [*before, *now]:
            if before.get(name) != now.get(name):
                raise Unrepeatable(f"'{name}', which is older than a run, is changed by it")

    def _is_most(self) -> bool:
        if self.steps > self.most_steps or self.runs > self.most or self.is_full:
            return True
        if self.runs % _RUNS_A_LOOK == 0 and self.clock() > self.until:
            self.late = True
        return self.late or self.steps - self.arrived > _FRUITLESS_STEPS

    def _is_over(self) -> bool:
        return self.tangled or self.failure is not None

    def _is_enough(self, steps: int) -> bool:
        if self.shares:
            # Formulas need all runs, and each of them costs polynomials.
            return self.steps > _MOST_STEPS_OF_FORMULAS or len(self.states) > _MOST_FORMULAS
        return self._is_most() or (self.steps > steps and self.rest < LITTLE)

    def _follow(self, run: Run) -> None:
        self.runs += 1
        value: Any = None
        failure: Exception | None = None
        try:
            value = self._call(run)
        except Stop:
            return
        except (Unrepeatable, Uncounted, OtherChance):
            raise
        except Exception as error:
            failure = error
        if run.fault is not None:
            raise run.fault
        if run.stopped:
            return
        self.ended(run, value, failure)
        if failure is not None:
            if isinstance(failure, ObservationFailed):
                self.reach(run, ("rejected",), 0)
            else:
                self.failure = failure
            return
        if run.at < len(run.picks):
            raise Unrepeatable("runs with the same draws differ")
        if len(self._checked) < _CHECKED and self.run is Run:
            self._checked.append((tuple(run.picks), value))
        if isinstance(value, _Counted):
            self.reach(run, ("counted",), _whole(value.value) - run.base)
        else:
            self.reach(run, ("end", type(value), value), 0)

    def _call(self, run: Run) -> Any:
        called: dict[str, Callable[..., Any]] = {
            MARK: run.mark,
            ITEMS: run.items,
            STEP: self.step,
            RETURNED: self.returned,
            UNORDERED: getattr(run, "unordered", _same),
            CONTAINS: contains,
            DRAWN: run.drawn,
            COUNTED: _Counted if self.counters else _same,
        }
        token = deciding.set(run)
        try:
            return _result(self.marked.bound(called)(*self.arguments))
        finally:
            deciding.reset(token)

    def _check(self) -> None:
        """Run some runs again, which have to end alike; few of them several times."""
        until = self.clock() + _MOST_SECONDS_OF_CHECKS
        for turn in range(_CHECKED):
            if turn < len(self._checked) or (self._checked and self.clock() < until):
                self._check_run(*self._checked[turn % len(self._checked)])

    def _check_run(self, picks: Picks, value: Any) -> None:
        again = Explorer(self.marked, self.arguments, counts=bool(self.counters), most=1)
        again.states[0].picks = picks
        again.states[0].marks = sys.maxsize
        run = Run(again, 0, (), Fraction(1), 1.0)
        try:
            other = again._call(run)
        except Exception:
            raise Unrepeatable("runs with the same draws differ") from None
        if run.fault is not None or type(other) is not type(value) or other != value:
            raise Unrepeatable("runs with the same draws differ")

    def _solved(self) -> Outcomes:
        if self.failure is not None or (self.shares and self.waiting):
            return Outcomes({}, False, Fraction(0), Fraction(1), False, len(self.states))
        ends = {key: state for key, state in self.numbers.items() if key[0] in _ENDS}
        chain = self._chain()
        endless = self.numbers.get(("endless",))
        if endless is not None:
            chain[endless] = [(Fraction(1), endless, 0)]
        try:
            found = visits(chain, 0, frozenset(), _MOST_SUMS if self.waiting else None)
        except TooMuchWork:
            self.tangled = True
            return Outcomes({}, False, Fraction(0), Fraction(1), False, len(self.states))
        weights: dict[Any, Fraction] = {}
        open_, rejected, holds_means = found.expected[-1], False, False
        for key, state in ends.items():
            weight = found.expected[state]
            match key:
                case ("open",):
                    open_ += weight
                case ("rejected",):
                    rejected = True
                case ("counted",) if weight:
                    holds_means = True
                    mean = found.rewards[state] / weight
                    weights[mean] = weights.get(mean, Fraction(0)) + weight
                case ("end", _, value) if weight:
                    weights[value] = weights.get(value, Fraction(0)) + weight
        return Outcomes(
            weights,
            holds_means,
            found.unending,
            open_,
            rejected,
            len(self.states),
            found.pivots,
            tuple(self.shares),
        )

    def _chain(self) -> list[list[Transition]]:
        """Return the transitions of the states, and behind them the runs that wait."""
        chain = [list(state.nexts) for state in self.states]
        for state in {waiting[2] for waiting in self.waiting}:
            # What a state's runs have not reached is open: to sum what waits would take long.
            open_ = 1 - sum((weight for weight, _, _ in chain[state]), Fraction(0))
            chain[state].append((open_, len(self.states), 0))
        return [*chain, []]


_ENDS = ("end", "counted", "rejected", "open", "endless")


def _same(value: Any) -> Any:
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise Uncounted
    return int(value)


def _result(value: Any) -> Any:
    """Return a result with lists as tuples."""
    value = shown(value)
    if isinstance(value, list | tuple):
        return tuple(map(_result, value))
    return value
