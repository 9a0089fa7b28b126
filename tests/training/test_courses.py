"""Settings that change in the course of training change compiled steps as they do PyTorch's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

from hagane.training.step import TorchStep


class Weighted(nn.Module):
    """A layer whose result is multiplied by an attribute, and dropped by another's share."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.drop = nn.Linear(4, 3), nn.Dropout(0.0)
        self.weight = 1.0

    def forward(self, x: Any) -> Any:
        return self.drop(self.layer(x)) * self.weight


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()


def squares(module: Any, x: Any) -> Any:
    return module(x).square().sum()


def course(
    optimizer: Callable[[Any], Any], change: Callable[[int, Any, Any], object], steps: int = 5
) -> TorchStep:
    """Do the same steps in PyTorch and compiled with a change before each; return the latter."""
    torch.manual_seed(0)
    theirs = network()
    ours = copy.deepcopy(theirs)
    one, other = optimizer(theirs), optimizer(ours)
    step = TorchStep(squares, other)
    for number in range(steps):
        for module, each in ((theirs, one), (ours, other)):
            change(number, module, each)
        x = torch.randn(3, 4).double()
        one.zero_grad()
        squares(theirs, x).backward()
        one.step()
        step(ours, x)
        for mine, their in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine, their, rtol=1e-10, atol=1e-12)
    return step


def test_a_group_that_is_frozen_for_a_while_stays_and_goes_on() -> None:
    def freeze(number: int, module: Any, _: Any) -> None:
        module[0].requires_grad_(number not in (1, 2))

    course(
        lambda m: optim.Adam([{"params": m[0].parameters()}, {"params": m[2].parameters()}]), freeze
    )


@pytest.mark.parametrize("kind", [optim.Adam, optim.NAdam, optim.Adagrad])
def test_parameters_of_a_group_count_their_own_steps(kind: Any) -> None:
    def freeze(number: int, module: Any, _: Any) -> None:
        module[0].requires_grad_(number > 1)

    course(lambda m: kind(m.parameters(), lr=0.01), freeze)


def test_states_that_were_loaded_go_on_in_their_types() -> None:
    def load(number: int, _: Any, optimizer: Any) -> None:
        if number == 2:
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))

    step = course(lambda m: optim.NAdam(m.parameters(), lr=0.01), load)
    (state, *_) = step._optimizer.state.values()
    assert state["mu_product"].dtype == torch.float64


def rates(number: int, _: Any, optimizer: Any) -> None:
    group = optimizer.param_groups[0]
    group["weight_decay"] = 0.1 / (number + 1)
    for name, value in (("momentum", 0.9), ("alpha", 0.99), ("rho", 0.9)):
        if name in group:
            group[name] = value - 0.1 * number
    if "betas" in group:
        group["betas"] = (0.9 - 0.1 * number, 0.99 - 0.01 * number)


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda m: optim.SGD(m.parameters(), 0.01, momentum=0.5, nesterov=True, weight_decay=0.1),
    "Adam": lambda m: optim.Adam(m.parameters(), 0.01, weight_decay=0.2),
    "RMSprop": lambda m: optim.RMSprop(m.parameters(), momentum=0.5, weight_decay=0.2, eps=1e-3),
    "Adadelta": lambda m: optim.Adadelta(m.parameters(), weight_decay=0.2),
    "Adamax": lambda m: optim.Adamax(m.parameters(), weight_decay=0.2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_decay_and_momentum_change_without_another_program(name: str) -> None:
    step = course(OPTIMIZERS[name], rates)
    assert len(step._programs) == 1


def test_schedules_that_cycle_momentum_need_one_program() -> None:
    schedules: dict[int, Any] = {}

    def follow(number: int, _: Any, optimizer: Any) -> None:
        if number:
            schedules[id(optimizer)].step()
        else:
            schedules[id(optimizer)] = optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 9)

    step = course(lambda m: optim.SGD(m.parameters(), 0.01, momentum=0.9), follow)
    assert len(step._programs) == 1


def test_attributes_that_change_between_steps_change_the_step(
    caplog: pytest.LogCaptureFixture,
) -> None:
    torch.manual_seed(0)
    theirs = Weighted().double()
    ours = copy.deepcopy(theirs)
    one, other = (optim.SGD(m.parameters(), 0.01) for m in (theirs, ours))
    step = TorchStep(squares, other)
    for number in range(4):
        for module in (theirs, ours):
            module.weight = (1.0, 1.0, 2.0, 2.0)[number]
            module.drop.p = (0.0, 0.0, 0.0, 1.0)[number]
        x = torch.randn(3, 4).double()
        one.zero_grad()
        loss = squares(theirs, x)
        loss.backward()
        one.step()
        torch.testing.assert_close(step(ours, x), loss.detach())
    assert [record.message.partition(";")[0] for record in caplog.records] == [
        "the step is compiled anew because 'Weighted.weight' changed",
        "the step is compiled anew because 'Dropout.p' changed",
    ]


def test_another_layer_or_array_in_the_place_of_a_frozen_one_is_read() -> None:
    def replace(number: int, module: Any, _: Any) -> None:
        torch.manual_seed(number)
        if number == 1:
            module[0].__setstate__(copy.deepcopy(vars(nn.Linear(4, 5).double())))
        elif number == 2:
            module[0] = nn.Linear(4, 5).double()
        elif number == 3:
            module[0]._parameters = dict(nn.Linear(4, 5).double()._parameters)
        module[0].requires_grad_(False)

    course(lambda m: optim.SGD(m[2].parameters(), 0.1), replace, steps=4)
