from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import hagane
from hagane import prob
from hagane.tools.prob.capture.python_function import Unsupported

WEIGHTS = [[1, -2], [3, 1]]


@hagane.prob.typed("{x:bool | Prob(x) <= 1/10}")
def alarm() -> bool:
    """Tell whether a car that does not speed is caught."""
    a = prob.rand(-10, 10)
    b = a + prob.rand(0, 10)
    return not (b - a >= 10) and ((b + prob.rand(0, 5)) - (a + prob.rand(0, 5)) >= 10)


def both(x: bool, y: bool) -> bool:
    return x and y


def value(function: prob.TypedFunction) -> Fraction:
    return function.report.verdicts[-1].probabilities[0].value


def test_the_gps_program_in_python_gives_the_same_fraction() -> None:
    assert alarm.report.holds
    assert value(alarm) == Fraction(35, 396)
    verdict = alarm.report.verdicts[0]
    assert Path(__file__).read_text(encoding="utf-8").split("\n")[verdict.line - 1] == (
        '@hagane.prob.typed("{x:bool | Prob(x) <= 1/10}")'
    )


def test_a_typed_function_still_runs() -> None:
    prob.generator.seed(3)
    share = sum(alarm() for _ in range(4000)) / 4000
    assert abs(share - 35 / 396) < 4 * (35 / 396 * 361 / 396 / 4000) ** 0.5
    assert alarm.__doc__ is not None


def test_a_type_that_does_not_hold_is_an_error_with_the_fraction() -> None:
    with pytest.raises(prob.BrokenClaim, match=r"Prob\(x\) = 1/2") as caught:

        @prob.typed("{x:bool | Prob(x) <= 1/10}")
        def coin() -> bool:
            return prob.flip(0.5)

    assert not caught.value.report.holds


def test_loops_lists_branches_and_constants_are_understood() -> None:
    @prob.typed("{y:int | Prob(y = 3) = 1/9}", raises=False)
    def network() -> int:
        xs = [prob.rand(0, 2) for _ in range(2)]
        total = 0
        for row in WEIGHTS:
            total += sum(w * x for w, x in zip(row, xs, strict=True))
        if total < 0:
            total = 0
        elif total > 7:
            return 7
        return max(total, 0) if prob.flip(Fraction(1, 1)) else abs(total)

    counts = [0] * 10
    for a in range(3):
        for b in range(3):
            counts[min(7, max(0, a - 2 * b + 3 * a + b))] += 1
    assert value(network) == Fraction(counts[3], 9)


def test_and_is_evaluated_as_python_evaluates_it() -> None:
    @prob.typed("{y:bool | Prob(y) = 1/3}")
    def guarded() -> bool:
        x = prob.rand(0, 2)
        return x != 0 and 10 // x == 5

    assert value(guarded) == Fraction(1, 3)


def test_parameters_have_types_of_their_own() -> None:
    @prob.typed("{y:bool | Prob(y) = 1/n}")
    def hit(n: "{n:int | 1 <= n <= 5}") -> bool:  # noqa: F821, UP037
        return prob.rand(1, n) == 1

    assert hit.report.verdicts[0].cases == 5
    assert hit(1) is True


def test_typed_functions_are_known_by_their_type_and_plain_ones_are_taken_in() -> None:
    @prob.typed("{y:bool | Prob(y) <= 1/100}", raises=False)
    def two() -> bool:
        return both(alarm(), alarm())

    verdict = two.report.verdicts[-1]
    assert verdict.holds
    assert verdict.ranges == ((0, Fraction(1, 100)),)


def test_observations_condition() -> None:
    @prob.typed("{y:int | Prob(y = 6) = 1/2}")
    def high() -> int:
        x = prob.rand(1, 6)
        prob.observe(x >= 5)
        return x

    assert high.report.holds
    prob.generator.seed(1)

    def hundred() -> list[int]:
        return [high() for _ in range(100)]

    with pytest.raises(prob.ObservationFailed):
        hundred()


def test_what_is_not_supported_is_refused_with_its_place() -> None:
    with pytest.raises(Unsupported, match="no end of this 'while' is in sight") as caught:

        @prob.typed("{y:int | y = 1}", engine="capture")
        def loop() -> int:
            while True:
                pass

    assert "test_python.py:" in str(caught.value)
    assert "^" in str(caught.value)


def test_a_mistake_in_the_type_is_shown_where_it_stands() -> None:
    with pytest.raises(prob.ProgramError, match="'q' is not defined here") as caught:

        @prob.typed("{y:int | Prob(q = 1) = 1}")
        def one() -> int:
            return 1

    assert '@prob.typed("{y:int | Prob(q = 1) = 1}")' in str(caught.value)
