"""``torch.func`` in compiled functions: made outside, over writes, over gradients of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.func import grad, jacrev, vmap

import hagane


class Halved(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(x: Any) -> Any:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 0.5


def _cubes(x: Any) -> Any:
    return (x**3).sum()


SLOPES, SUMS, TABLE = grad(_cubes), vmap(torch.sum), jacrev(torch.sin)


def _of_a_leaf(x: Any) -> Any:
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        return torch.autograd.grad(Halved.apply(y).sum(), y)[0]


def _without(x: Any) -> Any:
    def weighed(y: Any) -> Any:
        with torch.no_grad():
            weight = y.sum()
        return (y * weight).sum()

    return grad(weighed)(x)


def _writes(x: Any) -> Any:
    def f(row: Any) -> Any:
        row.view(2, 2).add_(1)
        return row

    return vmap(f)(x)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "made outside": lambda x: (SLOPES(x), SUMS(x), TABLE(x[0]), vmap(TABLE)(x)),
    "a backward of one's own": lambda x: grad(lambda y: Halved.apply(y).sum())(x),
    "a backward of one's own, by autograd": _of_a_leaf,
    "parts without gradients": _without,
    "writes into items": _writes,
}


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_transforms_are_those_of_pytorch(name: str, gradients: bool) -> None:
    given = [torch.arange(8.0).reshape(2, 4) for _ in range(2)]
    with torch.set_grad_enabled(gradients):
        expected = PROGRAMS[name](given[0])
        found = hagane.compile(PROGRAMS[name], fullgraph=True)(given[1])
    torch.testing.assert_close(found, expected)
    assert torch.equal(*given)


def test_a_transform_itself_is_compiled() -> None:
    x = torch.arange(3.0)
    assert torch.equal(hagane.compile(SLOPES, fullgraph=True)(x), 3 * x**2)
