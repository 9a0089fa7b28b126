"""Modules that lie deep in others, and change what they hold."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import hagane


class Counting(nn.Module):
    """A layer that counts its calls and scales by the count."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        self.count.add_(1)
        return x * self.scale


def loss(module: Any, x: Any) -> Any:
    return module(x).square().mean()


def test_what_modules_hold_changes_however_deep_they_lie() -> None:
    module: nn.Module = nn.Sequential(Counting(), Counting())
    for _ in range(9):
        module = nn.Sequential(module)
    other = copy.deepcopy(module)
    step = hagane.compile(loss, torch.optim.SGD(module.parameters(), lr=0.1))
    for x in torch.ones(3, 2, 3):
        step(module, x)
        loss(other, x)
    for name, wanted in other.named_buffers():
        torch.testing.assert_close(module.get_buffer(name), wanted)
