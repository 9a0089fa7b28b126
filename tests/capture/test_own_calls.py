"""Modules of PyTorch whose class has a ``__call__`` of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import hagane


class Doubled(nn.Linear):
    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return 2 * super().__call__(*arguments, **keywords)


class Direct(nn.Module):
    """Calls no ``forward``, and so none of its hooks."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def __call__(self, x: Any) -> Any:
        return 3 * self.layer(x)


class Scaled(nn.Module):
    """Takes other arguments than ``forward``."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def __call__(self, x: Any, scale: Any = 5) -> Any:
        return scale * super().__call__(x)

    def forward(self, y: Any) -> Any:
        return self.layer(y)


class Around(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x)


MAKERS = {
    "doubled": lambda: Doubled(3, 2),
    "direct": Direct,
    "scaled": Scaled,
    "around": lambda: Around(Scaled()),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_call_of_the_class_is_followed_and_its_hooks_where_it_runs_them(name: str) -> None:
    module = MAKERS[name]()
    inner = getattr(module, "inner", module)
    inner.register_forward_hook(lambda module, arguments, result: result + 1)
    x = torch.randn(4, 3)
    session = hagane.InferenceSession(hagane.capture(module, "float32[n, 3]"))
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    np.testing.assert_allclose(found, module(x).detach(), rtol=1e-5, atol=1e-6)
    report = hagane.check(module, "float32[n, 3]")
    assert (report.errors, report.returned) == ([], "torch.Tensor(dtype=float32, shape=(n, 2))")


def test_a_step_follows_the_call_of_the_class() -> None:
    module, x = Scaled(), torch.randn(4, 3)
    wanted = module(x).square().mean()
    step = hagane.compile(lambda m, x: m(x).square().mean(), torch.optim.SGD(module.parameters()))
    torch.testing.assert_close(step(module, x), wanted.detach())
