"""``torch.autograd.Function`` inside compiled steps, beside PyTorch's own steps."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor, nn
from torch.autograd import Function

import hagane
from hagane.errors import CaptureError


class Reversed(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, share: float) -> Tensor:
        ctx.share = share
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return -ctx.share * g, None


class Rounded(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.round()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.clamp(g, -0.05, 0.05) * (x.abs() <= 1).to(g.dtype)


class Swish(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor | None:
        x, s = ctx.saved_tensors
        return 2 * g * (s * (1 + x * (1 - s))) if ctx.needs_input_grad[0] else None


class Product(Function):
    """A linear layer without a gradient by the first weights, in the form with a context apart."""

    @staticmethod
    def forward(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
        return x @ w.T if b is None else x @ w.T + b

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, w, ctx.bias = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        _, w = ctx.saved_tensors
        return g @ w, None, None if ctx.bias is None else g.sum(0)


class Highest(Function):
    """Several results, one of which is of integers, one unused."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, _: int) -> tuple[Tensor, ...]:
        high, place = x.max(-1)
        ctx.save_for_backward(place)
        ctx.count = x.shape[-1]
        ctx.mark_non_differentiable(place)
        return high, place, x.mean(-1)

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Any, mean: Tensor) -> tuple[Tensor, None]:
        (place,) = ctx.saved_tensors
        taken = nn.functional.one_hot(place, ctx.count) * g.unsqueeze(-1)
        return 3 * taken + mean.unsqueeze(-1) + 0.01, None


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.other = nn.Linear(4, 5), nn.Linear(5, 4)
        self.unused = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = Swish.apply(self.first(x))
        z = Product.apply(y, self.unused.weight[:, :1].expand(4, 5), self.other.bias)
        high, place, _ = Highest.apply(self.other(Reversed.apply(y, 0.3)), 7)
        return Rounded.apply(z) * 0.5 + (high * place).unsqueeze(-1)


class Repeated(Net):
    """The functions in a loop, with a branch that the data decide."""

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros_like(x)
        for i in range(x.shape[0]):
            h = self.other(Swish.apply(self.first(h + Reversed.apply(x[i], 2.0))))
            if h.sum() > 0:
                h = Rounded.apply(h) * 0.5 + h
        return h


def squares(module: Net, x: Tensor) -> Tensor:
    return module(x).square().mean()


def without(module: Net, x: Tensor) -> Tensor:
    with torch.no_grad():
        target = Swish.apply(module.first(x))
    return (module.first(x) - target).square().mean() + squares(module, x)


def penalty(module: Net, x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(Swish.apply(module.first(x)).sum(), x, create_graph=True)
    return squares(module, x) + g.square().mean()


@pytest.mark.parametrize("loss", [squares, without, penalty])
@pytest.mark.parametrize("kind", [Net, Repeated])
def test_backward_passes_of_programs_are_followed(kind: type[Net], loss: Any) -> None:
    torch.manual_seed(0)
    module = kind().double()
    other = copy.deepcopy(module)
    ours, theirs = (torch.optim.Adam(m.parameters(), 0.05) for m in (module, other))
    step = hagane.compile(loss, ours)
    for _ in range(3):
        x = torch.randn(6, 4, dtype=torch.float64)
        theirs.zero_grad()
        expected = loss(other, x)
        expected.backward()
        theirs.step()
        torch.testing.assert_close(step(module, x), expected.detach())
    for mine, one in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, one)


class Twice(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        made = x * 2
        return made, made

    @staticmethod
    def backward(ctx: Any, first: Tensor, last: Tensor) -> Tensor:
        return first * 2 + last * 3


def test_a_tensor_that_is_returned_twice_has_one_gradient() -> None:
    def loss(module: nn.Module, x: Tensor) -> Tensor:
        first, last = Twice.apply(module(x))
        return (first * x[:, :2] + last.square()).sum()

    module, x = nn.Linear(4, 2), torch.randn(3, 4)
    other = copy.deepcopy(module)
    loss(other, x).backward()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter -= 0.1 * parameter.grad
    hagane.compile(loss, torch.optim.SGD(module.parameters(), 0.1))(module, x)
    for mine, one in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, one)


class Fewer(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        return x * factor

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g


class Wider(Fewer):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return g[:2], None


class Changing(Fewer):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(factor)


class Optional(Fewer):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        return x * factor, x + factor


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Fewer, r"Fewer\.backward returns 1 gradients for 2 arguments of forward"),
        (Wider, r"Wider\.backward: expected a gradient of the shape of .*=\(3, 2\)\), got"),
        (Changing, "mark_dirty: an argument that a torch.autograd.Function changes"),
        (Optional, r"Optional has several results and set_materialize_grads\(False\)"),
    ],
)
def test_backward_passes_that_do_not_fit_are_refused(function: Any, message: str) -> None:
    def loss(module: nn.Module, x: Tensor) -> Tensor:
        found = function.apply(module(x), 2.0)
        return (found[0] if isinstance(found, tuple) else found).sum()

    module = nn.Linear(2, 2)
    step = hagane.compile(loss, torch.optim.SGD(module.parameters(), 0.1))
    with pytest.raises(CaptureError, match=message):
        step(module, torch.ones(3, 2))
