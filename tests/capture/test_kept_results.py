"""Functions whose results functools keeps."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch

import hagane
from hagane.errors import CaptureError


@functools.lru_cache
def counted(n: int) -> int:
    return n if n < 2 else counted(n - 1) + counted(n - 2)


@functools.lru_cache(maxsize=8)
def mask(size: int, dtype: torch.dtype = torch.float32) -> Any:
    return torch.ones(size, size, dtype=dtype).triu(1)


@functools.cache
def steps() -> list[float]:
    return [1.0, 2.0]


@functools.lru_cache
def summed(x: Any) -> Any:
    return x.sum()


class Scaled(torch.nn.Module):
    @functools.lru_cache  # noqa: B019
    def scale(self, k: int) -> float:
        return k * 2.5

    def forward(self, x: Any) -> Any:
        return x * self.scale(3) + mask(3, dtype=torch.float32)[0]


def changed(x: Any) -> Any:
    steps().append(4.0)
    return x * sum(steps())


def on_any_path(x: Any) -> Any:
    y = x * mask(3)[0] + sum(steps()) if x.sum() > 0 else x - mask(3)[1] * steps()[1]
    for row in range(x.shape[0]):
        y = y + mask(3)[row % 3] * steps()[0]
    return y + mask(3)[2] * counted(20)


@pytest.mark.parametrize("program", [changed, on_any_path, Scaled()])
def test_results_are_those_of_the_run(program: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(program, x="float32[n, 3]"))
    for sign in (1, -1):
        x = sign * np.random.default_rng(3).random((4, 3), np.float32)
        steps.cache_clear()
        expected = program(torch.from_numpy(x))
        (found,) = session.run(None, {"x": x})
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)
    assert hagane.check(program, x="float32[n, 3]").ok


def changed_on_one(x: Any) -> Any:
    if x.sum() > 0:
        steps().append(7.0)
    return x * sum(steps())


@pytest.mark.parametrize("program", [changed_on_one, lambda x: x * summed(x)])
def test_a_result_that_only_the_run_knows_is_refused_with_a_remedy(program: Any) -> None:
    with pytest.raises(CaptureError, match=r"keeps its results .* call its __wrapped__"):
        hagane.capture(program, x="float32[n, 3]")


class Count:
    def __init__(self) -> None:
        self.value = 1.0

    @functools.cache  # noqa: B019
    def step(self, k: int) -> int:
        self.value += 1
        return k


def of_the_call(x: Any) -> Any:
    count = Count()

    @functools.cache
    def fibonacci(k: int) -> Any:
        count.value += 1
        return k if k < 2 else fibonacci(k - 1) + fibonacci(k - 2)

    @functools.cache
    def scaled(k: int) -> Any:
        return k * count.value

    first = scaled(2)
    y = x * fibonacci(40) + count.value + scaled(2) + count.step(3) + count.step(3) + count.value
    scaled.cache_clear()
    return y + first + scaled(2) + sum(map(fibonacci, range(int(x.shape[1]))))


def changing_on_a_path(x: Any) -> Any:
    count = Count()

    @functools.cache
    def step(k: int) -> int:
        count.value += k
        return k

    if x.sum() > 0:
        step(3)
    return x * step(3) + count.value


def test_functions_of_the_call_keep_results_too() -> None:
    session = hagane.InferenceSession(hagane.capture(of_the_call, x="float32[n, 3]"))
    x = np.random.default_rng(3).random((4, 3), np.float32)
    (found,) = session.run(None, {"x": x})
    np.testing.assert_allclose(found, of_the_call(torch.from_numpy(x)).numpy(), rtol=1e-6)
    with pytest.raises(CaptureError, match="'step' keeps its results"):
        hagane.capture(changing_on_a_path, x="float32[n, 3]")
