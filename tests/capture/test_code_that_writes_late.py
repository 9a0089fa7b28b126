"""Iterators whose code changes something, which Python does when an item is asked for."""

# ruff: noqa: C417 - the functions of map are what is tested

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError


def listed(x: Any) -> Any:
    seen: Any = []
    made = list(map(seen.append, [x, x + 1]))
    return seen[1] * len(made)


def looped(x: Any) -> Any:
    seen: Any = []

    def items() -> Iterator[Any]:
        for row in x:
            seen.append(row * 2)
            yield row

    total = 0
    for row in items():
        total = total + row
    return total + seen[0] * len(seen)


def counted(x: Any) -> Any:
    held = SimpleNamespace(count=0)

    def items() -> Iterator[Any]:
        for k in range(3):
            held.count += 1
            yield x * k

    return sum(items()) * held.count


def in_the_body(x: Any) -> Any:
    seen: Any = []
    total = 0
    for _, row in enumerate(map(lambda row: seen.append(row) or row, x)):
        total = total + row * len(seen)
    return total


@pytest.mark.parametrize(
    "function", [listed, looped, counted, in_the_body], ids=lambda f: f.__name__
)
def test_what_an_iterator_has_changed_by_its_end_is_read(function: Callable[[Any], Any]) -> None:
    x = np.array([1.0, 2.0], np.float32)
    (got,) = hagane.InferenceSession(hagane.capture(function, "float32[n]")).run(None, {"x": x})
    np.testing.assert_allclose(got, function(x), rtol=1e-6)


def before_any(x: Any) -> Any:
    seen: Any = []
    made = map(seen.append, [x, x + 1])
    return x * len(seen), made


def between(x: Any) -> Any:
    seen: Any = []

    def items() -> Iterator[Any]:
        for k in range(3):
            seen.append(k)
            yield x * k

    late = items()
    return next(late) * len(seen)


def behind_another(x: Any) -> Any:
    seen: Any = []
    pairs = zip(map(seen.append, [x, x]), [1, 2], strict=True)
    return x * len(seen), pairs


def attribute(x: Any) -> Any:
    held = SimpleNamespace(count=0)

    def items() -> Iterator[Any]:
        for k in range(3):
            held.count += 1
            yield x * k

    late = items()
    held.count = 10
    return sum(late) * held.count


def name(x: Any) -> Any:
    total = x * 0

    def items() -> Iterator[Any]:
        nonlocal total
        for k in range(3):
            total = total + k
            yield total

    late = items()
    return next(late) + total


def left(x: Any) -> Any:
    seen: Any = []
    any(seen.append(k) or k > 0 for k in range(3))
    return x * len(seen)


@pytest.mark.parametrize(
    "function", [before_any, between, behind_another, attribute, name, left],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_what_an_iterator_will_change_is_not_read_before_its_end(
    function: Callable[[Any], Any],
) -> None:
    told = "(that the code of an iterator changes too|its code reads has changed)"
    with pytest.raises(CaptureError, match=told):
        hagane.capture(function, "float32[n]")
