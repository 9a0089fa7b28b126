"""Conditions of while loops that change things are asked once before each iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane


def taken(x: Any) -> Any:
    items, total = iter(x), x[0] * 0
    while (v := next(items, None)) is not None:
        total = total * 2 + v
    return total


def taken_until(x: Any) -> Any:
    items, total = iter(x), x[0] * 0
    while (v := next(items, -1.0)) >= 0:
        total = total * 2 + v
    return total


def counted(x: Any) -> Any:
    k, total = -1, x[0] * 0
    while (k := k + 1) < len(x):
        total = total * 2 + x[k]
    return total, k


def counted_by_a_call(x: Any) -> Any:
    asked, total = [0], x[0] * 0

    def more() -> Any:
        asked[0] += 1
        return asked[0] <= len(x)

    while more():
        total = total * 2 + x[asked[0] - 1]
    return total, asked[0]


def found_first(x: Any) -> Any:
    best, k = None, -1
    while (k := k + 1) < len(x):
        best = x[k] if best is None else max(best, x[k])
    return best, k


@pytest.mark.parametrize(
    "program", [taken, taken_until, counted, counted_by_a_call, found_first]
)  # fmt: skip
def test_they_are_asked_once(program: Callable[..., Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "float32[n]"))
    for n in range(1, 6):
        x = np.float32([3, 1, 5, 7, 11])[:n]
        expected = program(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for got, want in zip(session.run(None, {"x": x}), expected, strict=True):
            np.testing.assert_array_equal(got, want)
