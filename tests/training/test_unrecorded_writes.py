"""Writes that PyTorch does not record: the content changes, and gradients pass over."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError, NotDifferentiable

torch = pytest.importorskip("torch")
from torch import nn, optim  # noqa: E402


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 3)


def without_gradients(net: Network, x: Any) -> Any:
    y = net.body(x) * 1
    with torch.no_grad():
        y.clamp_(-0.1, 0.1)
    return net.head(y).square().mean() + y.square().sum()


def rows_without_gradients(net: Network, x: Any) -> Any:
    y = net.body(x) * 1
    part = y[1:3]
    with torch.no_grad():
        y[0] = 0.5
        part.zero_()
        for number in range(2):
            y[number] += number
    return net.head(y).square().mean() + part.sum()


def new_data(net: Network, x: Any) -> Any:
    y = net.body(x) * 1
    y.data = y.data * 2
    return net.head(y).square().mean()


def written_data(net: Network, x: Any) -> Any:
    y = net.body(x) * 1
    y.data[:, 1:3].mul_(2)
    y.view(-1, 2).data.round_()
    y[0] = net.head.weight[1]
    return net.head(y).square().mean()


def detached(net: Network, x: Any) -> Any:
    y = net.body(x) * 1
    z = y.detach()
    z[:, 0] = 3.0
    z += 1
    return net.head(y).square().mean() + z.sum() + y[1:].sum()


def where_the_data_say(net: Network, x: Any) -> Any:
    y = net.body(x) * 1
    if x.sum() > 0:
        with torch.no_grad():
            y.mul_(0.5)
    rows = []
    for row in y:
        z = row.tanh() * 2
        with torch.no_grad():
            z.clamp_(-0.1, 0.1)
        rows.append(z)
    return net.head(torch.stack(rows)).square().mean()


def by_gradients(net: Network, x: Any) -> Any:
    h = net.body(x) * 1
    (g,) = torch.autograd.grad(net.head(h).square().sum(), h, create_graph=True)
    with torch.no_grad():
        h.sub_(0.1 * g)
    return net.head(h).square().mean()


@pytest.mark.parametrize(
    "loss",
    [
        without_gradients,
        rows_without_gradients,
        new_data,
        written_data,
        detached,
        where_the_data_say,
        by_gradients,
    ],
)
def test_gradients_pass_over_them(loss: Callable[[Any, Any], Any]) -> None:
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


def test_one_of_parameters_into_what_was_detached_is_refused() -> None:
    def loss(net: Network, x: Any) -> Any:
        y = net.body(x)
        y.detach().mul_(net.body.bias)
        return net.head(y).sum()

    net = Network()
    with pytest.raises(CaptureError, match=r"written into a tensor that was detached, .* copy"):
        hagane.compile(loss, optim.SGD(net.parameters(), 0.1))(net, torch.ones(2, 4))


class Clamped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        y = self.body(x)
        with torch.no_grad():
            y.clamp_(-0.1, 0.1)
        return y * 2


def test_a_compiled_module_leaves_their_gradients_to_pytorch() -> None:
    module, x = Clamped().eval(), torch.randn(2, 4)
    compiled = hagane.compile(module)
    with pytest.warns(match=r"Clamped runs in Python: a tensor is written under torch\.no_grad"):
        compiled(x).sum().backward()
    torch.testing.assert_close(module.body.bias.grad, torch.full((3,), 4.0))
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), module(x))


def test_a_captured_model_has_no_gradient_there() -> None:
    model = hagane.capture(Clamped(), torch.ones(2, 4))
    session = hagane.InferenceSession(model)
    assert np.abs(session.run(None, {"x": np.ones((2, 4), "f")})[0]).max() <= 0.2 + 1e-6
    with pytest.raises(NotDifferentiable, match="is written while no gradients are recorded"):
        hagane.gradient(model, str(model.graph.outputs[0].name), ["x"], seeds=True)
