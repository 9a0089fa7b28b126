"""Tables joined, concatenated and transformed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from hagane.training.datasets import Table
from hagane.training.errors import DatasetError
from hagane.training.iterators import MultiprocessIterator

LEFT = Table({"a": np.arange(4), "b": list("wxyz")})
RIGHT = Table({"c": np.arange(4) * 10}, mode=None)


def test_joined_tables_show_the_columns_of_all() -> None:
    joined = LEFT.join(RIGHT)
    assert joined.keys == ("a", "b", "c")
    assert joined[2] == (2, "y", 20)
    assert joined.as_dict()[-1] == {"a": 3, "b": "z", "c": 30}
    assert joined.slice[[3, 0], ("c", "b")][:] == [(30, "z"), (0, "w")]
    assert RIGHT.join(LEFT.slice[:, "b"])[1] == (10, "x")
    assert RIGHT.join(LEFT.as_dict()).mode == "dict"


def test_concatenated_tables_show_the_rows_of_all() -> None:
    more = LEFT.concat(LEFT.slice[::-1], LEFT.slice[1:1], LEFT.slice[:1])
    assert len(more) == 9
    assert [row[1] for row in more[:]] == list("wxyzzyxww")
    assert more.slice[[8, 5, 0, -2], "b"].fetch() == ["w", "y", "w", "w"]
    assert more.fetch()[0] == [0, 1, 2, 3, 3, 2, 1, 0, 0]
    assert LEFT.slice[1:1].concat(LEFT.slice[1:1])[:] == []
    with pytest.raises(IndexError):
        more[9]


def test_a_transform_is_called_once_for_each_sample_and_settles_the_mode() -> None:
    calls: list[int] = []

    def both(a: int, b: str) -> dict[str, Any]:
        calls.append(int(a))
        return {"text": b * int(a), "twice": 2 * int(a)}

    made = LEFT.transform(("twice", "text"), both)
    assert made.mode == "dict"
    calls.clear()
    assert made[3] == {"twice": 6, "text": "zzz"}
    assert made.as_tuple()[2] == (4, "yy")
    assert made.slice[[1, 0], "text"].fetch() == ["x", ""]
    assert calls == [3, 2, 1, 0]
    assert LEFT.as_dict().transform("n", lambda b, a: (a, b)[0] + 1)[0] == 1
    assert RIGHT.transform(("c", "d"), lambda c: (c, -c)).join(LEFT)[1] == (10, -10, 1, "x")


def test_a_transform_of_batches_gets_whole_columns() -> None:
    seen: list[int] = []

    def halves(a: Any, b: Any) -> tuple[Any, Any]:
        seen.append(len(a))
        return np.asarray(a) / 2, [text.upper() for text in b]

    made = LEFT.transform_batch(("half", "upper"), halves)
    assert made.mode == "tuple"
    half, upper = made.fetch()
    np.testing.assert_array_equal(half, [0, 0.5, 1, 1.5])
    assert upper == list("WXYZ")
    assert made.slice[1:3].as_dict()[1] == {"half": 1.0, "upper": "Y"}
    assert seen == [1, 4, 1]
    assert LEFT.as_dict().transform_batch("sum", lambda a, b: a + len(b)).fetch().tolist() == [
        4,
        5,
        6,
        7,
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LEFT.join(RIGHT.slice[:2]), r"join: expected tables of one length, got \[4, 2\]"),
        (lambda: LEFT.join(LEFT), "join: .* got more than one 'a'; leave it out"),
        (lambda: LEFT.concat(RIGHT), "concat: expected tables of the columns a, b, got c"),
        (
            lambda: LEFT.transform("x", lambda a, b: a if a else (a,))[:],
            "transform: expected results of one kind, got int64 after",
        ),
        (lambda: LEFT.transform(("x", "y"), lambda a, b: a)[0], "each of x, y, got 1 of them"),
        (lambda: LEFT.transform(("x", "y"), lambda a, b: {"x": a, "z": b})[0], "x, y, got x, z"),
        (
            lambda: LEFT.transform_batch("x", lambda a, b: [1, 2, 3])[0],
            "expected 1 values of 'x', as many as went in, got 3",
        ),
    ],
)
def test_tables_that_do_not_go_together_are_named(make: Any, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        make()


def _plus(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    return a + c, b


def test_workers_read_tables_made_of_others() -> None:
    made = (
        LEFT.join(RIGHT)
        .transform(("sum", "b"), _plus)
        .concat(LEFT.slice[:, ["a", "b"]].transform(("sum", "b"), _same))
    )
    assert pickle.loads(pickle.dumps(made))[:] == made[:]
    with MultiprocessIterator(made, 8, shuffle=False, n_processes=1, collate="stack") as iterator:
        sums, letters = iterator.next()
    assert sums.tolist() == [0, 11, 22, 33, 0, 1, 2, 3]
    assert list(letters) == list("wxyzwxyz")


def _same(a: Any, b: Any) -> tuple[Any, Any]:
    return a, b
