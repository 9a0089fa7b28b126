from __future__ import annotations

from fractions import Fraction

import pytest

from hagane.tools.prob import Limits, check, load_program
from hagane.tools.prob.engines.relative import relative
from hagane.tools.prob.language.program import walk
from hagane.tools.prob.language.syntax import Let, Variable

GPS = """
(let a = rand(-{n}, {n}) in
 let b = a + rand(0, {n}) in
 not (b - a >= {n}) /\\ ((b + rand(0, {h})) - (a + rand(0, {h})) >= {n}))
 : {{x:bool | Prob(x) <= 1/2}}
"""


def test_the_speed_trap_keeps_the_distance_only() -> None:
    program = load_program(GPS.format(n=10, h=5))
    used = {node.name for node in walk(relative(program.main)) if isinstance(node, Variable)}
    assert used == {"b relative"}


def test_a_position_that_is_used_by_itself_is_kept() -> None:
    program = load_program("let a = rand(0, 3) in let b = a + rand(0, 3) in b * a")
    lets = [node.name for node in walk(relative(program.main)) if isinstance(node, Let)]
    assert lets == ["a", "b"]


def test_a_variable_that_a_claim_names_is_kept() -> None:
    text = """let a = rand(0, 3) in let b = a + rand(0, 3) in
              ((b - a) : {d:int | Prob(d = 0 /\\ b = 3) = 1/16})"""
    assert check(load_program(text), "dynamic").holds


@pytest.mark.long
def test_the_speed_trap_with_ranges_of_a_thousand_fits_in_a_million_rows() -> None:
    n, h = 1000, 500
    # Two million rows, and then five hundred for each, if both positions were kept.
    limits = Limits(states=1_600_000)
    report = check(load_program(GPS.format(n=n, h=h)), "dynamic", limits)
    # The distance d < n is drawn from n + 1 values; the difference of the errors e >= n - d.
    alarms = sum(
        sum(h + 1 - e for e in range(max(n - d, 0), h + 1)) for d in range(n) if n - d <= h
    )
    expected = Fraction(alarms, (n + 1) * (h + 1) ** 2)
    assert report.verdicts[0].probabilities[0].value == expected
