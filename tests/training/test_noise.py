"""Random numbers that a loss draws are those that PyTorch draws for the program."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import hagane
from hagane.errors import CaptureError, InvalidArgument


class Coder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(5, 4), nn.Linear(2, 5)


def variational(net: Any, x: Any) -> Any:
    mean, spread = net.encode(x).chunk(2, -1)
    z = mean + torch.randn_like(mean) * (spread / 2).exp()
    kept = 1 + spread - mean**2 - spread.exp()
    return ((net.decode(z) - x) ** 2).sum(1).mean() - 0.5 * kept.sum(1).mean()


def denoising(net: Any, x: Any) -> Any:
    times = torch.randint(1, 10, (x.shape[0],))
    noise = torch.randn(x.shape, dtype=x.dtype)
    unused = torch.rand(3)  # the numbers behind it are others
    del unused
    weight = torch.rand(x.shape[0], 1)
    shown = x + noise * (times[:, None] / 10)
    return (weight * (net.decode(net.encode(shown)[:, :2]) - noise) ** 2).mean()


def mixed(net: Any, x: Any) -> Any:
    order = torch.randperm(x.shape[0])
    share = torch.rand(())
    both = share * x + (1 - share) * x[order]
    far = torch.normal(torch.zeros(x.shape[0], 2), 2.0) + torch.normal(0.5, 1.0, (2,))
    return (net.decode(net.encode(both)[:, 2:] + far) ** 2).mean()


def in_place(net: Any, x: Any) -> Any:
    kept = x.new_empty((x.shape[0], 1)).bernoulli_(0.8).div_(0.8)
    near = torch.empty_like(x).normal_(0, 0.1) + torch.empty(x.shape).uniform_(-1, to=2)
    counts = torch.zeros_like(x)
    counts[:, 1:].geometric_(0.3)
    counts[0].random_(5)
    far = torch.zeros(3, 5).exponential_(2.0).sum(0) + torch.empty(5).log_normal_(0.0, 0.25)
    bent = torch.empty_like(x).cauchy_(sigma=0.5).clamp(-1, 1)
    shown = x * kept + near + counts * 0.1 + far + bent
    return (net.decode(net.encode(shown)[:, :2]) ** 2).mean()


def chosen(net: Any, x: Any) -> Any:
    scores = net.encode(x)
    law = torch.distributions.Categorical(logits=scores)
    taken = law.sample()
    one = torch.distributions.OneHotCategorical(scores.softmax(1)).sample((1,))[0]
    pair = torch.multinomial(scores.softmax(1).detach(), 2)
    hard = nn.functional.gumbel_softmax(scores, tau=0.7, hard=True)
    soft = nn.functional.gumbel_softmax(scores.view(-1, 2, 2), dim=1).flatten(1)
    own = scores.softmax(1).multinomial(1, replacement=True)
    shown = net.decode((hard * soft)[:, :2] + one[:, 1:3])
    reward = (taken + pair[:, 0] - pair[:, 1] + own[:, 0]).detach()
    return (shown - x).square().mean() - (law.log_prob(taken) * reward).mean()


@pytest.mark.parametrize("loss", [variational, denoising, mixed, in_place, chosen])
def test_steps_draw_what_pytorch_draws(loss: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    plain = Coder()
    compiled = copy.deepcopy(plain)
    eager, made = (torch.optim.Adam(net.parameters(), lr=0.01) for net in (plain, compiled))
    step = hagane.compile(loss, made)
    for number, rows in enumerate((6, 3, 1, 6)):
        x = torch.randn(rows, 5)
        torch.manual_seed(number)
        eager.zero_grad()
        wanted = loss(plain, x)
        wanted.backward()
        eager.step()
        behind = torch.rand(1)
        torch.manual_seed(number)
        torch.testing.assert_close(step(compiled, x), wanted.detach(), rtol=1e-4, atol=1e-5)
        assert torch.equal(torch.rand(1), behind)
        assert step.memory()["predicted"] > 0
    for one, other in zip(compiled.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_no_gradient_goes_to_what_normal_numbers_are_drawn_by() -> None:
    net = Coder()
    before = copy.deepcopy(net.state_dict())

    def drawn(m: Any, x: Any) -> Any:
        mean = m.encode(x)
        return (torch.normal(mean, mean.exp()) ** 2).mean() + (m.decode(x[:, :2]) ** 2).mean()

    step = hagane.compile(drawn, torch.optim.SGD(net.parameters(), lr=1.0))
    torch.manual_seed(1)
    wanted = drawn(net, x := torch.ones(3, 5))
    torch.manual_seed(1)
    torch.testing.assert_close(step(net, x), wanted.detach())
    assert torch.equal(net.encode.weight, before["encode.weight"])
    assert torch.equal(net.encode.bias, before["encode.bias"])
    assert not torch.equal(net.decode.weight, before["decode.weight"])


def test_shares_of_bernoulli_are_those_given() -> None:
    net = Coder()
    step = hagane.compile(
        lambda m, x: (m.encode.weight * 0).sum() + torch.bernoulli(x).sum(),
        torch.optim.SGD(net.parameters(), lr=0.0),
    )
    x = torch.full((100, 100), 0.3)
    x[0, :2] = torch.tensor([0.0, 1.0])
    assert 2800 < float(step(net, x)) < 3200


def test_what_steps_cannot_draw_is_refused_by_name() -> None:
    net = Coder()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    generator = torch.Generator()

    def own(m: Any, x: Any) -> Any:
        return (m.encode(x) * torch.randn(4, generator=generator)).sum()

    def counted(m: Any, x: Any) -> Any:
        kept = x[x[:, 0] > 0]
        return (m.encode(kept) * torch.randn(kept.shape[0], 4)).sum()

    def branched(m: Any, x: Any) -> Any:
        y = m.encode(x)
        if y.sum() > 0:
            y = y + torch.randn(4)
        return y.sum()

    def many(m: Any, x: Any) -> Any:
        law = torch.distributions.Categorical(logits=m.encode(x))
        return law.log_prob(law.sample((3,))).sum()

    def again(m: Any, x: Any) -> Any:
        return m.encode(x).softmax(1).multinomial(3, replacement=True).sum()

    x = torch.ones(3, 5)
    with pytest.raises(CaptureError, match=r"several draws at once of 'torch.distributions.Categ"):
        hagane.compile(many, optimizer)(net, x)
    with pytest.raises(CaptureError, match=r"several samples with replacement cannot be captured"):
        hagane.compile(again, optimizer)(net, x)
    with pytest.raises(CaptureError, match=r"'torch.randn' with a generator of its own cannot be"):
        hagane.compile(own, optimizer)(net, x)
    with pytest.raises(InvalidArgument, match=r"'torch.randn' has a size that only the data tell"):
        hagane.compile(counted, optimizer)(net, x)
    with pytest.raises(CaptureError, match=r"random numbers are drawn in a branch or loop that"):
        hagane.compile(branched, optimizer)(net, x)
    with pytest.raises(CaptureError, match=r"'torch.randn_like' cannot be captured: it draws"):
        hagane.capture(variational, net, "float32[n, 5]")
