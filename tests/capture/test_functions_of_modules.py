"""Functions of ``operator``, ``heapq``, ``bisect`` and ``functools``, followed as programs."""

from __future__ import annotations

import bisect
import functools
import heapq
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane


def operators(x: Any) -> Any:
    low, high = operator.lt(x, 0), operator.gt(x, 1)
    either = operator.or_(operator.and_(low, x < -1), operator.xor(high, operator.invert(low)))
    return operator.neg(x), operator.abs(x), either, operator.iadd(x + 1, operator.pos(x))


def getters(x: Any) -> Any:
    parts = [(v, i) for i, v in enumerate(x[:, 0])]
    least = sorted(parts, key=operator.itemgetter(0))[0][1]
    most = max(x, key=operator.itemgetter(1))
    turned, total = operator.attrgetter("T")(x), operator.methodcaller("sum", axis=0)(x)
    return x[least], most, turned, total, sum(operator.itemgetter(0, 2)((x, 1, 2)))


def heaps(x: Any) -> Any:
    column = [*x[:, 0]]
    ends = heapq.nlargest(2, column) + heapq.nsmallest(1, column, key=operator.neg)
    return np.array(ends), x + np.array(list(heapq.merge([1.0, 3.0, 4.0], [2.0])))[2]


def sorted_in(x: Any) -> Any:
    items = sorted(x[:, 0])
    bisect.insort(items, x[0, 1])
    return np.array(items), bisect.bisect_left([-0.5, 0.5], x[0, 2]) * x


@functools.total_ordering
class Version:
    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.number == other.number

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Version) -> bool:
        return self.number < other.number

    def scale(self, factor: float, by: float) -> float:
        return self.number * factor * by

    half = functools.partialmethod(scale, 0.5)


def classes(x: Any) -> Any:
    newer = Version(2) >= Version(1) and not Version(2) <= Version(1)
    return x * newer + Version(3).half(by=2)


@pytest.mark.parametrize("program", [operators, getters, heaps, sorted_in, classes])
def test_functions_of_the_standard_library(program: Callable[..., Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "float32[n, 3]"))
    for seed, rows in enumerate((4, 2, 5)):
        x = np.random.default_rng(seed).standard_normal((rows, 3)).astype(np.float32)
        wanted = program(x)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        found = session.run(None, {"x": x})
        assert [one.shape for one in found] == [np.shape(one) for one in wanted]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
