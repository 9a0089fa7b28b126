"""Forward hooks that a loss or a module registers while it runs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor, nn

import hagane
from hagane.errors import CaptureError


class Kept(nn.Module):
    """Keeps a layer's result, which it doubles, and shifts the argument of the other layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 5), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        kept = {}

        def keep(module: nn.Module, arguments: Any, result: Tensor) -> Tensor:
            kept[type(module).__name__] = result
            return 2 * result

        handles = [
            self.first.register_forward_hook(keep),
            self.last.register_forward_pre_hook(lambda _, arguments: (arguments[0] + 1,)),
        ]
        try:
            y = self.last(torch.tanh(self.first(x)))
        finally:
            for handle in handles:
                handle.remove()
        return self.last(torch.tanh(self.first(y @ y.T @ x))) + kept["Linear"].sum()


def squares(module: nn.Module, x: Tensor) -> Tensor:
    return module(x).square().mean()


def activities(module: nn.Module, x: Tensor) -> Tensor:
    found: list[Tensor] = []
    layers = [part for part in module.modules() if isinstance(part, nn.Linear)]
    handles = [part.register_forward_hook(lambda *given: found.append(given[2])) for part in layers]
    y = module(x)
    for handle in handles:
        handle.remove()
    return y.square().mean() + sum(one.abs().mean() for one in found)


def asking(module: Any, x: Tensor) -> Tensor:
    """As a frozen model of transformers is asked for gradients of what its embedding returns."""

    def ask(module: nn.Module, arguments: Any, result: Tensor) -> None:
        result.requires_grad_(True)

    with module.first.register_forward_hook(ask):
        return (module.first(x) + x[:, :1].to(x.device)).square().mean()


def left(module: Any, x: Tensor) -> Tensor:
    module.first.register_forward_hook(lambda *given: given[2] * 2)
    return module(x).square().mean()


@pytest.mark.parametrize("loss", [squares, activities, asking])
def test_hooks_of_a_while_are_followed(loss: Any) -> None:
    torch.manual_seed(0)
    module = Kept().double()
    other = copy.deepcopy(module)
    ours, theirs = (torch.optim.SGD(m.parameters(), 0.1) for m in (module, other))
    step = hagane.compile(loss, ours)
    for _ in range(2):
        x = torch.randn(3, 4, dtype=torch.float64)
        theirs.zero_grad()
        expected = loss(other, x)
        expected.backward()
        theirs.step()
        torch.testing.assert_close(step(module, x), expected.detach())
    for mine, one in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, one)


def test_a_hook_that_is_left_is_refused() -> None:
    module = Kept()
    step = hagane.compile(left, torch.optim.SGD(module.parameters(), 0.1))
    with pytest.raises(CaptureError, match=r"leaves a forward hook on the module 'module\.first'"):
        step(module, torch.ones(3, 4))
