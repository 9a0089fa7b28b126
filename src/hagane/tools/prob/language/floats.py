"""The fractions that floats of programs stand for."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

_SIMPLE = 1_000_000  # the largest denominator of a fraction that is computed in one step
_SUMMED = 10_000  # and of one that sums of floats may miss
_STEPS = 4  # by this many units in the last place


def fraction_of(number: Fraction | float | str) -> Fraction:
    """Return the fraction that a number stands for.

    A float stands for the fraction below a million that Python computes to it, so ``1 / 3`` is a
    third; for the fraction below ten thousand that it misses by a few roundings, so ``0.7 + 0.2``
    is nine tenths; and otherwise for the decimal that Python prints.
    """
    if isinstance(number, Fraction):
        return number
    return _read(number) if type(number) in (float, str) else _read.__wrapped__(number)


@lru_cache(maxsize=4096)
def _read(number: float | str) -> Fraction:
    if isinstance(number, float) and math.isfinite(number):
        exact = Fraction(number)
        simple = exact.limit_denominator(_SIMPLE)
        if float(simple) == number:
            return simple
        simple = exact.limit_denominator(_SUMMED)
        if abs(simple - exact) <= _STEPS * Fraction(math.ulp(number)):
            return simple
    return Fraction(str(number))
