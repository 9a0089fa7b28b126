"""Tensors given where a function takes an integer: the check leaves the result open, no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

import hagane
from hagane.errors import CaptureError


def place(x: Any) -> Any:
    return x.argmax()


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "axis": lambda x: x[None].softmax(place(x) * 0),
    "axes": lambda x: x[None].permute(place(x) * 0 + 1, 0),
    "joined": lambda x: torch.cat([x, x], place(x) * 0),
    "stride": lambda x: F.avg_pool1d(x[None, None], 2, place(x) + 1),
    "diagonal": lambda x: torch.ones(4, 4).diagonal(place(x) * 0),
    "groups": lambda x: F.group_norm(x[None, :, None], place(x) * 0 + 1),
    "factor": lambda x: F.pixel_shuffle(torch.ones(1, 4, 2, 2), place(x) * 0 + 2),
    "transform": lambda x: torch.fft.rfft(torch.ones(8), place(x) + 4).real,
    "below": lambda x: torch.tril(torch.ones(3, 3), diagonal=place(x)),
}
SIZED: dict[str, Callable[[Any], Any]] = {
    "one_hot": lambda x: F.one_hot(x.long().abs() % 2, place(x) + 2),
    "zeros": lambda x: torch.zeros(place(x) + 1, 3),
    "pooled": lambda x: F.adaptive_avg_pool1d(x[None, None], place(x) + 1),
    "histogram": lambda x: torch.histc(x, place(x) + 1),
    "permuted": lambda x: torch.randperm(place(x) + 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_that_are_not_known_are_left_open(name: str) -> None:
    program = PROGRAMS[name]
    program(torch.tensor([1.0, 3, 2, 0]))  # it runs
    report = hagane.check(program, x="float32[m]")
    assert not report.errors
    assert "failed" not in str(report)
    with pytest.raises(CaptureError, match="not known|not understood|only a run knows"):
        hagane.capture(program, "float32[m]")


@pytest.mark.parametrize("name", SIZED)
def test_sizes_that_tensors_give_are_open(name: str) -> None:
    program = SIZED[name]
    program(torch.tensor([1.0, 3, 2, 0]))
    report = hagane.check(program, x="float32[m]")
    assert not report.errors
    assert report.returned is not None
    assert "failed" not in str(report)


def test_classes_are_counted_by_a_tensor() -> None:
    session = hagane.InferenceSession(hagane.capture(SIZED["one_hot"], "float32[m]"))
    x = np.float32([1, 3, 2, 0])
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], SIZED["one_hot"](torch.tensor(x)))
