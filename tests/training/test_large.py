"""Large parameters are updated behind the graph, as those in it are."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

from hagane.training.step import TorchStep
from hagane.training.step.modules import step as torch_step


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(9, 30), nn.Linear(30, 1)

    def forward(self, x: Any) -> Any:
        return self.last(torch.tanh(self.first(x))).squeeze(1)


def error(module: Any, x: Any) -> Any:
    return (module(x) - x.sum(1)).square().mean()


OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda p: optim.SGD(p, lr=0.05),
    "momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "AdamW": lambda p: optim.AdamW(p, lr=1e-2, amsgrad=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_large_parameters_follow_the_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_step, "LARGE", 100)
    monkeypatch.setattr("hagane.training.step.modules.large._PIECE", 64)
    torch.manual_seed(0)
    module = Network()
    # Memory that is not in row-major order is updated as a whole.
    module.first.weight = nn.Parameter(torch.randn(9, 30).T * 0.3)
    other = copy.deepcopy(module)
    ours, theirs = (OPTIMIZERS[name](one.parameters()) for one in (module, other))
    step = TorchStep(error, ours)
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(5 + seed, 9)
        theirs.zero_grad()
        loss = error(other, x)
        loss.backward()
        theirs.step()
        torch.testing.assert_close(step(module, x), loss.detach(), rtol=1e-5, atol=1e-6)
    for mine, one in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, one, rtol=1e-4, atol=1e-5)
    ((program,),) = step._programs.values()
    assert [item.name for item in program._made.updated if item.apart] == ["module.first.weight"]
    results = program._made.model.graph.outputs
    assert "module.first.weight.gradient" in [value.name for value in results]


def test_gradients_take_the_place_of_new_values_and_states_in_memory() -> None:
    module = nn.Linear(300, 300)
    step = TorchStep(error_of_rows, optim.Adam(module.parameters()))
    step(module, torch.randn(4, 300))
    plan = step.memory()
    weight = 4 * 300 * 300
    assert weight <= plan["results"] < 1.1 * weight
    assert 2 * weight <= plan["states"] < 2.1 * weight


def error_of_rows(module: Any, x: Any) -> Any:
    return module(x).square().mean()
