"""Constant expressions are computed once, and only where a run needs them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hagane.tools.prob import load_program, solve
from hagane.tools.prob.language.source import DivisionByZero


@pytest.mark.parametrize("engine", ["dynamic", "chain", "enumerate"])
def test_a_constant_that_no_run_computes_may_divide_by_zero(engine: str) -> None:
    text = "let c = rand(0, 9) in if c > 9 then 1 / 0 else c * (3 * 7 / 2)"
    assert solve(load_program(text), engine).distribution[90] == Fraction(1, 10)


@pytest.mark.parametrize("engine", ["dynamic", "chain", "enumerate"])
def test_a_constant_that_some_run_computes_divides_by_zero_at_its_place(engine: str) -> None:
    text = "let c = flip(1/3) in if c then 1 / 0 else 2"
    with pytest.raises(DivisionByZero, match=r":1:32: division by zero .* c = true"):
        solve(load_program(text), engine)


def test_calls_that_meet_again_soon_become_a_chain() -> None:
    text = (
        "letfun f(n: int): int = if n <= 0 then n else (if flip(1/2) then f(n - 1) else f(n - 2)) "
        "in f(12)"
    )
    solution = solve(load_program(text))
    assert solution.engine.startswith("chain (calls that meet again")
    ways = [Fraction(1)]
    for step in range(1, 13):
        ways.append(ways[step - 1] / 2 + (ways[step - 2] / 2 if step > 1 else 0))
    assert solution.distribution[-1] == ways[11] / 2
