"""Programs that write into arrays that the caller gave, and ranges that they return."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import hagane


def raised(x: Any) -> Any:
    y = x
    y += 3
    return x * 1


def raised_and_returned(x: Any) -> Any:
    y = x
    y += 3
    return x


def moved(x: Any, y: Any) -> Any:
    y[1, 2] = x[0, 1]
    y[0] += 1
    return x[:, 1], y


def through_a_view(x: Any) -> Any:
    row = x[0]
    row *= 2
    return x.sum()


def in_a_branch(x: Any) -> Any:
    if x.max() > 5:
        x *= 0.5
    return x.max()


ARRAY = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    ("function", "examples"),
    [
        (raised, [np.array(42)]),
        (raised_and_returned, [np.array(42)]),
        (raised, [ARRAY]),
        (moved, [ARRAY, ARRAY + 1]),
        (through_a_view, [ARRAY]),
        (in_a_branch, [ARRAY]),
        (in_a_branch, [ARRAY / 8]),
    ],
)
def test_the_new_content_of_a_written_array_is_an_output(function: Any, examples: Any) -> None:
    graph = hagane.capture(function, *examples)
    given = [x.copy() for x in examples]
    expected = function(*given)
    names = [str(value.name) for value in graph.graph.inputs]
    found = hagane.InferenceSession(graph).run(None, dict(zip(names, examples, strict=True)))
    assert [output.name for output in graph.graph.outputs][-1] == f"{names[-1]}.new"
    results = expected if isinstance(expected, tuple) else (expected,)
    for mine, other in zip(found, (*results, given[-1]), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_written_array_that_is_given_twice_is_refused() -> None:
    x = ARRAY.copy()
    with pytest.raises(hagane.errors.CaptureError, match="shares memory with 'x'"):
        hagane.capture(moved, x, x)


def test_arrays_without_axes_change_and_scalars_do_not() -> None:
    compiled = hagane.compile(raised)
    for x in (np.float64(1.0), np.array(1.0), np.float64(2.0), np.array(2.0)):
        ours, theirs = (x.copy(), x.copy()) if isinstance(x, np.ndarray) else (x, x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hagane.CompileNotice)
            assert compiled(ours) == raised(theirs)
        assert ours == theirs


@pytest.mark.parametrize("bounds", [(0, 5, 1), (5, 19, 2), (9, 2, -3), (3, 3, 1), (4, 5, 7)])
def test_ranges_are_returned_as_their_numbers(bounds: tuple[int, int, int]) -> None:
    def steps(start: Any, stop: Any, step: Any) -> Any:
        return range(start, stop, step), stop

    graph = hagane.capture(steps, "int", "int", "int")
    feeds = dict(zip(("start", "stop", "step"), map(np.array, bounds), strict=True))
    numbers = hagane.InferenceSession(graph).run(None, feeds)[0]
    np.testing.assert_array_equal(numbers, np.array([*range(*bounds)], np.int64), strict=True)
    compiled = hagane.compile(steps, fullgraph=True)
    for shift in range(3):
        start, stop, step = bounds
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hagane.CompileNotice)  # each number is known at first
            found = compiled(start, stop + shift, step)
        assert found == steps(start, stop + shift, step)


def test_a_write_to_one_of_two_arguments_is_refused() -> None:
    def program(x: Any, y: Any) -> Any:
        z = x if y.sum() > 0 else y
        z += 1
        return z * 2

    with pytest.raises(
        hagane.errors.CaptureError, match="changes one of several tensors, of which"
    ):
        hagane.capture(program, "float64[n]", "float64[n]")
    x, y = np.arange(3.0), np.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hagane.compile(program)(x, y)
    np.testing.assert_array_equal(x, [1, 2, 3])


@pytest.mark.filterwarnings("ignore::hagane.CompileNotice")
def test_a_call_writes_into_the_arrays_that_it_is_given() -> None:
    def program(a: Any, b: Any, count: Any) -> None:
        for _ in range(count):
            b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
            a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3

    compiled = hagane.compile(program, fullgraph=True)
    for size in (7, 9, 4):
        a, b = np.arange(size) ** 2.0, np.ones(size)
        mine, other = a.copy(), b.copy()
        program(a, b, 3)
        assert compiled(mine, other, 3) is None
        np.testing.assert_allclose(mine, a)
        np.testing.assert_allclose(other, b)
