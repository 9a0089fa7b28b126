"""Errors that Python raises of known values alone, and what else only their order decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane

X = np.arange(3, dtype=np.float32)
later = 5


class Refusing:
    def __init__(self, count: int) -> None:
        self.count, self.asked = count, []

    def __len__(self) -> int:
        return len(self.asked)

    def __getitem__(self, place: int) -> int:
        if place >= self.count:
            raise IndexError
        self.asked.append(place)
        return place


def raised(calls: Any) -> list[str]:
    told = []
    for call in calls:
        try:
            call()
        except TypeError:
            told.append("TypeError")
        except RuntimeError:
            told.append("RuntimeError")
        except SyntaxError:
            told.append("SyntaxError")
        else:
            told.append("nothing")
    return told


def wrong_arguments(x: Any) -> Any:
    calls = [
        lambda: [1].clear(2), lambda: [1].pop(0, 0), lambda: [2].reverse(1), lambda: [1].copy(x),
        lambda: {}.get(1, 2, 3), lambda: {}.keys(1), lambda: set().add(), lambda: (1,).count(),
        lambda: len([], []), lambda: list(sequence=()), lambda: [1].append(2), lambda: {}.get(1),
    ]  # fmt: skip
    return x, raised(calls)


def wrong_values(x: Any) -> Any:
    calls = [
        lambda: {[1]}, lambda: {[]: 1}, lambda: [] in {1: 2}, lambda: hash([]), lambda: {}[{}],
        lambda: ",".join([1]), lambda: isinstance(1, 2),
        lambda: compile("a b", "", "exec"), lambda: isinstance(1, (int, type(None))),
    ]  # fmt: skip
    return x, raised(calls)


def grow(held: Any) -> None:
    for item in held:
        held[item + 1] = 0


def grow_set(held: Any) -> None:
    for item in held:
        held.add(item + 10)


def changed_in_the_last_turn(x: Any) -> Any:
    return x, raised([lambda: grow({1: 2}), lambda: grow_set({1})])


def names_that_are_not_set(x: Any) -> Any:
    told = []

    def declares() -> Any:
        value: int
        return value  # noqa: F821

    for attempt in (declares, lambda: own()):
        try:
            attempt()
        except UnboundLocalError:
            told.append("local")
        except NameError:
            told.append("free")

    def own() -> Any:
        return 1

    try:
        raise ValueError
    except ValueError as error:
        del error
    try:
        x = x + later  # noqa: F823
    except UnboundLocalError:
        told.append("own")
    later = 3  # noqa: F841
    return x, told


def items_until_the_index_error(x: Any) -> Any:
    total = 0
    for item in Refusing(4):
        total += item
    return x + total, list(Refusing(3)), 1 in Refusing(3), [*Refusing(2)]


PROGRAMS = [
    wrong_arguments, wrong_values, changed_in_the_last_turn, names_that_are_not_set,
    items_until_the_index_error,
]  # fmt: skip


def test_graphs_hold_what_python_computes() -> None:
    for program in PROGRAMS:
        want, got = program(X), hagane.compile(program, fullgraph=True)(X)
        np.testing.assert_array_equal(want[0], got[0])
        assert got[1:] == want[1:], program.__name__


def reads_what_changed(x: Any) -> Any:
    chosen, count = False, 10
    pairs = ((i, j) for i in range(count) if chosen for j in range(count))
    count, chosen = 5, True
    return x, len(list(pairs))


def grows_in_the_last_turn(x: Any) -> Any:
    items = [1]
    for item in items:
        if len(items) < 3:
            items.append(item + 1)
    return x + len(items)


@pytest.mark.parametrize("program", [reads_what_changed, grows_in_the_last_turn])
def test_what_python_reads_late_is_left_to_python(program: Callable[..., Any]) -> None:
    with pytest.warns(hagane.CompileNotice):
        got = hagane.compile(program)(X)
    np.testing.assert_equal(got, program(X))
