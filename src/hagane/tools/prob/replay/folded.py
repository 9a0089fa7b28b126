"""Chains in which a variable that walks takes no states where it is large.

Beyond a bound all turns look alike: from one phase (the place in the program and the other
variables) to another, some levels up or down. The probability of coming back below the bound is
that of a first passage (see ``engines/chains/passages.py``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hagane.tools.prob.draws import deciding
from hagane.tools.prob.engines.chains.absorbing import Transition
from hagane.tools.prob.engines.chains.passages import Passage, Steps, Walk
from hagane.tools.prob.replay.explore import PRECISE, Explorer
from hagane.tools.prob.replay.marked import Marked
from hagane.tools.prob.replay.outcomes import Outcomes
from hagane.tools.prob.replay.runs import Run, State
from hagane.tools.prob.replay.walkers import Walker

_MOST_PHASES = 4
_MOST_PLACES = 20_000  # on the way to a place below the bound
_WIDEST = 64

_Phase = tuple[int, Any]  # a sign, and the key of a mark without the walker
_Picks = tuple[tuple[int, int], ...]


class NoFold(BaseException):
    """The turns beyond the bound do not look alike, or are too many."""


class Wider(BaseException):
    """A step was larger than the largest that was expected."""


class FoldedExplorer(Explorer):
    """Follows the runs of a function of which one variable walks.

    Args:
        marked: The function.
        arguments: Its arguments.
        most: How many runs may be followed.
        walker: The variable.
        widest: The most that a statement adds to it.
    """

    every = True  # mark is a state, so that each statement runs once at most between two

    def __init__(
        self, marked: Marked, arguments: Sequence[Any], *, most: int, walker: Walker, widest: int
    ):
        super().__init__(marked, arguments, counts=False, most=most)
        self.walker = walker
        self.widest = widest
        turn = widest * walker.steps
        self.alike = walker.largest + turn + 1  # from here on turns look alike
        self.bound = self.alike + _MOST_PHASES * turn
        self.phases: dict[_Phase, int] = {}
        self.values: dict[int, int] = {}  # of the states of phases
        self.moves: dict[tuple[int, _Phase, int], _Picks] = {}
        self.begun: dict[int, tuple[_Phase, int, _Picks, int]] = {}
        self.landings: dict[tuple[_Phase, int], int] = {}
        self.passages: dict[int, Passage] = {}
        self.exits: list[int] = []

    def step(self, value: Any) -> Any:
        """Note what is added to the walker."""
        if not isinstance(value, int):
            raise NoFold
        if abs(value) > self.widest:
            raise Wider
        return value

    def returned(self, value: Any) -> Any:
        """Refuse results beyond the bound, where they may be of any size."""
        run: Any = deciding.get()
        if run.state in self.values:
            raise NoFold
        return value

    def folds(self, run: Run, number: int, frame: Any) -> bool:
        """Take a mark where the walker is large for a place of a walk."""
        value = frame.f_locals.get(self.walker.name)
        begun = self.values.get(run.state)
        if type(value) is not int or (begun is None and abs(value) < self.bound):
            return False
        key = run.key(number, frame, without=self.walker.name)
        if key is None or abs(value) < self.alike:
            raise NoFold
        phase = (1 if value > 0 else -1, key)
        if begun is None:
            level = abs(value) - self.bound
            self.reach(run, ("walk", phase, level), 0)
            place = self.numbers["walk", phase, level]
            self.begun.setdefault(place, (phase, level, tuple(run.picks), run.marks))
        else:
            up = abs(value) - abs(begun)
            self.reach(run, ("move", phase, up), 0)
            since = tuple(run.picks[len(self.states[run.state].picks) :])
            self.moves.setdefault((run.state, phase, up), since)
        if phase not in self.phases:
            if len(self.phases) == _MOST_PHASES:
                raise NoFold
            self.phases[phase] = self._state(tuple(run.picks), run.marks, run.chance)
            self.values[self.phases[phase]] = value
        return True

    def _state(self, picks: _Picks, marks: int, chance: float) -> int:
        """Return a new state, whose runs wait."""
        self.states.append(State(picks, marks, chance))
        self.wait(len(self.states) - 1, (), Fraction(1), chance)
        return len(self.states) - 1

    def _solved(self) -> Outcomes:
        if self.failure is None and not any(
            state in self.values for _, _, state, *_ in self.waiting
        ):
            self.passages = self._passages()
            for place, passage in self.passages.items():
                for number, down in passage.below:
                    self._land(place, list(self.phases)[number], down)
                if passage.unending and ("endless",) not in self.numbers:
                    self.numbers["endless",] = len(self.states)
                    self.states.append(State((), 0, 0.0))
        return super()._solved()

    def _passages(self) -> dict[int, Passage]:
        """Return where each walk comes below the bound, or ends before."""
        if not self.begun:
            return {}
        numbers = {phase: number for number, phase in enumerate(self.phases)}
        keys = {state: key for key, state in self.numbers.items()}
        moves: list[dict[tuple[int, int], Fraction]] = []
        ends: list[dict[int, Fraction]] = []
        for state in self.phases.values():
            moves.append({})
            ends.append({})
            for weight, target, _ in self.states[state].nexts:
                key: Any = keys[target]
                if key[0] == "move":
                    move = (numbers[key[1]], key[2])
                    moves[-1][move] = moves[-1].get(move, Fraction(0)) + weight
                else:
                    ends[-1][target] = ends[-1].get(target, Fraction(0)) + weight
        self.exits = sorted({target for row in ends for target in row})
        places = {target: place for place, target in enumerate(self.exits)}
        numbered = [{places[target]: share for target, share in row.items()} for row in ends]
        try:
            walk = Walk(Steps(moves, numbered))
        except ValueError:
            raise NoFold from None
        return {
            place: walk.passage(numbers[phase], level)
            for place, (phase, level, _, _) in self.begun.items()
        }

    def _land(self, place: int, phase: _Phase, down: int) -> None:
        """Find a run that comes from a walk to a place below the bound, which goes on there."""
        if (phase, down) in self.landings:
            return
        start, level, picks, marks = self.begun[place]
        waiting = deque([(start, level, picks, marks)])
        seen = {(start, level)}
        while waiting and len(seen) < _MOST_PLACES:
            at, height, picks, marks = waiting.popleft()
            for (state, other, up), since in self.moves.items():
                there = (other, height + up)
                if state != self.phases[at] or there in seen:
                    continue
                if there == (phase, -down):
                    landing = self._state((*picks, *since), marks + 1, self.states[0].chance)
                    self.landings[phase, down] = landing
                    return
                seen.add(there)
                if there[1] >= 0:
                    waiting.append((*there, (*picks, *since), marks + 1))
        raise NoFold

    def _chain(self) -> list[list[Transition]]:
        chain = super()._chain()
        for state in self.phases.values():
            chain[state] = []
        phases = list(self.phases)
        for place in self.begun:
            passage = self.passages.get(place)
            if passage is None:
                chain[place] = [(Fraction(1), len(self.states), 0)]
                continue
            nexts: list[Transition] = [
                (share, self.landings[phases[number], down], 0)
                for (number, down), share in passage.below.items()
            ]
            nexts += [(share, self.exits[end], 0) for end, share in passage.ends.items()]
            if passage.open:
                nexts.append((passage.open, len(self.states), 0))
            if passage.unending:
                nexts.append((passage.unending, self.numbers["endless",], 0))
            chain[place] = nexts
        return chain


def folded(marked: Marked, arguments: Sequence[Any], most: int) -> Outcomes | None:
    """Follow the runs of a function with a variable that walks; None if that leads nowhere."""
    for walker in marked.walkers:
        widest = 1
        while widest <= _WIDEST:
            explorer = FoldedExplorer(marked, arguments, most=most, walker=walker, widest=widest)
            try:
                found = explorer.explore()
            except Wider:
                widest *= 2
                continue
            except NoFold:
                break
            if explorer.failure is None and found.open <= PRECISE:
                return found
            break
    return None
