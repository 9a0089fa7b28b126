"""Objects of the running Python that a branch or a loop is the first to reach, and changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane


class Held:
    def __init__(self) -> None:
        self.scale = 1.0
        self.rows: Any = None


class Kind:
    factor = 1


class Owner:
    def __init__(self) -> None:
        self.held = Held()


OWNER = Owner()
TABLE = {"scale": 1.0}


def reached_in_a_branch(x: Any) -> Any:
    if x.sum() > 0:
        OWNER.held.scale = 2.0
        y = x * OWNER.held.scale
    else:
        y = x * OWNER.held.scale
    OWNER.held.scale = 1.0
    return y


def set_in_a_branch(x: Any) -> Any:
    held = OWNER.held
    if x.sum() > 0:
        held.scale = 2.0
    y = x * held.scale
    held.scale = 1.0
    return y


def table_in_a_branch(x: Any) -> Any:
    if x.sum() > 0:
        TABLE["scale"] = 2.0
        y = x * TABLE["scale"]
    else:
        y = x + TABLE["scale"]
    y = y * TABLE["scale"]
    TABLE["scale"] = 1.0
    return y


def class_in_a_branch(x: Any) -> Any:
    if x.sum() > 0:
        Kind.factor = 3
    y = x * Kind.factor
    Kind.factor = 1
    return y


def halved_in_a_loop(x: Any) -> Any:
    y = x[0]
    for v in x:
        held = OWNER.held
        y = y * held.scale + v
        held.scale = held.scale * 0.5
    OWNER.held.scale = 1.0
    return y


def branches_in_a_loop(x: Any) -> Any:
    y = x[0]
    for v in x:
        held = OWNER.held
        if v > 0:
            held.scale = held.scale + 1
            y = y * held.scale
        else:
            y = y + held.scale
    OWNER.held.scale = 1.0
    return y


def filled_in_a_loop(x: Any) -> Any:
    total = x[0]
    for place, v in enumerate(x):
        if place > 0:
            total = total + OWNER.held.rows[:place].sum()
        if OWNER.held.rows is None:
            OWNER.held.rows = np.zeros(9, np.float32)
        OWNER.held.rows[place] = v
    OWNER.held.rows = None
    return total


@pytest.mark.parametrize(
    "function",
    [
        reached_in_a_branch, set_in_a_branch, table_in_a_branch, class_in_a_branch,
        halved_in_a_loop, branches_in_a_loop, filled_in_a_loop,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_other_paths_meet_objects_as_they_were(function: Callable[[Any], Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(function, "float32[n]"))
    for x in ([1.0, -3.0, 0.5], [1.0, 2.0], [-1.0]):
        given = np.array(x, np.float32)
        (got,) = session.run(["output"], {"x": given})
        np.testing.assert_allclose(got, function(given), rtol=1e-6)
