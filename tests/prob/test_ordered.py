"""Steps in an order in which few values wait."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given

from hagane import prob
from hagane.tools.prob import Limits, check, load_program
from hagane.tools.prob.engines import ordered as order
from hagane.tools.prob.engines.dynamic import run_dynamic
from hagane.tools.prob.engines.enumeration import run_enumeration
from hagane.tools.prob.engines.ledger import main_unit
from hagane.tools.prob.language.program import walk
from hagane.tools.prob.language.source import PathError, TooLarge
from hagane.tools.prob.language.syntax import Let

from .programs import QUIET, programs


def measured(text: str, limits: Limits) -> Fraction:
    (verdict,) = check(load_program(text), "dynamic", limits).verdicts
    return verdict.probabilities[0].value


def flips(count: int, chance: str = "1/2") -> str:
    return "".join(f"let x{index} = flip({chance}) in\n" for index in range(count))


def test_a_sum_and_a_condition_on_neighbours_share_their_flips() -> None:
    @prob.typed("{x:bool | Prob(x) <= 1/100}")
    def rare() -> bool:
        x = [prob.flip(1 / 2) for _ in range(40)]
        return sum(x) >= 10 and not any(a and b for a, b in itertools.pairwise(x))

    (found,) = rare.report.verdicts[-1].probabilities
    # Choices of k places of 40, no two of them neighbours: C(41 - k, k).
    wanted = sum(_choose(41 - k, k) for k in range(10, 21))
    assert found.value == Fraction(wanted, 2**40)


def _choose(n: int, k: int) -> int:
    found = 1
    for index in range(k):
        found = found * (n - index) // (index + 1)
    return found


def test_a_comparison_of_two_sums_is_one_sum() -> None:
    left = " + ".join(f"(if x{index} then {1 + index % 3} else 0)" for index in range(0, 60, 2))
    right = " + ".join(f"(if x{index} then 2 else 0)" for index in range(1, 60, 2))
    text = f"({flips(60)} let a = {left} in let b = {right} in a >= b /\\ x0) : "
    found = measured(text + "{c:bool | Prob(c) <= 1}", Limits(states=1_000))
    assert Fraction(1, 4) < found < Fraction(2, 5)


@pytest.mark.parametrize("count", [20, 200])
def test_two_hundred_flips_are_few_rows(count: int) -> None:
    total = " + ".join(f"(if x{index} then 1 else 0)" for index in range(count))
    pairs = " \\/ ".join(f"(x{index} /\\ x{index + 1})" for index in range(count - 1))
    text = f"{flips(count, '1/9')} let s = {total} in let p = {pairs} in "
    text += f"(s > {count // 9} /\\ not p) : {{c:bool | Prob(c) <= 1}}"
    assert 0 < measured(text, Limits(states=3_000)) < Fraction(1, 2)


def test_subtracted_and_negated_items_keep_their_sign() -> None:
    terms = " - ".join(f"(-(if x{index} then {index} else 1))" for index in range(14))
    parity = " /\\ ".join(f"(x{index} = x{index + 1})" for index in range(13))
    text = f"{flips(14)} let s = 3 - {terms} in let same = {parity} in "
    text += "(if same then s else 0 - 1) : {v:int | E[v] <= 1000}"
    (exact,) = check(load_program(text), "enumerate").verdicts[0].probabilities
    assert measured(text, Limits(states=3_000)) == exact.value


@pytest.mark.long
def test_random_programs_in_another_order_have_their_distribution(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order, "_FEW", 0)
    monkeypatch.setattr(order, "_width", _any_width())
    compared = 0

    @QUIET
    @given(programs())
    def compare(text: str) -> None:
        nonlocal compared
        program = load_program(text)
        unit = main_unit(program)
        if not any(isinstance(node, Let) for node in walk(program.main)):
            return
        try:
            expected = run_enumeration(program, unit, Limits(runs=20_000))
        except (PathError, TooLarge):
            return
        found = run_dynamic(program, unit)
        assert found.result == expected.result
        assert [found.tables.get(site, {}) for site in unit.sites] == [
            expected.tables.get(site, {}) for site in unit.sites
        ]
        compared += 1

    compare()
    assert compared >= 50


def _any_width() -> Callable[..., int]:
    """Return a measure by which every new order is better."""
    falling = itertools.count(1 << 30, -1)
    return lambda *_: next(falling)


@pytest.mark.parametrize("seed", range(12))
def test_random_steps_that_share_draws_have_the_distribution_of_their_runs(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "_FEW", 0)
    monkeypatch.setattr(order, "_width", _any_width())
    chance = Random(seed)
    text = flips(7, "1/3")
    numbers = [f"(if x{index} then {index + 1} else 2)" for index in range(7)]
    truths = [f"x{index}" for index in range(7)]
    for index in range(5):
        signs = [chance.choice(["+", "-"]) for _ in range(3)]
        picked = chance.sample(numbers, 4)
        text += f"let s{index} = {picked[0]}"
        text += "".join(f" {sign} {item}" for sign, item in zip(signs, picked[1:], strict=True))
        text += " in\n"
        numbers.append(f"s{index}")
        join = chance.choice(["/\\", "\\/"])
        both = chance.sample(truths, 3)
        less = f"({chance.choice(numbers)} {chance.choice(['<', '>='])} {chance.choice(numbers)})"
        text += f"let c{index} = " + f" {join} ".join((*both, less)) + " in\n"
        truths.append(f"c{index}")
    program = load_program(text + "(s3 + s4, (c3, c4))")
    unit = main_unit(program)
    assert run_dynamic(program, unit).result == run_enumeration(program, unit).result
