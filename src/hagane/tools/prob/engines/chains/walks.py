"""Chains with a counter that grows without bound: beyond some value its steps look alike.

A call whose counter is large is followed with a mark in its place. Where only comparisons with
constants look at the mark, and the next call has it shifted by a constant, the calls are a walk
(``passages.py``); one state that comes back below the bound, ends or never does stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

from hagane.tools.prob.engines.chains.endless import ENDLESS, Endless
from hagane.tools.prob.engines.chains.machine import Chain, Control, Machine, Stack, State
from hagane.tools.prob.engines.chains.passages import Steps, Walk
from hagane.tools.prob.engines.ledger import Ledger, Limits, Unit
from hagane.tools.prob.language.program import Apply, Function, Program, Record, walk
from hagane.tools.prob.language.source import PathError, TooLarge
from hagane.tools.prob.language.syntax import Expression, Value

# Phases of a walk; draws and calls between two calls of it.
_PHASES, _DRAWS, _CALLS = 4, 200, 1_000

# Counters that are tried, and phases of one that may be none of a walk before the first that is.
_TRIED, _REFUSED = 4, 16


class _NoWalk(Exception):
    """The steps do not look alike, or are too many."""


@dataclass(slots=True)
class _Side:
    """A direction in which the counter is large, and from where on it counts as large."""

    sign: int
    bound: int | None = None

    def demand(self, bound: int) -> None:
        """Note that sign * counter has to be at least so much."""
        self.bound = bound if self.bound is None else max(self.bound, bound)


@dataclass(frozen=True, slots=True, eq=False)
class _Beyond:
    """A counter beyond the bound, plus an offset."""

    side: _Side
    offset: int

    def _shifted(self, amount: Any, sign: int) -> _Beyond:
        if not isinstance(amount, int):
            raise _NoWalk
        return _Beyond(self.side, self.offset + sign * amount)

    def __add__(self, other: Any) -> _Beyond:
        return self._shifted(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, _Beyond):
            return self.offset - other.offset
        return self._shifted(other, -1)

    def _order(self, other: Any) -> int:
        """Return whether the counter is less than (-1), equal to (0) or more than (1) a value."""
        if isinstance(other, _Beyond):
            return (self.offset > other.offset) - (self.offset < other.offset)
        if not isinstance(other, int):
            raise _NoWalk
        self.side.demand(self.side.sign * (other - self.offset) + 1)
        return self.side.sign

    def __eq__(self, other: object) -> bool:
        return self._order(other) == 0

    def __lt__(self, other: Any) -> bool:
        return self._order(other) < 0

    def __le__(self, other: Any) -> bool:
        return self._order(other) <= 0

    def __gt__(self, other: Any) -> bool:
        return self._order(other) > 0

    def __ge__(self, other: Any) -> bool:
        return self._order(other) >= 0

    def _refuse(self, *_: Any) -> NoReturn:
        raise _NoWalk

    __hash__ = __bool__ = __neg__ = __rsub__ = _refuse
    __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __truediv__ = __rtruediv__ = __index__ = _refuse


# The inputs of a call beside its counter, and what is left to do behind it.
_Phase = tuple[tuple[Value, ...], Stack]

# A control that is settled already: the key of a state, the state, and its successors.
_SETTLED: Any = object()
_OPEN: Control = (_SETTLED, (("open",), State("open"), []), ())


class _Book(Ledger):
    """Notes the calls of another ledger, but for those with a mark: nothing is claimed of them."""

    def __init__(self, noted: Ledger):
        super().__init__()
        self.noted = noted

    def called(self, function: Function, inputs: tuple[Value, ...]) -> None:
        """Note a call from outside."""
        if not _mentions_beyond(inputs):
            self.noted.called(function, inputs)


class _Following(Endless):
    """Follows a call whose counter is large, until the next one."""

    def __init__(
        self,
        program: Program,
        unit: Unit,
        limits: Limits,
        counter: tuple[Function, int],
        book: Ledger,
    ):
        super().__init__(program, unit, limits, sums=False)
        self.function, self.place = counter
        self.book = _Book(book)
        self.calls = 0

    def steps(
        self, phase: _Phase, side: _Side
    ) -> list[tuple[Fraction, tuple[_Phase, int] | Control]]:
        """Return where a call goes: a phase with its shift, or another control."""
        others, stack = phase
        mark: Any = _Beyond(side, 0)
        inputs = (*others[: self.place], mark, *others[self.place :])
        start = Machine._enter(
            self, self.function, inputs, self._depth(self.function, stack), stack
        )
        waiting: list[tuple[Fraction, Control]] = [(Fraction(1), start)]
        found: list[tuple[Fraction, tuple[_Phase, int] | Control]] = []
        self.calls = 0
        draws = 0
        while waiting:
            share, control = waiting.pop()
            identity, state, nexts = self._settle(control)
            if state.kind == "again" or state.kind == "control":
                found.append((share, state.key[0]))
            elif state.kind == "draw" and _mentions_beyond((identity, nexts)):
                draws += 1
                if draws > _DRAWS:
                    raise _NoWalk
                waiting += [(share * part, onward) for part, onward in nexts]
            elif _mentions_beyond((identity, state.key, nexts)):
                raise _NoWalk
            else:
                found.append((share, (_SETTLED, (identity, state, nexts), ())))
        return found

    def _operand(
        self, node: Expression, done: tuple[Any, ...], values: dict[str, Any], stack: Stack
    ) -> Any:
        if (
            len(done) == len(node.__dict__.get("_parts", ()))
            and not isinstance(node, Apply | Record)
            and type(node).__name__ in ("Rand", "Flip")
            and any(isinstance(each, _Beyond) for each in done)
        ):
            raise _NoWalk
        return super()._operand(node, done, values, stack)

    def _enter(
        self, function: Function, inputs: tuple[Value, ...], depth: int, stack: Stack
    ) -> Any:
        self.calls += 1
        if self.calls > _CALLS:
            raise _NoWalk
        while stack and stack[0][0] == "return":
            stack = stack[1]
        if function is self.function and not _mentions_beyond(stack):
            counter: Any = inputs[self.place]
            others = (*inputs[: self.place], *inputs[self.place + 1 :])
            if not _mentions_beyond(others):
                if isinstance(counter, _Beyond):
                    key: Any = ((others, stack), counter.offset)
                    return "again", State("again", key=(key,)), []
                control: Any = (_SETTLED, ("call", function, inputs, stack), ())
                return "control", State("control", key=(control,)), []
        if any(isinstance(each, _Beyond) for each in inputs) and _speaks(function):
            raise _NoWalk
        return Machine._enter(self, function, inputs, self._depth(function, stack), stack)


def _speaks(function: Function) -> bool:
    """Tell whether claims are made about a function's arguments or result."""
    return any(claim.formula is not None for claim in (function.result, *function.requires))


