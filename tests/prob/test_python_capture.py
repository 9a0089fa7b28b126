"""Typed Python functions against what running them with every sequence of draws gives."""

from __future__ import annotations

import functools
import linecache
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hagane import prob
from hagane.tools.prob.capture.python_function import Unsupported
from hagane.tools.prob.language.source import DivisionByZero, ImpossibleCondition
from tests.prob.python_functions import TooMany, Writer, distribution

TABLE = [5, -2, 7]
MATRIX = np.array([[1, -2], [3, 1]])


def share(
    function: Callable[..., Any], event: str, kind: str = "int", engine: str = "auto"
) -> Fraction:
    """Return how likely an event of the result ``r`` is."""
    claim = f"{{r:{kind} | Prob({event}) >= 0}}"
    report = prob.typed(claim, raises=False, engine=engine)(function).report
    return report.verdicts[-1].probabilities[0].value


def agrees(function: Callable[[], Any]) -> None:
    """Compare all probabilities of a function's results with those of its runs."""
    runs = distribution(function)
    claim = " /\\ ".join(f"Prob(r = {value}) >= 0" for value in runs) or "Prob(r = 0) >= 0"
    for engine in ("capture", "replay"):
        made = prob.typed(f"{{r:int | {claim}}}", raises=False, engine=engine)
        if not runs:
            with pytest.raises(ImpossibleCondition):
                made(function)
            continue
        found = [item.value for item in made(function).report.verdicts[-1].probabilities]
        assert found == list(runs.values())


