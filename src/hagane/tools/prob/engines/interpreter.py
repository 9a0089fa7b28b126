"""One run at a time: a unit as nested Python functions over a frame of values.

The tree is walked once, when a unit is first run; each run consists of calls of small
functions. Nothing here merges states or keeps tables, so ``enumeration`` is a plain check on the
other engines, and ``sampling`` draws a million runs in about a minute.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from math import lcm
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

from hagane.tools.prob.engines.compiled import Compiler
from hagane.tools.prob.engines.faults import (
    check_chance,
    check_law,
    check_range,
    check_shares,
    division_by_zero,
    endless_call,
    measure_error,
    too_deep,
)
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, Key, Ledger, Limits, Unit
from hagane.tools.prob.engines.run import show_draws
from hagane.tools.prob.language.operators import PLAIN, ZeroDivisor, combine
from hagane.tools.prob.language.program import (
    Apply,
    Function,
    Liveness,
    Program,
    Record,
    Site,
    draws_reals,
    walk,
)
from hagane.tools.prob.language.source import PathError, Span
from hagane.tools.prob.language.syntax import (
    Binary,
    Choose,
    Draw,
    Expression,
    Flip,
    If,
    Let,
    Observe,
    Project,
    Rand,
    Tuple,
    Unary,
    Value,
)

# The values of a unit's or a function's variables, each in its slot.
_Frame: TypeAlias = list[Any]
_Step: TypeAlias = Callable[[_Frame], Any]

# Probabilities that depend on variables are remembered for this many of their values.
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Odds:
    """The chances of several outcomes, over one denominator.

    Attributes:
        shares: The chances; they sum to one.
        common: The denominator.
        sums: The running totals of the numerators.
    """

    shares: tuple[Fraction, ...]
    common: int
    sums: tuple[int, ...]

    @classmethod
    def of(cls, shares: Sequence[Fraction]) -> Odds:
        """Return the odds of given chances."""
        common = lcm(*(share.denominator for share in shares))
        parts = [share.numerator * (common // share.denominator) for share in shares]
        return cls(tuple(shares), common, tuple(accumulate(parts)))

    def at(self, drawn: int) -> int:
        """Return the outcome for a number from 0 to ``common - 1``."""
        return bisect_right(self.sums, drawn)


class Chooser(Protocol):
    """Decides the value of a draw."""

    def uniform(self, size: int) -> int:
        """Return a number from 0 to size - 1."""

    def weighted(self, odds: Odds) -> int:
        """Return the index of an outcome."""


def scaled(law: str, arguments: Sequence[Any], draw: Any) -> Any:
    """Return a draw of a law with arguments, from one of its standard form."""
    if law == "uniform":
        low, high = arguments
        return low + (high - low) * draw
    if law == "normal":
        mean, deviation = arguments
        return mean + deviation * draw
    return draw / arguments[0]


class Rejected(Exception):
    """An observation that does not hold on this run."""


@dataclass(slots=True)
class _Body:
    """An expression ready to run in a frame that begins with its inputs."""

    blank: _Frame = field(default_factory=list)
    step: _Step = field(default=lambda frame: None)


class Interpreter:
    """Runs a unit once for each call of ``run``.

    Attributes:
        draws: The draws of the latest run.
        records: The claims that the latest run reached, each with its key.
        ledger: Calls of functions, over all runs.
    """

    def __init__(
        self, program: Program, unit: Unit, chooser: Chooser, limits: Limits = DEFAULT_LIMITS
    ):
        self.source = program.source
        self.unit = unit
        self.limits = limits
        self.ledger = Ledger()
        self.draws: list[tuple[Span, Value]] = []
        self.records: list[tuple[Site, Key]] = []
        self.chooser: Any = chooser
        self.uniform, self.weighted = chooser.uniform, chooser.weighted
        self.has_reals = draws_reals(program)
        self._open: dict[Function, set[tuple[Value, ...]]] = {}
        self.calls = 0
        self.liveness = Liveness()
        self.compiler = Compiler(self.liveness)
        self._functions: dict[Function, _Body] = {}
        self._start = list(unit.values.values())
        self._body: _Body | None = None

    def run(self) -> Value:
        """Return the value of one run.

        Raises:
            Rejected: An observation does not hold.
            PathError: The run goes wrong.
        """
        if self._body is None:
            self._body = _Body()
            self._prepare(self._body, self.unit.expression, tuple(self.unit.values))
        self.draws.clear()
        self.records.clear()
        self.calls = 0
        for inputs in self._open.values():
            inputs.clear()
        if self.unit.function is not None:
            self._open.setdefault(self.unit.function, set()).add(())
        result: Value = self._body.step([*self._start, *self._body.blank])
        return result

    def _prepare(self, body: _Body, node: Expression, inputs: tuple[str, ...]) -> None:
        own = tuple(dict.fromkeys(found.name for found in walk(node) if isinstance(found, Let)))
        body.blank = [None] * len(own)
        body.step = _Compilation(self, (*inputs, *own)).step(node, inputs)

    def body(self, function: Function) -> _Body:
        """Return a function's definition; of one that is being prepared, the unfinished one."""
        if function not in self._functions:
            body = self._functions[function] = _Body()
            self._prepare(body, function.definition, function.inputs)
        return self._functions[function]

    def told(self) -> str:
        """Return the draws of the run."""
        return show_draws(self.source, self.draws)

    def apply(self, node: Apply) -> Callable[[tuple[Value, ...]], Any]:
        """Return the result of a call for its inputs."""
        function = node.function
        body = self.body(function)
        opened = self._open.setdefault(function, set())
        most = self.limits.depth if function.depth is None else function.depth

        def call(inputs: tuple[Value, ...]) -> Any:
            if not opened:
                self.ledger.called(function, inputs)
            if inputs in opened:
                raise endless_call(self.source, node, inputs, self.told)
            if len(opened) >= most:
                raise too_deep(self.source, node, inputs, len(opened), self.told)
            opened.add(inputs)
            self.calls += 1
            result = body.step([*inputs, *body.blank])
            self.calls -= 1
            opened.discard(inputs)
            return result

        return call


