"""Runs that differ in the names of drawn values, or in an order that nothing looks at, meet."""

from __future__ import annotations

import ast
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from math import comb, prod

import pytest

from hagane.tools.prob import rand, typed
from hagane.tools.prob.capture.python_function import read_function
from hagane.tools.prob.replay.explore import Explorer
from hagane.tools.prob.replay.looped import looped
from hagane.tools.prob.replay.marked import marked
from tests.prob.python_functions import distribution

COLOURS = ("red", "green", "blue")
TWICE = ("red", "red", "blue")


def birthdays() -> bool:
    days = [random.randint(1, 365) for _ in range(23)]
    return len(set(days)) < 23


def birthdays_by_turns() -> bool:
    seen = set()
    for _ in range(23):
        day = random.randrange(365)
        if day in seen:
            return True
        seen.add(day)
    return False


def three_on_one_day() -> bool:
    days = Counter(rand(1, 365) for _ in range(12))
    return max(days.values()) >= 3


def filter_of_bits() -> bool:
    bits = set()
    for _ in range(12):
        bits.add(random.randrange(16))
    return all(random.randrange(16) in bits for _ in range(2))


DISTINCT = 1 - prod(Fraction(365 - k, 365) for k in range(23))


@pytest.mark.parametrize(
    ("function", "chance"), [(birthdays, DISTINCT), (birthdays_by_turns, DISTINCT)]
)
def test_birthdays_are_kept_as_a_number_of_days(
    function: Callable[[], bool], chance: Fraction
) -> None:
    checked = typed(f"{{x:bool | Prob(x) = {chance}}}")(function)
    assert checked.report.verdicts[0].engine == "replay"


def test_days_are_counted_without_their_names() -> None:
    # Of partitions of 12 into ones and twos: none on one day, or some pairs.
    fine = sum(
        Fraction(comb(365, pairs) * comb(365 - pairs, 12 - 2 * pairs), 365**12)
        * prod(range(1, 13))
        / 2**pairs
        for pairs in range(7)
    )
    typed(f"{{x:bool | Prob(x) = {1 - fine}}}")(three_on_one_day)


def test_coupons_are_kept_as_a_number() -> None:
    def coupons() -> int:
        have, bought = set(), 0
        while len(have) < 20:
            have.add(random.randrange(20))
            bought += 1
        return bought

    mean = sum(Fraction(20, 20 - k) for k in range(20))
    typed(f"{{x:int | E[x] = {mean}}}")(coupons)


def test_membership_of_a_filter() -> None:
    # The probability that both bits are among those set, over how many are.
    full = sum(
        Fraction(k, 16) ** 2
        * comb(16, k)
        * sum((-1) ** j * comb(k, j) * Fraction(k - j, 16) ** 12 for j in range(k + 1))
        for k in range(17)
    )
    typed(f"{{x:bool | Prob(x) = {full}}}")(filter_of_bits)


def attack() -> int:
    ours = sorted([random.randint(1, 4) for _ in range(3)], reverse=True)
    theirs = sorted((random.randint(1, 4) for _ in range(2)), reverse=True)
    return sum(a > b for a, b in zip(ours, theirs, strict=False))


def colours() -> int:
    seen: set[str] = set()
    times: dict[str, int] = defaultdict(int)
    for _ in range(4):
        colour = random.choice(COLOURS)
        times[colour] += 1
        if random.choice(COLOURS) not in seen:
            seen.add(colour)
    return len(seen) + 10 * max(times.values())


def uneven_colours() -> int:
    seen = set()
    for _ in range(3):
        seen.add(random.choice(TWICE))
    return len(seen)


def pairs() -> int:
    n, last, met, boxes = 3, -1, 0, [0] * 3
    for _ in range(3):
        box = random.randrange(n)
        other = random.randrange(n)
        boxes[box] += 1
        met += box == other
        if boxes[other] > 1:
            last = boxes.count(0)
    return met + 10 * last + 100 * max(boxes)


def begun_in_part() -> int:
    missing, bits = set(range(1, 5)), [1 for _ in range(3)]
    counts = dict.fromkeys(range(5), 2)
    for _ in range(2):
        found = random.getrandbits(2)
        missing.discard(found)
        counts[found] += 1
        if random.getrandbits(2) in missing and counts[random.getrandbits(2)] > 2:
            bits[random.randrange(3)] += 1
    return len(missing) + 10 * max(counts.values()) + 100 * sum(bit > 1 for bit in bits)


def weighed_by_place() -> int:
    rolls = []
    for _ in range(3):
        rolls.append(random.randint(1, 3))
    total, place, weights = 0, 0, [1, 0, 10, 0, 100]
    for roll in rolls:
        total += roll * weights[place]
        place += 2
    return total


def weighed_by_a_list() -> int:
    rolls, weights = [], [1, 10, 100]
    for _ in range(3):
        rolls.append(random.randint(1, 3))
    return sum(roll * weights.pop() for roll in rolls)


def weighed_by_a_function() -> int:
    rolls, weights = [], [1, 10, 100]
    for _ in range(3):
        rolls.append(random.randint(1, 3))
    return sum(weighed(roll, weights) for roll in rolls)


def weighed(roll: int, weights: list[int]) -> int:
    return roll * weights.pop()


def read_after_all() -> int:
    seen = set()
    for _ in range(3):
        seen.add(random.randint(1, 3))
    return sum(seen)


def part_of_an_object() -> int:
    state = [0]

    def step() -> int:
        state[0] += random.randint(0, 1)
        return state[0]

    return state[0] + 10 * len({step() for _ in range(2)})


@pytest.mark.parametrize(
    "function",
    [
        attack,
        colours,
        uneven_colours,
        pairs,
        begun_in_part,
        weighed_by_place,
        weighed_by_a_list,
        weighed_by_a_function,
        read_after_all,
        part_of_an_object,
    ],
)
def test_all_runs_have_the_same_distribution(function: Callable[[], int]) -> None:
    way = marked(function, read_function(function).tree)
    found = Explorer(way, [], counts=False, most=10**6).explore()
    assert found.weights == distribution(function)


@pytest.mark.parametrize(
    ("function", "held"),
    [
        (birthdays, ({"days": "set"},)),
        (birthdays_by_turns, ({"seen": "set", "day": "value"},)),
        (colours, ({"seen": "set", "times": "dict", "colour": "value"},)),
        (pairs, ({"box": "value", "other": "value", "boxes": "places"},)),
        (uneven_colours, ()),
        (read_after_all, ()),
    ],
)
def test_values_are_alike_where_they_are_only_compared(
    function: Callable[[], int], held: tuple[dict[str, str], ...]
) -> None:
    assert marked(function, read_function(function).tree).alike.groups == held


def test_a_comprehension_is_a_loop_where_nothing_comes_before_it() -> None:
    text = ast.unparse(looped(birthdays, read_function(birthdays).tree))  # type: ignore[arg-type]
    assert "days.add(random.randint(1, 365))" in text
    tree = read_function(part_of_an_object).tree
    assert ast.unparse(looped(part_of_an_object, tree)) == ast.unparse(tree)  # type: ignore[arg-type]
