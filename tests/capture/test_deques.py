"""Deques, with and without a most length, that loops of the graph fill and empty."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch

import hagane


def last_rows(x):
    held = deque(maxlen=3)
    for row in x:
        held.append(row)
    return torch.stack(list(held))


def first_and_last(x):
    held, found = deque([torch.zeros(3)], maxlen=2), []
    for row in x:
        held.append(row)
        found.append(held[0] + held[-1])
    return torch.stack(found)


def pushed_out_on_the_right(x):
    held = deque(maxlen=2)
    held.append(x[0])
    held.append(x[1])
    held.appendleft(x[2])
    return torch.stack(list(held))


def newest_first(x):
    held = deque(maxlen=3)
    for row in x:
        held.appendleft(row)
    return torch.stack(tuple(held))


def positive_rows(x):
    held = deque(maxlen=3)
    for row in x:
        if row[0] > 0:
            held.append(row)
    return len(held), sum(held, torch.zeros(3))


def none(x):
    held = deque(maxlen=0)
    for row in x:
        held.append(row)
    return len(held)


def queue(x):
    waiting, total = deque([0], maxlen=4), 0
    while waiting:
        number = waiting.popleft()
        total += number
        if number < x.shape[0]:
            waiting.append(number + 1)
            waiting.append(number + 2)
    return total


def turned(x):
    held = deque()
    for row in x:
        held.append(row)
    held.rotate()
    first = torch.stack(list(held))
    held.rotate(-2)
    return first, torch.stack(list(held))


def extended_on_the_left(x):
    held = deque([x[0]], maxlen=3)
    held.extendleft([x[1], x[2], 2 * x[0]])
    held.rotate(2)
    return torch.stack(list(held))


PROGRAMS = (
    extended_on_the_left, turned, last_rows, first_and_last, pushed_out_on_the_right, newest_first,
    positive_rows, none, queue,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_deques(program: Callable[..., Any]) -> None:
    model = hagane.capture(program, hagane.Shaped["float32[n, 3]"])
    session = hagane.InferenceSession(ir.to_proto(model).SerializeToString())
    for n in (3, 5, 8):
        x = torch.from_numpy(np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32))
        found = session.run(None, {item.name: x.numpy() for item in session.get_inputs()})
        wants, given = program(x), hagane.compile(program, fullgraph=True)(x)
        for got, same, want in zip(found, flat(given), flat(wants), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(same, want, rtol=1e-5, atol=1e-6)


def flat(result: Any) -> list[np.ndarray]:
    return [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]


def test_bounds_and_deletions_that_the_data_decide_are_refused() -> None:
    def bounded(x):
        held = deque(maxlen=int(x[0]))
        for n in x:
            held.append(n)
        return len(held)

    def deleted(x):
        items = [1, 2, 3]
        del items[int(x[0]) :]
        return items

    for program, reason in (
        (bounded, "maxlen the data decide"),
        (deleted, "items deleted at places that are not known"),
    ):
        with pytest.raises(hagane.errors.CaptureError, match=reason):
            hagane.capture(program, "int64[n]")
