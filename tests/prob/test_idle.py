"""Draws that nothing reads."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hagane.prob import check, load_program, solve
from hagane.tools.prob.language.idle import without_idle
from hagane.tools.prob.language.source import PathError

# A root, and leaves that nothing reads but one: each would stay open beside the others.
NETWORK = "let r = rand(0, 4) in\n" + "".join(
    f"let m{i} = if r = {i % 5} then rand(0, 9) else r in\n"
    f"let l{i} = flip(1/{i + 2}) /\\ m{i} > 3 in\n"
    for i in range(40)
)


def test_variables_that_nothing_reads_take_no_rows() -> None:
    found = solve(load_program(NETWORK + "m0"))
    assert found.distribution[9] == Fraction(1, 50)
    assert "50 rows" not in found.engine
    few = solve(load_program("let r = rand(0, 4) in if r = 0 then rand(0, 9) else r"))
    assert found.distribution == few.distribution


@pytest.mark.parametrize(
    ("bound", "stays"),
    [
        ("flip(1/3)", False),
        ("if flip(0.5) then rand(1, 6) * 2 else -1", False),
        ("choose {1/2: 1, 1/2: rand(0, 3)}", False),
        ("rand(1, r)", True),
        ("flip(r / 2)", True),
        ("6 / r", True),
        ("observe(flip(1/2))", True),
    ],
)
def test_what_may_fail_or_observes_stays(bound: str, stays: bool) -> None:
    program = load_program(f"let r = rand(0, 1) in let x = {bound} in r = 1")
    assert (without_idle(program.main) is program.main) == stays


def test_errors_of_variables_that_nothing_reads_are_told() -> None:
    with pytest.raises(PathError, match="division by zero"):
        solve(load_program(NETWORK + "let bad = 6 / m0 in r"))


def test_claims_read_what_they_speak_of() -> None:
    report = check(load_program(f"({NETWORK} m1) : {{x:int | Prob(x = 9) = 1/50}}"))
    assert report.holds
    inside = load_program(NETWORK + "(r : {x:int | Prob(x = r /\\ l2) <= 1})")
    assert check(inside).holds
