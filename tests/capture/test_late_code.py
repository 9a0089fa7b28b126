"""Code behind iterators, which Python runs when an item is asked for."""

# ruff: noqa: C417 - the functions of map are what is tested

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError

FACTORS = (2, 3, 5)


def extended(x: Any) -> Any:
    y = collections.deque([x])
    y.extend(k * y[-1] + k for k in FACTORS)
    return y[-1]


def updated_dictionary(x: Any) -> Any:
    y = {0: x}
    y.update((k + 1, y[len(y) - 1] * f) for k, f in enumerate(FACTORS))
    return y[3]


def updated_set(x: Any) -> Any:
    seen = {2}
    seen.update(k + len(seen) for k in FACTORS if k not in seen)
    return x * sum(seen)


def itself(x: Any) -> Any:
    y = [x, x + 1]
    y.extend(y)
    y.extend(reversed(y))
    return y[3] * len(y)


def made_at_once(x: Any) -> Any:
    y = [x]
    y = y + list(map(lambda k: y[-1] * k, FACTORS))
    y.extend([k + y[-1] for k in FACTORS])
    return y[-1]


def other_names(x: Any) -> Any:
    scale, total, steps = 2, 0, [1, 2]
    doubled = (step * scale for step in steps)
    steps = [7]
    for step in doubled:
        total = total + step * len(steps)
    return x * total


@pytest.mark.parametrize(
    "function",
    [extended, updated_dictionary, updated_set, itself, made_at_once, other_names],
    ids=lambda f: f.__name__,
)
def test_items_are_those_that_python_makes_one_by_one(function: Callable[[Any], Any]) -> None:
    x = np.array([1.0, 2.0], np.float32)
    session = hagane.InferenceSession(hagane.capture(function, x))
    (got,) = session.run(None, {"x": x})
    np.testing.assert_allclose(got, function(x), rtol=1e-6)


def by_map(x: Any) -> Any:
    y = [x]
    y.extend(map(lambda k: y[-1] * k, FACTORS))
    return y[-1]


def by_a_name(x: Any) -> Any:
    y = [x]
    items = (y[-1] * k for k in FACTORS)
    y += items
    return y[-1]


def by_another_name(x: Any) -> Any:
    y = [x]
    z = y
    y.extend(z[-1] * k for k in FACTORS)
    return y[-1]


def by_a_function(x: Any) -> Any:
    y = [x]

    def items() -> Iterator[Any]:
        for k in FACTORS:
            yield y[-1] * k

    y.extend(items())
    return y[-1]


def by_itertools(x: Any) -> Any:
    y = [x]
    add = y.extend
    add(itertools.starmap(lambda k, n: y[-1] * k + n, zip(FACTORS, FACTORS, strict=True)))
    return y[-1]


def by_enumerate(x: Any) -> Any:
    y = [x]
    y.extend(v + n for n, v in enumerate(map(lambda k: y[-1] * k, FACTORS)))
    return y[-1]


def from_the_left(x: Any) -> Any:
    y = collections.deque([x])
    y.extendleft(y[0] * k for k in FACTORS)
    return y[0]


def of_pairs(x: Any) -> Any:
    y = {0: x}
    y |= map(lambda k: (len(y), y[len(y) - 1] * k), FACTORS)
    return y[len(y) - 1]


def of_open_length(x: Any) -> Any:
    y = [x[0]]
    y.extend(map(lambda k: y[-1] * 2, range(x.shape[0])))
    return y[-1]


@pytest.mark.parametrize(
    "function",
    [
        by_map, by_a_name, by_another_name, by_a_function, by_itertools, by_enumerate,
        from_the_left, of_pairs, of_open_length,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_items_that_read_the_container_they_extend_are_refused(
    function: Callable[[Any], Any],
) -> None:
    told = "whose code reads it, one by one; add them in a loop, as in for f in fs: y.append"
    with pytest.raises(CaptureError, match=told):
        hagane.capture(function, x="float32[n]")


def list_read(x: Any) -> Any:
    y = [x]
    for item in map(lambda k: y[-1] * k, FACTORS):
        y.append(item)
    return y[-1]


def name_read(x: Any) -> Any:
    scale = 2
    items = map(lambda k: x * scale * k, FACTORS)
    scale = 3
    return sum(items)


def item_read(x: Any) -> Any:
    held = {"a": x}
    items = (held["a"] * k for k in FACTORS)
    held["a"] = x + 1
    return sum(items)


def attribute_read(x: Any) -> Any:
    held = SimpleNamespace(a=x)

    def items() -> Iterator[Any]:
        for k in FACTORS:
            yield held.a * k

    late = items()
    held.a = x + 1
    return sum(late)


def total_read(x: Any) -> Any:
    for item in (x * k for k in FACTORS):
        x = x + item
    return x


@pytest.mark.parametrize(
    "function", [list_read, name_read, item_read, attribute_read, total_read],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_an_iterator_whose_code_would_read_something_else_by_now_is_refused(
    function: Callable[[Any], Any],
) -> None:
    told = "an iterator is read after something that its code reads has changed; make a list of"
    with pytest.raises(CaptureError, match=told):
        hagane.capture(function, np.ones(2, np.float32))
