from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hagane.tools.prob import Limits, check, load_program
from hagane.tools.prob.claims.simplex import Constraint, maximise


def verdicts(text: str):
    return {v.role + " " + v.subject: v for v in check(load_program(text)).verdicts}


def test_a_caller_knows_only_the_type() -> None:
    text = """letfun coin() : {y:bool | Prob(y) <= 1/2} = flip(1/4) in
              (coin()) : {z:bool | Prob(z) <= 1/3}"""
    function, caller = check(load_program(text)).verdicts
    assert function.holds
    assert not caller.holds
    assert caller.probabilities[0].value == Fraction(1, 4)
    assert caller.ranges == ((0, Fraction(1, 2)),)
    assert "does not follow from the types" in caller.note


def test_a_caller_too_large_for_types_says_how_it_was_decided() -> None:
    coin = "letfun coin() : {x:int | Prob(x = 1) = 1/2} = rand(0, 1) in "
    tosses = " + ".join(["coin()"] * 8)
    text = f"{coin}({tosses}) : {{z:int | Prob(z = 0) = 1/256}}"
    small = {v.role: v for v in check(load_program(text), limits=Limits(states=40)).verdicts}
    assert small["annotation"].holds
    assert "too large to decide from the types" in small["annotation"].note
    assert "Markov chain needs more than 40 states" in small["annotation"].reason
    whole = {v.role: v for v in check(load_program(text)).verdicts}
    assert "too large" not in whole["annotation"].note


def test_a_bare_result_type_lets_the_caller_look_inside() -> None:
    text = "letfun coin() : bool = flip(1/4) in (coin()) : {z:bool | Prob(z) = 1/4}"
    (caller,) = check(load_program(text)).verdicts
    assert caller.holds


def test_two_calls_are_bounded_by_independent_choices() -> None:
    text = """letfun coin() : {{y:bool | Prob(y) <= 1/10}} = flip(1/10) in
              (coin() \\/ coin()) : {{z:bool | Prob(z) <= {}}}"""
    assert check(load_program(text.format("19/100"))).holds
    assert not check(load_program(text.format("18/100"))).holds


def test_a_function_is_checked_for_all_arguments_that_its_type_admits() -> None:
    text = """letfun die(n: {{n:int | 1 <= n <= 6}}) : {{y:int | Prob(y = 1) = 1/n {}}} =
                rand(1, n) in die(2)"""
    report = check(load_program(text.format("")))
    assert report.holds
    assert report.verdicts[0].cases == 6
    assert report.verdicts[0].exhaustive
    report = check(load_program(text.format("/\\ y <= 5")))
    failing = report.verdicts[0]
    assert not failing.holds
    assert failing.circumstances == {"n": 6}


def test_arguments_have_to_meet_their_types() -> None:
    text = """letfun half(n: {n:int | n % 2 = 0}) : int = n / 2 in
              half(rand(1, 2))"""
    (argument,) = check(load_program(text)).verdicts
    assert argument.role == "argument"
    assert not argument.holds
    assert argument.culprit is not None
    assert argument.culprit.text == "value = 1"


def test_a_later_argument_may_depend_on_an_earlier_one() -> None:
    text = """letfun pick(lo: {a:int | 0 <= a <= 3}, hi: {b:int | lo <= b <= 4}) :
                {y:int | lo <= y <= hi} = rand(lo, hi) in pick(1, 3)"""
    report = check(load_program(text))
    assert report.holds
    result = next(v for v in report.verdicts if v.role == "result")
    assert result.cases == 5 + 4 + 3 + 2


def test_recursion_is_unfolded_inside_its_own_function() -> None:
    text = """letfun main (n:int) -> {x:int | Prob(x >= 10*n) <= 1/100} =
                if n <= 0 then 1 else rand(1, 10) + main (n - 1)
              in main (3)"""
    (verdict,) = check(load_program(text)).verdicts
    assert verdict.holds
    assert verdict.probabilities[0].value == Fraction(1, 250)
    assert not verdict.exhaustive


