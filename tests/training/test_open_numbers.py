"""Numbers of Python as arguments of compiled steps, which change from call to call."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim
from torch.nn import functional

import hagane
import hagane.functions as F  # noqa: N812


def weighted(module: Any, x: Any, t: Any, weight: float) -> Any:
    return weight * functional.cross_entropy(module(x), t)


def warmed(module: Any, x: Any, t: Any, epoch: int) -> Any:
    y = module(x) / (1 + 2.0**-epoch)
    return functional.cross_entropy(y, t) * min(1.0, (epoch + 1) / 3) + math.cos(epoch / 9)


def in_turn(module: Any, x: Any, t: Any, count: int) -> Any:
    if count % 2 == 0:
        return functional.cross_entropy(module(x), t)
    return module(x).square().mean()


def as_items(module: Any, batch: Any) -> Any:
    y = module(batch["x"]) / batch["options"].temperature
    return functional.cross_entropy(y, batch["t"]) + batch["beta"][0] * y.abs().mean()


class Options:
    def __init__(self, temperature: float):
        self.temperature = temperature


X, T = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 2, 1, 1, 0])
OPEN: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "float": (weighted, [(X, T, weight) for weight in (0.5, 0.0, -0.0, 0.7)]),
    "schedule": (warmed, [(X, T, epoch) for epoch in range(4)]),
    "branch": (in_turn, [(X, T, count) for count in range(4)]),
    "parts": (as_items, [({"x": X, "t": T, "options": Options(1 + n), "beta": [n / 4]},)
                         for n in range(4)]),
}  # fmt: skip


def compare(loss: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Any:
    """Return a step of which each call is PyTorch's."""
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
    theirs = copy.deepcopy(ours)
    one, other = (optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (ours, theirs))
    step = hagane.compile(loss, one)
    for given in calls:
        other.zero_grad()
        wanted = loss(theirs, *copy.deepcopy(given))
        wanted.backward()
        other.step()
        torch.testing.assert_close(step(ours, *given), wanted.detach())
    for mine, their in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, their)
    return step


@pytest.mark.parametrize("name", OPEN)
def test_a_number_that_changes_is_compiled_for_twice(name: str) -> None:
    assert len(compare(*OPEN[name])._programs) == 2


def test_in_deterministic_mode_one_program_serves_from_the_first_number_on() -> None:
    with hagane.using_config("deterministic", True):
        assert len(compare(*OPEN["float"])._programs) == 1


def first(module: Any, x: Any, t: Any, count: int) -> Any:
    return functional.cross_entropy(module(x)[:count], t[:count])


def parts(module: Any, x: Any, t: Any, count: int) -> Any:
    return module[: 1 + 2 * (count % 2)](x).square().mean()


def normed(module: Any, x: Any, t: Any, eps: float) -> Any:
    return (functional.layer_norm(module(x), (3,), eps=eps) * x[:, :3]).sum()


def test_settings_of_functions_stay_fixed_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    step = compare(normed, [(X, T, 0.1), (X, T, 0.2), (X, T, 0.1)])
    assert len(step._programs) == 2
    assert caplog.text == ""


@pytest.mark.parametrize("loss", [first, parts])
def test_numbers_that_decide_sizes_stay_fixed(loss: Any, caplog: pytest.LogCaptureFixture) -> None:
    step = compare(loss, [(X, T, 2), (X, T, 3), (X, T, 4), (X, T, 2), (X, T, 5)])
    assert len(step._programs) == 4
    assert "the step is compiled for 4 kinds of arguments: texts and truth values" in caplog.text


def test_two_numbers_of_one_path_are_two() -> None:
    def loss(module: Any, x: Any, weights: Any) -> Any:
        return weights[1] * module(x).mean() + weights["1"]

    module = nn.Linear(4, 2)
    step = hagane.compile(loss, optim.SGD(module.parameters(), 0.0))
    mean = module(X).mean().item()
    for one, two in ((1.0, 2.0), (3.0, 2.0), (3.0, 4.0), (5.0, 6.0)):
        found = step(module, X, {1: one, "1": two})
        assert float(found) == pytest.approx(one * mean + two, rel=1e-5)


def of_link(link: Any, x: Any, t: Any, weight: float) -> Any:
    return weight * F.softmax_cross_entropy(link(x), t)


def test_numbers_of_a_link_are_compiled_for_twice() -> None:
    found = []
    for compiled in (True, False):
        np.random.seed(0)
        link = hagane.links.Linear(4, 3)
        optimizer = hagane.optimizers.MomentumSGD(0.1).setup(link)
        step = hagane.compile(of_link, optimizer)
        for number in range(4):
            given = link, X.numpy(), T.numpy().astype("i"), 0.5 + number
            if compiled:
                step(*given)
            else:
                optimizer.update(of_link, *given)
        if compiled:
            assert len(step._programs) == 2
        found.append([p.array for p in link.params()])
    for mine, one in zip(*found, strict=True):
        np.testing.assert_allclose(mine, one, rtol=1e-5, atol=1e-7)
