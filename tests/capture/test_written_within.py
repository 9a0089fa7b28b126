"""Calls that write arrays within expressions: allowed beside values that share no memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError


def joined_roots(x: Any) -> Any:
    parents = np.arange(len(x))

    def find(a: Any) -> Any:
        while parents[a] != a:
            parents[a] = parents[parents[a]]
            a = parents[a]
        return a

    joined = 0
    for k in range(1, len(x)):
        first, second = find(k - 1), find(k)
        if x[k] > 0 and first != second:
            parents[second] = first
            joined += 1
    return parents, joined


def sums_in_between(x: Any) -> Any:
    y = x * 1

    def touch(step: float) -> Any:
        y[:1] += step
        return y[:2].sum()

    return max(touch(1.0), touch(2.0)), [touch(3.0), touch(-4.0)], touch(1.0) < touch(0.5), y


def numbers_in_between(x: Any) -> Any:
    y = x * 1

    def touch(value: float) -> Any:
        y[0] = value
        return y[0]

    return touch(1.0) + touch(2.0), y


@pytest.mark.parametrize("function", [joined_roots, sums_in_between, numbers_in_between])
def test_values_of_their_own_memory_stay(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    session = hagane.InferenceSession(hagane.capture(function, "float64[n]"))
    for x in (np.array([5.0, 2.0, -7.0, 1.0]), np.array([0.5, -1.0])):
        expected = [item for part in function(x) for item in _parts(part)]
        for ours, theirs in zip(session.run(None, {"x": x}), expected, strict=True):
            np.testing.assert_allclose(ours, theirs)


def _parts(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def run_until_the_end(codes: Any) -> Any:
    registers = np.zeros(3, dtype=np.int64)
    place = steps = 0
    while place < len(codes) and steps < 12:
        code = codes[place]
        steps += 1
        if code == 0:
            return registers, steps
        if code > 3:
            place = code - 4
            continue
        registers[code - 1] += steps
        place += 1
    return registers, -steps


def a_view_of_before(codes: Any) -> Any:
    registers = np.zeros(3, dtype=np.int64)
    for code in codes:
        part = registers[:2]
        if code == 0:
            registers[0] += 1
            return part, registers
        registers[code % 3] += 1
    return registers[1:], registers


@pytest.mark.parametrize("function", [run_until_the_end, a_view_of_before])
def test_a_result_is_what_it_was_where_a_loop_returned_it(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    session = hagane.InferenceSession(hagane.capture(function, "int64[n]"))
    for codes in ([1, 2, 1], [1, 0, 2], [0], [2, 3, 5, 0], [3, 4]):
        expected = function(np.array(codes))
        for ours, theirs in zip(
            session.run(None, {"codes": np.array(codes)}), expected, strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


def the_array_twice(x: Any) -> Any:
    y = x * 1

    def touch(step: float) -> Any:
        y[0] += step
        return y

    return touch(1.0) + touch(2.0)


def views_in_a_tuple(x: Any) -> Any:
    y = x * 1

    def touch(step: float) -> Any:
        y[:1] += step
        return y[:2]

    return touch(1.0), touch(2.0)


@pytest.mark.parametrize("function", [the_array_twice, views_in_a_tuple])
def test_values_of_the_same_memory_are_refused(function: Any) -> None:
    with pytest.raises(CaptureError, match="follows others in one expression"):
        hagane.capture(function, "float64[n]")
