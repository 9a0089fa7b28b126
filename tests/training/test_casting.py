"""``torch.autocast`` inside and around compiled steps, and losses that are no plain functions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor, nn

import hagane

# Near whole numbers: rounded to 16 bits they are whole, so that products are exact, and differ from
# those of float32.
_NEAR = 2.0**-12
_CONTEXT = torch.autocast("cpu", dtype=torch.bfloat16)


def _whole(*shape: int) -> Tensor:
    signs = torch.where(torch.rand(shape) < 0.5, -1.0, 1.0)
    return signs * torch.randint(1, 3, shape) + _NEAR


class Products(nn.Module):
    """A convolution, a linear layer, products of the module's own, and a sum of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.linear = nn.Conv1d(2, 2, 1), nn.Linear(2, 2)
        self.own = nn.Parameter(torch.empty(2, 2))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(_whole(*parameter.shape))

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        z = self.linear(x) + torch.einsum("bij,jk->bik", x, self.own)
        return torch.cat([y.float(), z.float(), x @ self.own], 1).float()


class Casting(Products):
    """A module whose forward casts by a decorator."""

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


def plain(module: nn.Module, x: Tensor) -> Tensor:
    return module(x).sum()


def within(module: nn.Module, x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.float16):
        y = module(x)
        with torch.autocast("cpu", enabled=False):
            whole = x.round()
            return y.sum() + (whole @ whole.mT).sum()


@torch.autocast("cpu")
def decorated(module: nn.Module, x: Tensor) -> Tensor:
    return module(x).sum()


def entered(module: nn.Module, x: Tensor) -> Tensor:
    with _CONTEXT:
        return module(x).sum()


class Loss:
    """A loss that is an object, and whose method is one."""

    def __call__(self, module: nn.Module, x: Tensor, factor: float = 2.0) -> Tensor:
        return factor * module(x).sum()

    decorated = torch.autocast("cpu")(__call__)


AROUND: dict[str, Callable[..., Any]] = {
    "function": plain, "partial": partial(Loss(), factor=4.0), "object": Loss(),
}  # fmt: skip
INSIDE: dict[str, tuple[type[Products], Callable[..., Any]]] = {
    "forward": (Casting, plain), "block": (Products, within), "decorator": (Products, decorated),
    "object": (Products, entered), "method": (Products, Loss().decorated),
    "partial": (Products, partial(decorated)),
}  # fmt: skip


def _compare(kind: type[Products], loss: Callable[..., Any]) -> list[Tensor]:
    """Compare a step with PyTorch's own to the bit; return its parameters."""
    torch.manual_seed(0)
    module = kind()
    other = copy.deepcopy(module)
    ours, theirs = (torch.optim.SGD(m.parameters(), 2.0**-4) for m in (module, other))
    x = _whole(3, 2, 2)
    expected = loss(other, x)
    expected.backward()
    theirs.step()
    found = hagane.compile(loss, ours)(module, x)
    torch.testing.assert_close(found, expected.detach(), rtol=0, atol=0)
    for mine, one in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, one, rtol=0, atol=0)
    return [parameter.detach() for parameter in module.parameters()]


@pytest.mark.parametrize("form", INSIDE)
def test_products_inside_autocast_round_as_in_pytorch(form: str) -> None:
    kind, loss = INSIDE[form]
    torch.manual_seed(0)
    before = [parameter.detach() for parameter in kind().parameters()]
    for old, new in zip(before, _compare(kind, loss), strict=True):
        assert torch.equal(old - new, (old - new).round(decimals=4))  # gradients of whole numbers


@pytest.mark.parametrize("form", AROUND)
def test_a_step_inside_autocast_rounds_as_pytorch_does(form: str) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _compare(Products, AROUND[form])


def test_a_step_follows_autocast_as_it_goes_on_and_off() -> None:
    torch.manual_seed(0)
    module = Products()
    step = hagane.compile(plain, torch.optim.SGD(module.parameters(), 0.0))
    x = _whole(3, 2, 2)
    for enabled in (False, True, False):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            found, expected = step(module, x), plain(module, x).detach()
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-4)
