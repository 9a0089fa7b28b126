"""NumPy's changes in place, and methods of its scalars: graphs compute what NumPy does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane

RNG = np.random.default_rng(0)
INPUTS = [np.round(RNG.standard_normal(n) * 3, 1) for n in (1, 2, 5, 6)] + [np.zeros(3)]


def sorted_in_place(x: Any) -> Any:
    y = x.copy()
    back = y[::-1]
    y.sort()
    return y, back


def parted_in_place(x: Any) -> Any:
    y = np.concatenate([x, x * 2, x - 1])
    y.partition(1)
    return y[1], y[:1].sum(), y[2:].min()


def filled(x: Any) -> Any:
    y = np.empty(len(x), np.float32)
    first = y[:1]
    y.fill(2.5)
    first.fill(x[0])
    return y, first


def copied_into(x: Any) -> Any:
    y = np.zeros(len(x), np.float32)
    np.copyto(y, x)
    np.copyto(y, 3, where=x > 0)
    return y, x


def items_that_follow_each_other(x: Any) -> Any:
    y = x.copy()
    total = 0.0
    for k in range(len(x)):
        total += y[k]
        y[k] = total
    return y, total


def counted_by_key(x: Any) -> Any:
    counts = {"above": 0, "below": 0}
    for value in x:
        counts["above" if value > 0 else "below"] += 1
    return counts


def diagonals(x: Any) -> Any:
    y, z = np.outer(x, x), np.zeros((2, 3), np.int32)
    turned = y.T
    np.fill_diagonal(y, x[0])
    np.fill_diagonal(z, 7)
    np.fill_diagonal(turned[1:, :], 2)
    return y, z, turned


def whole_numbers(x: Any) -> Any:
    a = float(x[0])
    return a.is_integer(), (a * 10).is_integer(), x[-1].is_integer(), a.real, a.imag


def small_integers(x: Any) -> Any:
    y = x.astype(np.int8)
    return y**2, np.int32(5) * y, y * np.int16(300), np.uint8(200) + np.abs(y).astype(np.uint8)


@pytest.mark.parametrize(
    "function",
    [
        sorted_in_place,
        parted_in_place,
        filled,
        copied_into,
        items_that_follow_each_other,
        counted_by_key,
        diagonals,
        whole_numbers,
        small_integers,
    ],
    ids=lambda f: f.__name__,
)
def test_a_program_of_numpy_computes_the_same_as_a_graph(function: Callable[..., Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(function, INPUTS[-1], dynamic={"x": {0: "n"}}))
    for x in INPUTS:
        made = function(x.copy())
        expected = [np.asarray(v) for v in (made.values() if isinstance(made, dict) else made)]
        for ours, theirs in zip(session.run(None, {"x": x}), expected, strict=True):
            assert np.asarray(ours).dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def names_of_scalars(x: Any) -> Any:
    total = x.sum()
    held, other = [total, total], total
    total += 1
    held[0] *= 3
    for value in x:
        other -= value
    return total, held[0], held[1], other


def names_of_arrays_without_axes(x: Any) -> Any:
    a = np.zeros(())
    b, c = a, np.array(x[0])
    d = [c]
    a += x[0]
    a += 1
    c *= 2
    return a, b, c, d[0]


def converted_numbers(x: Any) -> Any:
    n = len(x)
    j = x.astype(np.int32)
    return (
        np.int32(-0.5) / 4.0,
        j * float(j[0]),
        np.array([n, 0.5]),
        np.array([n, 2.5, x[0]], np.float32),
        abs(np.int32(0.25)),
        np.array([np.float32(1), 2.5]),
        np.array([np.float32(0.5), n]),
    )


@pytest.mark.parametrize(
    "function",
    [names_of_scalars, names_of_arrays_without_axes, converted_numbers],
    ids=lambda f: f.__name__,
)
def test_a_scalar_of_numpy_is_a_value_and_no_memory(function: Callable[..., Any]) -> None:
    test_a_program_of_numpy_computes_the_same_as_a_graph(function)


def unused_bodies(x: Any) -> Any:
    for value in x:
        scale = abs(0.5)
        for _ in range(len(x)):
            scaled = lambda q: q * (scale // 2.5)  # noqa: B023, E731
            scaled(value)
    return x + 1, x


def test_loops_that_nothing_needs_are_taken_out() -> None:
    test_a_program_of_numpy_computes_the_same_as_a_graph(unused_bodies)
    model = hagane.capture(unused_bodies, INPUTS[-1], dynamic={"x": {0: "n"}})
    assert "Loop" not in {node.op_type for node in model.graph.all_nodes()}


def written_by_a_function_in_a_branch(x: Any) -> Any:
    def change(a: Any, how: Any) -> None:
        if how > 1:
            a += 1
        elif how < -1:
            a[0] = 9
        else:
            return

    y = x + 0
    held, named = [y], {"y": y}
    change(y, x[-1])
    return y, held[0], named["y"]


def written_with_one_of_two_types(x: Any) -> Any:
    y = x + 0
    y[::2] = (x > 0).sum() if x[0] > 0 else x[0]
    return y, x


@pytest.mark.parametrize(
    "function",
    [written_by_a_function_in_a_branch, written_with_one_of_two_types],
    ids=lambda f: f.__name__,
)
def test_a_write_on_one_path_is_none_on_the_other(function: Callable[..., Any]) -> None:
    test_a_program_of_numpy_computes_the_same_as_a_graph(function)


def test_a_diagonal_of_several_numbers_is_refused_with_a_remedy() -> None:
    def function(x: Any) -> Any:
        y = np.outer(x, x)
        np.fill_diagonal(y, x)
        return y

    with pytest.raises(hagane.errors.CaptureError, match=r"write a\[i, i\] = values with i = np"):
        hagane.capture(function, INPUTS[0])
