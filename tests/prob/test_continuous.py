"""Continuous draws: closed forms beside known ones, bounds, refusals, Python."""

from __future__ import annotations

import math
import random
import re
from fractions import Fraction
from random import Random

import pytest

from hagane import prob
from hagane.cli import main
from hagane.tools.prob.engines.ledger import main_unit
from hagane.tools.prob.engines.sampling import sample
from hagane.tools.prob.integrals.atoms import Atom, exponential
from hagane.tools.prob.integrals.closed import Closed, Undecided
from hagane.tools.prob.integrals.regions import Linear, Region, bounds_of, has_inside
from hagane.tools.prob.language.source import (
    BadDistribution,
    ImpossibleCondition,
    ProgramTypeError,
    TooLarge,
)


def formulas(text: str) -> list[str]:
    """Return the Prob and E of a program whose claims hold."""
    report = prob.check(prob.load_program(text))
    assert report.holds, str(report)
    return [each.text for verdict in report.verdicts for each in verdict.formulas]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "let (a, b, c) = (uniform(0, 1), uniform(0, 1), uniform(0, 1)) in"
            " (a + b + c < 1) : {x:bool | Prob(x) = 1/6}",
            "1/6 = 0.1666666667",
        ),
        (
            "let (a, b) = (exponential(2), exponential(3)) in (a < b) : {x:bool | Prob(x) = 2/5}",
            "2/5 = 0.4",
        ),
        (
            "(exponential(1) + exponential(1) > 2) : {x:bool | Prob(x) < 1/2}",
            "3*exp(-2) = 0.4060058497",
        ),
        ("(normal(1, 2) < 4) : {x:bool | Prob(x) > 0.93}", "Phi(3/2) = 0.9331927987"),
        (
            "(normal(0, 1) + normal(0, 1) < 1) : {x:bool | Prob(x) < 0.77}",
            "Phi(sqrt(1/2)) = 0.7602499389",
        ),
        (
            "let (a, b, c) = (normal(0, 1), normal(0, 1), normal(0, 1)) in"
            " (a < b /\\ b < c) : {x:bool | Prob(x) = 1/6}",
            "1/6 = 0.1666666667",
        ),
        (
            "let x = normal(0, 1) in let y = x + normal(0, 1) in"
            " (x < 0 /\\ y < 0) : {x:bool | Prob(x) = 3/8}",
            "3/8 = 0.375",
        ),
        (
            "let x = normal(0, 1) in observe 0 < x in x : {x:real | E[x] > 0.79}",
            "2*1/sqrt(2*pi) = 0.7978845608",
        ),
        # Three heads and a tail of a coin of which nothing is known (Laplace's rule).
        (
            "let p = uniform(0, 1) in observe flip(p); observe flip(p); observe not flip(p);"
            " p : {x:real | E[x] = 3/5}",
            "3/5 = 0.6",
        ),
        ("exponential(2) : {x:real | E[x * x] - E[x] * E[x] = 1/4}", "1/2 = 0.5"),
        ("normal(3, 2) : {x:real | E[x * x * x] = 63}", "63 = 63"),
        (
            "let n = rand(1, 2) in (uniform(0, n) < 1) : {x:bool | Prob(x) = 3/4}",
            "3/4 = 0.75",
        ),
        (
            "letfun wait(n: int, t: real) : int = if t > 2 \\/ n >= 5 then n else"
            " wait(n + 1, t + exponential(1)) in"
            " wait(0, exponential(1)) : {k:int | Prob(k = 2) < 0.271}",
            "2*exp(-2) = 0.2706705665",
        ),
    ],
)  # fmt: skip
def test_probabilities_of_sums_have_their_closed_forms(text: str, expected: str) -> None:
    assert formulas(text)[0] == expected


def test_beside_continuous_values_numbers_are_rationals() -> None:
    text = "let x = uniform(0, 1/2) in if x < 1/3 then 0.25 + x else x"
    solution = prob.solve(prob.load_program(text))
    assert solution.mean == Fraction(1, 4) + Fraction(1, 4) * Fraction(2, 3)


def test_a_comparison_holds_for_the_rest_of_the_run() -> None:
    text = "let x = normal(0, 1) in let a = x < 1 in let b = 2 * x < 2 in (a = b)"
    assert prob.solve(prob.load_program(text)).distribution == {True: 1}


def test_what_has_no_closed_form_has_bounds() -> None:
    (text,) = formulas("(normal(0, 1) < uniform(0, 1)) : {x:bool | Prob(x) < 0.69}")
    low, high = map(float, re.findall(r"0\.\d+", text))
    # The mean of Phi over the unit interval.
    exact = _phi(1) + math.exp(-1 / 2) / math.sqrt(2 * math.pi) - 1 / math.sqrt(2 * math.pi)
    assert low < exact < high < low + 2e-3
    assert text.endswith("(certified bounds)")