@pytest.mark.long
@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30))
def test_random_functions_have_the_distribution_of_their_runs(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = tmp_path_factory.mktemp("functions") / "random_function.py"
    path.write_text(Writer(random.Random(seed)).text(), encoding="utf-8")
    names: dict[str, Any] = {"__name__": "random_function"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    linecache.checkcache()
    try:
        distribution(names["f"], 2_000)
    except TooMany:
        return
    agrees(names["f"])


def test_minima_and_maxima_of_negative_draws_are_theirs() -> None:
    def clipped() -> int:
        low = prob.rand(-4, 3)
        high = max(low, -2) + min(low * low, 3) - max(-low, low - 1)
        return min(max(high, low), abs(low), 2)

    agrees(clipped)


def test_division_and_remainder_round_as_python_rounds() -> None:
    def parts() -> int:
        a, b = prob.rand(-5, 5), prob.rand(1, 3) * (1 if prob.flip(0.5) else -1)
        return 1000 * (a // b) + 100 * (a % b) + 10 * (a // -3) + a % -4

    agrees(parts)


def test_a_division_is_evaluated_on_its_path_only() -> None:
    def careful() -> int:
        x = prob.rand(-2, 2)
        if x == 0:
            return 9
        for _ in range(2):
            x = 7 // x if x != 0 else x
        return x

    agrees(careful)
    with pytest.raises(DivisionByZero, match=r"a run that gets there: .*prob\.rand\(0, 2\) = 0"):

        @prob.typed("{r:int | r >= 0}")
        def careless() -> int:
            return 3 // prob.rand(0, 2)


def test_observations_on_one_path_leave_the_others_alone() -> None:
    def seen() -> int:
        x = prob.rand(0, 3)
        if prob.flip(Fraction(1, 3)):
            if x == 3:
                return 7
            prob.observe(x > 0)
            x += 10
        return x

    agrees(seen)


def test_loops_end_where_the_bounds_of_draws_end_them() -> None:
    def race() -> int:
        total = turns = 0
        while total < 8:
            total += prob.rand(1, 4)
            turns += 1
            if turns == 4:
                break
        else:
            total += 100
        for k in range(prob.rand(0, 2)):
            if total % 2:
                continue
            total += k
        return total * 10 + turns

    agrees(race)


def test_many_turns_with_early_returns_stay_small() -> None:
    def walk() -> bool:
        x = 0
        for _ in range(40):
            x += 1 if prob.flip(0.5) else -1
            if abs(x) > 8:
                return True
        return False

    assert share(walk, "r", "bool") == Fraction(84580800349, 274877906944)


def test_sums_of_many_dice_need_their_partial_sums_alone() -> None:
    def dice() -> int:
        return sum([prob.rand(1, 6) for _ in range(60)])

    assert share(dice, "r = 60") == Fraction(1, 6**60)


def test_containers_objects_and_closures_are_followed() -> None:
    class Queue:
        def __init__(self, room: int) -> None:
            self.room, self.length = room, 0

        def push(self) -> bool:
            self.length = min(self.room, self.length + prob.rand(0, 1))
            return self.length == self.room

    def busy() -> int:
        queue, load, log = Queue(2), [0] * 3, {}
        for turn in range(4):
            load[prob.rand(0, 2)] += 1
            log[turn] = queue.push()
        worst, *_ = sorted(load, reverse=True)
        full = sum(log.values())
        return worst * 100 + full * 10 + TABLE[prob.rand(-3, 1)] + int(MATRIX[0][1])

    agrees(busy)


def test_choose_draws_one_of_its_values() -> None:
    def chosen() -> int:
        step, name = prob.choose(("1/2", (1, "a")), (Fraction(1, 3), (5, "b")), (1 / 6, (9, "c")))
        return step + (name == "b")

    assert share(chosen, "r = 6") == Fraction(1, 3)
    assert share(chosen, "r = 9") == Fraction(1, 6)  # the float 1 / 6 is a sixth

    def short() -> int:
        return prob.choose((0.5, 1), (0.3, 2))

    with pytest.raises(prob.ProgramError, match="sum to"):
        share(short, "r = 1")

    def exact() -> int:
        return prob.choose((0.5, prob.rand(0, 1)), (0.5, 3))

    agrees(exact)
    with pytest.raises(ValueError, match="expected probabilities that sum to 1, got 1/2, 1/3"):
        prob.choose((0.5, 1), ("1/3", 2))


def test_probabilities_depend_on_draws() -> None:
    def urn() -> int:
        red = 2
        for drawn in range(3):
            red -= prob.flip(Fraction(red, 5) if drawn == 0 else red / 5)
        return red

    assert share(urn, "r = 2") == Fraction(27, 125)
    third = Fraction(1, 3)

    def known() -> bool:
        n = prob.rand(0, 1)
        return prob.flip(third * n) or (prob.flip(1 - third * 2) if third < 1 else False)

    assert share(known, "r", "bool") == Fraction(4, 9)


def test_a_typed_function_may_call_itself() -> None:
    @prob.typed("{r:int | r <= n /\\ Prob(r >= 1) <= 1/2}")
    def heads(n: "{n:int | 0 <= n <= 4}") -> int:  # noqa: F821, UP037
        if n == 0 or prob.flip(0.5):
            return 0
        return 1 + heads(n - 1)

    assert heads.report.holds
    assert heads.report.verdicts[-1].cases == 5


def test_plain_recursion_is_followed_while_draws_bound_it() -> None:
    def count(n: int) -> int:
        return 0 if n == 0 else 1 + count(n - 1)

    def recursive() -> int:
        return count(prob.rand(0, 5))

    agrees(recursive)


def test_parameters_bound_loops() -> None:
    @prob.typed("{r:int | Prob(r = n) = 1/2 /\\ r <= n + 1}")
    def steps(n: "{n:int | -1 <= n <= 3}") -> int:  # noqa: F821, UP037
        total = prob.rand(0, 1)
        for _ in range(n):
            total += 1
        return total if n >= 0 else total - 1

    assert steps.report.verdicts[-1].cases == 5


@functools.lru_cache
def cached() -> int:
    return prob.rand(0, 1)


def endless(n: int) -> int:
    return 1 + endless(n + prob.rand(0, 1))


def rejecting() -> int:
    while True:
        number = prob.rand(1, 8)
        if number <= 6:
            return number


def geometric() -> int:
    n = 0
    while prob.flip(0.5):
        n += 1
    return n


def filtered() -> int:
    return len([x for x in [prob.rand(0, 1), 3] if x > 0])


def grown() -> int:
    xs = []
    if prob.flip(0.5):
        xs.append(1)
    return len(xs)


def raising() -> int:
    if prob.rand(0, 3) > 2:
        raise ValueError
    return 1


def asserting() -> int:
    x = prob.rand(0, 3)
    assert x > 1
    return x


def changing() -> int:
    TABLE.append(prob.rand(0, 1))
    return 1


def unbound() -> int:
    if prob.flip(0.5):
        y = 3
    return y


@pytest.mark.parametrize(
    ("function", "message", "text"),
    [
        (geometric, "no end of this 'while' is in sight after 128 turns", "while prob.flip(0.5)"),
        (rejecting, "no end of this 'while' is in sight after 64 turns", "while True:"),
        (filtered, "a filter has to be known before the run; count with sum", "x > 0"),
        (grown, "the length of this list depends on draws", "len(xs)"),
        (raising, "a possible run raises ValueError; to leave such runs out, use", "raise"),
        (asserting, "the assertion may fail on a possible run; to keep only", "assert x > 1"),
        (changing, "a list or dictionary from outside is changed; copy it first", "def changing"),
        (unbound, "'y' is not defined on every path to here", "return y"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_cannot_be_captured_is_named_at_its_line(
    function: Callable[[], int], message: str, text: str
) -> None:
    with pytest.raises(Unsupported) as caught:
        share(function, "r = 1", engine="capture")
    assert message in str(caught.value)
    assert text in Path(__file__).read_text(encoding="utf-8").split("\n")[caught.value.line - 1]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return prob.rand(0, 5) * 0.5", "a real number that depends on draws; draws are integers"),
        ("return int(prob.rand(0, 5) / 2)", "use // and %, or multiply both sides"),
        ("return TABLE[prob.rand(0, 3)]", "the index lies in 0 to 3, there are 3 items"),
        ("return endless(0)", "recursion of 'endless' without an end in sight; give the function"),
        ("return random.randint(0, 1)", "'randint' is not known; draw with prob.rand"),
        ("return cached()", "keeps its results (functools.lru_cache)"),
        ("return len({prob.rand(0, 1)})", "a set of values that are not known"),
        ("return len(f'{prob.rand(0, 1)}')", "a text that depends on draws"),
        ("return None if prob.flip(0.5) else 1", "a path ends without 'return value'"),
        ("return pow(prob.rand(0, 1), 2, 3)", "this cannot be followed; write it with plain"),
        ("return unknown + 1", "NameError: the name 'unknown' is not defined"),
        ("return prob.rand(0, 1) ** prob.rand(0, 1)", "'**' of a number that depends on draws"),
    ],
)
def test_an_expression_that_cannot_be_captured_is_named(
    tmp_path: Path, body: str, message: str
) -> None:
    path = tmp_path / "refused.py"
    path.write_text(f"def f():\n    {body}\n", encoding="utf-8")
    names = {**globals()}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    with pytest.raises(Unsupported) as caught:
        share(names["f"], "r = 1", engine="capture")
    assert message in str(caught.value)
    assert "refused.py:" in str(caught.value)
    assert "^" in str(caught.value)
