"""Enumerations that a captured program finds: their members' values, names, flags."""

from __future__ import annotations

import enum
from typing import Any

import pytest
import torch

import hagane


class Rate(enum.Enum):
    SLOW = 2
    FAST = (3, 4)

    @property
    def least(self) -> int:
        return self.value if isinstance(self.value, int) else self.value[0]


class Parts(enum.Flag):
    LEFT = 1
    RIGHT = 2
    BOTH = 3


PROGRAMS = [
    lambda x: x * Rate.SLOW.value + Rate.FAST.value[1],
    lambda x: x * Rate.FAST.least * len(Rate.SLOW.name),
    lambda x: x * sum(one.least for one in Rate) * Rate["SLOW"].value,
    lambda x: x * Rate((3, 4)).value[0] * {Rate.SLOW: 5}[Rate(2)],
    lambda x: x * (Parts.LEFT | Parts.RIGHT).value * (7 if Parts.LEFT in Parts.BOTH else 1),
    lambda x: x * (Parts.BOTH & Parts.RIGHT).value * len((~Parts.LEFT).name or ""),
    lambda x: x * (2 if Parts.LEFT & Parts.RIGHT else 3) * (Parts.BOTH ^ Parts.LEFT).value,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_members_have_values_and_names(program: Any) -> None:
    x = torch.ones(2)
    assert torch.equal(hagane.compile(program, fullgraph=True)(x), program(x))


def test_a_member_that_a_model_keeps_is_compared_at_each_call() -> None:
    class Net(torch.nn.Module):
        rate = Rate.SLOW

        def forward(self, x: Any) -> Any:
            return x * self.rate.least

    net = Net().eval()
    compiled = hagane.compile(net, fullgraph=True)
    assert compiled(torch.ones(1)).item() == 2
    net.rate = Rate.FAST
    with pytest.warns(hagane.CompileNotice, match="captured anew"):
        assert compiled(torch.ones(1)).item() == 3