def _phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def test_a_claim_too_near_to_its_bound_is_no_verdict() -> None:
    near = "(normal(0, 1) < uniform(0, 1)) : {x:bool | Prob(x) < 0.684373}"
    with pytest.raises(TooLarge, match="neither proved nor refuted"):
        prob.check(prob.load_program(near))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("normal(0, 0)", BadDistribution, "a deviation above 0"),
        ("uniform(2, 1)", BadDistribution, "the least below the greatest"),
        ("exponential(0)", BadDistribution, "a rate above 0"),
        ("let x = normal(0, 1) in x * x < 1", ProgramTypeError, "the sign of 1 - x1.x1"),
        ("1 / normal(0, 1)", ProgramTypeError, "divided by numbers"),
        ("normal(0)", ProgramTypeError, r"expected normal\(mean, deviation\)"),
        ("normal(true, 1)", ProgramTypeError, "the mean of normal: expected a number"),
        ("let x = uniform(0, 1) in observe x > 1 in x", ImpossibleCondition, "observe a range"),
        ("param p; flip(p) /\\ uniform(0, 1) < 1/2", ProgramTypeError, "do not go together"),
        (
            "letfun f(t: real) : real = if t > 1 then t else f(t + exponential(1)) in f(0)",
            TooLarge, "more than 12 continuous draws",
        ),
        (
            "let x = normal(0, 1) in let y = uniform(0, 1) in observe x < y in x",
            TooLarge, "no closed form",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_integrated_is_named(
    text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        prob.solve(prob.load_program(text))


def test_a_claim_about_each_continuous_value_says_how_to_write_it() -> None:
    with pytest.raises(ProgramTypeError, match=r"write Prob\(…\) = 1"):
        prob.check(prob.load_program("normal(0, 1) : {x:real | x > 0}"))
    assert formulas("exponential(1) : {x:real | Prob(x > 0) = 1}") == ["1 = 1"]


def test_random_runs_agree_with_closed_forms() -> None:
    text = (
        "let (a, b) = (uniform(0, 2), exponential(1)) in let c = normal(a, 1/2) in"
        " if c + b > 2 then 2 else if b < a then 1 else 0"
    )
    program = prob.load_program(text)
    counts, _ = sample(program, main_unit(program), 20_000, Random(3))
    for value, weight in prob.solve(program).distribution.items():
        share = float(weight)
        assert abs(counts[value] / 20_000 - share) < 4 * math.sqrt(share * (1 - share) / 20_000)


def test_random_sums_of_uniform_draws_have_irwin_and_halls_distribution() -> None:
    for n in range(1, 6):
        total = " + ".join(["uniform(0, 1)"] * n)
        found = prob.solve(prob.load_program(f"{total} < 3/2")).distribution[True]
        x = Fraction(3, 2)
        terms = ((-1) ** k * math.comb(n, k) * (x - k) ** n for k in range(2))
        expected = sum(terms, Fraction(0)) / math.factorial(n) if n > 1 else Fraction(1)
        assert found == expected


def test_a_python_function_draws_continuous_values() -> None:
    @prob.typed("{x:bool | Prob(x) = 1/8}")
    def late() -> bool:
        arrival, wait = prob.uniform(0, 60), prob.uniform(0, 15)
        return max(arrival, 45) + wait > 60 if arrival > 30 else False

    assert late.report.verdicts[0].engine == "integrate"
    assert isinstance(late(), bool)


def test_random_of_the_standard_library_is_a_draw_too() -> None:
    @prob.typed("{n:int | E[n] = 1}")
    def hits() -> int:
        return sum(random.random() < 0.25 for _ in range(4))

    assert hits.report.verdicts[0].engine == "replay"


def test_the_mean_of_a_python_functions_value_is_decided() -> None:
    @prob.typed("{t:real | E[t] = 17/6 /\\ Prob(t < 1) < 0.18}", raises=False)
    def delay() -> float:
        first = prob.exponential(0.5)
        return first + prob.exponential(1.2) if prob.flip(1) else 0.0

    assert delay.report.holds, str(delay.report)


def test_other_functions_of_continuous_values_are_refused_by_name() -> None:
    with pytest.raises(ProgramTypeError, match="a function of real numbers other than"):

        @prob.typed("{x:bool | Prob(x) < 1}")
        def root() -> bool:
            return math.sqrt(prob.uniform(0, 1)) < 0.5


def test_a_region_has_an_inside_or_none() -> None:
    x, y = Linear(((0, Fraction(1)),)), Linear(((1, Fraction(1)),))
    assert has_inside([x, y, Linear(((0, Fraction(-1)), (1, Fraction(-1))), Fraction(1))])
    assert not has_inside([x, y, Linear(((0, Fraction(-1)), (1, Fraction(-1))))])


def test_bounds_of_a_region_hold_its_measure() -> None:
    # A quarter of the plane, turned: 1/4 of all.
    region = Region(
        ("normal", "normal"),
        (
            Linear(((0, Fraction(1)), (1, Fraction(1)))),
            Linear(((0, Fraction(1)), (1, Fraction(-1)))),
        ),
    )
    low, high = bounds_of(region, 16)
    assert low < Fraction(1, 4) < high < low + Fraction(1, 100)


def test_closed_forms_are_compared_by_as_many_digits_as_are_needed() -> None:
    e = Closed.atom(exponential(Fraction(-1)))
    near = Fraction("0.3678794411714423215955237701614608674458111310317678")
    assert e != near
    assert e > near - Fraction(1, 10**60)
    assert (e + 1) / (e + 1) == 1
    assert e * Closed.atom(exponential(Fraction(1))) == 1
    low, high = Closed.atom(Atom("Phi", (Fraction(1),))).enclosure(200)
    with pytest.raises(Undecided):
        _ = Closed.atom(Atom("Phi", (Fraction(1),))) < (low + high) / 2


def test_the_command_shows_closed_forms(capsys: pytest.CaptureFixture[str], tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "wait.pml"
    path.write_text("exponential(1) < 2")
    with pytest.raises(SystemExit):
        main(["prob", "solve", str(path)])
    assert "Prob(value = true) = 1 - exp(-2) = 0.8646647168" in capsys.readouterr().out
