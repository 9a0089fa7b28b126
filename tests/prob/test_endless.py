"""Recursion that may go on for ever, against values that are known from elsewhere."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hagane.cli import main
from hagane.tools.prob import Limits, check, load_program
from hagane.tools.prob.engines.chains.absorbing import components, visits
from hagane.tools.prob.engines.chains.chain import run_chain
from hagane.tools.prob.engines.ledger import main_unit
from hagane.tools.prob.language.source import ProgramError, TooLarge, UnboundedRecursion

DIE = """
letfun die(s: int) : int =
  if s = 0 then (if flip(1/2) then die(1) else die(2))
  else if s = 1 then (if flip(1/2) then die(3) else die(4))
  else if s = 2 then (if flip(1/2) then die(5) else die(6))
  else if s = 3 then (if flip(1/2) then die(1) else 1)
  else if s = 4 then (if flip(1/2) then 2 else 3)
  else if s = 5 then (if flip(1/2) then 4 else 5)
  else (if flip(1/2) then die(2) else 6) in
"""
RUIN = """
letfun play(m: int) : bool =
  if m = 0 then false else if m = {goal} then true
  else if flip({p}) then play(m + 1) else play(m - 1) in
play({start}) : {{w:bool | Prob(w) = {chance}}}
"""
RING = """
letfun sames(a: bool, b: bool, c: bool) : int =
  (if a = b then 1 else 0) + (if b = c then 1 else 0) + (if c = a then 1 else 0) in
letfun ring(a: bool, b: bool, c: bool, n: int) : int =
  if sames(a, b, c) = 1 then n else
  let d = if a = c then flip(1/2) else c in
  let e = if b = a then flip(1/2) else a in
  let f = if c = b then flip(1/2) else b in
  ring(d, e, f, n + 1) in