def _mentions_beyond(content: Any) -> bool:
    if isinstance(content, tuple | list):
        return any(_mentions_beyond(each) for each in content)
    return isinstance(content, _Beyond)


@dataclass(slots=True)
class _Solved:
    """A walk with the phases and controls that its numbers stand for."""

    walk: Walk
    side: _Side
    numbers: dict[_Phase, int]
    ends: list[Control]

    @property
    def bound(self) -> int:
        """Return the least level that is beyond."""
        return 0 if self.side.bound is None else self.side.bound


@dataclass(slots=True)
class _Walks:
    """The walks of one counter, each found when it is met."""

    following: _Following
    known: list[_Solved] = field(default_factory=list)
    refused: set[tuple[_Phase, int]] = field(default_factory=set)

    def found(self, phase: _Phase, sign: int) -> _Solved | None:
        """Return the walk to which a phase belongs, or None."""
        for solved in self.known:
            if solved.side.sign == sign and phase in solved.numbers:
                return solved
        if (phase, sign) in self.refused:
            return None
        if not self.known and len(self.refused) > _REFUSED:
            raise _NoWalk
        with suppress(_NoWalk, PathError, TooLarge):
            solved = self._made(phase, sign)
            self.known.append(solved)
            return solved
        self.refused.add((phase, sign))
        return None

    def _made(self, phase: _Phase, sign: int) -> _Solved:
        side = _Side(sign)
        numbers, phases = {phase: 0}, [phase]
        exits: dict[Any, int] = {}
        controls: list[Control] = []
        moves: list[dict[tuple[int, int], Fraction]] = []
        ends: list[dict[int, Fraction]] = []
        for each in phases:
            if len(phases) > _PHASES:
                raise _NoWalk
            up: dict[tuple[int, int], Fraction] = {}
            out: dict[int, Fraction] = {}
            for share, target in self.following.steps(each, side):
                if len(target) == 2:
                    other, shift = target
                    if other not in numbers:
                        numbers[other] = len(phases)
                        phases.append(other)
                    move = (numbers[other], sign * shift)
                    up[move] = up.get(move, Fraction(0)) + share
                    continue
                key = _identity(target)
                if key not in exits:
                    exits[key] = len(controls)
                    controls.append(target)
                out[exits[key]] = out.get(exits[key], Fraction(0)) + share
            moves.append(up)
            ends.append(out)
        try:
            return _Solved(Walk(Steps(moves, ends)), side, numbers, controls)
        except ValueError:
            raise _NoWalk from None


