"""Methods that Python calls by itself: of iterators, copies, classes; comparisons in a chain."""

from __future__ import annotations

import copy
import functools
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError

INPUTS = ([1.0, -3.0, 0.5], [1.0, 2.0], [-1.0, 0.25])


class Turns:
    def __init__(self, items: Any) -> None:
        self.items, self.place, self.asked = items, 0, 0

    def __iter__(self) -> Turns:
        self.place = 0
        self.asked += 1
        return self

    def __next__(self) -> Any:
        if self.place >= len(self.items):
            raise StopIteration
        self.place += 1
        return self.items[self.place - 1]


class Reading:
    def __init__(self) -> None:
        self.asked = 0.0

    def __iter__(self) -> Iterator[float]:
        self.asked += 1
        return iter([1.0, 2.0])

    def __reversed__(self) -> Iterator[float]:
        return iter([9.0, 8.0])

    def __dir__(self) -> list[str]:
        return ["a", "b"]


class Copied:
    def __init__(self, value: float) -> None:
        self.value = value

    def __copy__(self) -> Copied:
        return Copied(5.0)

    def __deepcopy__(self, memo: Any) -> Copied:
        return Copied(6.0)


class Filling(dict[str, float]):
    def __missing__(self, key: str) -> float:
        self[key] = 5.0
        return 7.0


class Told:
    tag = 0.0

    def __init_subclass__(cls, tag: float = 1.0) -> None:
        cls.tag = tag


def iterators_of_the_program(x: Any) -> Any:
    total = x[0] * 0
    for v in Turns(x):
        total = total * 2 + v
    turns = Turns([1.0, 2.0, 3.0])
    for v in turns:
        total = total + v * x[0]
    first, second, third = turns
    total = total + first + second * third
    return total + sum(turns) + max(turns) + turns.asked + next(turns, 10.0)


def read_once(x: Any) -> Any:
    reading = Reading()
    found = sum(reading) + max(reading) + len([v + 1 for v in reading]) + reading.asked
    return x + found + next(reversed(reading)) + len(dir(reading))  # type: ignore[call-overload]


def copies(x: Any) -> Any:
    one = Copied(1.0)
    return x * copy.copy(one).value + copy.deepcopy([one])[0].value


def missing_keys(x: Any) -> Any:
    filling = Filling(a=1.0)
    return x * filling["b"] + filling["b"] + len(filling)


def subclasses(x: Any) -> Any:
    class One(Told, tag=3.0):
        pass

    return x * One.tag


def chains(x: Any) -> Any:
    asked = []

    def f(value: Any) -> Any:
        asked.append(value)
        return value

    known = f(1) < f(3) < f(2) < f(9)
    return x * len(asked) + known


class Asked:
    count = 0.0


def chains_of_the_data(x: Any) -> Any:
    asked = Asked()

    def f(value: Any) -> Any:
        asked.count += 1
        return value

    holds = 0 < f(x[0]) < f(2.0) < f(1.0)
    return x * asked.count + holds


def namespaces(x: Any) -> Any:
    one, other = SimpleNamespace(a=1.0), SimpleNamespace(a=1.0)
    same = one == other
    other.b = 2.0
    return x + same * 2 + (one == other)


def orders(x: Any) -> Any:
    asked: list[int] = []

    def f(value: int) -> int:
        asked.append(value)
        return value

    table = {f(1): f(2), f(3): f(4)}
    queue = OrderedDict(a=1.0, b=2.0)
    queue.move_to_end("a")
    _, value = queue.popitem(last=False)
    return x * value + sum(k * place for place, k in enumerate(asked)) + len(table)


def compared_from_the_right(x: Any) -> Any:
    class Least:
        def __init__(self, value: float) -> None:
            self.value = value

        def __lt__(self, other: Any) -> bool:
            return bool(self.value < other.value)

    ordered: Any = functools.total_ordering(Least)
    return x + (Least(2.0) > Least(1.0)) * 2 + (ordered(1.0) <= ordered(2.0)) * 4


@pytest.mark.parametrize(
    "function",
    [
        iterators_of_the_program, read_once, copies, missing_keys, subclasses, chains,
        chains_of_the_data, namespaces, orders, compared_from_the_right,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_they_are_called_as_python_does(function: Callable[[Any], Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(function, "float64[n]"))
    for x in INPUTS:
        given = np.array(x)
        (got,) = session.run(["output"], {"x": given})
        np.testing.assert_allclose(got, function(given))


def changed_in_between(x: Any) -> Any:
    asked = Asked()

    def turns() -> Iterator[int]:
        for place in range(5):
            asked.count += 1
            yield place

    return x * sum([asked.count for _ in turns()])


def read_between_turns(x: Any) -> Any:
    turns, total = Turns([1.0, 2.0, 3.0]), 0
    for _ in turns:
        total += turns.place
    return x * total


NAMES: list[str] = []


class Registering(type):
    def __init__(cls, name: str, bases: Any, content: Any) -> None:
        NAMES.append(name)


class Single(type):
    def __call__(cls) -> Any:
        return 5.0


class Only(metaclass=Single):
    pass


def made_by_a_metaclass(x: Any) -> Any:
    class Made(metaclass=Registering):
        pass

    return x * len(NAMES)


def single(x: Any) -> Any:
    return x * Only()


class Leaving:
    def __del__(self) -> None:
        Asked.count += 1


def going(x: Any) -> Any:
    Leaving()
    return x * Asked.count


def of_another_class(x: Any) -> Any:
    asked = Asked()
    if x.sum() > 0:
        asked.__class__ = Reading  # type: ignore[assignment]
    return x * asked.count


def taken_on_a_path(x: Any) -> Any:
    numbers = itertools.count()
    if x.sum() > 0:
        next(numbers)
    return x * next(numbers)


def sent(x: Any) -> Any:
    def sums() -> Any:
        total = 0.0
        while True:
            total = total + (yield total)

    found = sums()
    next(found)
    return found.send(x[0])


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (changed_in_between, "'count' is read or changed here that the code of an iterator"),
        (read_between_turns, "'place' is read or changed here that the code of an iterator"),
        (made_by_a_metaclass, "the metaclass of Made makes the class in its own way"),
        (single, "objects of Only are made by its metaclass"),
        (of_another_class, "an object whose '__class__' is set"),
        (taken_on_a_path, "a list or iterator is read here that has other items on other paths"),
        (sent, "a value that is sent into a generator"),
        (going, "objects of Leaving have a '__del__'"),
    ],
)
def test_what_no_graph_can_follow_is_refused(function: Callable[[Any], Any], told: str) -> None:
    with pytest.raises(CaptureError, match=told):
        hagane.capture(function, "float64[n]")
