"""Gradients that several calls of a step sum before parameters change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.errors import InvalidArgument


def loss(module: Any, x: Any, target: Any) -> Any:
    return nn.functional.cross_entropy(module(x), target)


def module() -> nn.Module:
    """Return a network in which no gradient is a rounding error alone."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, 9, bias=False), nn.BatchNorm1d(9), nn.Tanh(), nn.Linear(9, 3)
    ).double()


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_sums_of_calls_are_pytorchs_gradients(name: str) -> None:
    options = {"lr": 0.05, "momentum": 0.9} if name == "SGD" else {"lr": 0.05}
    wanted, found = module(), module()
    ours, theirs = (
        getattr(torch.optim, name)(each.parameters(), **options) for each in (found, wanted)
    )
    step = hagane.compile(loss, ours, accumulate=3)
    rng = torch.Generator().manual_seed(1)
    for call in range(9):
        x = torch.randn(4 + call % 2, 5, generator=rng, dtype=torch.float64)
        target = torch.randint(0, 3, (4 + call % 2,), generator=rng)
        expected = loss(wanted, x, target)
        (expected / 3).backward()
        if call % 3 == 2:
            theirs.step()
            theirs.zero_grad()
        assert step(found, x, target).item() == pytest.approx(expected.item(), rel=1e-10)
        for a, b in zip(found.state_dict().values(), wanted.state_dict().values(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
    assert len(step._programs) == 2  # one that sums, one that changes parameters


def test_a_sum_of_equal_parts_is_the_gradient_of_the_whole_batch() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12, 5)).astype(np.float32)
    t = (x[:, 0] > 0).astype(np.int32)

    def error(model: Any, x: Any, t: Any) -> Any:
        return F.softmax_cross_entropy(model(x), t)

    found = []
    for parts in (1, 3):
        np.random.seed(0)
        model = L.Linear(5, 2)
        optimizer = hagane.optimizers.Adam(0.1).setup(model)
        optimizer.add_hook(hagane.optimizer_hooks.GradientClipping(0.01))
        step = hagane.compile(error, optimizer, accumulate=parts)
        for _ in range(4):
            for a, b in zip(np.split(x, parts), np.split(t, parts), strict=True):
                step(model, a, b)
        assert optimizer.t == 4
        found.append(model.W.array)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2"])
def test_what_is_no_number_of_calls_is_refused(count: Any) -> None:
    optimizer = torch.optim.SGD(module().parameters(), lr=0.1)
    with pytest.raises(InvalidArgument, match="expected accumulate to be a number of calls from 1"):
        hagane.compile(loss, optimizer, accumulate=count)
    with pytest.raises(InvalidArgument, match="accumulate is for a step of training"):
        hagane.compile(loss, accumulate=2)
