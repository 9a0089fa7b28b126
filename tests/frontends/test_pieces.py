"""Programs that compute piece by piece: what they join has the size of the whole again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import hagane


def split(x: Any) -> Any:
    return torch.cat([p * 2 for p in x.split(32)]) + x


def joined_as_they_are(x: Any) -> Any:
    return torch.cat(x.split(32)) + x


def appended(x: Any) -> Any:
    rgb, density = [], []
    for piece in torch.split(x, 1024):
        h = piece @ torch.ones(4, 8)
        rgb.append(h[:, :3].sigmoid())
        density.append(h[:, 3].relu())
    return torch.cat(rgb) * torch.cat(density)[:, None] + x[:, :3]


def sliced(x: Any) -> Any:
    found = []
    for start in range(0, x.shape[0], 64):
        end = min(start + 64, x.shape[0])
        found.append(x[start:end].relu())
    return torch.vstack(found) - x


def counted(x: Any) -> Any:
    return torch.cat([x[i * 8 : (i + 1) * 8] for i in range(math.ceil(len(x) / 8))]) + x


def in_a_dictionary(x: Any) -> Any:
    found: dict[str, list[Any]] = {"a": [], "b": []}
    for piece in x.split(100):
        found["a"].append(piece * 2)
        found["b"].append(piece.sum(1))
    joined = {name: torch.cat(parts, 0) for name, parts in found.items()}
    return joined["a"] + joined["b"][:, None] + x


def of_numpy(x: Any) -> Any:
    y = np.concatenate([x[i : i + 32] * 2 for i in range(0, len(x), 32)])
    return np.vstack([y[i : i + 7] for i in range(0, len(y), 7)]) + x


def stored(x: Any) -> Any:
    y = torch.zeros_like(x)
    for i in range(0, len(x), 16):
        y[i : i + 16] = x[i : i + 16] * 2
    return y + x


@pytest.mark.parametrize("function", [split, joined_as_they_are, appended, sliced, counted,
                                      in_a_dictionary, of_numpy, stored])  # fmt: skip
def test_pieces_sum_to_the_whole(function: Callable[[Any], Any]) -> None:
    report = hagane.check(function, "float32[n, 4]")
    assert (report.errors, report.unknown, report.assumptions) == ([], [], [])
    assert f"shape=(n, {3 if function is appended else 4})" in str(report.returned)


def twice(x: Any) -> Any:
    return torch.cat([p.repeat_interleave(2, 0) for p in x.split(10)]).view(len(x), 2, 4)


def with_a_row_more(x: Any) -> Any:
    return torch.cat([torch.cat([p, p.new_zeros(1, 4)]) for p in x.split(10)])


def by_argument(x: Any, size: Any) -> Any:
    return torch.cat([x[i : i + size] @ torch.ones(4, 3) for i in range(0, len(x), size)])


def in_chunks(x: Any, count: int) -> Any:
    return torch.cat([p * 2 for p in x.chunk(count)]) + x


def test_sizes_that_follow_from_those_of_pieces() -> None:
    shapes = [
        str(hagane.check(function, "float32[n, 4]", *others).returned)
        for function, others in (
            (twice, ()), (with_a_row_more, ()), (by_argument, ("size",)), (in_chunks, ("int",)),
        )
    ]  # fmt: skip
    assert ["shape=(n, 2, 4)" in shapes[0], "shape=(n, 3)" in shapes[2]] == [True, True]
    assert "shape=(n + ceil(n / 10)" in shapes[1]
    assert "shape=(n, 4)" in shapes[3]


def not_all(x: Any) -> Any:
    return torch.cat(list(x.split(10))[1:])


def test_some_of_the_pieces_have_no_known_size() -> None:
    report = hagane.check(not_all, "float32[n, 4]")
    assert report.errors == []
    assert "shape=(None, 4)" in str(report.returned)


def too_wide(x: Any) -> Any:
    return torch.cat([p * 2 for p in x.split(32)]) @ torch.ones(5, 2)


def test_a_fault_in_a_joined_result_is_found() -> None:
    (error,) = hagane.check(too_wide, "float32[n, 4]").errors
    assert "the last axis of the first operand (4) to equal the rows of the second (5)" in (
        error.message
    )


def test_pieces_are_joined_without_a_list() -> None:
    session = hagane.InferenceSession(hagane.capture(joined_as_they_are, "float32[n, 4]"))
    for size in (1, 32, 71):
        x = np.random.default_rng(size).random((size, 4), np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], x + x)
