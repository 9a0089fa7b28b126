"""Tensors that share memory: an operation in place is seen by every one of them, or refused."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.graph import to_proto


def pair(x: Any) -> Any:
    whole = x * 2
    return whole, whole[0]


def tuple_of_views(x: Any) -> Any:
    out = []
    for v in pair(x):
        if v.dim() == 2:
            v += 1
        else:
            out.append(v * 3)
    return out[0]


def same_tensor_twice(x: Any) -> Any:
    whole = x * 2
    out = []
    for v in (whole, whole):
        v += 1
        out.append(v.sum())
    return out[0], out[1]


def zipped(x: Any) -> Any:
    out = []
    for v, k in zip(pair(x), (1, 2), strict=True):
        if k == 1:
            v += k
        else:
            out.append(v * 1)
    return out[0]


def values_of_a_dict(x: Any) -> Any:
    whole, part = pair(x)
    out = []
    for name, v in {"whole": whole, "part": part}.items():
        if name == "whole":
            v.mul_(3)
        else:
            out.append(v * 1)
    return out[0]


def comprehension(x: Any) -> Any:
    whole = x * 2
    sums = [v.add_(1).sum() for v in (whole, whole)]
    return sums[0], sums[1]


def item_of_a_dict(x: Any) -> Any:
    whole = x * 2
    held = {"k": whole}
    held["k"] += 1
    return whole


def after_a_branch(x: Any) -> Any:
    whole = x * 2
    if x.sum() > 0:
        whole += 1
    else:
        whole -= 1
    whole *= 2
    return whole


def two_states(x: Any) -> Any:
    a = x * 2
    b = x * 3
    while a.sum() < 100:
        a += 1
        b += a
    return a, b


def view_of_what_nobody_reads(x: Any) -> Any:
    h = (x * 2).view(4, 3)
    h += 1
    return h


def generator_used_up(x: Any) -> Any:
    whole = x * 2
    total = sum(whole[i].sum() for i in range(3))
    whole += 1
    return total, whole


def base_returned(x: Any) -> Any:
    whole = x * 2
    part = whole[0:1]
    part += 1
    return whole


def parts_filled(x: Any) -> Any:
    whole = x.clone()
    whole[0].fill_(2.5)
    whole[:, 1:3].zero_()
    return whole


def parts_of_parts(x: Any) -> Any:
    whole = x.clone()
    same = whole
    whole[1:][0].mul_(3).add_(1)
    whole[1:][1] = 7.0
    return whole, same


def part_of_a_name_bound_anew(x: Any) -> Any:
    whole = x.clone()
    part, other = whole[1:3], whole[0:2]
    whole = whole + 1
    part.zero_()
    return whole, part, other


def part_written_in_a_branch(x: Any) -> Any:
    whole = x.clone()
    if x.sum() > 0:
        whole[0].zero_()
    return whole


def part_of_an_outer_tensor(x: Any) -> Any:
    whole = x * 2
    total = x.sum()
    while total < 100:
        part = whole[0]
        part += 1
        total = total + part.sum()
    return total


RIGHT = [
    part_of_an_outer_tensor, base_returned, parts_filled, parts_of_parts, part_of_a_name_bound_anew,
    part_written_in_a_branch,
    tuple_of_views, same_tensor_twice, zipped, values_of_a_dict, comprehension, item_of_a_dict,
    after_a_branch, two_states, view_of_what_nobody_reads, generator_used_up,
]  # fmt: skip


@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_what_is_written_in_place_is_read_by_every_name(function: Callable[[Any], Any]) -> None:
    model = hagane.capture(function, x="float32[3, 4]")
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    for sign in (1.0, -1.0):
        x = torch.linspace(-1, 2, 12).reshape(3, 4) * sign
        want = function(x.clone())
        found = session.run(None, {"x": x.numpy()})
        expected = want if isinstance(want, tuple) else (want,)
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=1e-5)


def bound_before(x: Any) -> Any:
    whole = x * 2
    times = functools.partial(torch.mul, whole)
    whole += 1
    return times(2)


def swapped(x: Any) -> Any:
    a = x * 2
    b = x * 3
    while a.sum() < 100:
        a, b = b, a
        a += 5
    return a, b


def appended(x: Any) -> Any:
    out = []
    h = x * 1
    while h.sum() < 100:
        h += 1
        out.append(h)
    return torch.stack(out).sum()


def either_of_two(x: Any) -> Any:
    a = x * 2
    b = x * 3
    c = a
    if x.sum() > 0:
        c = b
    c += 1
    return a * 1, b * 1


SHARED = [bound_before, swapped, appended, either_of_two]


@pytest.mark.parametrize("function", SHARED, ids=lambda f: f.__name__)
def test_content_from_before_a_write_in_place_is_never_read(function: Any) -> None:
    with pytest.raises(hagane.errors.CaptureError) as caught:
        hagane.capture(function, x="float32[3, 4]")
    message = str(caught.value)
    assert "changes a tensor that shares its memory with this one, which is read later" in message
    assert f"{__file__}:" in message
    assert "make a new tensor there, as in x = x + y for x += y" in message


def view_of_a_state(x: Any) -> Any:
    whole = x * 2
    part = whole[0]
    while whole.sum() < 100:
        whole += 1
    return part * 1


def second_name_of_a_state(x: Any) -> Any:
    whole = x * 2
    same = whole
    while whole.sum() < 100:
        whole += 1
    return same * 1


@pytest.mark.parametrize("function", [view_of_a_state, second_name_of_a_state])
def test_names_of_a_tensor_of_pytorch_stay_one(function: Callable[[Any], Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(function, "float32[n, 4]"))
    for size in (1, 3):
        x = torch.rand(size, 4)
        found = session.run(None, {"x": x.numpy()})[0]
        np.testing.assert_allclose(found, function(x.clone()).numpy(), rtol=1e-6)


def turns(x: Any) -> Iterator[Any]:
    yield x
    yield x * 1


def written_between_turns(x: Any) -> Any:
    out = []
    for v in turns(x * 2):
        v += 1
        out.append(v)
    return out[0], out[1]


def read_between_turns(x: Any) -> Any:
    whole = x * 2
    out = []
    for v in (whole * k for k in (1, 2)):
        whole += 1
        out.append(v)
    return out[0], out[1]


def mapped(x: Any) -> Any:
    whole = x * 2
    out = []
    for v in map(lambda k: whole * k, (1, 2)):  # noqa: C417
        whole += 1
        out.append(v)
    return out[0], out[1]


@pytest.mark.parametrize("function", [written_between_turns, read_between_turns, mapped])
def test_writes_between_the_turns_of_a_generator_are_refused(function: Any) -> None:
    with pytest.raises(
        hagane.errors.CaptureError,
        match="changes a tensor that a generator reads or hands out, whose turns come in between",
    ):
        hagane.capture(function, x="float32[3, 4]")


def rows_of_an_outer_tensor(x: Any) -> Any:
    whole = x * 2
    for _, row in enumerate(whole):
        row += 1
    return whole


def test_a_loop_that_writes_what_it_does_not_hand_on_is_refused() -> None:
    with pytest.raises(
        hagane.errors.CaptureError,
        match="in a loop changes a tensor that iterations have no name for to hand it on",
    ):
        hagane.capture(rows_of_an_outer_tensor, x="float32[n, 4]")


def rows_of_a_new_array(x: Any) -> Any:
    turns = 0
    while x.mean() > 0.5:
        row = np.zeros(3)
        for i in range(turns % 3):
            row[i] = x[0]
        turns += 1
        x = x * 0.5 + row.sum()
    return x, turns


@pytest.mark.parametrize("start", [0.0, 1.0, 9.0])
def test_arrays_of_known_content_made_in_a_loop_are_written_there(start: float) -> None:
    model = hagane.capture(rows_of_a_new_array, x="float64[n]")
    x = np.array([-start, 3 * start])
    got = hagane.InferenceSession(model).run(None, {"x": x})
    for left, right in zip(got, rows_of_a_new_array(x), strict=True):
        np.testing.assert_allclose(left, right)
