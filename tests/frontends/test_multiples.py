"""The remedy for pictures whose sides a network halves and doubles."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import hagane
from hagane.errors import CaptureError


class Joined(nn.Module):
    """Two maps of one picture, one of them halved twice and doubled once."""

    def __init__(self, join: str):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, 2, 1)
        self.second = nn.Conv2d(4, 4, 3, 2, 1)
        self.up = nn.Upsample(scale_factor=2)
        self.join = join

    def forward(self, x: Any) -> Any:
        y = self.first(x)
        z = self.up(self.second(y))
        return z + y if self.join == "add" else torch.cat([z, y], 1)


@pytest.mark.parametrize("join", ["add", "cat"])
def test_the_multiples_for_which_sizes_agree_are_told(join: str) -> None:
    remedy = (
        "they agree for multiples of 4: write '4*h' and '4*w' for 'h' and 'w' in the input's type"
    )
    report = hagane.check(Joined(join), x="float32[b, 3, h, w]")
    assert [problem.remedy for problem in report.errors] == [remedy]
    with pytest.raises(CaptureError, match="they agree for multiples of 4: write '4"):
        hagane.capture(Joined(join), "float32[b, 3, h, w]")
    assert hagane.check(Joined(join), x="float32[b, 3, 4*h, 4*w]").ok


def mixed(x: Any, y: Any) -> Any:
    return x[:, ::2] + y


def test_sizes_of_two_names_have_no_such_remedy() -> None:
    report = hagane.check(mixed, x="float32[b, n]", y="float32[b, m]")
    assert [problem.remedy for problem in report.errors] == [""]
