"""Probabilities as functions of parameters, against programs whose parameters have values."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from hagane import prob
from hagane.errors import InvalidArgument
from hagane.tools.prob import check, load_program, solve
from hagane.tools.prob.capture.python_function import Unsupported
from hagane.tools.prob.claims.bernstein import range_over
from hagane.tools.prob.language.ratios import Parameters, Ratio
from hagane.tools.prob.language.source import BadDistribution, ProgramError
from tests.prob.test_command import run

DIE = """param p;
letfun die(s: int, n: int) : int =
  if s = 0 then (if flip(p) then die(1, n + 1) else die(2, n + 1))
  else if s = 1 then (if flip(p) then die(3, n + 1) else n + 1)
  else if flip(p) then die(2, n + 1) else n + 1 in
"""
RUIN = """param p, q;
letfun play(m: int) : bool =
  if m = 0 then false else if m = 3 then true
  else choose {p: play(m + 1), q: play(m - 1), 1 - p - q: play(m)} in
play(1)"""


def verdict(text: str) -> prob.Verdict:
    (found,) = check(load_program(text)).verdicts
    return found


def test_ratios_calculate_as_functions_do() -> None:
    parameters = Parameters(("p", "q"), ((Fraction(0), Fraction(1)),) * 2)
    p, q = parameters.ratio("p"), parameters.ratio("q")
    made = (1 - p) / (1 - p * q) + Fraction(1, 3) * p**2
    point = (Fraction(1, 3), Fraction(1, 4))
    expected = Fraction(2, 3) / (1 - Fraction(1, 12)) + Fraction(1, 27)
    assert made.at(point) == expected
    assert not p - p
    assert (p / p).number == 1
    assert p / p == 1
    assert hash(p / p) == hash(1)
    assert str((1 - p) * (1 - p) / (2 * q)) == "(1 - p)^2/(2*q)"
    with pytest.raises(TypeError, match="the comparison of p with q depends on a parameter"):
        _ = p < q
    with pytest.raises(ZeroDivisionError):
        _ = 1 / (p - p)


@pytest.mark.parametrize("value", ["1/3", "1/2", "9/10"])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        (RUIN, "pq"),
        ("param p, q; let a = flip(p) in let b = flip(q) in observe a \\/ b; (a, b)", "pq"),
        ("param p; let n = rand(0, 3) in if flip(p / (n + 1)) then n else n + 1", "p"),
        ("param p from 1/4 to 3; if flip(p / (1 + p)) then 1 else 0", "p"),
    ],
)
def test_formulas_have_the_values_of_programs_without_parameters(
    text: str, names: str, value: str
) -> None:
    point = [Fraction(value) / (2 if index else 1) for index, _ in enumerate(names)]
    if text is RUIN:
        point = [each / 2 for each in point]
    at = dict(zip(names, point, strict=True))
    formulas, numbers = solve(load_program(text)), solve(load_program(text, at=at))
    assert numbers.distribution
    for outcome, number in numbers.distribution.items():
        formula = formulas.distribution[outcome]
        assert (formula.at(point) if isinstance(formula, Ratio) else formula) == number


def test_a_claim_is_decided_for_all_values_at_once() -> None:
    found = verdict(DIE + "die(0, 0) : {n:int | E[n] = (1 + p + p^2 - p^3) / (1 - p) - p*p }")
    held = check(load_program(DIE + "die(0, 0) : {n:int | E[n] >= 2}"))
    assert held.holds
    (each,) = held.verdicts
    assert each.where == "0 <= p < 1"
    assert not found.holds


def test_the_part_of_the_range_where_a_claim_holds_is_told() -> None:
    text = "param p; (flip(p) /\\ flip(p)) : {x:bool | Prob(x) <= 1/4}"
    found = verdict(text)
    assert not found.holds
    assert found.formulas[0].text == "p^2"
    assert found.note == "it holds for 0 <= p <= 1/2, not for p = 0.75"
    golden = verdict("param p; (flip(p) /\\ flip(p)) : {x:bool | Prob(x) <= 1 - p}")
    assert "it holds for 0 <= p <= about 0.6180339887" in golden.note
    assert verdict("param p from 0 to 1/2; (flip(p)) : {x:bool | Prob(x) <= 1/2}").holds
    two = verdict("param p; flip(p) : {x:bool | Prob(x) < 1/3 \\/ Prob(x) > 2/3}")
    assert two.note.startswith("it holds for 0 <= p < 1/3 or 2/3 < p <= 1")


def test_formulas_hold_only_where_runs_end_and_observations_are_met() -> None:
    loop = "param p; letfun go(n: int) : int = if flip(p) then go(n) else 1 in go(0)"
    assert solve(load_program(loop)).where == "0 <= p < 1"
    assert solve(load_program("param p; let a = flip(p) in observe a; rand(0, 1)")).where == (
        "0 < p <= 1"
    )
    assert solve(load_program("param p from 0 to 3; flip(p / 2)")).where == "0 <= p <= 2"


@pytest.mark.long
def test_more_parameters_are_decided_by_boxes() -> None:
    held = verdict(RUIN + " : {w:bool | Prob(w) = p^2 / (p^2 + p*q + q^2)}")
    assert held.holds
    assert held.where == "0 <= p <= 1, 0 <= q <= 1, -p - q + 1 >= 0, p^2 + p*q + q^2 != 0"
    below = verdict("param p, q; (flip(p) /\\ flip(q)) : {x:bool | Prob(x) <= p}")
    assert below.holds
    fails = verdict("param p, q; (flip(p) /\\ flip(q)) : {x:bool | Prob(x) <= 1/5}")
    assert not fails.holds
    assert fails.note == "not for p = 1/2, q = 1/2"
    with pytest.raises(ProgramError, match="neither proved nor refuted"):
        verdict("param p, q; (flip(p) /\\ flip(q)) : {x:bool | 2 * Prob(x) <= p^2 + q^2}")


def test_polynomials_stay_between_their_bernstein_coefficients() -> None:
    box = ((Fraction(-1), Fraction(2)), (Fraction(0), Fraction(1, 2)))
    polynomial = {(2, 1): Fraction(3), (1, 0): Fraction(-1), (0, 3): Fraction(2)}
    low, high = range_over(polynomial, box)
    for i in range(11):
        for j in range(11):
            x, y = Fraction(3 * i, 10) - 1, Fraction(j, 20)
            assert low <= 3 * x * x * y - x + 2 * y**3 <= high
    assert range_over({(1, 0): Fraction(1)}, box) == (-1, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("param p; rand(0, p)", "'p' is a parameter; parameters stand in probabilities, and in"),
        ("param p; if p < 1/2 then 1 else 0", "'p' is a parameter"),
        ("param p; flip(if p < 1/2 then p else 1)", "the comparison of p with 1/2 depends on a p"),
        ("param p, p; flip(p)", "the parameter 'p' is there already"),
        ("param p from 1 to 0; flip(p)", "a parameter from 1 to 0 has no values between"),
        ("param p from 0 to x; flip(p)", "expected a number, as in 1/10"),
        ("param p flip(p)", "';' after the parameters, as in param p;"),
        ("param p; choose {p: 1, p: 2}", r"the probabilities sum to 2\*p, expected 1"),
        ("param p; choose {2: 1, -1: 2, p: 3, -p: 4}", "the probability '-1' is -1, below 0"),
        (
            "param p; letfun f() : {x:bool | Prob(x) <= 1} = flip(p) in f()",
            "'f' has a type that claims something, and the program has parameters",
        ),
        ("param p; letfun f(n: int) : int = f(n) in f(0)", "no run ends"),
        ("param p; let a = flip(p) in observe false; a", "the observation has probability zero"),
        ("rand(0, 1)^2", "a power is a product of equal factors, and this would be drawn anew"),
    ],
)
def test_what_parameters_cannot_be_is_told(text: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        solve(load_program(text))


def test_values_of_parameters_are_checked() -> None:
    with pytest.raises(InvalidArgument, match="has no parameter 'x'; its parameters: p"):
        load_program("param p; flip(p)", at={"x": Fraction(1)})
    with pytest.raises(InvalidArgument, match="'p' lies from 0 to 1; got 2"):
        load_program("param p; flip(p)", at={"p": Fraction(2)})
    with pytest.raises(BadDistribution):
        solve(load_program("param p; flip(p + 1)", at={"p": Fraction(1)}))
    with pytest.raises(InvalidArgument, match="need the engine 'chain'"):
        check(load_program("param p; flip(p)"), "storm")


def test_a_parameter_is_a_word_like_others_elsewhere() -> None:
    assert check(load_program("let param = 3 in (param + 1) : {x:int | x = 4}")).holds


def test_arguments_of_python_functions_are_parameters() -> None:
    @prob.typed("{x:int | E[x] = (3 - 2*p) / (1 - p)}")
    def waits(p: prob.Parameter) -> int:
        n = 2
        while True:
            n += 1
            if not prob.flip(p):
                return n

    (found,) = waits.report.verdicts
    assert found.where == "0 <= p < 1"
    assert waits(0.0) == 3
    with pytest.raises(prob.BrokenClaim, match="it holds for 0 <= p <= 1/2, not for p = 0.75"):

        @prob.typed("{x:bool | Prob(x) <= 1/2}")
        def most(p: prob.Parameter) -> bool:
            return sum(prob.flip(p) for _ in range(3)) >= 2

    with pytest.raises(Unsupported, match="the comparison of p with 0.5 depends on a parameter"):

        @prob.typed("{x:bool | Prob(x) <= 1/2}")
        def decides(p: prob.Parameter) -> bool:
            return prob.flip(0.5) if p < 0.5 else True

    with pytest.raises(Unsupported, match="and 'n' is none; fix its value inside"):

        @prob.typed("{x:bool | Prob(x) <= 1/2}")
        def mixed(p: prob.Parameter, n: int) -> bool:
            return prob.flip(p / n)

    @prob.typed("{x:int | Prob(x = 2) = 1 - p - q}")
    def chosen(p: prob.Parameter, q: prob.Parameter) -> int:
        return prob.choose((p, 0), (q, 1), (1 - p - q, 2))

    assert chosen.report.holds
    assert chosen(0.25, 0.75) < 2


def test_the_command_solves_and_takes_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "coin.pml"
    path.write_text("param p; (if flip(p) then 3 else rand(0, 1)) : {x:int | Prob(x = 3) = p}")
    assert run("solve", path) == 0
    assert "Prob(value = 0) = (1 - p)/2\n" in capsys.readouterr().out
    assert run("check", "--json", path) == 0
    (told,) = json.loads(capsys.readouterr().out)["verdicts"]
    assert told["formulas"] == [{"term": "Prob(x = 3)", "formula": "p"}]
    assert run("solve", "--json", path, "--at", "p=0.5") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["mean"] == {"exact": "7/4", "decimal": 1.75}
    assert run("run", path) == 2
    assert "'p' has none; give it, as in --at p=1/2" in capsys.readouterr().err
    assert run("run", path, "-n", "10", "--at", "p=x") == 2
    assert "--at: expected NAME=NUMBER, as in p=1/3; got 'p=x'" in capsys.readouterr().err
