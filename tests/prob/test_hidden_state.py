"""State that no variable shows: runs meet only where nothing tells them apart."""

from __future__ import annotations

import datetime
import hashlib
import math
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum

import pytest

from hagane import prob
from hagane.tools.prob.capture.python_function import Unsupported
from hagane.tools.prob.language.source import ProgramError
from tests.prob.python_functions import distribution


class Shop:
    doors = 0


class Light(Enum):
    RED = 1


VISITS = ContextVar("VISITS", default=0)


def of_a_function() -> int:
    def door() -> None: ...

    door.opened = 0  # type: ignore[attr-defined]
    for _ in range(3):
        door.opened += prob.rand(0, 1)  # type: ignore[attr-defined]
    return int(door.opened)  # type: ignore[attr-defined]


def of_a_class_in_it() -> int:
    class Door:
        opened = 0

        @classmethod
        def push(cls) -> None:
            cls.opened += prob.rand(0, 1)

    for _ in range(4):
        Door.push()
    return Door.opened


def of_a_date() -> int:
    day = datetime.date(2024, 2, 27)
    for _ in range(3):
        day += datetime.timedelta(days=prob.rand(0, 1))
    return day.day


def of_a_digest() -> int:
    digest = hashlib.md5()
    for _ in range(3):
        digest.update(bytes([prob.rand(0, 1)]))
    return digest.digest()[0]


def of_the_order_of_a_set() -> int:
    numbers: set[int] = set()
    for _ in range(3):
        numbers.add(8 * prob.rand(0, 3))  # numbers that are one modulo the size of its table
    return next(iter(numbers))


def of_names() -> int:
    for _ in range(3):
        if prob.rand(0, 3) == 0:
            found = 1
    return int("found" in locals())


def of_a_sign() -> int:
    zero = -0.0 if prob.rand(0, 1) else 0.0
    return int(math.copysign(1, zero))


def of_truth() -> int:
    one: int = True if prob.rand(0, 1) else 1
    return len(str([one, 1][prob.rand(0, 1)]))


def of_life() -> int:
    class Door: ...

    door: Door | None = Door()
    seen = weakref.ref(door)
    for _ in range(2):
        if prob.rand(0, 1):
            door = None
    return int(seen() is None)


def of_an_end() -> int:
    log = []

    class Door:
        def __del__(self) -> None:
            log.append(1)

    door: Door | None = Door()
    if prob.rand(0, 2) == 0:
        door = None
    return len(log) + 2 * (door is None)


FUNCTIONS = [of_a_function, of_a_class_in_it, of_a_date, of_a_digest, of_the_order_of_a_set,
             of_names, of_a_sign, of_truth, of_life, of_an_end]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_runs_that_differ_in_what_no_variable_shows_do_not_meet(
    function: Callable[[], int],
) -> None:
    runs = distribution(function)
    claim = " /\\ ".join(f"Prob(r = {value}) >= 0" for value in runs)
    for engine in ("replay", "capture"):
        try:
            made = prob.typed(f"{{r:int | {claim}}}", raises=False, engine=engine)(function)
        except Unsupported:
            assert engine == "capture"
            continue
        found = [item.value for item in made.report.verdicts[-1].probabilities]
        assert found == list(runs.values())


def of_a_class() -> int:
    Shop.doors = 0
    for _ in range(3):
        Shop.doors += prob.rand(0, 1)
    return Shop.doors


def of_a_member() -> int:
    Light.RED.turns = 0  # type: ignore[attr-defined]
    for _ in range(3):
        Light.RED.turns += prob.rand(0, 1)  # type: ignore[attr-defined]
    return int(Light.RED.turns)  # type: ignore[attr-defined]


def of_a_context() -> int:
    VISITS.set(0)
    for _ in range(3):
        VISITS.set(VISITS.get() + prob.rand(0, 1))
    return VISITS.get()


def of_a_module() -> int:
    math.turns = 0  # type: ignore[attr-defined]
    for _ in range(3):
        math.turns += prob.rand(0, 1)  # type: ignore[attr-defined]
    return int(math.turns)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (of_a_class, "Shop.doors"),
        (of_a_member, "Light._member_map_"),
        (of_a_context, "VISITS"),
        (of_a_module, "math.turns"),
    ],
)
def test_what_is_older_than_a_run_and_changed_by_it_is_refused(
    function: Callable[[], int], name: str
) -> None:
    with pytest.raises(ProgramError, match=f"'{name}', which is older than a run, is changed by"):
        prob.typed("{r:int | E[r] = 3/2}")(function)
