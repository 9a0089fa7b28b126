"""Lists and sums of iterators over items whose number the data decide, item by item."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError, HaganeError
from hagane.frontends.capture.flow.builtins import _HANDLERS
from hagane.frontends.capture.flow.numeric import NONE


def mapped_in_pairs(x: Any) -> Any:
    items = [v * 2 for v in x]
    made = list(map(lambda a, b: a - 2 * b, items, reversed(items)))
    made.pop()
    return np.array(made), np.array(list(map(max, items, x[::-1])))


def reversed_items(x: Any) -> Any:
    items = [v * 2 for v in x]
    total = 0.0
    for v in reversed(items):
        total = total * 2 + v
    return np.array(list(reversed(items))), np.array(tuple(reversed(x))), total


def numbers_backward(x: Any) -> Any:
    numbers = list(range(len(x)))[::-1]
    return x[numbers], np.array(numbers[:0:-2])


def sliced_from_before(x: Any) -> Any:
    items = [v * 2 for v in x]
    return x[-2::-1], x[-3:0:-1], x[2 - len(x) :: -1], np.array([*items, x[0]][-3::-1])


def picked(x: Any) -> Any:
    items = [v * 2 for v in x]
    head = list(itertools.takewhile(lambda v: v < 1.2, items))
    tail = list(itertools.dropwhile(lambda v: v < 1.2, items))
    small = list(itertools.filterfalse(lambda v: v > 1, items))
    chosen = list(itertools.compress(items, [v > 0.3 for v in x]))
    part = list(itertools.islice(items, 1, None, 2))
    return [np.array([*found, x[0]]) for found in (head, tail, small, chosen, part)]


def chained(x: Any) -> Any:
    items = [v * 2 for v in x]
    joined = list(itertools.chain.from_iterable([items, items[1:]]))
    rising = list(itertools.accumulate(items, max, initial=items[-1]))
    starred = list(itertools.starmap(operator.mul, zip(items, x, strict=True)))
    return np.array(joined), np.array(rising), np.array(starred), np.array([*items, *map(abs, x)])


def unpacked(x: Any) -> Any:
    items = [v * 2 for v in x]
    *front, last = items
    first, *middle, end = x
    a, b, *rest = items
    return np.array(front) * last, np.array([*middle, first]) * end, np.array([*rest, a]) * b


def counted(x: Any) -> Any:
    items = [v * 2 for v in x]
    return sum(v > 1 for v in items), sum(float(v) > 1 for v in items), math.prod(items)


def taken_one_by_one(x: Any) -> Any:
    items = iter([v * 2 for v in x if v > 0.4])
    first = float(next(items, 7.0))
    pairs = enumerate(x)
    _, a = next(pairs)
    _, b = next(pairs)
    return first, np.array([i * v * a - b for i, v in pairs]), sum(float(v) for v in items)


def grouped(x: Any) -> Any:
    sums = [sum(g) for _, g in itertools.groupby(x, lambda v: v > 0.5)]
    runs = []
    for key, group in itertools.groupby(enumerate((x > 0.5).tolist()), lambda pair: pair[1]):
        group = list(group)
        runs.append((key, group[0][0], group[-1][0] + 1))
    widest = 0
    for key, start, stop in runs:
        widest = max(widest, stop - start if key else start - stop)
    return np.array(sums), widest, np.array([start for _, start, _ in runs])


def grouped_by_row(x: Any) -> Any:
    totals = []
    for row in (x[:2] > 0.3, x > 0.6):
        total = 0
        for key, group in itertools.groupby(row.tolist()):
            total = total * 2 + len(list(group)) * key
        totals.append(total)
    return np.array(totals)


def taken_by_some(x: Any) -> Any:
    items, kept = iter(list(x)), [x[0]]
    for v in x[1:]:
        if v > 0.5:
            kept.append(next(items) * 2)
    rest = sum(items)
    return np.array(kept), rest


def taken_of_two(x: Any) -> Any:
    sources = {1: iter(x), 2: iter([1.5, 2.5, 3.5, 4.5, 5.5, 6.5]), 3: None}
    kept = []
    for v in (x * 3).astype(np.int64) % 3:
        kept.append(x[0] if v == 0 else np.float32(next(sources[v])))
    return np.array(kept)


def taken_on_a_path(x: Any) -> Any:
    items = iter(x)
    total = next(items) if x[1] > 0.5 else x[1] * 0
    while (v := next(items, None)) is not None:
        total = total * 2 + v
    return total


@pytest.mark.parametrize(
    "program",
    [
        taken_by_some, taken_of_two, taken_on_a_path, grouped, grouped_by_row, mapped_in_pairs,
        reversed_items, numbers_backward, sliced_from_before, picked, chained, unpacked, counted,
        taken_one_by_one,
    ],
)  # fmt: skip
def test_each_item_has_its_own_place(program: Callable[..., Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "float32[n]"))
    for seed, size in enumerate((5, 3, 6, 4)):
        x = np.random.default_rng(seed).random(size, np.float32)
        found = program(x)
        wanted = [np.asarray(v) for v in (found if isinstance(found, tuple | list) else [found])]
        made = session.run(None, {"x": x})
        assert [v.shape for v in made] == [v.shape for v in wanted]
        for one, other in zip(made, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)


def test_backward_slices_of_short_arrays_are_empty() -> None:
    session = hagane.InferenceSession(hagane.capture(lambda x: x[-2::-1], "float32[n]"))
    for size in (1, 2, 0, 3):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], x[-2::-1])


def kept_map(x: Any) -> Any:
    items = [v * 2 for v in x]
    kept = map(abs, items)
    items[0] = items[1]
    return np.array(list(kept))


def kept_zip(x: Any) -> Any:
    items = [v * 2 for v in x]
    kept = zip(items, x, strict=True)
    items[0] = items[1]
    return np.array([a * b for a, b in kept])


@pytest.mark.parametrize("program", [kept_map, kept_zip])
def test_iterators_of_lists_that_change_before_they_are_read_are_refused(
    program: Callable[..., Any],
) -> None:
    with pytest.raises(CaptureError, match="read after the container that it was made of has ch"):
        hagane.capture(program, "float32[n]")


def left_by_a_break(x: Any) -> Any:
    items, total = iter([x[0], x[1], x[2]]), 0.0
    for v in items:
        total += v
        if v > 0.5:
            break
    return total * sum(items)


def left_at_an_open_place(x: Any) -> Any:
    items, total = iter([v * 2 for v in x]), 0.0
    for v in items:
        total += v
        if v > 0.5:
            break
    return total * sum(items)


@pytest.mark.parametrize("program", [left_by_a_break, left_at_an_open_place])
def test_an_iterator_that_a_loop_leaves_where_the_data_decide_is_not_read_on(
    program: Callable[..., Any],
) -> None:
    with pytest.raises(CaptureError, match="the data decide what it still has; run over a list"):
        hagane.capture(program, "float32[n]")


def filled(x: Any) -> Any:
    return np.array([a for a, _ in itertools.zip_longest([v for v in x if v > 0], x)])


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (filled, "itertools.zip_longest of a list whose length the data decide; fill up the sh"),
    ],
)
def test_iterators_without_a_graph_are_named(program: Callable[..., Any], text: str) -> None:
    with pytest.raises(CaptureError, match=text):
        hagane.capture(program, "float32[n]")


def tables(x: Any) -> Any:
    products = [[a * b for a in x] for b in x]
    apart = [[0.0] * len(x) for _ in range(len(x))]
    for i in range(len(x)):
        for j in range(len(x)):
            apart[i][j] = float(abs(x[i] - x[j]))
    marks = np.array([[float(i == j) for j in range(len(x))] for i in range(len(x))])
    return np.array(products), np.array(apart), marks


def pairs(x: Any) -> Any:
    shown = [(i, i * 2) for i in range(len(x))]
    boxes = np.array([[[a, b], [b, a]] for a, b in zip(x, x[::-1], strict=True)])
    changed = [[v, v + 1] for v in x]
    changed[0][1] = changed[1][0]
    return np.array(shown), boxes, np.array(changed), np.array(list(map(list, zip(x, x * 2))))  # noqa: B905


@pytest.mark.parametrize("program", [tables, pairs])
def test_a_list_of_lists_of_one_length_is_an_array(program: Callable[..., Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "float32[n]"))
    for size in (5, 2, 3):
        x = np.random.default_rng(size).random(size, np.float32)
        for one, other in zip(session.run(None, {"x": x}), program(x), strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-6)


def ragged(x: Any) -> Any:
    return np.array([[a for a in x if a < b] for b in x])


def test_an_array_of_lists_of_other_lengths_fails() -> None:
    session = hagane.InferenceSession(hagane.capture(ragged, "float32[n]"))
    with pytest.raises(hagane.errors.HaganeError, match="Reshape"):
        session.run(None, {"x": np.array([1.0, 2.0, 3.0], np.float32)})


def starred(x: Any) -> Any:
    return np.array(list(itertools.starmap(operator.sub, zip(x, x[::-1], strict=True))))


def mapped(x: Any) -> Any:
    return np.array(list(map(abs, [v + 1 for v in x])))


def filtered(x: Any) -> Any:
    return np.array(list(filter(lambda v: v > 0.5, [v + 1 for v in x])))


@pytest.mark.parametrize(
    ("program", "handled"),
    [
        (mapped, map), (starred, itertools.starmap), (filtered, filter),
        (mapped, list),
    ],
)  # fmt: skip
def test_one_type_for_all_items_never_stands_for_each_of_them(
    monkeypatch: pytest.MonkeyPatch, program: Callable[..., Any], handled: Any
) -> None:
    """Without its handler of capture a function has that of the check, which follows types."""
    monkeypatch.setitem(_HANDLERS, handled, lambda *_, **__: NONE)
    with pytest.raises(CaptureError, match="items of a list whose length the data decide"):
        hagane.capture(program, "float32[n]")


def test_a_graph_fails_where_an_iterator_is_used_up() -> None:
    session = hagane.InferenceSession(hagane.capture(taken_by_some, "float32[n]"))
    x = np.array([0.1, 0.9, 0.2], np.float32)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], [0.1, 0.2])

    def taken(x: Any) -> Any:
        items, total = iter([x[0], x[1]]), x[0]
        for v in x:
            if v > 0.5:
                total = total * next(items)
        return total

    session = hagane.InferenceSession(hagane.capture(taken, "float32[n]"))
    assert session.run(None, {"x": x})[0] == taken(x)
    with pytest.raises(HaganeError, match="StopIteration: the iterator is used up"):
        session.run(None, {"x": x + 1})
