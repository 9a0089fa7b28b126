"""Python's own random numbers as draws, while a function is followed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from hagane.tools.prob.draws import Decider

# The generator behind the functions of ``random``: randint, randrange, choice, shuffle and sample
# ask it for a whole number below another.
_GENERATOR = random.randint.__self__  # type: ignore[attr-defined]
_BELOW = "_randbelow"


class OtherChance(Exception):
    """A random number that is no draw."""


@contextmanager
def no_other_chance(decider: Callable[[], Decider | None]) -> Iterator[None]:
    """Let the whole numbers of ``random`` be draws, and refuse its real numbers."""

    def below(size: int) -> int:
        deciding = decider()
        assert deciding is not None
        return deciding.uniform(size)

    def real(*arguments: Any, **keywords: Any) -> NoReturn:
        raise OtherChance(
            "random.random and the real numbers made of it are no draws; use prob.flip, or "
            "random.randint and random.choice"
        )

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
