"""Draws for Python functions: random when called, exact when checked (see ``typed``)."""

from __future__ import annotations

import random
from fractions import Fraction
from math import lcm
from typing import TypeVar

from hagane.errors import HaganeError, InvalidArgument

_Item = TypeVar("_Item")

# Seed it to repeat a run.
generator = random.Random()


class ObservationFailed(HaganeError):
    """A run on which an observation does not hold; it is to be thrown away."""


def rand(low: int, high: int) -> int:
    """Return an integer from ``low`` to ``high``, each with the same probability.

    Raises:
        InvalidArgument: The range is empty.
    """
    if low > high:
        raise InvalidArgument(f"rand({low}, {high}) is empty: expected low <= high")
    return generator.randint(low, high)


def flip(probability: Fraction | float | str) -> bool:
    """Return True with a probability.

    When a function is checked, a float stands for the decimal that Python prints for it, so
    ``flip(0.1)`` is one tenth; write ``Fraction(1, 3)`` for a third.

    Raises:
        InvalidArgument: The probability is not between 0 and 1.
    """
    chance = fraction_of(probability)
    if not 0 <= chance <= 1:
        raise InvalidArgument(f"flip({probability}): expected a probability between 0 and 1")
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
    scale = lcm(*(chance.denominator for chance in chances))
    place = generator.randrange(scale)
    for chance, (_, item) in zip(chances, branches, strict=True):
        place -= int(chance * scale)
        if place < 0:
            return item
    raise AssertionError


def fraction_of(probability: Fraction | float | str) -> Fraction:
    """Return a probability; a float stands for the decimal that Python prints for it."""
    return probability if isinstance(probability, Fraction) else Fraction(str(probability))


def observe(condition: bool) -> bool:
    """Keep only the runs on which a condition holds.

    Raises:
        ObservationFailed: It does not hold on this run.
    """
    if not condition:
        raise ObservationFailed("an observation does not hold on this run")
    return True
