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


X = torch.arange(6.0).reshape(2, 3)
STATIC = {
    "its class": lambda x: x * isinstance(deque([1]), list) + (type(deque([1])) is deque),
    "compared with a list": lambda x: x * (deque([1, 2]) == [1, 2]) + (deque([1]) != [1]),
    "compared with another": lambda x: x * (deque([1, 2]) < deque([1, 3])) + (2 in deque([2], 3)),
    "the most items": lambda x: x * deque([1, 2], 3).maxlen,
    "added": lambda x: x * len(deque([1, 2], 3) + deque([3, 4])),
    "repeated": lambda x: x * len(deque([1, 2], 3) * 3) + sum(2 * deque([1, 2], 3)),
    "returned": lambda x: (deque([x, 2 * x, 3 * x], 2), [deque([x])], {"a": deque([1, x], 2)}),
    "one of two": lambda x: sum(deque([x, x], 2) if x.sum() > 3 else deque([x, -x], 2)),
    "returned of two": lambda x: deque([x, x], 2) if x.sum() > 3 else deque([x, -x], 2),
}  # fmt: skip


@pytest.mark.parametrize("name", STATIC)
def test_a_deque_is_no_list(name: str) -> None:
    program = STATIC[name]
    found = hagane.compile(program, fullgraph=True)(X)
    assert told(found) == told(program(X))


ERRORS = {
    "a slice": lambda x: x * deque([1, 2, 3])[1:][0],
    "a list and a deque": lambda x: x * sum(list(x.shape) + deque([1])),
    "a method of lists": lambda x: deque([2, 1]).sort(),
    "a place to pop": lambda x: x * deque([1, 2]).pop(0),
    "a key": lambda x: x * len({deque([1]): 1}),
    "no room": lambda x: x * deque([1, 2, 3], 3).insert(1, 9),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_deques_are_those_of_python(name: str) -> None:
    with pytest.raises((TypeError, AttributeError, IndexError)) as expected:
        ERRORS[name](X)
    with pytest.raises(expected.type), pytest.warns(hagane.CompileNotice):
        hagane.compile(ERRORS[name])(X)


def told(value: Any) -> Any:
    """Return a result with the classes of its containers."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, deque):
        return "deque", value.maxlen, [told(item) for item in value]
    if isinstance(value, list | tuple):
        return type(value).__name__, [told(item) for item in value]
    return {k: told(v) for k, v in value.items()} if isinstance(value, dict) else value


def test_a_deque_that_is_an_argument_is_the_callers() -> None:
    def program(x, held):
        held.append(2 * x)
        return held, sum(held)

    compiled = hagane.compile(program, fullgraph=True)
    mine, other = deque([X, -X], maxlen=2), deque([X, -X], maxlen=2)
    for turn in range(3):
        want, got = program(X + turn, mine), compiled(X + turn, other)
        assert got[0] is other
        assert told(got) == told(want)
    assert len(compiled.captures) == 1
