"""One run at a time: enumeration of all runs, and sampling.

Nothing here merges states or keeps tables, so the enumeration is a plain check on the other
engines: it runs the program once for each sequence of draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import accumulate
from math import lcm
from random import Random
from typing import Any, Protocol

from hagane.tools.prob.faults import (
    check_chance,
    check_range,
    check_shares,
    division_by_zero,
    endless_call,
    measure_error,
    too_deep,
)
from hagane.tools.prob.ledger import DEFAULT_LIMITS, Key, Ledger, Limits, Unit
from hagane.tools.prob.operators import ZeroDivisor, combine, evaluate
from hagane.tools.prob.program import Apply, Function, Program, Record, Site
from hagane.tools.prob.recursion import deep_recursion
from hagane.tools.prob.run import show_draws
from hagane.tools.prob.source import Span, TooLarge
from hagane.tools.prob.syntax import (
    Binary,
    Choose,
    Expression,
    Flip,
    If,
    Let,
    Literal,
    Observe,
    Project,
    Rand,
    Tuple,
    Unary,
    Value,
    Variable,
)


class Chooser(Protocol):
    """Decides what a draw gives."""

    def uniform(self, size: int) -> int:
        """Return a number from 0 to size - 1."""

    def weighted(self, shares: Sequence[Fraction]) -> int:
        """Return the index of one of several shares, which sum to one."""


class Rejected(Exception):
    """An observation that does not hold on this run."""


class Interpreter:
    """Runs a unit once for each call of ``run``.

    Attributes:
        draws: What the latest run drew.
        records: The claims that the latest run reached, each with its key.
        ledger: Calls of functions, over all runs.
    """

    def __init__(self, program: Program, unit: Unit, limits: Limits = DEFAULT_LIMITS):
        self.source = program.source
        self.unit = unit
        self.limits = limits
        self.ledger = Ledger()
        self.draws: list[tuple[Span, Value]] = []
        self.records: list[tuple[Site, Key]] = []
        self._open: dict[Function, list[tuple[Value, ...]]] = {}
        self._calls = 0

    def run(self, chooser: Chooser) -> Value:
        """Return the value of one run.

        Raises:
            Rejected: An observation does not hold.
            PathError: The run goes wrong.
        """
        self.draws, self.records, self._open, self._calls = [], [], {}, 0
        if self.unit.function is not None:
            self._open[self.unit.function] = [()]
        self._chooser = chooser
        result: Value = self._value(self.unit.expression, dict(self.unit.values))
        return result

    def _value(self, node: Expression, values: dict[str, Any]) -> Any:
        match node:
            case Literal(value=value):
                return value
            case Variable(name=name):
                return values[name]
            case Binary():
                left = self._value(node.left, values)
                right = self._value(node.right, values)
                try:
                    return combine(node, left, right)
                except ZeroDivisor as error:
                    raise division_by_zero(self.source, error, values, self._run()) from None
            case Unary(operator="not"):
                return not self._value(node.operand, values)
            case Unary():
                return -self._value(node.operand, values)
            case Let():
                bound = self._value(node.bound, values)
                return self._value(node.body, {**values, node.name: bound})
            case If():
                chosen = node.then if self._value(node.condition, values) else node.otherwise
                return self._value(chosen, values)
            case Tuple(items=items):
                done = []
                for item in items:
                    done.append(self._value(item, values))
                return tuple(done)
            case Project():
                return self._value(node.tuple, values)[node.index]
            case Rand():
                return self._rand(node, values)
            case Flip():
                chance = Fraction(self._value(node.probability, values))
                check_chance(self.source, node, chance, self._run)
                return self._drawn(node, self._chooser.weighted([1 - chance, chance]) == 1)
            case Choose():
                return self._choose(node, values)
            case Observe():
                if not self._value(node.condition, values):
                    raise Rejected
                return True
            case Record():
                result = self._value(node.expression, values)
                if self._calls == 0:
                    key = tuple(values[name] for name in node.site.claim.variables)
                    self.records.append((node.site, (*key, result)))
                return result
            case Apply():
                return self._apply(node, values)
        raise AssertionError(type(node).__name__)

    def _run(self) -> str:
        return show_draws(self.source, self.draws)

    def _drawn(self, node: Expression, value: Value) -> Value:
        self.draws.append((node.span, value))
        return value

    def _rand(self, node: Rand, values: dict[str, Any]) -> Value:
        low = self._value(node.low, values)
        high = self._value(node.high, values)
        check_range(self.source, node, (low, high), self._run)
        return self._drawn(node, low + self._chooser.uniform(high - low + 1))

    def _choose(self, node: Choose, values: dict[str, Any]) -> Any:
        shares = []
        for weight, _ in node.branches:
            shares.append(Fraction(self._value(weight, values)))
        check_shares(self.source, node, shares, self._run)
        index = self._chooser.weighted(shares)
        self._drawn(node, index)
        return self._value(node.branches[index][1], values)

    def _apply(self, node: Apply, values: dict[str, Any]) -> Any:
        function = node.function
        given = []
        for argument in node.arguments:
            given.append(self._value(argument, values))
        inputs = (*given, *[values[name] for name in function.captured])
        inner = dict(zip(function.inputs, inputs, strict=True))
        if node.below is not None:
            assert function.measure is not None
            before, after = values[node.below], evaluate(function.measure, inner)
            if not 0 <= after < before:
                raise measure_error(self.source, node, inputs, (before, after), self._run)
        stack = self._open.setdefault(function, [])
        if not stack:
            self.ledger.called(function, inputs)
        if inputs in stack:
            raise endless_call(self.source, node, inputs, self._run)
        if len(stack) >= (self.limits.depth if function.depth is None else function.depth):
            raise too_deep(self.source, node, inputs, len(stack), self._run)
        stack.append(inputs)
        self._calls += 1
        result = self._value(function.definition, inner)
        self._calls -= 1
        stack.pop()
        return result


class _Replay:
    """Repeats a sequence of choices, then takes the first of each later draw."""

    def __init__(self) -> None:
        self.path: list[int] = []
        self.options: list[list[Fraction] | int] = []
        self._at = 0

    def restart(self) -> None:
        self._at = 0

    def uniform(self, size: int) -> int:
        return self._take(size)

    def weighted(self, shares: Sequence[Fraction]) -> int:
        return self._take(list(shares))

    def _take(self, options: list[Fraction] | int) -> int:
        if self._at == len(self.path):
            self.path.append(_next_possible(options, -1))
            self.options.append(options)
        self._at += 1
        return self.path[self._at - 1]

    @property
    def probability(self) -> Fraction:
        numerator, denominator = 1, 1
        for index, options in zip(self.path, self.options, strict=True):
            if isinstance(options, int):
                denominator *= options
            else:
                numerator *= options[index].numerator
                denominator *= options[index].denominator
        return Fraction(numerator, denominator)

    def advance(self) -> bool:
        """Go to the next sequence; return whether there is one."""
        while self.path:
            options = self.options[-1]
            index = _next_possible(options, self.path[-1])
            if index < (options if isinstance(options, int) else len(options)):
                self.path[-1] = index
                return True
            self.path.pop()
            self.options.pop()
        return False


def _next_possible(options: list[Fraction] | int, index: int) -> int:
    index += 1
    if not isinstance(options, int):
        while index < len(options) and not options[index]:
            index += 1
    return index


def run_enumeration(program: Program, unit: Unit, limits: Limits = DEFAULT_LIMITS) -> Ledger:
    """Return what a unit does, by running it once for each sequence of draws.

    Raises:
        PathError: A possible run goes wrong.
        TooLarge: More than ``limits.runs`` runs.
    """
    interpreter = Interpreter(program, unit, limits)
    ledger = interpreter.ledger
    replay = _Replay()
    with deep_recursion():
        while True:
            replay.restart()
            ledger.size += 1
            if ledger.size > limits.runs:
                raise TooLarge(
                    f"enumeration needs more than {limits.runs:,} runs; use another engine",
                    program.source,
                    unit.expression.span,
                )
            try:
                value = interpreter.run(replay)
            except Rejected:
                value = None
            probability = replay.probability
            if value is not None:
                ledger.result[value] = ledger.result.get(value, Fraction(0)) + probability
            for site, key in interpreter.records:
                table = ledger.tables.setdefault(site, {})
                table[key] = table.get(key, Fraction(0)) + probability
            if not replay.advance():
                return ledger


def first_run(program: Program, unit: Unit) -> list[tuple[Span, Value]]:
    """Return the draws of the run on which every draw takes its first possible value."""
    interpreter = Interpreter(program, unit)
    with deep_recursion(), suppress(Rejected):
        interpreter.run(_Replay())
    return interpreter.draws


class _Dice:
    """Draws at random, exactly in proportion."""

    def __init__(self, random: Random):
        self._random = random

    def uniform(self, size: int) -> int:
        return self._random.randrange(size)

    def weighted(self, shares: Sequence[Fraction]) -> int:
        common = lcm(*(share.denominator for share in shares))
        drawn = self._random.randrange(common)
        sums = accumulate(share.numerator * (common // share.denominator) for share in shares)
        return next(index for index, total in enumerate(sums) if drawn < total)


def sample(
    program: Program,
    unit: Unit,
    runs: int,
    random: Random,
    watch: Callable[[Interpreter], None] | None = None,
) -> tuple[Counter[Value], int]:
    """Run a unit at random.

    Args:
        program: The program.
        unit: What to run.
        runs: How many runs.
        random: The random numbers.
        watch: Called after each run that is not rejected.

    Returns:
        How often each value came, and how many runs were rejected by an observation.
    """
    interpreter = Interpreter(program, unit)
    dice = _Dice(random)
    values: Counter[Value] = Counter()
    rejected = 0
    with deep_recursion():
        for _ in range(runs):
            try:
                values[interpreter.run(dice)] += 1
            except Rejected:
                rejected += 1
                continue
            if watch is not None:
                watch(interpreter)
    return values, rejected
