"""Iterators of Python over items whose number the data decide, and lists of tuples as results."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import hagane


def in_pairs(x: Any) -> Any:
    least, count = np.inf, 0
    for a, b in itertools.combinations(x, 2):
        least = min(least, abs(a - b))
        count += 1
    return least, count


def in_threes(x: Any) -> Any:
    total = 0.0
    for a, b, c in itertools.combinations(x, 3):
        total = total * 0.5 + a * b - c
    places = [(i, j) for i, j in itertools.combinations_with_replacement(range(len(x)), 2)]
    return total, sum(10 * i + j for i, j in places)


def in_orders(x: Any) -> Any:
    total = 0.0
    for a, b in itertools.permutations(x, 2):
        total = total * 0.5 + a - 2 * b
    return total


def in_products(x: Any) -> Any:
    total = 0.0
    for a, b in itertools.product(x, [1.0, 10.0]):
        total = total * 0.5 + a * b
    for a, b in itertools.product(x, repeat=2):
        total = total * 0.5 + a - b
    return total


def of_known_items(x: Any) -> Any:
    total = 0.0
    for a, b in itertools.combinations([x[0], x[-1], x.sum()], 2):
        total = total * 0.5 + a * b
    return total


def in_turns(x: Any) -> Any:
    total, parts = 0.0, []
    for value, sign in zip(x, itertools.cycle([1.0, -2.0, 4.0])):
        total += value * sign
        parts.append(total)
    for k, (value, way) in enumerate(zip(x, itertools.cycle(x[:2]))):
        total += value * way * k
    return total, parts


def counted_without_end(x: Any) -> Any:
    total = 0.0
    for k in itertools.count(1):
        if k >= len(x) or x[k] > 3:
            break
        total += x[k]
    for value, k in zip(x, itertools.count(5, 2)):
        total += value * k
    return total


def beside_a_known_list(x: Any) -> Any:
    total = 0.0
    for value, factor in zip(x, [1.0, 2.0, 3.0]):  # noqa: B905
        total += value * factor
    return total


@pytest.mark.parametrize(
    "function",
    [in_pairs, in_threes, in_orders, in_products, of_known_items, in_turns, counted_without_end,
     beside_a_known_list],
)  # fmt: skip
def test_items_are_chosen_as_python_chooses_them(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    session = hagane.InferenceSession(hagane.capture(function, "float64[n]"))
    for x in (np.array([2.5]), np.array([1.0, -2.0, 4.0]), np.arange(5.0) ** 2):
        found = function(x)
        expected = found if isinstance(found, tuple) else (found,)
        for ours, theirs in zip(session.run(None, {"x": x}), expected, strict=True):
            np.testing.assert_allclose(ours, theirs)


def copied_from_itself(x: Any) -> Any:
    made: list[Any] = []
    for back in x:
        start = len(made) - back
        for k in range(2 if back > 0 else 0):
            made.append(made[start + k])
        made.append(back)
    return np.array(made)


def stack_of_numbers(x: Any) -> Any:
    stack: list[Any] = []
    depth = 0
    for value in x:
        if value < 0 and depth > 1:
            a, b = stack.pop(), stack.pop()
            stack.append(a + b if value == -1 else a * b)
            depth -= 1
        elif value >= 0:
            stack.append(value)
            depth += 1
    return (stack[depth - 1] if depth > 0 else -9), depth


def read_by_functions_of_numpy(x: Any) -> Any:
    ready = [value if value <= 2 else 100 for value in x]
    return np.argmin(ready), np.max(ready), np.cumsum([v * 2 for v in x])


@pytest.mark.parametrize(
    "function", [copied_from_itself, stack_of_numbers, read_by_functions_of_numpy]
)
def test_lists_that_are_empty_at_first_are_read_once_they_have_items(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    session = hagane.InferenceSession(hagane.capture(function, "int64[n]"))
    for x in (np.array([0]), np.array([0, 1, 0, 2, 2]), np.array([0, 0, 0, 2, 3])):
        found = function(x)
        expected = found if isinstance(found, tuple) else (found,)
        for ours, theirs in zip(session.run(None, {"x": x}), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


Peak = namedtuple("Peak", "at height")


@dataclass
class Found:
    at: Any
    parts: Any
    name: str = "peak"


def pairs(x: Any) -> Any:
    made = []
    for k, value in enumerate(x):
        if value > 0:
            made.append((k, value * 2))
    return made


def named(x: Any) -> Any:
    return [Peak(k, value) for k, value in enumerate(x) if value > 0], len(x)


def objects(x: Any) -> Any:
    found = []
    for k, value in enumerate(x):
        if value > 0:
            found.append(Found(k, (value, float(value) + 1)))
    return {"found": found}


@pytest.mark.parametrize(
    ("function", "names"),
    [(pairs, ["0", "1"]), (named, ["0.at", "0.height", "1"]),
     (objects, ["found.at", "found.parts.0", "found.parts.1"])],
)  # fmt: skip
def test_a_list_of_tuples_is_returned_as_a_list_of_each_part(
    function: Callable[..., Any], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    model = hagane.capture(function, "float64[n]")
    assert [output.name for output in model.graph.outputs] == names
    compiled = hagane.compile(function)
    for x in (np.array([5.0, -2.0, 7.0]), np.array([-1.0, -3.0, -2.0])):
        expected = function(x)
        assert compiled(x) == expected
        session = hagane.InferenceSession(model)
        assert len(session.run(None, {"x": x})[0]) == sum(x > 0)


def test_a_number_of_python_or_numpy_is_returned_as_one_of_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def least(x: Any) -> Any:
        found = np.inf
        for value in x:
            found = min(found, value)
        return found

    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    found = hagane.compile(least)(np.array([2.0, 1.0]))
    assert type(found) is np.float64
    assert found == 1.0
