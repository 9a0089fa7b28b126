"""Objects of dataclasses are compared by their fields, in conditions, sets and dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hagane import prob


@dataclass(frozen=True)
class Place:
    x: int
    y: int


@dataclass(frozen=True, eq=False)
class Thing:
    x: int


class Even:
    def __init__(self, n: int) -> None:
        self.n = n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Even) and (self.n - other.n) % 2 == 0

    def __hash__(self) -> int:
        return self.n % 2


def equal() -> bool:
    return Place(prob.rand(0, 2), 1) == Place(1, prob.rand(0, 2))


def unequal() -> bool:
    return Place(prob.rand(0, 2), 1) != Place(1, 1)


def in_a_set() -> bool:
    return len({Place(prob.rand(0, 1), prob.rand(0, 1)) for _ in range(3)}) == 1


def as_a_key() -> bool:
    return {Place(0, 1): False, Place(1, 1): True}[Place(prob.rand(0, 1), 1)]


def by_identity() -> bool:
    return Thing(prob.rand(0, 1)) == Thing(0)


def by_its_own() -> bool:
    return Even(prob.rand(0, 2)) == Even(4) and Even(3) in {Even(prob.rand(0, 1)): 1}


def in_a_list() -> bool:
    return Place(prob.rand(0, 2), 0) in [Place(0, 0), Place(1, 0)]


@pytest.mark.parametrize(
    ("function", "chance"),
    [
        (equal, "1/9"), (unequal, "2/3"), (in_a_set, "1/16"), (as_a_key, "1/2"),
        (by_identity, "0"), (by_its_own, "1/3"), (in_a_list, "2/3"),
    ],
)  # fmt: skip
def test_they_are_compared_as_python_does(function: Callable[[], bool], chance: str) -> None:
    report = prob.typed(f"{{x:bool | Prob(x) = {chance}}}")(function).report
    assert all(verdict.holds for verdict in report.verdicts)


@prob.typed("{x:int | Prob(x = 1) = 1/3}", engine="capture")
def second_name() -> int:
    x, y = [0], [0]
    both = [x, x] if prob.flip(1 / 3) else [x, y]
    return int(x is both[1]) * int(both[0] is both[1])


def test_a_list_is_itself_on_the_right_of_is_too() -> None:
    assert [str(verdict.engine) for verdict in second_name.report.verdicts] == ["enumerate"]
