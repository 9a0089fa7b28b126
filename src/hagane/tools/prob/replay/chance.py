"""Python's own random numbers as draws, while a function is followed.

``random.random`` is a continuous draw, and ``random.uniform``, which is made of it by sums. NumPy's
random numbers, and generators that a run makes for itself, are refused.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from hagane.tools.prob.draws import ContinuousDraw, Decider

# The generator behind the functions of ``random``: randint, randrange, choice, shuffle and sample
# ask it for a whole number below another.
_GENERATOR = random.randint.__self__  # type: ignore[attr-defined]
_BELOW = "_randbelow"
_SAMPLE = random.Random.sample.__code__
_OWN = ("Random", "SystemRandom")
_OF_NUMPY = ("default_rng", "Generator", "RandomState", "SeedSequence")


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

    drawn: list[str] = []

    def refusing(name: str) -> Callable[..., NoReturn]:
        def refuse(*_: Any, **__: Any) -> NoReturn:
            drawn.append(name)  # a run may take the error for one of its own
            raise _other(name)

        return refuse

    numpy: Any = sys.modules.get("numpy.random")
    replaced = [(random, f"random.{name}", name) for name in _OWN]
    if numpy is not None:
        replaced += [(numpy, f"numpy.random.{name}", name) for name in _OF_NUMPY]
    originals = [getattr(module, name) for module, _, name in replaced]
    for module, told, name in replaced:
        setattr(module, name, refusing(told))
    state = random.getstate()
    state_of_numpy = None if numpy is None else numpy.get_state()
    before = random.random
    setattr(_GENERATOR, _BELOW, below)
    _GENERATOR.random = real
    random.random = real
    try:
        yield
    except Exception as error:
        if not drawn and _has_drawn(numpy, state_of_numpy):
            # Whatever went wrong, such as runs that differ, this is why.
            raise _other("numpy.random") from error
        raise
    finally:
        delattr(_GENERATOR, _BELOW)
        del _GENERATOR.random
        random.random = before
        for (module, _, name), original in zip(replaced, originals, strict=True):
            setattr(module, name, original)
    if drawn:
        raise _other(drawn[0])
    if _has_drawn(numpy, state_of_numpy):
        raise _other("numpy.random")
    if random.getstate() != state:
        random.setstate(state)
        raise OtherChance("the function draws random numbers that prob does not know of")


def _other(name: str) -> OtherChance:
    """Return the error of a generator that is met."""
    return OtherChance(
        f"'{name}' is no draw; draw with prob.rand, prob.flip or prob.choose, or with the "
        "functions of random, such as random.randint"
    )


def refuse_generators(outside: Mapping[str, Any]) -> None:
    """Refuse a function that knows a generator of its own, by the values that it knows by name.

    Raises:
        OtherChance: One of them is a generator, or a function of one.
    """
    for name, value in outside.items():
        owner = getattr(value, "__self__", value)
        if owner is not _GENERATOR and (
            isinstance(owner, random.Random) or type(owner).__module__.startswith("numpy.random")
        ):
            raise _other(name)


def _has_drawn(numpy: Any, before: Any) -> bool:
    """Tell whether the numbers that all of NumPy's functions share went on; take them back."""
    if numpy is None or all(map(np.array_equal, numpy.get_state(), before)):
        return False
    numpy.set_state(before)
    return True
