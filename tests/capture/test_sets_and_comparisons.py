"""Sets of known values, in the order in which Python gives them; operators that objects have."""

from __future__ import annotations

from typing import Any

import numpy as np

import hagane

X = np.arange(3, dtype=np.float32)


def in_order_of_literals(x: Any) -> Any:
    for step in {30, 1, 2, 17}:
        x = x * 2 + step
    made = {65, 129, 3, 33, 5, 17}
    return x, list(made), [step + 1 for step in {90, 64, 30, 3}], tuple({"b", "a", "c", "d"})


def in_order_of_their_history(x: Any) -> Any:
    made: set[Any] = set()
    for item in (64, 32, 0, 8, 16, 128):
        made.add(item)
    other = made.copy()
    made.discard(32)
    made |= {40, 72}
    other.update([33, 1], made)
    after = other - {64}
    after ^= {7, 0, 39}
    return (
        x,
        list(made),
        list(other),
        [*after],
        list(set({33: 1, 1: 2}) & other),
        list(made | after),
    )


def after_clear(x: Any) -> Any:
    made = {12, 4}
    made.clear()
    return x, list(frozenset(made.union([64, 0, 8], {32})))


def views_of_keys(x: Any) -> Any:
    held = {"b": 1, "a": 2}
    return x, list(held.keys()), sorted(held.keys() | {"c"}), held.keys() == {"a", "b"}


def compared_as_sets(x: Any) -> Any:
    one, two = {2, 4, 6}, {2, 3, 5}
    return (
        x, one | two == {2, 3, 4, 5, 6}, one ^ two == {3, 4, 5, 6}, {1, 2} == [1, 2], one != two,
        frozenset((1, 2)) == {2, 1}, {1} < {1, 2}, {1} >= {2}, set() == {},
    )  # fmt: skip


class Amount:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Amount):
            return NotImplemented
        return self.value == other.value

    def __lt__(self, other: Any) -> Any:
        if not isinstance(other, Amount):
            return NotImplemented
        return self.value < other.value

    def __add__(self, other: Any) -> Any:
        return self.value + other if isinstance(other, int) else NotImplemented

    def __iadd__(self, other: Any) -> Any:
        return NotImplemented


class Anything:
    def __radd__(self, other: Any) -> Any:
        return 100

    def __eq__(self, other: object) -> bool:
        return True

    def __gt__(self, other: Any) -> bool:
        return True


class Larger(Amount):
    def __radd__(self, other: Any) -> Any:
        return 7


def operators_that_decline(x: Any) -> Any:
    one, other = Amount(1), Anything()
    told = [one == 1, one != 1, one == Amount(1), one != Amount(1), one == other, one < other]
    told += [other == 1, other != 2, one + other, one + Larger(2), one + 3]
    for attempt in (lambda: one < 3, lambda: one + "s"):
        try:
            attempt()
        except TypeError:
            told.append("refused")
    one += 4
    return x + one, told


def items_by_their_operators(x: Any) -> Any:
    nan = float("nan")
    told = [
        [Amount(1), 2] == [Amount(1), 2],
        (Amount(1),) != (Amount(1),),
        [Amount(1)] < [Amount(2)],
    ]
    told += [{"a": Amount(1)} == {"a": Amount(1)}, [nan] == [nan], (nan,) == (nan,), nan in [nan]]
    told += [[nan].count(nan), [2, nan].index(nan), round(2.345, ndigits=1)]
    told += [
        [1, 2, 3].count(Anything()),
        [1].index(Anything()),
        Anything() in [1, 2],
        3 in [Anything()],
    ]
    return x, told


class Silent:
    def __eq__(self, other: object) -> bool:
        raise KeyError


def rounded_by_keyword(x: Any) -> Any:
    return round(float(x.sum()) / 7, ndigits=2), round(number=2.5)


def asked_in_order(x: Any) -> Any:
    found = 1 in [1, Silent()]
    try:
        found = 1 in [Silent(), 1]
    except KeyError:
        return x + 1, found
    return x + 2, found


PROGRAMS = [
    in_order_of_literals, in_order_of_their_history, after_clear, views_of_keys, compared_as_sets,
    operators_that_decline, items_by_their_operators, asked_in_order,
    rounded_by_keyword,
]  # fmt: skip


def test_graphs_hold_what_python_computes() -> None:
    for program in PROGRAMS:
        want, got = program(X), hagane.compile(program, fullgraph=True)(X)
        np.testing.assert_array_equal(want[0], got[0])
        assert got[1:] == want[1:], program.__name__
