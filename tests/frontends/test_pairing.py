"""Columns and rows of one length: pairs of all elements, on purpose or by mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane


def differences(x: Any) -> Any:
    return x[:, None] - x


def ranks(x: Any) -> Any:
    return (x.unsqueeze(1) < x * 1.0).sum(1)


def distances(x: Any, y: Any) -> Any:
    squares = (x**2).sum(1, keepdim=True) + (y**2).sum(1) - 2 * x @ y.t()
    return squares.clamp(min=0).sqrt()


@pytest.mark.parametrize(
    ("program", "types"),
    [
        (differences, ["float32[n]"]),
        (ranks, ["float32[n]"]),
        (distances, ["float32[n, 3]", "float32[n, 3]"]),
    ],
)
def test_pairs_on_purpose(program: Any, types: list[str]) -> None:
    names = program.__code__.co_varnames
    report = hagane.check(program, **dict(zip(names, types, strict=False)))
    assert report.ok, str(report)
    session = hagane.InferenceSession(hagane.capture(program, *types))
    for count in (1, 2, 5):
        given = [torch.randn(count, *([3] if ", 3" in text else [])) for text in types]
        feed = {name: x.numpy() for name, x in zip(names, given, strict=False)}
        expected = program(*given).numpy()
        np.testing.assert_allclose(session.run(None, feed)[0], expected, rtol=1e-4, atol=1e-3)


class Value(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 1)

    def forward(self, states: Any, returns: Any) -> Any:
        return (self.head(states) - returns).pow(2).mean()


def test_pairs_by_mistake() -> None:
    report = hagane.check(Value(), states="float32[n, 4]", returns="float32[n]")
    assert ["every element of one" in problem.message for problem in report.errors] == [True]
