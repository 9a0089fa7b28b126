"""Python functions whose runs are too many, or that draw in another way: refused soon, by name."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import numpy as np
import pytest

from hagane.tools.prob import BrokenClaim, ProgramError, flip, rand, typed
from hagane.tools.prob.capture.python_function import read_function
from hagane.tools.prob.language.source import ProgramTypeError, TooLarge
from hagane.tools.prob.replay import explore, marked

OWN = np.random.default_rng(3)
SEEDED = random.Random(5)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs that come to no end be followed for less long."""
    monkeypatch.setattr(explore, "_FRUITLESS_STEPS", 10_000)


@pytest.mark.usefixtures("few_steps")
def test_a_shuffle_of_more_orders_than_can_be_followed_ends_with_a_remedy() -> None:
    with pytest.raises(TooLarge, match=r"no run came to its end .* random.sample\(cards, 2\)"):

        @typed("{n:int | E[n] = 101/2}")
        def password() -> int:
            secret = random.randrange(100)
            tries = list(range(100))
            random.shuffle(tries)
            return 1 + tries.index(secret)


@pytest.mark.usefixtures("few_steps")
def test_birthdays_end_with_a_remedy_that_works() -> None:
    remedy = r"the items \(rand\(1, 365\) <= seen: a day that was seen before\)"
    with pytest.raises(TooLarge, match=remedy):

        @typed("{x:bool | Prob(x) > 1/20}")
        def remembered() -> bool:
            days = [random.randrange(365) for _ in range(23)]
            return days[0] in days[1:]

    @typed("{x:bool | 507/1000 < Prob(x) < 508/1000}")
    def counted() -> bool:
        return any(rand(1, 365) <= seen for seen in range(23))


def legacy() -> int:
    return int(np.random.randint(1, 7))


def seeded_each_time() -> int:
    return int(np.random.default_rng(1).integers(1, 7))


def generator_of_the_file() -> int:
    return int(OWN.integers(1, 7))


def seeded_by_python() -> int:
    return SEEDED.randint(1, 6)


def generator_behind_an_except() -> int:
    try:
        return random.Random(0).randint(1, 6)
    except Exception:
        return 3


@pytest.mark.parametrize("engine", ["auto", "integrate"])
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (legacy, "numpy.random"),
        (seeded_each_time, "numpy.random.default_rng"),
        (generator_of_the_file, "OWN"),
        (seeded_by_python, "SEEDED"),
        (generator_behind_an_except, "random.Random"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_other_random_numbers_are_refused_with_a_remedy(
    engine: str, function: Callable[[], int], name: str
) -> None:
    before = random.Random, np.random.default_rng
    with pytest.raises(
        ProgramTypeError,
        match=f"'{name}' is no draw; draw with prob.rand, prob.flip or prob.choose",
    ):
        typed("{n:int | E[n] = 7/2}", engine=engine)(function)
    assert (random.Random, np.random.default_rng) == before


def test_claims_that_do_not_stand_in_the_file_are_told_at_the_function() -> None:
    def coin() -> bool:
        return flip(1 / 2)

    claim = "{x:bool | Prob(x) = %s}"
    line = coin.__code__.co_firstlineno
    with pytest.raises(
        BrokenClaim, match=rf"test_refused_runs.py:{line}: {{x:bool \| Prob\(x\) = 1/3"
    ):
        typed(claim % "1/3")(coin)
    with pytest.raises(ProgramError, match="'y' is not defined here") as caught:
        typed(claim % "y")(coin)
    assert caught.value.line == line
    assert "{x:bool | Prob(x) = y}\n" in str(caught.value)
    with pytest.raises(ProgramError, match="expected '.*', got '}'") as caught:
        typed(claim % "(1")(coin)
    assert caught.value.line == line


def test_runs_end_at_a_limit_of_processor_time() -> None:
    def walk() -> int:
        place = turns = 0
        while abs(place) < 30:
            place += rand(-1, 1) * (turns + 1)
            turns += 1
        return turns

    found = marked(walk, read_function(walk).tree)
    ticks = itertools.count()
    explorer = explore.Explorer(found, [], counts=False, most=10**6, clock=lambda: next(ticks))
    assert explorer.explore().open > 0
    assert next(ticks) < 100
