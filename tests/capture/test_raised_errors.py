"""Errors that the data decide: a handler takes them, or the graph fails as Python does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import hagane
from hagane.errors import KernelError

ROWS = [
    [1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [7.0, 2.0, 3.0], [-1.0, 2.0, 3.0], [math.nan, 1.0, 0.0],
    [-9.0, 0.0, 1.0], [2.0, 2.0, 2.0], [0.5, 0.25, 0.0], [800.0, 1.0, 1.0], [0.0, -3.0, 4.0],
]  # fmt: skip
WORDS = [1.0, 2.0, 3.0]


# Statements.


def at_the_beginning(x: Any) -> Any:
    if x.sum() > 6:
        raise ValueError("large")
    return x


def between_returns(x: Any) -> Any:
    if x.sum() > 6:
        raise ValueError("large")
    if x.sum() > 1:
        return x
    return x * 3


def in_a_branch(x: Any) -> Any:
    y = x * 3
    if x.sum() > 0:
        if x.max() > 2:
            raise ValueError("deep")
        y = y + 1
    return y


def in_a_function(x: Any) -> Any:
    def checked(v: Any) -> Any:
        if v.min() < 0:
            raise ValueError("negative")
        return v

    return checked(x) + checked(x * 2)


def in_a_loop_alone(x: Any) -> Any:
    for v in x:
        if v > 2:
            raise ValueError("item")
    return x * 2


def in_inner_loops(x: Any) -> Any:
    for v in x:
        for w in x:
            if v * w > 6:
                raise ValueError("pair")
    return x


def beside_break(x: Any) -> Any:
    for v in x:
        if v > 2:
            break
        if v < -2:
            raise ValueError("small")
    else:
        x = x * 2
    return x


def in_a_while_loop(x: Any) -> Any:
    count = 0
    while x.sum() < 10:
        x = x * 2 + 1
        count += 1
        if count > 3:
            raise RuntimeError("long")
    return x


def passing_a_handler(x: Any) -> Any:
    try:
        if x.sum() > 2:
            raise KeyError("other")
        y = x
    except ValueError:
        y = x * 100
    return y


# Exceptions of Python's own that nothing takes.


def divided(x: Any) -> Any:
    return x * (1.0 / float(x[0]))


def whole(x: Any) -> Any:
    return x * int(x[0])


def root(x: Any) -> Any:
    return x * math.sqrt(x[0].item())


def place(x: Any) -> Any:
    return x * WORDS.index(x[0].item())


def key(x: Any) -> Any:
    return x * {0: 1.0, 1: 2.0, 7: 3.0}[int(x[0] * 0 + x[1])]


def function(x: Any) -> Any:
    return [torch.sin, torch.cos][int(x[1])](x)


def unpacked(x: Any) -> Any:
    a, b = [v for v in x if v > 1.5]
    return a + b


def largest(x: Any) -> Any:
    return max([v for v in x if v > 2])


# Exceptions that a handler takes.


def taken_division(x: Any) -> Any:
    y = 0.0
    try:
        y = 1.0
        y = 2.0 / float(x[1])
        y = 3.0
    except ZeroDivisionError:
        y = y + 10
    finally:
        y = y + 100
    return x * y


def taken_root(x: Any) -> Any:
    try:
        return x * math.sqrt(float(x[1]))
    except ValueError as error:
        return x - len(error.args)


def taken_range(x: Any) -> Any:
    try:
        return x * math.exp(float(x[1]) * 400)
    except OverflowError:
        return x - 5


def taken_number(x: Any) -> Any:
    try:
        return x[1] * int(x[0])
    except (ValueError, OverflowError):
        return x[1] - 5


def taken_place(x: Any) -> Any:
    try:
        return x * WORDS.index(x[1].item())
    except ValueError:
        return x - 5


def taken_count(x: Any) -> Any:
    try:
        a, b = [v for v in x if v > 1.5]
    except ValueError:
        return x[0] - 5
    return a + b


def taken_maximum(x: Any) -> Any:
    try:
        return max([v for v in x if v > 2])
    except ValueError:
        return x[0] - 5


def taken_assertion(x: Any) -> Any:
    try:
        assert x[0] > 0, "positive"
    except AssertionError:
        return x - 5
    return x


def taken_on_one_path(x: Any) -> Any:
    try:
        return x * (3 + (None if x[0] < 0 else 1))
    except TypeError:
        return x - 5


# No exception, though a divisor is 0 on another path.


def divided_after_a_test(x: Any) -> Any:
    k = int(x[1])
    if k == 0:
        return x
    return x * (10 // k)


def divided_behind_and(x: Any) -> Any:
    k = int(x[1])
    return x * k if k != 0 and 12 % k == 0 else x


PROGRAMS = [
    at_the_beginning, between_returns, in_a_branch, in_a_function, in_a_loop_alone, in_inner_loops,
    beside_break, in_a_while_loop, passing_a_handler, divided, whole, root, place, key, function,
    unpacked, largest, taken_division, taken_root, taken_range, taken_number, taken_place,
    taken_count, taken_maximum, taken_assertion, taken_on_one_path, divided_after_a_test,
    divided_behind_and,
]  # fmt: skip


def outcome(function: Any, x: Any) -> Any:
    try:
        return function(x)
    except Exception as error:
        return error


@pytest.mark.filterwarnings("ignore:.*is captured anew", "ignore:.*runs in Python")
@pytest.mark.parametrize("program", PROGRAMS)
def test_errors_are_those_of_python(program: Any) -> None:
    compiled, raised = hagane.compile(program), 0
    for row in ROWS:
        expected, found = (outcome(run, torch.tensor(row)) for run in (program, compiled))
        if isinstance(expected, Exception):
            raised += 1
            assert (type(found), str(found)) == (type(expected), str(expected))
        else:
            torch.testing.assert_close(found, expected, equal_nan=True)
    named = program.__name__
    assert (raised > 0) is not named.startswith(("taken", "divided_"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_graph_for_any_length_fails_where_python_does(program: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(program, x="float32[n]"))
    for row in ROWS:
        x = torch.tensor(row)
        expected = outcome(program, x)
        if isinstance(expected, Exception):
            with pytest.raises(KernelError):
                session.run(None, {"x": x.numpy()})
        else:
            (found,) = session.run(None, {"x": x.numpy()})
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5)


def test_the_error_of_a_run_names_that_of_the_program() -> None:
    session = hagane.InferenceSession(hagane.capture(at_the_beginning, x="float32[n]"))
    told = r"the program raises an error: raise ValueError\('large'\) at .*test_raised_errors.py:"
    with pytest.raises(KernelError, match=told):
        session.run(None, {"x": np.ones(9, np.float32)})


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def forward(self, x: Any) -> Any:
        self.count = self.count + 1
        if x.sum() > 2:
            raise ValueError("large")
        return x * self.count


@torch.no_grad()
def test_state_is_what_python_makes_of_it_before_the_error() -> None:
    model, original = Counts(), Counts()
    compiled = hagane.compile(model)
    for row in ROWS:
        expected, found = (outcome(run, torch.tensor(row)) for run in (original, compiled))
        assert model.count == original.count
        assert type(found) is type(expected)


# Exceptions that leave loops, and code that ends a ``try``.


def leaving_a_loop(x: Any) -> Any:
    total = x[0] * 0
    try:
        for v in x:
            if v > 2:
                raise ValueError("large")
            total = total + v
    except ValueError:
        total = total - 100
    return total


def leaving_a_loop_by_division(x: Any) -> Any:
    total = x[0] * 0
    try:
        for v in x:
            total = total + 1 / float(v)
    except ZeroDivisionError:
        total = total - 100
    return total


def returning_past_finally(x: Any) -> Any:
    kept = [x * 0]
    try:
        if x.sum() > 2:
            return kept
        kept.append(x)
    finally:
        kept[0] = kept[0] + 1
    return kept


def turning_past_finally(x: Any) -> Any:
    count = 0
    for v in x:
        try:
            if v > 1:
                continue
            if v < -2:
                break
            count += 1
        finally:
            count += 10
    return x * count


def raising_past_finally(x: Any) -> Any:
    y = x
    try:
        try:
            y = y * (1.0 / float(x[1]))
        except ZeroDivisionError:
            y = y * (1.0 / float(x[2]))
        finally:
            y = y + 1
    except ZeroDivisionError:
        y = y - 100
    return y


@pytest.mark.parametrize(
    "program",
    [
        leaving_a_loop,
        leaving_a_loop_by_division,
        returning_past_finally,
        turning_past_finally,
        raising_past_finally,
    ],
)
def test_ways_out_of_loops_and_of_try(program: Any) -> None:
    model = hagane.capture(program, x="float32[n]")
    session = hagane.InferenceSession(model)
    for row in ROWS:
        x = torch.tensor(row)
        expected = program(x)
        found = session.run(None, {"x": x.numpy()})
        if isinstance(expected, list):
            expected, found = torch.stack(expected), [np.asarray(found[0])[: len(expected)]]
        np.testing.assert_allclose(found[0], expected.numpy(), rtol=1e-5)


def stacked(x: Any) -> Any:
    return torch.stack([v for v in x if v > 2])


def taken_stack(x: Any) -> Any:
    try:
        return torch.stack([v for v in x if v > 2])
    except RuntimeError:
        return x - 5


@pytest.mark.parametrize("program", [stacked, taken_stack])
def test_no_tensors_cannot_be_stacked(program: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(program, x="float32[n]"))
    for row in ROWS:
        expected = outcome(program, torch.tensor(row))
        feed = {"x": np.array(row, np.float32)}
        if isinstance(expected, Exception):
            with pytest.raises(KernelError, match=r"RuntimeError: torch.stack of no tensors"):
                session.run(None, feed)
        else:
            np.testing.assert_array_equal(session.run(None, feed)[0], expected.numpy())
