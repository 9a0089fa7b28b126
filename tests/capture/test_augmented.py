"""Statements such as ``x[f()] += y``: the target is evaluated once, and holds what it can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError


class Meter:
    """Counts its readings."""

    def __init__(self, total: Any) -> None:
        self.readings = 0
        self.total = total

    def read(self) -> Meter:
        self.readings += 1
        return self


def popped_places(x: Any) -> Any:
    places, y = [0, 1, 2], x.copy()
    y[places.pop()] += 10
    y[places.pop()] *= 3
    return y, len(places)


def turns_of_an_iterator(x: Any) -> Any:
    turns = iter([0, 1, 2])
    rows = [x * 1, x * 2, x * 3]
    rows[next(turns)][next(turns)] += 10
    return rows, next(turns)


def attribute_of_a_call(x: Any) -> Any:
    meter = Meter(x * 1)
    meter.read().total += 1
    meter.read().total *= 2
    return meter.total, meter.readings


def key_of_a_call(x: Any) -> Any:
    counts, keys = {"a": 0, "b": 5}, ["a", "b"]
    counts[keys.pop()] += 7
    return counts["a"] + x, counts["b"] + x


def named_within(x: Any) -> Any:
    k, y = 0, x.copy()
    y[(k := k + 1)] -= 4
    return y, k


def popped_in_a_loop(x: Any) -> Any:
    y, places = np.zeros(3), []
    for value in x:
        places.append(int(value > 0))
        y[places.pop()] += value
    return y


@pytest.mark.parametrize(
    "function",
    [popped_places, turns_of_an_iterator, attribute_of_a_call, key_of_a_call, named_within,
     popped_in_a_loop],
)  # fmt: skip
def test_calls_in_a_target_are_made_once(function: Callable[..., Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(function, "float64[n]"))
    for x in (np.array([1.0, -2.0, 3.0]), np.arange(5.0)):
        expected = list(_flat(function(x.copy())))
        found = session.run(None, {"x": x})
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs)


def _flat(value: Any) -> Any:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def halves_of_integers(x: Any) -> Any:
    x = x + 0
    x[1:] /= 2
    return x


def a_row_too_wide(x: Any) -> Any:
    y = x * 1
    y[:1] += x
    return y


@pytest.mark.parametrize(
    ("function", "type_", "told"),
    [(halves_of_integers, "int64[n]", "cannot be stored in place"),
     (a_row_too_wide, "float64[4, 2]", "does not fit in place")],
)  # fmt: skip
def test_an_item_holds_what_python_would_store(
    function: Callable[..., Any], type_: str, told: str
) -> None:
    with pytest.raises(CaptureError, match=told):
        hagane.capture(function, type_)


def test_a_number_of_numpy_that_is_an_item_is_stored_as_python_casts_it() -> None:
    def items(x: Any) -> Any:
        y = x.copy()
        y[0] += 1.7
        y[1] /= 2
        return y

    session = hagane.InferenceSession(hagane.capture(items, "int64[n]"))
    x = np.array([1, 7, 3])
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], items(x))
