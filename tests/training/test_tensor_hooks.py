"""Hooks on gradients of tensors that a loss computes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import hagane
from hagane.errors import CaptureError

torch = pytest.importorskip("torch")
from torch import nn, optim  # noqa: E402

Loss = Callable[[Any, Any], Any]


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3), nn.Linear(6, 2)
        self.seen = torch.zeros(1)

    def heads(self, h: Any) -> Any:
        return self.first(h).square().mean() + self.second(h).square().mean()


def reversed_for_one_head(net: Network, x: Any) -> Any:
    h = torch.tanh(net.body(x))
    against = h * 1.0
    against.register_hook(lambda gradient: -0.3 * gradient)
    return net.first(h).square().mean() + net.second(against).square().mean()


def one_after_the_other(net: Network, x: Any) -> Any:
    h = torch.tanh(net.body(x))
    h.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
    h.register_hook(lambda gradient: None)
    h.register_hook(lambda gradient: gradient.mul_(2) + 0.1)
    return net.heads(h)


def by_values_of_the_way_forward(net: Network, x: Any) -> Any:
    h, kept = torch.tanh(net.body(x)), x[:, :1] > 0
    h.register_hook(lambda gradient: gradient * kept * (h.detach() > 0) / (gradient.norm() + 1))
    return net.heads(h)


def of_each_step_of_a_loop(net: Network, x: Any) -> Any:
    h = net.body(x)
    for number in range(3):
        h = (h * net.first.weight[number]).tanh()
        h.register_hook(lambda gradient, number=number: gradient * (number + 1) / 2)
    return net.heads(h)


def before_a_change_in_place(net: Network, x: Any) -> Any:
    h = net.body(x) * 1
    h.register_hook(lambda gradient: gradient * 2)
    h.mul_(3)
    return net.heads(h)


def of_gradients_of_gradients(net: Network, x: Any) -> Any:
    h = torch.tanh(net.body(x))
    h.register_hook(lambda gradient: gradient * 2)
    loss = net.heads(h)
    (inner,) = torch.autograd.grad(loss, [net.body.weight], create_graph=True)
    return loss + inner.square().sum()


@pytest.mark.parametrize(
    "loss",
    [
        reversed_for_one_head,
        one_after_the_other,
        by_values_of_the_way_forward,
        of_each_step_of_a_loop,
        before_a_change_in_place,
        of_gradients_of_gradients,
    ],
)
def test_hooks_change_gradients(loss: Loss) -> None:
    torch.manual_seed(0)
    theirs = Network().double()
    ours = copy.deepcopy(theirs)
    one, other = (optim.SGD(net.parameters(), 0.1, momentum=0.9) for net in (theirs, ours))
    step = hagane.compile(loss, other)
    for _ in range(3):
        x = torch.randn(5, 4).double()
        one.zero_grad()
        wanted = loss(theirs, x)
        wanted.backward()
        one.step()
        torch.testing.assert_close(step(ours, x), wanted.detach())
        for mine, their in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine, their, rtol=1e-9, atol=1e-12)


def too_late(net: Network, x: Any) -> Any:
    h = net.body(x)
    before = net.second(h).sum()
    h.register_hook(lambda gradient: gradient * 2)
    return net.first(h).sum() + before


def on_a_parameter(net: Network, x: Any) -> Any:
    net.body.bias.register_hook(lambda gradient: gradient * 2)
    return net.heads(net.body(x))


def removed(net: Network, x: Any) -> Any:
    h = net.body(x)
    h.register_hook(lambda gradient: gradient * 2).remove()
    return net.heads(h)


def kept(net: Network, x: Any) -> Any:
    def keep(gradient: Any) -> None:
        net.seen = gradient

    h = net.body(x)
    h.register_hook(keep)
    return net.heads(h)


REFUSED = {
    "that something was computed from before is not followed; register it where": too_late,
    "of an argument or a parameter is not followed in a loss; register one on a": on_a_parameter,
    "a hook that is removed in the loss is not followed": removed,
    r"net\.seen: what a function computes on the way back is .* kept after the call": kept,
}


@pytest.mark.parametrize("told", REFUSED)
def test_others_are_refused(told: str) -> None:
    net = Network()
    step = hagane.compile(REFUSED[told], optim.SGD(net.parameters(), 0.1))
    with pytest.raises(CaptureError, match=told):
        step(net, torch.ones(2, 4))


def test_a_module_that_is_only_called_has_none() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Any) -> Any:
            h = x * 2
            h.register_hook(lambda gradient: gradient * 2)
            return h

    with pytest.raises(CaptureError, match="is followed in compiled steps of training alone"):
        hagane.capture(Scaled(), torch.ones(2))