ring(true, true, true, 0) : {n:int | E[n] = 4/3}
"""


def holds(text: str) -> str:
    report = check(load_program(text))
    assert report.holds, report
    verdict = report.verdicts[-1]
    assert verdict.engine == "chain"
    return verdict.note


def test_a_coin_makes_a_fair_die() -> None:
    for face in range(1, 7):
        holds(f"{DIE} die(0) : {{x:int | Prob(x = {face}) = 1/6}}")
    holds(f"{DIE} (die(0) + die(0)) : {{x:int | Prob(x = 7) = 1/6 /\\ E[x] = 7}}")


@pytest.mark.parametrize(("p", "goal", "start"), [("1/2", 10, 3), ("9/19", 20, 5), ("2/3", 7, 1)])
def test_the_gambler_is_ruined_as_de_moivre_says(p: str, goal: int, start: int) -> None:
    odds = (1 - Fraction(p)) / Fraction(p)
    chance = Fraction(start, goal) if odds == 1 else (1 - odds**start) / (1 - odds**goal)
    holds(RUIN.format(p=p, goal=goal, start=start, chance=chance))


def test_the_time_that_hermans_ring_of_three_takes_is_known() -> None:
    holds(RING)


@pytest.mark.parametrize(
    "text",
    [
        "letfun f() : int = if flip(1/3) then 0 else 1 + f() in f() : {n:int | E[n] = 2}",
        "letfun f() : int = if flip(1/3) then 0 else f() + 1 in f() : {n:int | 2 * E[n] + 1 = 5}",
        "letfun f() : int = if flip(1/3) then 0 else f() - 1 in f() : {n:int | E[n] = -2}",
        "letfun f(n: int) : int = if flip(1/3) then n else f(n + 1) in f(5) : {n:int | E[n] = 7}",
        "letfun f() : {n:int | E[n] = 2} = if flip(1/3) then 0 else 1 + f() in f()",
        "letfun f() : int = if flip(1/3) then 0 else 1 + f() in "
        "let n = f() in n : {n:int | E[3 * n - 1] = 5}",
        "letfun f() : int = choose {1/2: 0, 1/4: 1 + f(), 1/4: 3 + f()} in "
        "f() : {n:int | E[n] = 2}",
        "letfun f(k: int) : int = if flip(1/2) then k else 1 + f(k) in "
        "let k = rand(0, 3) in f(k) : {n:int | E[n] = 5/2 /\\ E[k * n] = 5}",
    ],
)
def test_means_of_sums_without_a_bound_are_exact(text: str) -> None:
    holds(text)


def test_two_functions_may_call_each_other_for_ever() -> None:
    holds(
        "letfun even(n: int) : bool = if flip(1/2) then true else "
        "(letfun odd(m: int) : bool = if flip(1/2) then false else even(m) in odd(n)) in "
        "even(0) : {b:bool | Prob(b) = 2/3}"
    )


def test_runs_that_never_end_are_counted() -> None:
    note = holds(
        "letfun f(s: int) : int = if s = 0 then (if flip(1/3) then f(1) else f(2)) "
        "else if s = 1 then f(1) else 7 in f(0) : {n:int | n = 7}"
    )
    assert note == (
        "runs go on for ever with probability 1/3; the verdict is of those that reach the claim"
    )
    note = holds(
        "letfun f(s: int) : int = if s = 0 then (if flip(1/4) then f(1) else 7) "
        "else if flip(1/2) then f(1) else f(1) in f(0) : {n:int | n = 7}"
    )
    assert "with probability 1/4" in note


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("letfun f(n:int) : int = if flip(1/2) then f(n) else f(n) in f(3)", "no run ends, so"),
        ("letfun f(n:int) : int = f(n + 1) in f(3)", "for ever with probability 1; let a call"),
    ],
)
def test_a_program_without_an_end_is_an_error(text: str, message: str) -> None:
    with pytest.raises(UnboundedRecursion, match=message):
        check(load_program(text))


def test_observations_condition_runs_without_a_bound() -> None:
    holds(
        "letfun f(s: int) : int = if flip(1/2) then s else f(1 - s) in "
        "let x = f(0) in observe x = 1 \\/ flip(1/2); x : {x:int | Prob(x = 1) = 1/2}"
    )


GEOMETRIC = "letfun f() : int = if flip(1/2) then 0 else 1 + f() in f() : {n:int | CLAIM}"


def test_chains_without_a_bound_on_their_states_give_bounds() -> None:
    text = GEOMETRIC.replace("CLAIM", "Prob(n > 3) <= 1/15")
    (verdict,) = check(load_program(text)).verdicts
    (found,) = verdict.probabilities
    assert 0 < found.within < Fraction(1, 10**12)
    assert found.value <= Fraction(1, 16) <= found.value + found.within
    assert verdict.engine == "chain"
    assert not check(load_program(text.replace("1/15", "1/17"))).holds


def test_a_walk_that_drifts_home_on_all_whole_numbers_is_known_exactly() -> None:
    (verdict,) = check(
        load_program(
            "letfun w(x: int) : int = if x = 0 then 0 else "
            "if flip(1/3) then w(x + 1) else w(x - 1) in w(3) : {n:int | Prob(n = 0) = 1}"
        )
    ).verdicts
    assert verdict.holds
    assert not verdict.probabilities[0].within


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GEOMETRIC.replace("CLAIM", "Prob(n > 3) = 1/16"), r"Prob\(n > 3\) is 0\.0625 \(within"),
        (GEOMETRIC.replace("CLAIM", "E[n * n] <= 9"), r"E\[n \* n\] has no bound"),
        (
            GEOMETRIC.replace("CLAIM", "n >= 0"),
            "leave a distance to the bound, or bound what grows",
        ),
    ],
)
def test_claims_that_open_runs_decide_have_no_verdict(text: str, said: str) -> None:
    with pytest.raises(TooLarge, match=said):
        check(load_program(text))


def test_recursion_that_hardly_ends_is_refused() -> None:
    text = "letfun f() : bool = if flip(1/3) then true else f() /\\ f() in f() : {b:bool | b}"
    with pytest.raises(ProgramError, match="unbounded recursion"):
        check(load_program(text))
    program = load_program(text)
    with pytest.raises((TooLarge, UnboundedRecursion)):
        run_chain(program, main_unit(program), Limits(states=500))


def test_a_chain_beyond_the_limit_says_which_recursion_has_few_states() -> None:
    program = load_program(RUIN.format(p="1/2", goal=1000, start=5, chance="1/200"))
    with pytest.raises(TooLarge, match="finitely many when a call is the last thing that its func"):
        run_chain(program, main_unit(program), Limits(states=100))


def test_visits_are_the_solution_of_the_equations() -> None:
    draw = random.Random(3)
    for _ in range(40):
        count = draw.randint(2, 12)
        transitions: list[list[tuple[Fraction, int, int]]] = [[] for _ in range(count)]
        for state in range(count - 1):
            targets = draw.choices(range(count), k=draw.randint(1, 3))
            weights = [draw.randint(1, 5) for _ in targets]
            transitions[state] = [
                (Fraction(weight, sum(weights)), target, draw.randint(-2, 3))
                for weight, target in zip(weights, targets, strict=True)
            ]
        found = visits(transitions, 2, frozenset())
        matrix, gains = np.zeros((count, count)), np.zeros((count, count))
        for state, options in enumerate(transitions):
            for share, target, gain in options:
                matrix[state, target] += float(share)
                gains[state, target] += float(share) * gain
        reach = np.linalg.matrix_power(np.eye(count) + matrix, count) > 0
        ends = [not options for options in transitions]
        # States that are met again and again for ever have no number of visits.
        leaves = np.array(
            [
                ends[s] or any(reach[s, t] and not reach[t, s] for t in range(count))
                for s in range(count)
            ]
        )
        start = np.zeros(count)
        start[0] = 1
        keep = np.diag(leaves.astype(float))
        system = np.eye(count) - (matrix @ keep).T
        expected = np.linalg.solve(system, start * leaves)
        rewards = np.linalg.solve(system, start * leaves * 2 + keep @ gains.T @ expected)
        np.testing.assert_allclose([float(x) for x in found.expected], expected, atol=1e-9)
        np.testing.assert_allclose([float(x) for x in found.rewards], rewards, atol=1e-9)
        ended = sum(found.expected[state] for state in range(count) if ends[state])
        assert found.unending == 1 - ended


def test_components_stand_before_those_that_they_lead_to() -> None:
    graph = [[1], [2, 3], [1], [4], [3, 5], []]
    assert [sorted(each) for each in components(graph)] == [[0], [1, 2], [3, 4], [5]]


@pytest.mark.long
def test_long_fractions_are_shown_by_their_digits_and_written_whole_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "walk.pml"
    text = RUIN.format(p="999/1999", goal=1500, start=20, chance="0").replace("= 0}", "<= 1/100}")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["prob", "check", str(path)])
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines()[1:]) < 100
    assert "(exactly a fraction of " in shown
    with pytest.raises(SystemExit):
        main(["prob", "check", str(path), "--json"])
    (found,) = json.loads(capsys.readouterr().out)["verdicts"]
    top, _, bottom = found["probabilities"][0]["value"].partition("/")
    assert f"fraction of {len(top):,} over {len(bottom):,} digits" in shown
    assert len(bottom) > 4300
