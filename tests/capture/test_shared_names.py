"""Loops that write an array under one name and read it under another one, or through a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError


def renamed(x: Any) -> Any:
    a = x.copy()
    b = a
    i = 0
    while i < len(a):
        b[i] = b[i] + a[0]
        i += 1
    return a


def sift(a: Any, i: Any, n: Any) -> None:
    while True:
        c = 2 * i + 1
        if c >= n:
            break
        if c + 1 < n and a[c + 1] > a[c]:
            c += 1
        if a[i] >= a[c]:
            break
        a[i], a[c] = a[c], a[i]
        i = c


def heapsort(x: Any) -> Any:
    a = x.copy()
    n = len(a)
    for i in range(n // 2 - 1, -1, -1):
        sift(a, i, n)
    for k in range(n - 1, 0, -1):
        a[0], a[k] = a[k], a[0]
        sift(a, 0, k)
    return a


def behind(x: Any) -> Any:
    a = x.copy()
    b = a[1:]
    i = 0
    while i < len(b):
        b[i] = b[i] * 2 + a[i]
        i += 1
    return a, b


def relaxed(x: Any) -> Any:
    grid = np.outer(x, x[::-1])
    inner = grid[1:-1, 1:-1]
    turns = 0
    while np.abs(inner).max() > 0.05 and turns < 20:
        inner[:] = 0.25 * (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])
        turns += 1
    return grid, turns


def rows(x: Any) -> Any:
    table = np.outer(x, x)
    for i in range(len(table)):
        row = table[i]
        for j in range(len(row)):
            if row[j] > 0:
                row[j] = row[j] - table[0, 0]
        j = 0
        while j < len(row) and row[j] <= 0:
            row[j] += 1
            j += 1
    return table


def left_early(x: Any) -> Any:
    a = x.copy()
    b = a
    while True:
        if b[0] > 5:
            break
        a[0] += 1
        if b.sum() > 10:
            b[1] = 0
            continue
        b[1] += 2
    return a, b


def turned(x: Any) -> Any:
    a = np.outer(x, x)
    t = a.T
    i = 0
    while i < a.shape[0]:
        if a[i, 0] > 0:
            t[0, i] = a[i, 1]
        else:
            a[i] = 1
        i += 1
    return a, t.copy()


def returned(x: Any) -> Any:
    a = x.copy()

    def first_positive(v: Any, i: Any) -> Any:
        while i < len(v):
            if v[i] > 0:
                v[i] = -v[i]
                return i
            i += 1
        return -1

    return sum(first_positive(a, k) for k in range(3)), a


def behind_a_branch(x: Any) -> Any:
    whole = np.outer(x, x)
    part = whole[0]
    last = whole[1:, 1:][-1]
    if x.sum() > 0:
        whole += 1
    else:
        part[0] = 7
    whole += 1
    last *= 2
    return part * 1, whole


PROGRAMS = [
    renamed, heapsort, behind, relaxed, rows, left_early, turned, returned, behind_a_branch,
]  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_names_of_one_memory_stay_one(function: Callable[[Any], Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(function, "float32[n]"))
    for size in (3, 4, 7):
        x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
        expected = function(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for found, wanted in zip(session.run(None, {"x": x}), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def parted(x: Any) -> Any:
    a = x.copy()
    b = a
    for i in range(len(x)):
        if x[i] > 0:
            b = b + 1
        b[i] = 5
    return a, b


def test_names_that_part_in_a_loop_are_refused() -> None:
    with pytest.raises(CaptureError, match="changes a tensor that shares its memory with this one"):
        hagane.capture(parted, "float32[n]")


def power(base: Any, exponent: Any) -> Any:
    found = 1
    while exponent > 0:
        if exponent % 2 == 1:
            found = found * base
        base, exponent = base * base, exponent // 2
    return found


def test_an_element_type_alone_is_a_scalar() -> None:
    session = hagane.InferenceSession(hagane.capture(power, "int64", exponent="int64"))
    feed = {"base": np.int64(3), "exponent": np.int64(13)}
    assert session.run(None, feed)[0] == 3**13


def table_of_means(x: Any) -> Any:
    h, w = x.shape
    rows = []
    for i in range(0, h - 3, 2):
        rows.append(np.stack([x[i : i + 4, j : j + 4].mean() for j in range(0, w - 3, 2)]))
    return np.stack(rows)


def test_lists_that_each_iteration_makes_longer_have_its_length() -> None:
    graph = hagane.capture(table_of_means, x="float32[h, w]")
    sizes = graph.graph.outputs[0].shape
    assert sizes is not None
    assert [str(size) for size in sizes] == [
        "max(0, h - (h + 1)//2 - 1)",
        "max(0, w - (w + 1)//2 - 1)",
    ]
    session = hagane.InferenceSession(graph)
    for shape in ((4, 4), (9, 6), (5, 8)):
        x = np.random.default_rng(0).random(shape, np.float32)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], table_of_means(x), rtol=1e-6)