class _Compilation:
    """Turns the expressions of one frame into functions of it."""

    def __init__(self, owner: Interpreter, names: tuple[str, ...]):
        self.owner = owner
        self.source = owner.source
        self.names = names
        self.slots = {name: slot for slot, name in enumerate(names)}

    def step(self, node: Expression, scope: tuple[str, ...]) -> _Step:
        """Return an expression as a function; ``scope`` has the names that messages tell."""
        if self.owner.compiler.is_pure(node) and not isinstance(node, Let):
            return self._pure(node, scope)
        match node:
            case Let():
                return self._lets(node, scope)
            case Binary():
                return self._binary(node, scope)
            case Unary(operator=operator):
                operand = self.step(node.operand, scope)
                if operator == "not":
                    return lambda frame: not operand(frame)
                return lambda frame: -operand(frame)
            case If():
                condition = self.step(node.condition, scope)
                then, otherwise = self.step(node.then, scope), self.step(node.otherwise, scope)
                return lambda frame: then(frame) if condition(frame) else otherwise(frame)
            case Tuple(items=items):
                return self._several(items, scope)
            case Project(index=index):
                whole = self.step(node.tuple, scope)
                return lambda frame: whole(frame)[index]
            case Rand():
                return self._rand(node, scope)
            case Flip():
                return self._flip(node, scope)
            case Draw():
                return self._draw(node, scope)
            case Choose():
                return self._choose(node, scope)
            case Observe():
                return self._observe(node, scope)
            case Record():
                return self._record(node, scope)
            case Apply():
                return self._apply(node, scope)
        raise AssertionError(type(node).__name__)

    def _pure(self, node: Expression, scope: tuple[str, ...]) -> _Step:
        function = self.owner.compiler.function(node, self.names)
        if self.owner.compiler.is_safe(node):
            return function  # type: ignore[return-value]  # a frame serves as a row
        return lambda frame: self._located(function, frame, scope)

    def _located(
        self, function: Callable[[Any], Any], frame: _Frame, scope: tuple[str, ...]
    ) -> Any:
        try:
            return function(frame)
        except ZeroDivisor as error:
            raise self._zero(error, frame, scope) from None

    def _zero(self, error: ZeroDivisor, frame: _Frame, scope: tuple[str, ...]) -> PathError:
        values = {name: frame[self.slots[name]] for name in scope}
        return division_by_zero(self.source, error, values, self.owner.told)

    def _several(self, nodes: Sequence[Expression], scope: tuple[str, ...]) -> _Step:
        steps = []
        for node in nodes:
            steps.append(self.step(node, scope))
        return lambda frame: tuple([step(frame) for step in steps])

    def _binary(self, node: Binary, scope: tuple[str, ...]) -> _Step:
        left, right = self.step(node.left, scope), self.step(node.right, scope)
        plain = PLAIN.get(node.operator)
        if plain is not None:
            return lambda frame: plain(left(frame), right(frame))

        def divide(frame: _Frame) -> Any:
            above, below = left(frame), right(frame)
            try:
                return combine(node, above, below)
            except ZeroDivisor as error:
                raise self._zero(error, frame, scope) from None

        return divide

    def _lets(self, node: Expression, scope: tuple[str, ...]) -> _Step:
        """Return a chain of lets as one loop, which takes no stack however long it is."""
        steps: list[tuple[int, _Step]] = []
        while isinstance(node, Let):
            steps.append((self.slots[node.name], self.step(node.bound, scope)))
            scope = (*scope, node.name)
            node = node.body
        body = self.step(node, scope)

        def chain(frame: _Frame) -> Any:
            for slot, bound in steps:
                frame[slot] = bound(frame)
            return body(frame)

        return chain

    # Draws.

    def _rand(self, node: Rand, scope: tuple[str, ...]) -> _Step:
        low, high = self.step(node.low, scope), self.step(node.high, scope)
        span, draws, uniform = node.span, self.owner.draws, self.owner.uniform

        def rand(frame: _Frame) -> int:
            first, last = low(frame), high(frame)
            if first > last:
                check_range(self.source, node, (first, last), self.owner.told)
            value: int = first + uniform(last - first + 1)
            draws.append((span, value))
            return value

        return rand

    def _flip(self, node: Flip, scope: tuple[str, ...]) -> _Step:
        probability = self.step(node.probability, scope)

        def shares(frame: _Frame) -> list[Fraction]:
            chance = Fraction(probability(frame))
            check_chance(self.source, node, chance, self.owner.told)
            return [1 - chance, chance]

        odds = self._remembered((node.probability,), shares)
        span, draws, weighted = node.span, self.owner.draws, self.owner.weighted

        def flip(frame: _Frame) -> bool:
            value = weighted(odds(frame)) == 1
            draws.append((span, value))
            return value

        def depending(frame: _Frame) -> bool:
            chance = probability(frame)
            if isinstance(chance, int | Fraction):
                return flip(frame)
            check_chance(self.source, node, chance, self.owner.told)
            value = bool(self.owner.chooser.chance(chance))
            draws.append((span, value))
            return value

        # Only a run with continuous draws has other chances than fractions.
        return depending if self.owner.has_reals else flip

    def _draw(self, node: Draw, scope: tuple[str, ...]) -> _Step:
        arguments = [self.step(argument, scope) for argument in node.arguments]
        span, draws, chooser = node.span, self.owner.draws, self.owner.chooser

        def draw(frame: _Frame) -> Any:
            values = [argument(frame) for argument in arguments]
            check_law(self.source, node, values, self.owner.told)
            value = scaled(node.law, values, chooser.continuous(node.law))
            draws.append((span, value))
            return value

        return draw

    def _choose(self, node: Choose, scope: tuple[str, ...]) -> _Step:
        weights = [self.step(weight, scope) for weight, _ in node.branches]
        branches = [self.step(branch, scope) for _, branch in node.branches]

        def shares(frame: _Frame) -> list[Fraction]:
            found = [Fraction(weight(frame)) for weight in weights]
            check_shares(self.source, node, found, self.owner.told)
            return found

        odds = self._remembered([weight for weight, _ in node.branches], shares)
        span, draws, weighted = node.span, self.owner.draws, self.owner.weighted

        def choose(frame: _Frame) -> Any:
            index = weighted(odds(frame))
            draws.append((span, index))
            return branches[index](frame)

        return choose

    def _remembered(
        self, weights: Sequence[Expression], shares: Callable[[_Frame], Sequence[Fraction]]
    ) -> Callable[[_Frame], Odds]:
        """Return the odds in a frame; they depend on the variables of the weights only."""
        free = frozenset[str]().union(*(self.owner.liveness.free(weight) for weight in weights))
        slots = sorted(self.slots[name] for name in free)
        known: dict[tuple[Any, ...], Odds] = {}

        def odds(frame: _Frame) -> Odds:
            key = tuple([frame[slot] for slot in slots])
            found = known.get(key)
            if found is None:
                if len(known) == _REMEMBERED:
                    known.clear()
                found = known[key] = Odds.of(shares(frame))
            return found

        return odds

    # Observations, claims and calls.

    def _observe(self, node: Observe, scope: tuple[str, ...]) -> _Step:
        condition = self.step(node.condition, scope)

        def observe(frame: _Frame) -> bool:
            if not condition(frame):
                raise Rejected
            return True

        return observe

    def _record(self, node: Record, scope: tuple[str, ...]) -> _Step:
        expression = self.step(node.expression, scope)
        slots = [self.slots[name] for name in node.site.claim.variables]
        owner, site = self.owner, node.site

        def record(frame: _Frame) -> Any:
            value = expression(frame)
            if owner.calls == 0:
                owner.records.append((site, (*[frame[slot] for slot in slots], value)))
            return value

        return record

    def _apply(self, node: Apply, scope: tuple[str, ...]) -> _Step:
        function = node.function
        given = [self.step(argument, scope) for argument in node.arguments]
        captured = [itemgetter(self.slots[name]) for name in function.captured]
        inputs: list[_Step] = [*given, *captured]
        call = self.owner.apply(node)
        if node.below is None:
            return lambda frame: call(tuple([step(frame) for step in inputs]))
        assert function.measure is not None
        measure = self.owner.compiler.function(function.measure, function.inputs)
        below = self.slots[node.below]

        def bounded(frame: _Frame) -> Any:
            passed = tuple([step(frame) for step in inputs])
            before, after = frame[below], measure(passed)
            if not 0 <= after < before:
                raise measure_error(self.source, node, passed, (before, after), self.owner.told)
            return call(passed)

        return bounded
