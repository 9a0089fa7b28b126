"""Buffers and frozen parameters that a loss changes, and reads again, in compiled steps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim
from torch.nn import functional

import hagane
import hagane.functions as F  # noqa: N812


class Student(nn.Module):
    """A network, and a teacher that is its moving average."""

    def __init__(self, momentum: float | None = 0.1) -> None:
        super().__init__()
        norm = nn.BatchNorm1d(6, momentum=momentum)
        self.net = nn.Sequential(nn.Linear(4, 6), norm, nn.Tanh(), nn.Linear(6, 3))
        self.teacher = copy.deepcopy(self.net).requires_grad_(False).eval()
        self.register_buffer("seen", torch.zeros(6))


def in_the_loss(m: Any, x: Any) -> Any:
    y = m.net(x)
    seen = m.net[1].running_mean.sum()
    return (y * seen).square().mean() * m.net[1].num_batches_tracked


def in_a_buffer(m: Any, x: Any) -> Any:
    y = m.net(x) + m.net(x + 1)
    m.seen.copy_(m.net[1].running_var)
    return y.square().mean()


def in_evaluation(m: Any, x: Any) -> Any:
    y = m.net(x)
    m.net.eval()
    z = m.net(x)
    m.net.train()
    return functional.mse_loss(y, z)


def after_the_network(m: Any, x: Any) -> Any:
    y = m.net(x)
    with torch.no_grad():
        for mine, new in zip(m.teacher.parameters(), m.net.parameters(), strict=True):
            mine.mul_(0.9).add_(new, alpha=0.1)
        for mine, new in zip(m.teacher.buffers(), m.net.buffers(), strict=True):
            mine.copy_(new)
        z = m.teacher(x)
    return functional.mse_loss(y, z)


def by_data(m: Any, x: Any) -> Any:
    for mine, new in zip(m.teacher.parameters(), m.net.parameters(), strict=True):
        mine.data = mine.data * 0.9 + new.data * 0.1
    with torch.no_grad():
        z = m.teacher(x)
    return functional.mse_loss(m.net(x), z)


@pytest.mark.parametrize(
    ("loss", "momentum"),
    [(in_the_loss, 0.1), (in_the_loss, None), (in_a_buffer, 0.1), (in_evaluation, 0.1),
     (after_the_network, 0.1), (by_data, 0.1)],
)  # fmt: skip
def test_what_a_loss_has_changed_is_read_as_in_pytorch(
    loss: Callable[..., Any], momentum: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(0)
    theirs = Student(momentum).double()
    ours = copy.deepcopy(theirs)
    one, other = (optim.SGD(m.net.parameters(), 0.05) for m in (ours, theirs))
    step = hagane.compile(loss, one)
    for _ in range(3):
        x = torch.randn(5, 4).double()
        other.zero_grad()
        wanted = loss(theirs, x)
        wanted.backward()
        other.step()
        torch.testing.assert_close(step(ours, x), wanted.detach())
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor, msg=name)
    assert "compiled anew" not in caplog.text
    assert len(step._programs) == 1


def clamped(m: Any, x: Any) -> Any:
    with torch.no_grad():
        m.net[0].weight.clamp_(-1, 1)
    return m.net(x).square().mean()


def test_parameters_that_are_trained_and_changed_are_named() -> None:
    m = Student()
    step = hagane.compile(clamped, optim.SGD(m.parameters(), 0.05))
    with pytest.raises(
        hagane.errors.InvalidArgument,
        match=r"the parameter 'm\.net\.0\.weight' of a Linear, which the optimizer trains.*between",
    ):
        step(m, torch.randn(5, 4))


class Normalised(hagane.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.norm = hagane.links.BatchNormalization(3)

    def forward(self, x: Any) -> Any:
        return self.norm(x)


def of_a_link(link: Any, x: Any) -> Any:
    y = link(x)
    return F.mean(y * y) + F.sum(hagane.Variable(link.norm.avg_mean) * 1.0)


def test_averages_of_a_link_that_are_read_after_their_change_are_named() -> None:
    link = Normalised()
    step = hagane.compile(of_a_link, hagane.optimizers.SGD().setup(link))
    with pytest.raises(
        hagane.errors.CaptureError, match=r"'link\.norm\.avg_mean' is read after the call has"
    ):
        step(link, np.ones((4, 3), "f"))
