"""Walks on all whole numbers: exact where the equations have rational roots, else bounded."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from hagane.prob import check, load_program
from hagane.tools.prob.engines.chains.chain import run_chain
from hagane.tools.prob.engines.chains.passages import Steps, Walk
from hagane.tools.prob.engines.ledger import Ledger, main_unit

WALK = "letfun w(x: int) : int = if x = 0 then 0 else if flip({p}) then w(x + 1) else w(x - 1) in "


def ledger(text: str) -> Ledger:
    program = load_program(text)
    return run_chain(program, main_unit(program))


@pytest.mark.parametrize(
    ("chance", "start", "home"),
    [
        ("1/3", 3, Fraction(1)),
        ("1/2", 7, Fraction(1)),
        ("2/3", 1, Fraction(1, 2)),
        ("2/3", -4, Fraction(1)),
        ("3/5", 5, Fraction(2, 3) ** 5),
        ("2/5", -5, Fraction(2, 3) ** 5),
    ],
)
def test_a_walk_of_single_steps_comes_home_with_an_exact_probability(
    chance: str, start: int, home: Fraction
) -> None:
    found = ledger(WALK.format(p=chance) + f"w({start})")
    assert found.result == {0: home}
    assert not found.open
    assert found.unending == 1 - home
    assert found.size < 20


def test_runs_that_never_come_home_stand_beside_the_verdict() -> None:
    text = WALK.format(p="2/3") + "w(1) : {x:int | Prob(x = 0) = 1}"
    report = check(load_program(text))
    assert report.holds
    assert "go on for ever with probability 1/2" in report.verdicts[0].note


def test_other_walks_have_bounds_around_what_their_equations_say() -> None:
    """Up by two or down by one: 2 g = g^3 + 1 for a step down, so g is the golden ratio's."""
    found = ledger(
        "letfun w(x: int) : bool = if x <= 0 then true else "
        "if flip(1/2) then w(x + 2) else w(x - 1) in w(1)"
    )
    home = found.result[True]
    assert 0 < found.open < Fraction(1, 10**50)
    root = (5**0.5 - 1) / 2
    assert abs(float(home) - root) < 1e-12
    low, high = home, home + found.open
    assert low**2 + low - 1 <= 0 <= high**2 + high - 1
    assert found.unending <= 1 - home


def test_phases_and_ends_on_the_way_are_followed() -> None:
    text = (
        "letfun v(x: int, k: int) : int = if x = 5 then k else if flip(1/50) then 7 else "
        "if flip(1/2) then v(x + 1, 1 - k) else v(x - 1, 1 - k) in v(2, 1)"
    )
    found = ledger(text)
    assert set(found.result) == {0, 7}
    assert abs(sum(map(float, found.result.values())) - 1) < 1e-12
    # To come up by one has the probability g = 49/100 (1 + g^2).
    step = (1 - (1 - 4 * 0.49 * 0.49) ** 0.5) / (2 * 0.49)
    assert abs(float(found.result[0]) - step**3) < 1e-12


def test_random_walks_have_the_probabilities_of_their_runs() -> None:
    generator = random.Random(5)
    for _ in range(12):
        shifts = sorted(generator.sample([-2, -1, 0, 1, 2, 3], generator.randint(2, 4)))
        weights = [generator.randint(1, 5) for _ in shifts]
        ends = generator.choice([0, 0, 1])
        total = sum(weights) + ends
        steps = Steps(
            [{(0, up): Fraction(n, total) for up, n in zip(shifts, weights, strict=True)}],
            [{0: Fraction(ends, total)} if ends else {}],
        )
        found = Walk(steps).passage(0, 1)
        below, ended, rest = runs(dict(zip(shifts, weights, strict=True)), ends, 1, 80)
        for down in (1, 2):
            least = float(found.below.get((0, down), Fraction(0)))
            assert below.get(down, 0.0) - 1e-9 <= least + float(found.open)
            assert least <= below.get(down, 0.0) + rest + 1e-9
        assert ended - 1e-9 <= float(found.ends.get(0, Fraction(0)) + found.open)
        assert float(found.ends.get(0, Fraction(0))) <= ended + rest + 1e-9
        assert float(found.unending) <= rest + 1e-9
        assert found.open < Fraction(1, 10**15)


def runs(
    weights: dict[int, int], ends: int, start: int, steps: int
) -> tuple[dict[int, float], float, float]:
    """Return the chances to be below, to have ended, and to be on the way after some steps."""
    total = sum(weights.values()) + ends
    below: dict[int, float] = {}
    ended, now = 0.0, {start: 1.0}
    for _ in range(steps):
        after: dict[int, float] = {}
        for level, chance in now.items():
            ended += chance * ends / total
            for up, weight in weights.items():
                to, share = level + up, chance * weight / total
                target = after if to >= 0 else below
                key = to if to >= 0 else -to
                target[key] = target.get(key, 0.0) + share
        now = after
    return below, ended, sum(now.values())
