"""NumPy's changes in place, and methods of its scalars: graphs compute what NumPy does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane

RNG = np.random.default_rng(0)
INPUTS = [np.round(RNG.standard_normal(n) * 3, 1) for n in (1, 2, 5, 6)] + [np.zeros(3)]


def sorted_in_place(x: Any) -> Any:
    y = x.copy()
    back = y[::-1]
    y.sort()
    return y, back


def filled(x: Any) -> Any:
    y = np.empty(len(x), np.float32)
    first = y[:1]
    y.fill(2.5)
    first.fill(x[0])
    return y, first


def copied_into(x: Any) -> Any:
    y = np.zeros(len(x), np.float32)
    np.copyto(y, x)
    np.copyto(y, 3, where=x > 0)
    return y, x


def items_that_follow_each_other(x: Any) -> Any:
    y = x.copy()
    total = 0.0
    for k in range(len(x)):
        total += y[k]
        y[k] = total
    return y, total


def counted_by_key(x: Any) -> Any:
    counts = {"above": 0, "below": 0}
    for value in x:
        counts["above" if value > 0 else "below"] += 1
    return counts


def whole_numbers(x: Any) -> Any:
    a = float(x[0])
    return a.is_integer(), (a * 10).is_integer(), x[-1].is_integer(), a.real, a.imag


def small_integers(x: Any) -> Any:
    y = x.astype(np.int8)
    return y**2, np.int32(5) * y, y * np.int16(300), np.uint8(200) + np.abs(y).astype(np.uint8)


@pytest.mark.parametrize(
    "function",
    [
        sorted_in_place,
        filled,
        copied_into,
        items_that_follow_each_other,
        counted_by_key,
        whole_numbers,
        small_integers,
    ],
    ids=lambda f: f.__name__,
)
def test_a_program_of_numpy_computes_the_same_as_a_graph(function: Callable[..., Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(function, INPUTS[-1], dynamic={"x": {0: "n"}}))
    for x in INPUTS:
        made = function(x.copy())
        expected = [np.asarray(v) for v in (made.values() if isinstance(made, dict) else made)]
        for ours, theirs in zip(session.run(None, {"x": x}), expected, strict=True):
            assert np.asarray(ours).dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