def test_arguments_known_by_distribution_are_bounded_over_all_of_them() -> None:
    text = """letfun noisy(x: {{x:bool | Prob(x) <= 1/10}}) : {{y:bool | Prob(y) <= {}}} =
                if flip(1/10) then not x else x in
              noisy(flip({}))"""
    assert check(load_program(text.format("9/50", "1/20"))).holds
    report = check(load_program(text.format("17/100", "1/20")))
    assert [v.holds for v in report.verdicts] == [True, False] or not report.holds
    result = next(v for v in report.verdicts if v.role == "result")
    assert result.probabilities[0].value == Fraction(9, 50)
    report = check(load_program(text.format("9/50", "1/5")))
    argument = next(v for v in report.verdicts if v.role == "argument")
    assert not argument.holds


def test_a_function_can_be_annotated_with_a_weaker_type() -> None:
    text = """letfun coin(n: {{n:int | 0 <= n <= 9}}) : {{y:bool | Prob(y) <= n/10}} =
                flip(n / 20) in
              let _ = (coin : (m: {{m:int | 0 <= m <= 4}}) -> {{z:bool | Prob(z) <= {}}}) in 0"""
    assert check(load_program(text.format("2/5"))).holds
    assert not check(load_program(text.format("1/5"))).holds


def test_types_of_disjunctions_and_conditions_are_used() -> None:
    text = """letfun coin() : {y:bool | Prob(y) = 0 \\/ Prob(y) = 1/2} = flip(1/2) in
              (coin()) : {z:bool | Prob(z) <= 1/2}"""
    assert check(load_program(text)).holds
    text = """letfun roll() : {y:int | Prob(y = 6 | y > 3) <= 1/3 /\\ 1 <= y <= 6} = rand(1, 6) in
              (roll()) : {z:int | Prob(z = 6) <= 1/3}"""
    assert check(load_program(text)).holds


fractions = st.integers(-4, 4).map(Fraction)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.integers(1, 4).flatmap(
        lambda n: st.tuples(
            st.lists(fractions, min_size=n, max_size=n),
            st.lists(
                st.tuples(
                    st.lists(fractions, min_size=n, max_size=n), st.sampled_from(["<=", ">=", "="])
                ),
                max_size=2,
            ),
        )
    )
)
def test_the_simplex_finds_what_a_grid_cannot_beat(problem) -> None:
    gains, rows = problem
    constraints = [Constraint(tuple(row), operator) for row, operator in rows]
    best = maximise(gains, constraints)
    grid = 12

    def admitted(point: tuple[Fraction, ...]) -> bool:
        for constraint in constraints:
            total = sum(c * p for c, p in zip(constraint.coefficients, point, strict=True))
            if constraint.operator == "<=" and total > 0:
                return False
            if constraint.operator == ">=" and total < 0:
                return False
            if constraint.operator == "=" and total != 0:
                return False
        return True

    for parts in product(range(grid + 1), repeat=len(gains)):
        if sum(parts) == grid:
            point = tuple(Fraction(part, grid) for part in parts)
            if admitted(point):
                assert best is not None
                assert sum(g * p for g, p in zip(gains, point, strict=True)) <= best


def test_the_simplex_knows_the_infeasible() -> None:
    assert maximise([Fraction(1)], [Constraint((Fraction(1),), "=")]) is None
    assert maximise([], []) is None
    half = Constraint((Fraction(1), Fraction(-1)), "=")
    assert maximise([Fraction(1), Fraction(0)], [half]) == Fraction(1, 2)


@pytest.mark.parametrize("operator", ["<", "<="])
def test_strict_bounds_are_strict(operator: str) -> None:
    text = f"""letfun coin() : {{y:bool | Prob(y) <= 1/2}} = flip(1/2) in
               (coin()) : {{z:bool | Prob(z) {operator} 1/2}}"""
    assert check(load_program(text)).verdicts[-1].holds is (operator == "<=")
