"""Losses that differentiate on the way (``torch.autograd.grad``), compiled beside PyTorch's own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hagane
from hagane.errors import CaptureError


def penalty(module: nn.Module, real: Tensor, fake: Tensor, share: Tensor) -> Tensor:
    """Return the loss of a critic whose slope is held at one."""
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    score = module(between)
    (slope,) = torch.autograd.grad(score, between, torch.ones_like(score), create_graph=True)
    held = (slope.norm(2, dim=1) - 1).square().mean()
    return module(fake).mean() - module(real).mean() + 10 * held


def equation(module: nn.Module, place: Tensor, *_: Tensor) -> Tensor:
    """Return the residue of ``u'' + u u' = 0``."""
    x = place.detach().requires_grad_()
    u = module(x)[:, :1]
    first = torch.autograd.grad(u.sum(), x, create_graph=True)[0][:, :1]
    second = torch.autograd.grad(first.sum(), x, create_graph=True)[0][:, :1]
    return (second + u * first).square().mean()


def adapted(module: nn.Sequential, x: Tensor, y: Tensor, *_: Tensor) -> Tensor:
    """Return the loss after one step of descent, which is differentiated too."""
    first, last = module[0], module[2]
    weights = [first.weight, first.bias, last.weight]

    def scores(weight: Tensor, bias: Tensor, end: Tensor) -> Tensor:
        return torch.tanh(nn.functional.linear(x, weight, bias)) @ end.T

    inner = (scores(*weights) - y).square().mean()
    slopes = torch.autograd.grad(inner, weights, create_graph=True)
    return (scores(*(w - 0.1 * g for w, g in zip(weights, slopes, strict=True))) + y).abs().mean()


def apart(module: nn.Module, x: Tensor, *_: Tensor) -> Tensor:
    """Return a loss with a slope that counts as a number, and one that there is none of."""
    x, unused = x.clone().requires_grad_(), torch.zeros_like(x).requires_grad_()
    y = module(x).square().sum()
    slope, none = torch.autograd.grad(y, [x, unused], retain_graph=True, allow_unused=True)
    assert none is None
    return (module(x) * slope.sum(1, keepdim=True)).mean()


def plain(module: nn.Module, x: Tensor, y: Tensor, *_: Tensor) -> Tensor:
    """Return an error, within a context of mixed precision that is off."""
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        return nn.functional.mse_loss(module(x), y)


@pytest.mark.parametrize("loss", [penalty, equation, adapted, apart, plain])
def test_steps_of_losses_with_gradients_inside_follow_pytorch(
    loss: Callable[..., Tensor], random_numbers: None
) -> None:
    theirs = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    ours = copy.deepcopy(theirs)
    optimizers = [torch.optim.Adam(m.parameters(), 1e-2) for m in (theirs, ours)]
    step = hagane.compile(loss, optimizers[1])
    for size in (4, 6):
        given = [torch.randn(size, width).double() for width in (3, 3, 1)]
        optimizers[0].zero_grad()
        wanted = loss(theirs, *given)
        wanted.backward()
        optimizers[0].step()
        torch.testing.assert_close(step(ours, *given), wanted.detach(), rtol=1e-9, atol=1e-12)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


@pytest.fixture
def random_numbers() -> None:
    """Seed PyTorch's generator."""
    torch.manual_seed(3)


def _unused(module: nn.Module, x: Tensor) -> Tensor:
    other = torch.zeros_like(x).requires_grad_()
    return module(x).sum() + torch.autograd.grad(module(x).sum(), other)[0].sum()


def _frozen(module: nn.Module, x: Tensor) -> Tensor:
    module.weight.requires_grad_(False)
    return module(x).sum()


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (_unused, "no output depends on input 0, .*pass allow_unused=True"),
        (_frozen, "a parameter is frozen in the middle of the program"),
    ],
)
def test_gradients_that_no_step_follows_are_named(loss: Any, message: str) -> None:
    module = nn.Linear(3, 2)
    step = hagane.compile(loss, torch.optim.SGD(module.parameters(), 0.1))
    with pytest.raises(CaptureError, match=f"(?s){message}"):
        step(module, torch.ones(4, 3))


def weighted(module: nn.Module, x: Tensor, *_: Tensor) -> Tensor:
    """Return a loss with a slope in doubles, weighted by a number of another type."""
    x = x.double().requires_grad_()
    y = module(x).square().sum() / 3.0
    (slope,) = torch.autograd.grad(y, x, torch.full(y.shape, 2.0), create_graph=True)
    return slope.square().mean()


def test_weights_of_outputs_have_their_type() -> None:
    torch.manual_seed(0)
    theirs = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    ours = copy.deepcopy(theirs)
    one, other = (torch.optim.SGD(m.parameters(), 0.1) for m in (theirs, ours))
    step, x = hagane.compile(weighted, other), torch.randn(5, 3)
    wanted = weighted(theirs, x)
    wanted.backward()
    one.step()
    torch.testing.assert_close(step(ours, x), wanted.detach(), rtol=1e-9, atol=0)
    torch.testing.assert_close(ours[0].weight, theirs[0].weight, rtol=1e-9, atol=0)
