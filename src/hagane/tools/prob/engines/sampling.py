"""Random runs of a unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from hagane.tools.prob.engines.interpreter import Interpreter, Odds, Rejected
from hagane.tools.prob.engines.ledger import Unit
from hagane.tools.prob.language.program import Program
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.syntax import Value


class _Dice:
    """Draws at random, exactly in proportion."""

    def __init__(self, random: Random):
        self._random = random
        self._bits = random.getrandbits

    def uniform(self, size: int) -> int:
        # As ``randrange`` does it, less the checks of its arguments.
        bits, width = self._bits, size.bit_length()
        drawn = bits(width)
        while drawn >= size:
            drawn = bits(width)
        return drawn

    def weighted(self, odds: Odds) -> int:
        return odds.at(self.uniform(odds.common))

    def continuous(self, law: str) -> float:
        if law == "normal":
            return self._random.gauss()
        return self._random.random() if law == "uniform" else self._random.expovariate(1.0)

    def chance(self, share: float) -> bool:
        return self._random.random() < share


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
        unit: The unit to run.
        runs: How many runs.
        random: The random numbers.
        watch: Called after each run that is not rejected.

    Returns:
        How often each value came, and how many runs were rejected by an observation.
    """
    interpreter = Interpreter(program, unit, _Dice(random))
    values: Counter[Value] = Counter()
    rejected = 0
    with deep_recursion():
        for _ in range(runs):
            try:
                values[interpreter.run()] += 1
            except Rejected:
                rejected += 1
                continue
            if watch is not None:
                watch(interpreter)
    return values, rejected
