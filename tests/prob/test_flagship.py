from __future__ import annotations

from fractions import Fraction

import pytest

from hagane.tools.prob import check, load_program

GPS = r"""
(let a = rand(-10, 10) in
let b = a + rand(0, 10) in
 not (b - a >= 10) /\ ((b + rand(0, 5)) - (a + rand(0, 5)) >= 10))
 : {x:bool | Prob(x) <= 1/10}
"""


def verdict_of(text: str, engine: str = "auto"):
    (verdict,) = check(load_program(text), engine).verdicts
    return verdict


def test_half_of_six_numbers_are_even() -> None:
    verdict = verdict_of("rand(0, 5) : {x:int|Prob(x%2=0) = 1/2}")
    assert verdict.holds
    assert [(item.event, item.value) for item in verdict.probabilities] == [
        ("x%2=0", Fraction(1, 2))
    ]


def test_gps_program_as_printed_gives_35_in_396() -> None:
    verdict = verdict_of(GPS)
    assert verdict.holds
    assert verdict.probabilities[0].value == Fraction(35, 396)


def test_annotation_of_the_last_conjunct_only_fails_with_a_notice() -> None:
    text = GPS.replace("(let", "let").replace(">= 10))", ">= 10)")
    report = check(load_program(text))
    assert not report.holds
    assert report.verdicts[0].probabilities[0].value == Fraction(14, 99)
    assert "binds only to the last conjunct" in report.notices[0].message


def test_swapped_operands_never_alarm() -> None:
    text = GPS.replace("(b + rand(0, 5)) - (a + rand(0, 5))", "(a + rand(0, 5)) - (b + rand(0, 5))")
    assert verdict_of(text).probabilities[0].value == 0


@pytest.mark.parametrize("spelling", ["a+b==0", "a+b=0", "not (a+b != 0)"])
def test_equality_has_two_spellings(spelling: str) -> None:
    text = f"let a = rand(0, 1) in let b = rand(0, 1) in ({spelling}) : {{x:bool | Prob(x) <= 1/4}}"
    assert verdict_of(text).probabilities[0].value == Fraction(1, 4)
