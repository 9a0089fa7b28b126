"""When pods arrive: endless, increasing times from one source of chance.

Rates are pods a second, times seconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence


def uniform(chance: random.Random, low: float, high: float) -> Iterator[float]:
    """Yield arrivals whose gaps are uniform between ``low`` and ``high``."""
    now = 0.0
    while True:
        now += chance.uniform(low, high)
        yield now


def binomial(chance: random.Random, trials: int, share: float, every: float) -> Iterator[float]:
    """Yield, at every interval, as many arrivals as ``trials`` draws of probability succeed."""
    step = 0
    while True:
        for _ in range(sum(chance.random() < share for _ in range(trials))):
            yield step * every
        step += 1


def poisson(chance: random.Random, rate: float) -> Iterator[float]:
    """Yield a Poisson process."""
    now = 0.0
    while True:
        now += chance.expovariate(rate)
        yield now


def diurnal(
    chance: random.Random,
    rate: float,
    amplitude: float = 0.8,
    period: float = 86400.0,
    peak: float = 50400.0,
) -> Iterator[float]:
    """Yield a Poisson process whose rate swings over the day around ``rate``.

    Args:
        chance: the source of chance.
        rate: the mean rate.
        amplitude: how far it swings, from 0 to 1.
        period: seconds of a day.
        peak: when in the day the rate is highest; 14:00.
    """
    now = 0.0
    highest = rate * (1 + amplitude)
    while True:
        # Thinning (Lewis and Shedler 1979): draw at the highest rate, keep some.
        now += chance.expovariate(highest)
        here = rate * (1 + amplitude * math.cos(2 * math.pi * (now - peak) / period))
        if chance.random() * highest <= here:
            yield now


def bursty(
    chance: random.Random, rates: Sequence[float], stays: Sequence[float]
) -> Iterator[float]:
    """Yield a Markov-modulated Poisson process.

    Args:
        chance: the source of chance.
        rates: the rate in each state.
        stays: mean seconds in each state; the next state is any other one.
    """
    state, now = 0, 0.0
    leave = chance.expovariate(1 / stays[0])
    while True:
        gap = chance.expovariate(rates[state]) if rates[state] > 0 else math.inf
        if now + gap < leave:
            now += gap
            yield now
            continue
        now = leave
        if len(rates) > 1:
            state = (state + chance.randrange(1, len(rates))) % len(rates)
        leave = now + chance.expovariate(1 / stays[state])
