"""Gradients that several calls of a step sum before parameters change."""

from __future__ import annotations

import copy
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


class Tasks(nn.Module):
    """A body, and a head for each task."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 5)
        self.heads = nn.ModuleDict({"a": nn.Linear(5, 2), "b": nn.Linear(5, 3)})

    def forward(self, x: Any, task: str) -> Any:
        return self.heads[task](torch.tanh(self.body(x)))


def task_loss(module: Any, x: Any, task: str) -> Any:
    return module(x, task).pow(2).mean()


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda p: torch.optim.AdamW(p, 0.02), {"accumulate": 2}),
        (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), {"accumulate": 3, "max_norm": 0.1}),
        (lambda p: torch.optim.Rprop(p, 0.02), {"accumulate": 2}),
    ],
)
def test_gradients_of_earlier_calls_count_where_the_last_one_has_none(
    make: Any, options: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    wanted = Tasks().double()
    found = copy.deepcopy(wanted)
    ours, theirs = make(found.parameters()), make(wanted.parameters())
    count = options["accumulate"]
    step = hagane.compile(task_loss, ours, **options)
    for call, task in enumerate("abaabbaab"):
        # Frozen parameters follow the gradients that they have.
        for each in (found, wanted):
            each.body.requires_grad_(call % 4 != 1)
        x = torch.randn(3, 4, dtype=torch.float64)
        expected = task_loss(wanted, x, task)
        (expected / count).backward()
        if call % count == count - 1:
            if "max_norm" in options:
                nn.utils.clip_grad_norm_(wanted.parameters(), options["max_norm"])
            theirs.step()
            theirs.zero_grad()
        assert step(found, x, task).item() == pytest.approx(expected.item(), rel=1e-9)
    for a, b in zip(found.parameters(), wanted.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
    assert ours.state_dict()["state"].keys() == theirs.state_dict()["state"].keys()


def test_sums_of_another_module_are_followed() -> None:
    torch.manual_seed(0)
    pair = [nn.Linear(3, 2).double() for _ in range(2)]
    copies = copy.deepcopy(pair)

    def loss(module: Any, x: Any) -> Any:
        return module(x).square().mean()

    ours, theirs = (
        torch.optim.Adam([p for one in each for p in one.parameters()], 0.02)
        for each in (pair, copies)
    )
    step = hagane.compile(loss, ours, accumulate=2)
    for call in range(6):
        x = torch.randn(3, 3, dtype=torch.float64)
        step(pair[call % 2], x)
        (loss(copies[call % 2], x) / 2).backward()
        if call % 2:
            theirs.step()
            theirs.zero_grad()
    for one, other in zip(pair, copies, strict=True):
        torch.testing.assert_close(one.state_dict(), other.state_dict(), rtol=1e-8, atol=1e-10)
