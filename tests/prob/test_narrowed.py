"""``random.random()`` beside numbers is a draw, and ``random.sample`` draws without repetition."""

import random

import pytest

from hagane import prob
from hagane.tools.prob.language.floats import fraction_of
from hagane.tools.prob.language.source import ProgramError


def test_a_loop_of_comparisons_has_no_number_of_draws() -> None:
    @prob.typed("{n:int | E[n] = 1}")
    def tails() -> int:
        n = 0
        while random.random() < 0.5:
            n += 1
        return n

    assert tails.report.verdicts[0].engine == "replay"


def test_a_number_remembers_what_was_asked_of_it() -> None:
    @prob.typed("{n:int | Prob(n = 0) = 3/10 /\\ Prob(n = 1) = 1/2 /\\ Prob(n = 2) = 1/5}")
    def kind() -> int:
        u = random.random()
        if u < 0.3:
            return 0
        again = 1 - u <= 1 - 0.1  # always
        return 1 if u < 0.7 + 0.1 and again else 2

    assert kind.report.holds


def test_whole_parts_and_weighted_choices_are_draws() -> None:
    @prob.typed("{n:int | E[n] = 7/2 /\\ Prob(n = 6) = 1/6}")
    def die() -> int:
        return int(6 * random.random()) + 1

    @prob.typed("{x:bool | Prob(x) = 3/10}")
    def snow() -> bool:
        day = "sun"
        for _ in range(20):
            day = random.choices(["sun", "rain", "snow"], weights=[0.1, 0.6, 0.3])[0]
        return day == "snow"

    @prob.typed("{n:int | Prob(n = -1) = 3/8 /\\ Prob(n = 0) = 1/2}")
    def cut() -> int:
        return int((random.uniform(-1, 3) - 0.5) // 2)

    assert die.report.holds
    assert snow.report.holds
    assert cut.report.holds


def test_a_number_beside_another_is_integrated() -> None:
    @prob.typed("{x:bool | Prob(x) = 1/2}")
    def first() -> bool:
        return random.random() < random.random()

    @prob.typed("{x:bool | Prob(x) = 1/3}")
    def third() -> bool:
        return random.random() + 0 * random.random() < 1 / 3

    assert first.report.verdicts[0].engine == "integrate"
    assert third.report.holds


def test_a_function_of_a_number_is_refused_with_its_reason() -> None:
    with pytest.raises(ProgramError, match="a function of real numbers other than"):

        @prob.typed("{x:bool | Prob(x) = 1/2}")
        def rounded() -> bool:
            return float(random.random()) < 0.5


def test_few_of_many_are_drawn_without_drawing_again() -> None:
    @prob.typed("{x:bool | Prob(x) = 1/221}")
    def aces() -> bool:
        deck = [(rank, suit) for rank in range(13) for suit in "CDHS"]
        return all(rank == 0 for rank, _ in random.sample(deck, 2))

    assert aces.report.holds


def test_a_loop_that_draws_again_leaves_hardly_probable_runs_for_later() -> None:
    def other(taken: int) -> int:
        found = random.randrange(3)
        while found == taken:  # in a function of its own, where no state is noted
            found = random.randrange(3)
        return found

    @prob.typed("{n:int | 0.4999 <= Prob(n = 1) <= 0.5001}")
    def second() -> int:
        return other(0)

    assert second.report.holds


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.7 + 0.2, "9/10"),
        (0.1 + 0.2, "3/10"),
        (1 - 0.9, "1/10"),
        (1 / 3, "1/3"),
        (0.123456789, "123456789/1000000000"),
        (1e-9, "1/1000000000"),
    ],
)
def test_a_float_stands_for_the_fraction_that_it_misses_by_rounding(
    number: float, text: str
) -> None:
    assert str(fraction_of(number)) == text
