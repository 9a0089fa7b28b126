"""Where Python functions take their random numbers from: draws, or refused by name."""

from __future__ import annotations

import os
import random
import secrets
import uuid
from collections.abc import Callable
from fractions import Fraction
from random import expovariate, gauss, randint
from random import random as from_zero_to_one

import numpy as np
import pytest

from hagane.tools.prob import ProgramError, typed

bits = random.getrandbits


class Game:
    chance = np.random.default_rng()
    own = random.Random()

    def roll(self) -> int:
        return int(self.chance.integers(1, 7))

    def throw(self) -> int:
        return self.own.randrange(6)


game = Game()


def of_the_system() -> bool:
    return secrets.randbelow(4) == 3


def chosen_secretly() -> bool:
    return secrets.choice("abcd") == "a"


def of_a_system_generator() -> bool:
    return random.SystemRandom().sample(range(4), 1) == [2]


def of_bits() -> bool:
    return bits(2) == 1 and random.getrandbits(0) == 0


def of_bytes() -> bool:
    return random.randbytes(1)[0] < 64


def under_its_own_name() -> bool:
    n = 0
    while from_zero_to_one() < 1 / 2:
        n = 1 - n
    return n == 1 and randint(1, 4) > 1


@pytest.mark.parametrize(
    "function",
    [
        of_the_system,
        chosen_secretly,
        of_a_system_generator,
        of_bits,
        of_bytes,
        under_its_own_name,
    ],
)
def test_numbers_that_nothing_seeds_are_draws(function: Callable[[], bool]) -> None:
    before = secrets.randbelow, random.random, random.getrandbits, os.urandom
    typed("{x:bool | Prob(x) = 1/4}")(function)
    assert (secrets.randbelow, random.random, random.getrandbits, os.urandom) == before
    assert isinstance(function(), bool)


def wide() -> bool:
    return gauss(100, 15) > 115


def wider() -> bool:
    return random.normalvariate(mu=100, sigma=-15) > 115


def first() -> bool:
    return expovariate(2) < random.expovariate(1)


def mixed() -> bool:
    centre = 0 if random.random() < 1 / 2 else 3
    return random.gauss(centre, 1) > centre


@pytest.mark.parametrize(
    ("function", "claim"),
    [
        (wide, "1586/10000 < Prob(x) < 1587/10000"),
        (wider, "1586/10000 < Prob(x) < 1587/10000"),
        (first, "Prob(x) = 2/3"),
        (mixed, "Prob(x) = 1/2"),
    ],
)
def test_normal_and_exponential_numbers_of_random_are_continuous_draws(
    function: Callable[[], bool], claim: str
) -> None:
    typed(f"{{x:bool | {claim}}}")(function)


def of_an_attribute() -> int:
    return game.roll()


def of_a_class() -> int:
    return game.throw()


def of_a_number_for_all() -> int:
    return uuid.uuid4().int % 6


def of_the_kernel() -> int:
    return os.urandom(1)[0] % 2


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (of_an_attribute, "numpy.random.Generator"),
        (of_a_class, "random.Random"),
        (of_a_number_for_all, "os.urandom"),
        (of_the_kernel, "os.urandom"),
    ],
)
def test_numbers_from_elsewhere_are_refused_wherever_they_are_kept(
    function: Callable[[], int], name: str
) -> None:
    with pytest.raises(ProgramError, match=f"'{name}' is no draw; draw with prob.rand"):
        typed("{n:int | E[n] = 1}")(function)


def test_a_generator_that_was_met_goes_on_as_if_it_was_not() -> None:
    before = Game.chance.bit_generator.state
    with pytest.raises(ProgramError):
        typed("{n:int | E[n] = 7/2}")(of_an_attribute)
    assert Game.chance.bit_generator.state == before


def sixes(bare: bool) -> Callable[[], bool]:
    def caught() -> bool:
        odd = False
        try:
            while random.randint(1, 6) != 6:
                odd = not odd
        except BaseException:
            return False
        return odd

    def finished() -> bool:
        odd = False
        try:
            while random.randint(1, 6) != 6:
                odd = not odd
        finally:
            return odd  # noqa: B012

    return caught if bare else finished


@pytest.mark.parametrize("bare", [True, False])
def test_a_program_that_catches_everything_has_the_runs_that_it_has(bare: bool) -> None:
    checked = typed("{x:bool | Prob(x) = 5/11}", engine="replay")(sixes(bare))
    assert checked.report.verdicts[0].probabilities[0].value == Fraction(5, 11)


def test_a_question_without_an_answer_is_told_where_the_program_catches_it() -> None:
    def inside() -> bool:
        try:
            return random.random() ** 2 + random.random() ** 2 < 1
        except Exception:
            return False

    with pytest.raises(ProgramError, match="comparisons are decided for sums of continuous"):
        typed("{x:bool | Prob(x) = 0}")(inside)


@pytest.mark.parametrize("cut", [round, lambda x: x % 1, lambda x: x // 2])
def test_numbers_cut_to_whole_ones_are_refused_by_name(cut: Callable[..., object]) -> None:
    def function() -> bool:
        return bool(cut(random.random() + random.random()) == 1)

    with pytest.raises(ProgramError, match=r"x1 \+ x2 made a whole number"):
        typed("{x:bool | Prob(x) = 1/2}")(function)