def _identity(control: Control) -> Any:
    content: Any = control[1]
    return content if content[0] == "call" else content[0]


class Folded(Endless):
    """Explores a chain in which one counter, where it is large, takes no states."""

    def __init__(
        self, program: Program, unit: Unit, limits: Limits, function: Function, place: int
    ):
        super().__init__(program, unit, limits, sums=False)
        self.function = function
        self.place = place
        self.walks = _Walks(_Following(program, unit, limits, (function, place), self.book))

    def explore(self, start: Expression) -> Chain:
        """Return the chain that begins with an expression."""
        chain = super().explore(start)
        chain.open = frozenset(
            index for index, state in enumerate(chain.states) if state.kind == "open"
        )
        return chain

    def _settle(self, control: Control) -> tuple[Any, State, list[tuple[Any, Control]]]:
        if control[0] is not _SETTLED:
            return super()._settle(control)
        self.gain = 0
        content: Any = control[1]
        if content[0] != "call":
            identity, state, nexts = content
            return identity, State(state.kind, state.node, state.site, state.key), nexts
        _, function, inputs, stack = content
        return super()._settle(self._plain(function, inputs, stack))

    def _plain(self, function: Function, inputs: tuple[Value, ...], stack: Stack) -> Control:
        found: Control = Machine._enter(self, function, inputs, self._depth(function, stack), stack)
        return found

    def _enter(
        self, function: Function, inputs: tuple[Value, ...], depth: int, stack: Stack
    ) -> Any:
        if function is self.function:
            behind = stack
            while behind and behind[0][0] == "return":
                behind = behind[1]
            counter: Any = inputs[self.place]
            others = (*inputs[: self.place], *inputs[self.place + 1 :])
            for sign in (1, -1):
                found = self.walks.found((others, behind), sign)
                if found is not None and sign * counter >= found.bound:
                    return self._folded(found, (others, behind), sign * counter - found.bound)
        return super()._enter(function, inputs, depth, stack)

    def _folded(self, found: _Solved, phase: _Phase, level: int) -> Any:
        number = found.numbers[phase]
        passage = found.walk.passage(number, level)
        phases = list(found.numbers)
        nexts: list[tuple[Fraction, Control]] = []
        for (target, down), share in passage.below.items():
            others, stack = phases[target]
            counter = found.side.sign * (found.bound - down)
            inputs = (*others[: self.place], counter, *others[self.place :])
            nexts.append((share, (_SETTLED, ("call", self.function, inputs, stack), ())))
        nexts += [(share, found.ends[end]) for end, share in passage.ends.items()]
        for share, control in ((passage.open, _OPEN), (passage.unending, ENDLESS)):
            if share:
                nexts.append((share, control))
        return ("walk", phase, found.side.sign, level), State("draw"), nexts


def folded(program: Program, unit: Unit, limits: Limits) -> Iterable[Chain]:
    """Yield chains in which a counter that grows without bound takes no states.

    A counter that no chain of the limits comes of is passed over.
    """
    for function, place in _counters(unit)[:_TRIED]:
        with suppress(_NoWalk, PathError, TooLarge):
            machine = Folded(program, unit, limits, function, place)
            chain = machine.explore(unit.expression)
            if machine.walks.known:
                yield chain


def _counters(unit: Unit) -> list[tuple[Function, int]]:
    """Return the parameters that may count, of functions that are called from inside."""
    known: list[Function] = []
    waiting = [unit.expression]
    while waiting:
        for node in walk(waiting.pop()):
            if isinstance(node, Apply) and node.function not in known:
                known.append(node.function)
                waiting.append(node.function.definition)
    return [
        (function, place)
        for function in known
        for place, kind in enumerate(function.kinds)
        if kind == "int"
    ]
