"""Variables of Python functions that grow without bound take no states where they are large."""

import ast
import random
from fractions import Fraction

import pytest

from hagane import prob
from hagane.tools.prob.capture.python_function import read_function
from hagane.tools.prob.replay.folded import folded
from hagane.tools.prob.replay.marked import marked
from hagane.tools.prob.replay.walkers import walkers_of


def test_a_walk_that_may_never_come_back_is_exact() -> None:
    @prob.typed("{x:int | Prob(x = 0) = 1}", engine="replay")
    def walk() -> int:
        x = 1
        while x != 0:
            if prob.flip("2/3"):
                x += 1
            else:
                x -= 1
        return x

    assert "runs go on for ever with probability 1/2" in str(walk.report)


def test_a_population_dies_out_with_the_least_root() -> None:
    @prob.typed("{x:bool | Prob(x) = 1}", engine="replay")
    def family() -> bool:
        alive: int = 2
        while alive > 0:
            alive = alive - 1
            if random.random() < 0.75:
                alive = alive + 2
        return True

    # One line dies out with probability 1/3.
    assert "runs go on for ever with probability 8/9" in str(family.report)


def test_walks_on_both_sides_meet_again() -> None:
    @prob.typed("{x:bool | Prob(x) = 1}", engine="replay")
    def home() -> bool:
        x = 0
        while True:
            x += 1 if prob.flip(3 / 5) else -1
            if not x:
                return True

    assert "runs go on for ever with probability 1/5" in str(home.report)


def test_phases_and_other_ends_are_kept() -> None:
    @prob.typed(
        "{n:int | 0.0604 <= Prob(n = 0) <= 0.0605 /\\ Prob(n = 1) < 0.9396}", engine="replay"
    )
    def ruined() -> int:
        x = 3
        while x > 0:
            if random.random() < 0.1:
                return 1
            x += random.choice([-1, 1, 1])
        return 0

    @prob.typed("{n:int | 0.3819 <= Prob(n = 0) <= 0.3820}", engine="replay")
    def twice() -> int:
        x = 1
        while x > 0:
            if prob.flip(1 / 2):
                x -= 2
            else:
                x += 1
        return x

    assert ruined.report.holds
    assert twice.report.holds


def test_a_step_that_only_the_run_knows_is_bounded_by_it() -> None:
    def step() -> int:
        return prob.choose((Fraction(1, 2), 5), (Fraction(1, 2), -1))

    @prob.typed("{x:bool | Prob(x) >= 0.999}", engine="replay")
    def fair() -> bool:
        x = 1
        while x > 0:
            x += step()
        return True

    assert "runs go on for ever with probability about 0.4913" in str(fair.report)


@pytest.mark.parametrize(
    ("turn", "names"),
    [
        ("x += 1", ["x"]),
        ("x = x - step()", ["x"]),
        ("if -3 < x <= 4: x += y", ["x"]),
        ("x += 1; y += x", []),
        ("x *= 2; x += 1", []),
        ("if x % 2 == 0: x += 1", []),
        ("x += 1; print(locals())", []),
        ("with lock: x += 1", []),
        ("x += 1; seen.append(x)", []),
        ("x += 1; [x for x in range(3)]", []),
    ],
)
def test_a_walker_is_compared_with_constants_alone(turn: str, names: list[str]) -> None:
    lines = "".join(f"\n        {statement}" for statement in turn.split("; "))
    tree = ast.parse(f"def f(y):\n    x = 0\n    while x >= 0:{lines}\n    return x").body[0]
    assert isinstance(tree, ast.FunctionDef)
    assert [walker.name for walker in walkers_of(tree)] == names


def test_results_that_compare_are_those_of_all_large_values() -> None:
    @prob.typed("{x:bool | Prob(x) = 1/2}", engine="replay")
    def at_once() -> bool:
        n = 0
        while random.random() < 0.5:
            n += 1
        return n == 0

    assert at_once.report.holds


def test_results_of_any_size_are_not_folded() -> None:
    def far() -> int:
        x = 1
        while True:
            x += 1 if prob.flip(1 / 2) else -1
            if prob.flip(1 / 5):
                return x

    found = read_function(far)
    assert folded(marked(found.function, found.tree), [], 1_000) is None
