"""Python's own random numbers as draws, while a function is followed.

``random.random`` is a continuous draw, and ``random.uniform``, which is made of it by sums.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hagane.tools.prob.draws import ContinuousDraw, Decider

# The generator behind the functions of ``random``: randint, randrange, choice, shuffle and sample
# ask it for a whole number below another.
_GENERATOR = random.randint.__self__  # type: ignore[attr-defined]
_BELOW = "_randbelow"
_SAMPLE = random.Random.sample.__code__


def _taken() -> set[int]:
    """Return the places that a ``sample`` of few draws again, as often as it meets them."""
    frame = sys._getframe(2)
    if frame.f_code is not _SAMPLE:
        return set()
    taken = frame.f_locals.get("selected")
    return taken if isinstance(taken, set) else set()


class OtherChance(Exception):
    """A random number that is no draw."""


@contextmanager
def no_other_chance(decider: Callable[[], Decider | None]) -> Iterator[None]:
    """Let the numbers of ``random`` be draws."""

    def below(size: int) -> int:
        deciding = decider()
        assert deciding is not None
        taken = _taken()
        if not taken:
            return deciding.uniform(size)
        place = deciding.uniform(size - len(taken))
        for other in sorted(taken):
            place += other <= place
        return place

    def real() -> Any:
        found: Any = decider()
        if not hasattr(found, "continuous"):
            raise ContinuousDraw
        return found.continuous("uniform")

    state = random.getstate()
    before = random.random
    setattr(_GENERATOR, _BELOW, below)
    _GENERATOR.random = real
    random.random = real
    try:
        yield
    finally:
        delattr(_GENERATOR, _BELOW)
        del _GENERATOR.random
        random.random = before
    if random.getstate() != state:
        random.setstate(state)
        raise OtherChance("the function draws random numbers that prob does not know of")
