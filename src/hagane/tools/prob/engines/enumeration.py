"""All runs of a unit, one for each sequence of draws: a plain check on the other engines."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import TypeAlias

from hagane.tools.prob.engines.interpreter import Interpreter, Odds, Rejected
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, Ledger, Limits, Unit
from hagane.tools.prob.language.program import Program
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.source import Span, TooLarge
from hagane.tools.prob.language.syntax import Value

# The choices of a draw: a number of equal values, or outcomes with their chances.
_Options: TypeAlias = "tuple[Fraction, ...] | int"


class Replay:
    """Repeats a sequence of choices, then takes the first of each later draw."""

    def __init__(self) -> None:
        self.path: list[int] = []
        self.options: list[_Options] = []
        self._at = 0

    def restart(self) -> None:
        """Begin the next run."""
        self._at = 0

    def uniform(self, size: int) -> int:
        """Return a number from 0 to size - 1."""
        return self.take(size)

    def weighted(self, odds: Odds) -> int:
        """Return the index of an outcome."""
        return self.take(odds.shares)

    @property
    def repeated(self) -> _Options | None:
        """Return the options of the next choice, where it repeats one of the last run."""
        return self.options[self._at] if self._at < len(self.path) else None

    def take(self, options: _Options) -> int:
        """Return the place of the chosen outcome."""
        if self._at == len(self.path):
            self.path.append(_next_possible(options, -1))
            self.options.append(options)
        self._at += 1
        return self.path[self._at - 1]

    @property
    def probability(self) -> Fraction:
        """Return the probability of the choices."""
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


def _next_possible(options: _Options, index: int) -> int:
    index += 1
    if not isinstance(options, int):
        while index < len(options) and not options[index]:
            index += 1
    return index


def run_enumeration(program: Program, unit: Unit, limits: Limits = DEFAULT_LIMITS) -> Ledger:
    """Return the distributions of a unit, by running it once for each sequence of draws.

    Raises:
        PathError: A possible run goes wrong.
        TooLarge: More than ``limits.runs`` runs.
    """
    replay = Replay()
    interpreter = Interpreter(program, unit, replay, limits)
    ledger = interpreter.ledger
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
                value = interpreter.run()
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
    interpreter = Interpreter(program, unit, Replay())
    with deep_recursion(), suppress(Rejected):
        interpreter.run()
    return interpreter.draws
