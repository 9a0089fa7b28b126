"""Draws for Python functions: random when called, exact when checked (see ``typed``)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from contextvars import ContextVar
from fractions import Fraction
from typing import Protocol, TypeVar

from hagane.errors import HaganeError, InvalidArgument

_Item = TypeVar("_Item")

# Denominators of the fractions that floats stand for.
_SIMPLE = 1_000_000

# Seed it to repeat a run.
generator = random.Random()


class Decider(Protocol):
    """Decides draws in the place of chance."""

    def uniform(self, size: int) -> int:
        """Return one of ``size`` equally likely places, from 0."""
        ...

    def weighted(self, chances: Sequence[Fraction]) -> int:
        """Return a place, from 0, each with its probability."""
        ...


# The decider of the draws of this thread or task; chance where there is none.
deciding: ContextVar[Decider | None] = ContextVar("deciding", default=None)


class ObservationFailed(HaganeError):
    """A run on which an observation does not hold; it is to be thrown away."""


def rand(low: int, high: int) -> int:
    """Return an integer from ``low`` to ``high``, each with the same probability.

    Raises:
        InvalidArgument: The range is empty.
    """
    if low > high:
        raise InvalidArgument(f"rand({low}, {high}) is empty: expected low <= high")
    decider = deciding.get()
    if decider is not None:
        return low + decider.uniform(high - low + 1)
    return generator.randint(low, high)


def flip(probability: Fraction | float | str) -> bool:
    """Return True with a probability.

    A float stands for the fraction that it comes from: ``flip(0.1)`` is one tenth, ``flip(1 / 3)``
    a third.

    Raises:
        InvalidArgument: The probability is not between 0 and 1.
    """
    chance = fraction_of(probability)
    if not 0 <= chance <= 1:
        raise InvalidArgument(f"flip({probability}): expected a probability between 0 and 1")
    decider = deciding.get()
    if decider is not None:
        return decider.weighted((chance, 1 - chance)) == 0
    return generator.randrange(chance.denominator) < chance.numerator


def choose(*branches: tuple[Fraction | float | str, _Item]) -> _Item:
    """Return one of several values, each with its probability: ``choose((0.5, 1), (0.5, 2))``.

    Raises:
        InvalidArgument: The probabilities are negative, or do not sum to one.
    """
    chances = [fraction_of(probability) for probability, _ in branches]
    if min(chances, default=0) < 0 or sum(chances) != 1:
        shown = ", ".join(map(str, chances))
        raise InvalidArgument(f"choose: expected probabilities that sum to 1, got {shown}")
    decider = deciding.get()
    if decider is not None:
        return branches[decider.weighted(chances)][1]
    scale = math.lcm(*(chance.denominator for chance in chances))
    place = generator.randrange(scale)
    for chance, (_, item) in zip(chances, branches, strict=True):
        place -= int(chance * scale)
        if place < 0:
            return item
    raise AssertionError


def fraction_of(probability: Fraction | float | str) -> Fraction:
    """Return a probability.

    A float stands for the fraction below a million that Python computes to it, so ``1 / 3`` is a
    third, and otherwise for the decimal that Python prints.
    """
    if isinstance(probability, Fraction):
        return probability
    if isinstance(probability, float) and math.isfinite(probability):
        simple = Fraction(probability).limit_denominator(_SIMPLE)
        if float(simple) == probability:
            return simple
    return Fraction(str(probability))


def observe(condition: bool) -> bool:
    """Keep only the runs on which a condition holds.

    Raises:
        ObservationFailed: It does not hold on this run.
    """
    if not condition:
        raise ObservationFailed("an observation does not hold on this run")
    return True
