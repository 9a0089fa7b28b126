"""Paths that leave a block, whose ``finally`` or context manager has something to do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hagane

INPUTS = ([1.0, -3.0, 0.5], [1.0, 2.0], [-1.0], [0.5, -0.25, 2.0], [-2.0, -0.5])


class Marking:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __enter__(self) -> Any:
        return self.array

    def __exit__(self, *_: object) -> None:
        self.array[0] += 7


class Taking:
    def __init__(self) -> None:
        self.seen = 0.0

    def __enter__(self) -> Taking:
        return self

    def __exit__(self, kind: Any, error: Any, _: Any) -> bool:
        self.seen += 1 if kind is None else 100
        return kind is not None and issubclass(kind, KeyError | ValueError)


class Counter:
    count = 0.0


class Coded(Exception):
    def __init__(self, code: float) -> None:
        self.code = code


@contextlib.contextmanager
def counting(counter: Counter) -> Iterator[float]:
    counter.count += 1
    yield 2.0
    counter.count += 10


@contextlib.contextmanager
def handling(counter: Counter) -> Iterator[None]:
    try:
        yield
    except ValueError:
        counter.count += 100
    finally:
        counter.count += 10


def returns(x: Any) -> Any:
    y = x.copy()

    def f() -> float:
        try:
            if x.sum() > 0:
                return 1.0
            y[0] = 5
        finally:
            y[-1] = 7
        return 2.0

    return f() + y


def turns(x: Any) -> Any:
    count = 0.0
    for v in x:
        try:
            if v > 0:
                continue
            if v < -1:
                break
            count += 10
        finally:
            count += 1
    return x + count


def overruled(x: Any) -> Any:
    def f() -> float:
        try:
            if x.sum() > 0:
                return 1.0
        finally:
            if x[0] > 0.7:
                return 2.0  # noqa: B012
        return 3.0

    return x * f()


def nested(x: Any) -> Any:
    count = 0.0

    def f() -> float:
        nonlocal count
        try:
            try:
                if x.sum() > 0:
                    return 5.0
            finally:
                count = count * 2 + 1
        finally:
            count = count * 2 + 3
        return 6.0

    return x * f() + count


def raises(x: Any) -> Any:
    count = 0.0
    try:
        try:
            if x.sum() > 0:
                raise ValueError
            count += 10
        finally:
            count += 1
    except ValueError:
        count += 100
    return x * count


def handlers(x: Any) -> Any:
    y = x.copy()

    def f() -> float:
        try:
            raise ValueError
        except ValueError:
            if x.sum() > 0:
                return 3.0
        finally:
            y[0] = 9
        return 4.0

    return f() * y


def loops(x: Any) -> Any:
    y = x.copy()

    def f() -> Any:
        while True:
            try:
                y[0] = y[0] + 1
                if y[0] > 3:
                    return y.sum()
            finally:
                y[-1] = y[-1] + 1

    return f() + y


def managers(x: Any) -> Any:
    y = x.copy()

    def f() -> float:
        for v in x:
            with Marking(y) as z:
                if v > 0.7:
                    return 1.0
                z[-1] += 1
        return 2.0

    return f() + y


def raised_in_a_function(x: Any) -> Any:
    y = x.copy()

    def f() -> None:
        with Marking(y):
            if x.sum() > 0:
                raise KeyError("a")
            y[-1] = 8

    try:
        f()
    except KeyError:
        y[-1] = 1
    return y


def taken(x: Any) -> Any:
    taking, y = Taking(), x
    with taking:
        y = y + 1
        if x.sum() > 0:
            raise ValueError("a")
        y = y * 10
    with taking:
        y = y * {"a": 2}["b"]
    with taking:
        y = y * 2
    return y + taking.seen


def not_taken(x: Any) -> Any:
    taking, y = Taking(), x
    try:
        with taking:
            if x.sum() > 0:
                raise Coded(5.0)
            y = y * 10
    except Coded as error:
        y = y + error.code
    return y + taking.seen


def suppressed(x: Any) -> Any:
    count = 0.0
    for v in x:
        with contextlib.suppress(ValueError, KeyError):
            if v > 0:
                raise KeyError
            count += 1
    with contextlib.suppress(LookupError):
        count = count + 100
        count = count * {"a": 2}["b"]
    return x * count


def generators(x: Any) -> Any:
    counter = Counter()

    def f() -> Any:
        for v in x:
            with counting(counter) as two:
                if v > 0.7:
                    return two * v
                if v > 0:
                    continue
                if v < -1:
                    break
            counter.count += 1000
        return -1.0

    return f() + x + counter.count


def generators_that_handle(x: Any) -> Any:
    counter = Counter()
    with handling(counter):
        if x.sum() > 0:
            raise ValueError
        counter.count += 1000
    with handling(counter):
        raise ValueError
    return x + counter.count


def closed(x: Any) -> Any:
    class Closing:
        k = 1.0

        def close(self) -> None:
            self.k = self.k * 4

    one = Closing()
    with contextlib.closing(one) as same:
        same.k = 3.0
    return x * one.k


def raised_in_a_loop(x: Any) -> Any:
    count = 0.0
    try:
        for v in x:
            count += 1
            if v > 1:
                raise KeyError
    except KeyError:
        count += 100
    return x * count


def raised_in_a_loop_within(x: Any) -> Any:
    y = x.copy()
    try:
        with Marking(y):
            for v in x:
                with Marking(y):
                    if v > 0.7:
                        raise KeyError
        y[-1] += 100
    except KeyError:
        y[-1] += 1000
    return y


@pytest.mark.parametrize(
    "function",
    [
        returns, turns, overruled, nested, raises, handlers, loops, managers, raised_in_a_function,
        taken, not_taken, suppressed, generators, generators_that_handle, closed,
        raised_in_a_loop, raised_in_a_loop_within,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_paths_that_leave_a_block_run_its_end(function: Callable[[Any], Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(function, "float64[n]"))
    for x in INPUTS:
        given = np.array(x)
        (got,) = session.run(["output"], {"x": given})
        np.testing.assert_allclose(got, function(given))
