"""Compiled steps among other things done to a model: orders, aliases, changes between steps."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim
from torch.nn import functional

import hagane
from hagane.errors import HaganeError


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3)).double()


def loss_of(module: Any, x: Any, labels: Any) -> Any:
    return functional.cross_entropy(module(x), labels)


def square_of(module: Any, x: Any, labels: Any) -> Any:
    del labels
    return module(x).square().mean()


def eager(loss: Callable[..., Any], optimizer: Any) -> Callable[..., Any]:
    def step(module: Any, *given: Any) -> Any:
        optimizer.zero_grad()
        value = loss(module, *given)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return value.detach()

    return step


def batches(count: int = 6) -> list[Any]:
    made = torch.Generator().manual_seed(1)
    return [
        (torch.randn(6, 4, generator=made, dtype=torch.float64),
         torch.randint(0, 3, (6,), generator=made))
        for _ in range(count)
    ]  # fmt: skip


Make = Callable[..., Callable[..., Any]]


def two_steps_of_a_module(compiled: Make) -> Any:
    module = net()
    one = optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    other = optim.Adam(module[0].parameters(), lr=0.01)
    first, second = compiled(loss_of, one), compiled(square_of, other)
    losses = [(first, second)[i % 2](module, *b) for i, b in enumerate(batches())]
    return losses, module, one, other


def freezing(compiled: Make) -> Any:
    module = net()
    optimizer = optim.Adam(module.parameters(), lr=0.01, weight_decay=0.01)
    step, losses = compiled(loss_of, optimizer), []
    for i, batch in enumerate(batches(7)):
        module[0].requires_grad_(i % 3 != 0)
        module[1].weight.requires_grad_(i < 4)
        losses.append(step(module, *batch))
    return losses, module, optimizer


def changed_by_hand(compiled: Make) -> Any:
    module = net()
    optimizer = optim.Adam(module.parameters(), lr=0.01)
    step, losses = compiled(loss_of, optimizer), []
    for i, batch in enumerate(batches()):
        with torch.no_grad():
            if i == 1:
                module[0].weight.mul_(0.5)
            if i == 2:  # another memory, another order of it
                module[0].weight.data = torch.ones(4, 5, dtype=torch.float64).cumsum(0).t()
            if i == 3:
                module[1].running_mean.fill_(0.3)
            if i == 4:
                module[1].running_var = torch.full((5,), 2.0, dtype=torch.float64)
        losses.append(step(module, *batch))
    return losses, module, optimizer


def loaded_again(compiled: Make) -> Any:
    module = net()
    optimizer = optim.AdamW(module.parameters(), lr=0.01)
    step, losses, kept = compiled(loss_of, optimizer), [], io.BytesIO()
    for i, batch in enumerate(batches()):
        if i == 2:
            torch.save((module.state_dict(), optimizer.state_dict()), kept)
        if i == 4:
            kept.seek(0)
            of_module, of_optimizer = torch.load(kept)
            module.load_state_dict(of_module)
            optimizer.load_state_dict(of_optimizer)
        losses.append(step(module, *batch))
    return losses, module, optimizer


def other_types(compiled: Make) -> Any:
    module = net()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    step, losses = compiled(loss_of, optimizer), []
    for i, (x, labels) in enumerate(batches()):
        dtype = torch.float32 if i in (2, 3) else torch.float64
        module.to(dtype)
        losses.append(step(module, x.to(dtype), labels).double())
    return losses, module, optimizer


def other_groups(compiled: Make) -> Any:
    module = net()
    optimizer = optim.Adam(module[-1].parameters(), lr=0.01)
    step, losses = compiled(loss_of, optimizer), []
    for i, batch in enumerate(batches()):
        if i == 1:
            optimizer.add_param_group(
                {"params": module[0].parameters(), "lr": 0.1, "weight_decay": 0.1}
            )
        if i == 3:
            optimizer.param_groups[1]["weight_decay"] = 0.0
        if i == 5:
            for parameter in optimizer.param_groups.pop(1)["params"]:
                optimizer.state.pop(parameter)
        losses.append(step(module, *batch))
    return losses, module, optimizer


def among_eager_steps(compiled: Make) -> Any:
    module = net()
    average = optim.swa_utils.AveragedModel(module)
    optimizer = optim.Adam(module.parameters(), lr=0.01, amsgrad=True)
    step, by_hand, losses = compiled(loss_of, optimizer), eager(loss_of, optimizer), []
    for i, batch in enumerate(batches()):
        losses.append((step, by_hand)[i % 2](module, *batch))
        average.update_parameters(module)
        module.eval()
        with torch.no_grad():
            losses.append(loss_of(module, *batch))
        module.train(i != 3)
    return losses, module, optimizer, average


def behind_an_error(compiled: Make) -> Any:
    module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    optimizer = optim.Adam(module.parameters(), lr=0.01)
    step, losses = compiled(loss_of, optimizer), []
    for i, (x, labels) in enumerate(batches()):
        if i in (0, 2, 4):
            wrong = {0: (x[:, :3], labels), 2: (x, labels + 7), 4: (x, labels[:2])}[i]
            with pytest.raises((HaganeError, IndexError, RuntimeError, ValueError)):
                step(module, *wrong)
        losses.append(step(module, x, labels))
    return losses, module, optimizer


def two_models(compiled: Make) -> Any:
    one, other = net(), net()
    optimizer = optim.Adam([*one.parameters(), *other.parameters()], lr=0.01)
    step = compiled(loss_of, optimizer)
    losses = [step((one, other)[i % 2], *batch) for i, batch in enumerate(batches())]
    return losses, one, other, optimizer


def copies(compiled: Make) -> Any:
    module = net()
    optimizer = optim.Adam(module.parameters(), lr=0.01)
    step, given = compiled(loss_of, optimizer), batches()
    losses = [step(module, *batch) for batch in given[:2]]
    twin, its = copy.deepcopy((module, optimizer))
    other = compiled(loss_of, its)
    for batch in given[2:4]:
        losses += [step(module, *batch), other(twin, *batch)]
    losses.append(step(module, *given[4]))
    return losses, module, optimizer, twin, its


def in_one_memory(compiled: Make) -> Any:
    module = net()
    flat = torch.cat([p.data.flatten() for p in module.parameters()])
    start = 0
    for parameter in module.parameters():
        end = start + parameter.numel()
        parameter.data, start = flat[start:end].view_as(parameter), end
    optimizer = optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    step, losses = compiled(loss_of, optimizer), []
    for i, batch in enumerate(batches(4)):
        losses.append(step(module, *batch))
        if i == 1:
            flat.mul_(0.5)
    return losses, module, optimizer, [flat]


@pytest.mark.parametrize(
    "program",
    [
        changed_by_hand, behind_an_error, two_models,
        *(pytest.param(p, marks=pytest.mark.long) for p in (
            two_steps_of_a_module, other_groups, freezing, loaded_again, other_types,
            among_eager_steps, copies, in_one_memory,
        )),
    ],
)  # fmt: skip
def test_steps_among_other_things_are_eager_ones(program: Callable[[Make], Any]) -> None:
    found = []
    for make in (eager, hagane.compile):
        torch.manual_seed(0)
        losses, *held = program(make)
        states = [x if isinstance(x, list) else x.state_dict() for x in held]
        found.append((losses, states))
    theirs, ours = found
    tolerance = 1e-5 if program is other_types else 1e-9
    torch.testing.assert_close(ours[0], theirs[0], rtol=tolerance, atol=tolerance)
    for mine, their in zip(ours[1], theirs[1], strict=True):
        compared(mine, their, tolerance)


def compared(mine: Any, their: Any, tolerance: float) -> None:
    if isinstance(their, dict):
        assert mine.keys() == their.keys()
        for key in their:
            compared(mine[key], their[key], tolerance)
    elif isinstance(their, list | tuple):
        assert len(mine) == len(their)
        for one, other in zip(mine, their, strict=True):
            compared(one, other, tolerance)
    elif isinstance(their, torch.Tensor):
        torch.testing.assert_close(mine.detach(), their.detach(), rtol=tolerance, atol=tolerance)
    else:
        assert mine == their
