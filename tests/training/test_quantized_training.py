"""Training with numbers rounded as few bits have them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import hagane

torch = pytest.importorskip("torch")
from torch import nn, optim  # noqa: E402
from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver  # noqa: E402


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 3)
        self.observed = FakeQuantize(MovingAverageMinMaxObserver, quant_min=0, quant_max=15)

    def forward(self, x: Any) -> Any:
        w = self.first.weight
        steps, zeros = w.detach().abs().amax(1) / 6, torch.zeros(8, dtype=torch.int32)
        w = torch.fake_quantize_per_channel_affine(w, steps, zeros, 0, -7, 5)
        h = torch.relu(nn.functional.linear(x, w, self.first.bias))
        h = torch.fake_quantize_per_tensor_affine(self.observed(h), 0.05, 2, 0, 20)
        return self.last(h)


def loss_of(net: Any, x: Any, y: Any) -> Any:
    return (net(x) - y).square().mean()


def test_gradients_pass_over_the_rounding_within_the_range() -> None:
    torch.manual_seed(0)
    theirs = Network()
    ours = copy.deepcopy(theirs)
    one, other = (optim.SGD(net.parameters(), 0.1, momentum=0.9) for net in (theirs, ours))
    step = hagane.compile(loss_of, other)
    for _ in range(4):
        x, y = torch.randn(6, 4), torch.randn(6, 3)
        one.zero_grad()
        wanted = loss_of(theirs, x, y)
        wanted.backward()
        one.step()
        torch.testing.assert_close(step(ours, x, y), wanted.detach())
        for mine, their in zip(
            ours.state_dict().values(), theirs.state_dict().values(), strict=True
        ):
            torch.testing.assert_close(mine, their, rtol=1e-5, atol=1e-6)
