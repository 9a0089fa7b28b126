"""Draws for Python functions: random when called, exact when checked (see ``typed``)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Annotated, Any, NoReturn, Protocol, TypeVar

from hagane.errors import HaganeError, InvalidArgument
from hagane.tools.prob.integrals.real import Real
from hagane.tools.prob.language.floats import fraction_of
from hagane.tools.prob.language.ratios import Number, Ratio

_Item = TypeVar("_Item")

# The annotation of an argument that is a probability: claims are decided for all of its values.
Parameter = Annotated[float, "parameter"]

# Seed it to repeat a run.
generator = random.Random()


class Decider(Protocol):
    """Decides draws in the place of chance."""

    def uniform(self, size: int) -> int:
        """Return one of ``size`` equally likely places, from 0."""
        ...

    def weighted(self, chances: Sequence[Number]) -> int:
        """Return a place, from 0, each with its probability."""
        ...


# The decider of the draws of this thread or task; chance where there is none.
deciding: ContextVar[Decider | None] = ContextVar("deciding", default=None)


class ContinuousDraw(BaseException):
    """A continuous draw on a run whose decider knows discrete ones alone; it ends the run."""


def leave_discrete() -> NoReturn:
    """End a run at a draw, or a use of one, that is not discrete.

    Raises:
        ContinuousDraw: Always; the decider knows of it where the program catches that.
    """
    error = ContinuousDraw()
    decider: Any = deciding.get()
    if hasattr(decider, "fault"):
        decider.fault = error
    raise error


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


def flip(probability: Number | float | str) -> bool:
    """Return True with a probability.

    A float stands for the fraction that it comes from: ``flip(0.1)`` is one tenth, ``flip(1 / 3)``
    a third.

    Raises:
        InvalidArgument: The probability is not between 0 and 1.
    """
    decider = deciding.get()
    if isinstance(probability, Real):
        if not 0 <= probability <= 1:
            raise InvalidArgument(f"flip({probability}): expected a probability between 0 and 1")
        return bool(_real_decider(decider).chance(probability))
    chance = probability_of(probability)
    if isinstance(chance, Ratio):
        return _decider(f"flip({chance})").weighted((chance, 1 - chance)) == 0
    if not 0 <= chance <= 1:
        raise InvalidArgument(f"flip({probability}): expected a probability between 0 and 1")
    if decider is not None:
        return decider.weighted((chance, 1 - chance)) == 0
    return generator.randrange(chance.denominator) < chance.numerator


def uniform(least: float, greatest: float) -> float:
    """Return a real number drawn evenly between two bounds.

    Where a claim is decided it is a symbol, which takes part in sums and comparisons.

    Raises:
        InvalidArgument: The least is not below the greatest.
    """
    if not least < greatest:
        raise InvalidArgument(f"uniform({least}, {greatest}): expected the least below the other")
    low, high = exact(least), exact(greatest)
    return low + (high - low) * continuous_draw("uniform")  # type: ignore[no-any-return]


def normal(mean: float, deviation: float) -> float:
    """Return a normally distributed number.

    Raises:
        InvalidArgument: The standard deviation is not above 0.
    """
    if not deviation > 0:
        raise InvalidArgument(f"normal({mean}, {deviation}): expected a deviation above 0")
    return exact(mean) + exact(deviation) * continuous_draw("normal")  # type: ignore[no-any-return]


def exponential(rate: float) -> float:
    """Return an exponentially distributed number, ``1 / rate`` in the mean.

    Raises:
        InvalidArgument: The rate is not above 0.
    """
    if not rate > 0:
        raise InvalidArgument(f"exponential({rate}): expected a rate above 0")
    return continuous_draw("exponential") / exact(rate)  # type: ignore[no-any-return]


def _real_decider(decider: Any) -> Any:
    """Return the decider of continuous draws."""
    return decider


def exact(number: Any) -> Any:
    """Return a number as the fraction it stands for; plain where nothing decides."""
    if deciding.get() is None or isinstance(number, Real | int):
        return number
    return fraction_of(number)


def continuous_draw(law: str) -> Any:
    """Return a number of a law (uniform, normal, exponential) with its usual parameters."""
    decider: Any = deciding.get()
    if decider is None:
        if law == "normal":
            return generator.gauss()
        return generator.random() if law == "uniform" else generator.expovariate(1.0)
    if not hasattr(decider, "continuous"):
        leave_discrete()
    return decider.continuous(law)


def choose(*branches: tuple[Number | float | str, _Item]) -> _Item:
    """Return one of several values, each with its probability: ``choose((0.5, 1), (0.5, 2))``.

    Raises:
        InvalidArgument: The probabilities are negative, or do not sum to one.
    """
    shares = [probability_of(probability) for probability, _ in branches]
    chances = [share for share in shares if not isinstance(share, Ratio)]
    if min(chances, default=0) < 0 or sum(shares) != 1:
        shown = ", ".join(map(str, shares))
        raise InvalidArgument(f"choose: expected probabilities that sum to 1, got {shown}")
    decider = deciding.get()
    if len(chances) < len(shares):
        decider = _decider("choose")
    if decider is not None:
        return branches[decider.weighted(shares)][1]
    scale = math.lcm(*(chance.denominator for chance in chances))
    place = generator.randrange(scale)
    for chance, (_, item) in zip(chances, branches, strict=True):
        place -= int(chance * scale)
        if place < 0:
            return item
    raise AssertionError


def _decider(draw: str) -> Decider:
    decider = deciding.get()
    if decider is None:
        raise InvalidArgument(
            f"{draw}: a parameter without a value; call the function with numbers"
        )
    return decider


def probability_of(probability: Number | float | str) -> Number:
    """Return a probability: a fraction, or a function of parameters.

    See :func:`hagane.tools.prob.language.floats.fraction_of` for floats.
    """
    if isinstance(probability, Ratio):
        constant = probability.number
        return probability if constant is None else constant
    return fraction_of(probability)


def observe(condition: bool) -> bool:
    """Keep only the runs on which a condition holds.

    Raises:
        ObservationFailed: It does not hold on this run.
    """
    if not condition:
        raise ObservationFailed("an observation does not hold on this run")
    return True
