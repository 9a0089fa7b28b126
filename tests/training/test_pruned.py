"""Weights that hooks of PyTorch compute before each call: pruned ones, and those of a norm."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim
from torch.nn.utils import prune

import hagane


def prune_more(module: Any) -> None:
    prune.l1_unstructured(module[0], "weight", 0.4)
    prune.random_structured(module[2], "weight", 0.4, dim=1)
    prune.l1_unstructured(module[2], "bias", 1)


def finish(module: Any) -> None:
    prune.remove(module[0], "weight")


def weigh(module: Any) -> None:
    with pytest.warns(FutureWarning, match="weight_norm"):
        nn.utils.weight_norm(module[0])


def stop_weighing(module: Any) -> None:
    nn.utils.remove_weight_norm(module[0])


@pytest.mark.parametrize(
    "events",
    [{1: prune_more, 3: prune_more, 5: finish}, {1: weigh, 4: stop_weighing}],
    ids=["pruned", "norm"],
)
def test_weights_that_hooks_compute_are_trained(events: dict[int, Callable[[Any], None]]) -> None:
    torch.manual_seed(0)
    theirs = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    ours = copy.deepcopy(theirs)
    one, other = (optim.SGD(m.parameters(), 0.1, momentum=0.5) for m in (theirs, ours))

    def loss(module: Any, x: Any) -> Any:
        return module(x).square().mean()

    step = hagane.compile(loss, other)
    for number in range(7):
        if number in events:
            for module, optimizer in ((theirs, one), (ours, other)):
                torch.manual_seed(number)
                events[number](module)
                optimizer.param_groups[0]["params"] = list(module.parameters())
        x = torch.randn(5, 4).double()
        one.zero_grad()
        wanted = loss(theirs, x)
        wanted.backward()
        one.step()
        torch.testing.assert_close(step(ours, x), wanted.detach())
        for mine, its in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True):
            torch.testing.assert_close(mine, its)
        torch.testing.assert_close(ours[0].weight.detach(), theirs[0].weight.detach())


def test_a_pruned_module_becomes_a_graph() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
    prune_more(module)
    x = torch.randn(2, 4)
    session = hagane.InferenceSession(hagane.capture(module, "float32[n, 4]"))
    (found,) = session.run(None, {"input": x.numpy()})
    np.testing.assert_allclose(found, module(x).detach(), rtol=1e-5, atol=1e-6)
