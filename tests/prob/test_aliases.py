"""Two names for one list, dictionary or set: captured and run, programs have one distribution."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from hagane import prob
from hagane.tools.prob.capture.python_function import Unsupported

from .test_python_capture import agrees


def repeated() -> int:
    hand = [prob.rand(-1, 1), 0]
    same = hand
    same *= 2
    same += [prob.rand(0, 1)]
    return sum(hand) * 10 + len(hand)


def merged() -> int:
    stock = {"a": prob.rand(0, 2), "b": 1}
    same = stock
    same |= {"b": prob.rand(0, 1)}
    values = stock.values()
    stock["a"] += 3
    return sum(values)


def sets() -> int:
    seen = {1, 2}
    same = seen
    same |= {3}
    same -= {1}
    seen.discard(2)
    seen.update([7], (number for number in range(11, 13)))
    return sum(same) * prob.rand(0, 2)


def kept_by_a_default() -> int:
    def deal(card: int, hand: list[int] = []) -> int:  # noqa: B006
        hand.append(card)
        return sum(hand)

    deal(prob.rand(0, 1))
    return deal(prob.rand(0, 2)) + 10 * deal(1)


def shared_rows() -> int:
    rows = [[prob.rand(0, 1)]] * 2
    rows[0].append(prob.rand(1, 2))
    own = [list(row) for row in rows]
    own[0][0] = 9
    return sum(rows[1]) + 10 * sum(own[1])


def set_in_a_loop() -> int:
    steps, total = [prob.rand(0, 1), 2, 3], 0
    for place, step in enumerate(steps):
        steps[place] = step * 2
        total += step
    table = {"a": 1, "b": 2}
    for _, value in table.items():
        table["b"] = 10 + steps[0]
        total += value
    return total


@pytest.mark.parametrize(
    "function", [repeated, merged, sets, kept_by_a_default, shared_rows, set_in_a_loop]
)
def test_a_change_reaches_all_names(function: Callable[[], int]) -> None:
    agrees(function)


def deleted_from_one() -> int:
    first = [0, 0]
    chosen = first if prob.flip(Fraction(1, 2)) else list(first)
    del chosen[0]
    return len(first)


def repeated_one() -> int:
    first, second = [1], [2, 3]
    chosen = first if prob.flip(Fraction(1, 2)) else second
    chosen *= 2
    return len(first) * 10 + len(second)


def keys_of_some_runs() -> int:
    table = {"b": 1}
    if prob.flip(Fraction(1, 4)):
        table["a"] = 1
    return len(table) + 10 * table.get("a", 5)


@pytest.mark.parametrize("function", [deleted_from_one, repeated_one, keys_of_some_runs])
def test_changes_that_draws_decide_are_followed_by_runs(function: Callable[[], int]) -> None:
    for engine in ("auto", "replay"):
        made = prob.typed("{r:int | Prob(r >= 0) = 1}", raises=False, engine=engine)(function)
        assert made.report.verdicts[-1].engine == "replay"
        assert made.report.holds
    with pytest.raises(Unsupported):
        prob.typed("{r:int | Prob(r >= 0) = 1}", engine="capture")(function)


def test_the_distribution_of_a_list_that_draws_choose_is_that_of_its_runs() -> None:
    claim = "{r:int | Prob(r = 1) = 1/2 /\\ Prob(r = 2) = 1/2}"
    assert prob.typed(claim)(deleted_from_one).report.holds
    claim = "{r:int | Prob(r = 22) = 1/2 /\\ Prob(r = 14) = 1/2}"
    assert prob.typed(claim)(repeated_one).report.holds
    claim = "{r:int | Prob(r = 12) = 1/4 /\\ Prob(r = 51) = 3/4}"
    assert prob.typed(claim)(keys_of_some_runs).report.holds
