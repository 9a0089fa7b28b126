"""Members of enumerations that draws decide are the members, and no objects beside them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import pytest

from hagane import prob


class Suit(Enum):
    A = 0
    B = 1
    C = 2


def by_value() -> int:
    return 1 if Suit(prob.rand(0, 2)) is Suit.A else 2


def by_key() -> int:
    return {Suit.A: 1, Suit.B: 5}.get(Suit(prob.rand(0, 2)), 9)


def by_name() -> int:
    return 1 if Suit["A" if prob.flip(1 / 4) else "B"] is Suit.A else 2


def by_known_value() -> int:
    return (3 if Suit(1) is Suit.B else 0) + prob.rand(0, 1)


def of_its_own() -> int:
    class Side(Enum):
        LEFT = 0
        RIGHT = 1

    return 1 if Side(prob.rand(0, 1)) is Side.LEFT else 2


@pytest.mark.parametrize(
    ("function", "mean"),
    [
        (by_value, "5/3"), (by_key, "5"), (by_name, "7/4"), (by_known_value, "7/2"),
        (of_its_own, "3/2"),
    ],
)  # fmt: skip
def test_the_members_are_those_of_python(function: Callable[[], int], mean: str) -> None:
    report = prob.typed(f"{{x:int | E[x] = {mean}}}")(function).report
    assert all(verdict.holds for verdict in report.verdicts)
