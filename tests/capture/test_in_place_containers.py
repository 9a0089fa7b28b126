"""Python's containers change for all of their names; iterators read them when they are asked."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError


def list_repeated(x: Any) -> Any:
    shelf = [x, x + 1]
    other = shelf
    other *= 2
    return x * len(shelf)


def list_emptied(x: Any) -> Any:
    shelf = [1, 2]
    other = shelf
    other *= 0
    return x + len(shelf)


def dictionary_merged(x: Any) -> Any:
    prices = {"a": x}
    same = prices
    same |= {"a": x * 5, "b": x}
    return prices["a"] + len(prices)


def default_dictionary_merged(x: Any) -> Any:
    counts: Any = defaultdict(int)
    same = counts
    same |= {"k": 5}
    return x * counts["k"] + counts["none"]


def sets_changed(x: Any) -> Any:
    one, two, three, four = {1, 2}, {1, 2}, {1, 2}, {1, 2}
    a, b, c, d = one, two, three, four
    a |= {3}
    b &= {2}
    c -= {2}
    d ^= {2, 7}
    return x * sum(one) + 10 * sum(two) + 100 * sum(three) + 1000 * sum(four)


def frozen_set_replaced(x: Any) -> Any:
    one: Any = frozenset({1})
    two = one
    two |= {2}
    return x * len(one) + len(two)


def methods_of_sets(x: Any) -> Any:
    a, b, c = {1, 2, 3}, {1, 2, 3}, {4}
    a.update({5, 6}, [7])
    a.discard(1)
    a.discard(100)
    b.intersection_update({2, 3})
    b.symmetric_difference_update({9})
    only = c.pop()
    a.remove(2)
    d = {8}
    d.clear()
    d.add(7)
    return x * sum(a) + 100 * sum(b) + only + len(c) + sum(d)


def attribute_and_item(x: Any) -> Any:
    box = {"rows": [1]}
    rows = box["rows"]
    box["rows"] *= 3
    box["rows"] += (1, 2)
    return x * len(rows)


def tuple_replaced(x: Any) -> Any:
    pair = (1,)
    other = pair
    other *= 2
    other += (3,)
    return x * len(pair) + 10 * len(other)


def deque_kept_short(x: Any) -> Any:
    last: Any = deque([1, 2], maxlen=3)
    same = last
    same += [3, 4]
    return x * sum(last) + len(last)


def counters_computed(x: Any) -> Any:
    counts = Counter("aab")
    same = counts
    same |= Counter("aaaac")
    rest = counts - Counter("ab")
    return x * counts["a"] + counts["c"] + 10 * rest["a"] + 100 * len(counts & Counter("ab"))


def one_of_two_lists(x: Any) -> Any:
    a, b = [1], [2]
    chosen = a if x.sum() > 0 else b
    chosen *= 2
    chosen += [7]
    return x * sum(a) + 100 * sum(b)


def one_of_two_dictionaries(x: Any) -> Any:
    a, b = {"k": 1}, {"k": 2}
    chosen = a if x.sum() > 0 else b
    chosen |= {"k": 9}
    return x * a["k"] + 100 * b["k"]


def places_of_an_item(x: Any) -> Any:
    steps = [1, 2, 1, 3, 1]
    return x * steps.index(1, 1) + steps.index(1, 3, 5) + 10 * (1, 2, 1).index(1, 1)


def views_of_a_dictionary(x: Any) -> Any:
    table = {"a": 1, "b": 2}
    keys, values, items = table.keys(), table.values(), table.items()
    table["c"] = 3
    table["a"] = 10
    return x * len(keys) + sum(values) + 100 * sum(v for _, v in items)


def values_set_in_a_loop(x: Any) -> Any:
    table, total = {"a": 1, "b": 2}, 0
    for _, value in table.items():
        table["b"] = 10
        total += value
    for key in table:
        table[key] *= 2
    return x * total + table["a"]


def items_set_in_a_loop(x: Any) -> Any:
    steps, total = [1, 2, 3], 0
    for step in steps:
        steps[2] = 9
        total += step
    for place, step in enumerate(steps):
        steps[place] = step * 2
    return x * total + steps[2]


SAME = [
    value for value in list(globals().values()) if getattr(value, "__annotations__", {}).get("x")
]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("function", SAME, ids=lambda f: f.__name__)
def test_a_container_changes_for_all_of_its_names(
    function: Callable[[Any], Any], sign: float
) -> None:
    x = np.array([1.0, 2.0], np.float32) * np.float32(sign)
    session = hagane.InferenceSession(hagane.capture(function, x))
    (got,) = session.run(None, {"x": x})
    np.testing.assert_allclose(got, function(x), rtol=1e-6)


def zipped(x: Any) -> Any:
    a, b, total = [1, 2], [5, 6], 0
    for p, q in zip(a, b, strict=True):
        b[1] = 100
        total += p * q
    return x * total


def kept_iterator(x: Any) -> Any:
    steps = [1, 2, 3]
    rest = iter(steps)
    next(rest)
    steps.append(4)
    return x * sum(rest)


def kept_generator(x: Any) -> Any:
    steps = [1, 2, 3]
    doubled = (step * 2 for step in steps)
    steps.append(5)
    return x * sum(doubled)


def read_backwards(x: Any) -> Any:
    steps, total = [1, 2, 3], 0
    for step in reversed(steps):
        steps[0] = 7
        total += step
    return x * total


@pytest.mark.parametrize("function", [zipped, kept_iterator, kept_generator, read_backwards])
def test_an_iterator_over_what_has_changed_since_is_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises(CaptureError, match="an iterator is read after the container that it was"):
        hagane.capture(function, np.ones(2, np.float32))


def test_a_loop_that_changes_the_length_of_its_list_is_refused() -> None:
    def grown(x: Any) -> Any:
        steps, total = [1, 2, 3], 0
        for step in steps:
            if step == 1:
                steps.append(10)
            total += step
        return x * total

    with pytest.raises(CaptureError, match="a loop runs over a list that it changes"):
        hagane.capture(grown, np.ones(2, np.float32))


def item_of_one_of_two_deleted(x: Any) -> Any:
    a, b = [1, 2], [3, 4]
    chosen = a if x.sum() > 0 else b
    del chosen[0]
    return x * len(a) + 100 * len(b)


def missing_item_deleted(x: Any) -> Any:
    table, steps, found = {"k": 1}, [1], 0
    try:
        del table["z"]
    except KeyError:
        found += 1
    try:
        del steps[4]
    except IndexError:
        found += 10
    return x * found


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("function", [item_of_one_of_two_deleted, missing_item_deleted])
def test_items_are_deleted_where_they_are(function: Callable[[Any], Any], sign: float) -> None:
    x = np.array([1.0, 2.0], np.float32) * np.float32(sign)
    session = hagane.InferenceSession(hagane.capture(function, x))
    np.testing.assert_allclose(session.run(None, {"x": x})[0], function(x), rtol=1e-6)


def counted_keys(x: Any) -> Any:
    table = {}
    if x.sum() > 0:
        table["a"] = 1
    return x * len(table)


def key_asked_for(x: Any) -> Any:
    table = {"b": 1}
    if x.sum() > 0:
        table["a"] = 1
    return x * table.get("a", 5)


def key_taken_out(x: Any) -> Any:
    table = {"a": 1, "b": 2}
    if x.sum() > 0:
        table.pop("a")
    return x * sum(table.values())


def keys_in_another_order(x: Any) -> Any:
    table = {}
    if x.sum() > 0:
        table["a"], table["b"] = 1, 2
    else:
        table["b"], table["a"] = 1, 2
    return x * next(iter(table.values()))


def keys_in_turn(x: Any) -> Any:
    table = {"a": x}
    if x.sum() > 0:
        table["b"] = x + 1
    if x.max() > 1:
        table["c"] = x * 3
    total = x * 0
    for key in table:
        total = total + table[key] * len(key)
    return total + sum(value.sum() for value in table.values())


def key_that_all_have_then(x: Any) -> Any:
    table = {}
    if x.sum() > 0:
        table["a"] = x
    table["a"] = x * 2
    return table["a"]


def asked_first(x: Any) -> Any:
    table = {}
    if x.sum() > 0:
        table["a"] = x
    if table:
        return table["a"] * 2
    return x


def scaled(x: Any, scale: float = 1.0, shift: float = 0.0) -> Any:
    return x * scale + shift


def settings_of_a_call(x: Any) -> Any:
    settings = {}
    if x.sum() > 0:
        settings["scale"] = 3.0
    else:
        settings["shift"] = 1.0
    return scaled(x, **settings)


@pytest.mark.parametrize(
    "function",
    [counted_keys, key_asked_for, key_taken_out, keys_in_another_order, keys_in_turn,
     key_that_all_have_then, asked_first, settings_of_a_call],
)  # fmt: skip
def test_a_dictionary_whose_keys_the_data_decide_is_read_on_each_path(
    function: Callable[[Any], Any],
) -> None:
    session = hagane.InferenceSession(hagane.capture(function, np.ones(2, np.float32)))
    for x in ([1.0, 2.0], [-1.0, -2.0], [-5.0, 2.0], [0.5, 0.25]):
        given = np.array(x, np.float32)
        (found,) = session.run(None, {"x": given})
        np.testing.assert_allclose(found, function(given), rtol=1e-6)


def key_taken_out_of_two(x: Any) -> Any:
    table = {"a": 1}
    if x.sum() > 0:
        table["b"] = 2
    table.pop("a")
    return x * len(table)


def test_a_dictionary_whose_keys_the_data_decide_is_refused_where_items_leave_it() -> None:
    with pytest.raises(CaptureError, match="has other keys on other paths, and the data decide"):
        hagane.capture(key_taken_out_of_two, np.ones(2, np.float32))


def test_a_dictionary_of_the_same_keys_on_all_paths_is_joined() -> None:
    def joined(x: Any) -> Any:
        table = {"a": 1, "b": 5}
        if x.sum() > 0:
            table["a"] = 2
        else:
            table["b"] = 7
        return x * table["a"] + table["b"] + len(table)

    for sign in (1, -1):
        x = np.array([1.0, 2.0], np.float32) * np.float32(sign)
        session = hagane.InferenceSession(hagane.capture(joined, x))
        np.testing.assert_allclose(session.run(None, {"x": x})[0], joined(x), rtol=1e-6)
