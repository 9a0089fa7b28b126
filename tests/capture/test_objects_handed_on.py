"""Lists that loops, branches and lists of lists hand on after another name has changed them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError


def entered_by_a_loop(x: np.ndarray) -> Any:
    table = [[k, 1] for k in range(len(x))]
    last = table[-1]
    table[0][0] = 2
    found = 0
    for i in range(len(x)):
        found = found * 3 + last[0]
        last = [i]
    return found, last[0]


def entered_by_a_loop_that_exchanges(x: np.ndarray) -> Any:
    table = [[k, 1] for k in range(len(x))]
    a, b = table[0], table[-1]
    table[0][0] = 5
    table[-1][1] = 6
    i = found = 0
    while i < len(x):
        found = found * 3 + a[0] * 7 + b[1]
        a, b = b, a
        i += 1
    return found, a[0], b[1]


def in_a_dictionary(x: np.ndarray) -> Any:
    table = [[k, 1] for k in range(len(x))]
    held = {"first": table[0]}
    table[0][0] = 5
    found = 0
    for _ in range(len(x)):
        found = found * 3 + held["first"][0]
        held["first"] = [found % 5]
    return found, held["first"][0]


def read_on_one_path(x: np.ndarray) -> Any:
    table = [[k, 1] for k in range(len(x))]
    last = table[-1]
    table[-1][0] = 5
    found = 0
    if x[0, 0] > 1:
        found = last[0] * 2
    return found, last[0]


def read_in_attempts(x: np.ndarray) -> Any:
    table = [[0] * len(x) for _ in range(len(x))]
    last = table[-1]
    for i in range(3):
        row = table[-1] if len(x) > 2 else table[i % len(table)]
        table[-1][-1] = 5 + len(row)
    return last[-1]


def joined_with_a_longer_list(x: np.ndarray) -> Any:
    rows = [[0, 5], [6, 7], [8, 9]]
    row = rows[len(x) % 3]
    table = [row]
    if x[0, 0] > 1:
        rows[0][0] = 20
        rows[1][0] = 30
    else:
        table.append(row)
    return rows[0][0], rows[1][0], table[0][0], len(table)


def three_deep(x: np.ndarray) -> Any:
    n = len(x)
    table = [[[0] * n for _ in range(n)] for _ in range(n)]
    for i in range(n):
        for j in range(n):
            for k in range(n):
                table[i][j][k] = i * 4 + j * 2 + k + (table[i - 1][j][k] if i > 0 else 0)
    table[0][0][n - 1] += 9
    return table[n - 1][n - 1][0], table[0][0][n - 1]


def parts_of_an_item(x: np.ndarray) -> Any:
    table = [[[k, 1], [2, 3]] for k in range(len(x))]
    part = table[0][1]
    part[0] = 8
    table[0][1][1] = 9
    return table[0][1][0], part[0], part[1]


def place_in_a_list_twice_as_long(x: np.ndarray) -> Any:
    found = list(range(len(x)))
    for i in range(len(x)):
        found.append(i)
    found[len(x) % len(found)] = 100
    return found[0], found[len(x)], (3 * len(x)) % len(found)


RIGHT = [
    entered_by_a_loop, entered_by_a_loop_that_exchanges, in_a_dictionary, read_on_one_path,
    read_in_attempts, joined_with_a_longer_list, three_deep, parts_of_an_item,
    place_in_a_list_twice_as_long,
]  # fmt: skip


@pytest.mark.parametrize("program", RIGHT, ids=lambda f: f.__name__)
def test_names_see_what_others_have_changed(program: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "int64[n, 2]"))
    for size in (1, 2, 3, 5):
        for value in (0, 3):
            x = np.full((size, 2), value)
            expected = program(x) if isinstance(program(x), tuple) else (program(x),)
            assert [int(found) for found in session.run(None, {"x": x})] == [*expected], size


def new_on_one_path(x: np.ndarray) -> Any:
    rows = [[0, 5], [6, 7], [8, 9]]
    row = rows[0]
    for i in range(len(x)):
        rows[i % 3][0] = i + 20
        if x[-1, 1] > 1:
            row = [1, 2]
    return row[0]


def exchanged_in_a_loop(x: np.ndarray) -> Any:
    rows = [[0, 5], [6, 7], [8, 9]]
    row = rows[len(x) % 3]
    for _ in range(len(x)):
        rows[1], rows[0] = rows[0], rows[1]
    rows[0][0] = 99
    return row[0]


def unread_in_the_loop(x: np.ndarray) -> Any:
    table = [{"a": k, "b": [1]} for k in range(len(x))]
    other = table[0]["b"]
    for i in range(len(x)):
        other = table[(i + 1) % len(x)]["b"]
        table[(i + 1) % len(x)]["b"][0] = i + 19
    return other[0]


REFUSED = [new_on_one_path, exchanged_in_a_loop, unread_in_the_loop]


@pytest.mark.filterwarnings("ignore::hagane.CompileNotice")
@pytest.mark.parametrize("program", REFUSED, ids=lambda f: f.__name__)
def test_names_of_which_the_graph_cannot_tell_the_object_are_refused(program: Any) -> None:
    with pytest.raises(CaptureError, match="the data decide whether the two are the same"):
        hagane.capture(program, "int64[n, 2]")
    compiled = hagane.compile(program)
    for size in (1, 2, 3):
        x = np.full((size, 2), 3)
        assert compiled(x) == program(x)
