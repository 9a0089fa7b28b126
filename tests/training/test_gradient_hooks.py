"""Hooks on gradients of parameters, and of optimizers: compiled steps call them as PyTorch does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import hagane

torch = pytest.importorskip("torch")
from torch import nn, optim  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402


def loss_of(module: Any, x: Any) -> Any:
    return module(x).square().mean()


def compared(
    hooked: Callable[[Any, Any, list[Any]], Any], make: Callable[[Any], Any]
) -> tuple[list[Any], list[Any]]:
    """Return what hooks noted in six steps of PyTorch and compiled ones, which end alike.

    Args:
        hooked: Registers hooks with a module and an optimizer, which note what they see, before
            the third step; returns the handle that removes them before the fifth.
        make: Makes the optimizer.
    """
    torch.manual_seed(0)
    theirs = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    ours = copy.deepcopy(theirs)
    one, other = make(theirs.parameters()), make(ours.parameters())
    step, wanted, found = hagane.compile(loss_of, other), list[Any](), list[Any]()
    for number in range(6):
        if number == 2:
            handles = [hooked(theirs, one, wanted), hooked(ours, other, found)]
        if number == 4:
            for handle in handles:
                handle.remove()
        x = torch.randn(3 + number, 3).double()
        one.zero_grad()
        loss = loss_of(theirs, x)
        loss.backward()
        one.step()
        torch.testing.assert_close(step(ours, x), loss.detach())
        for mine, their in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine, their, rtol=1e-9, atol=1e-12)
            assert mine.grad is None
            for key, value in one.state[their].items():
                torch.testing.assert_close(other.state[mine][key], value, rtol=1e-9, atol=1e-12)
    return wanted, found


def adam(parameters: Any) -> Any:
    return optim.Adam(parameters, 0.05, amsgrad=True)


def momentum(parameters: Any) -> Any:
    return optim.SGD(parameters, 0.1, momentum=0.9)


@pytest.mark.parametrize("make", [adam, momentum])
def test_a_hook_changes_the_gradient_of_a_parameter(make: Any) -> None:
    def hooked(module: Any, optimizer: Any, seen: list[Any]) -> Any:
        def halve(gradient: Any) -> Any:
            seen.append(gradient.clone())
            return gradient / 2

        module[0].bias.register_hook(lambda gradient: None)
        return module[0].weight.register_hook(halve)

    wanted, found = compared(hooked, make)
    assert len(found) == 2
    torch.testing.assert_close(found, wanted)


def test_a_hook_sees_the_gradient_that_a_parameter_has_got() -> None:
    def hooked(module: Any, optimizer: Any, seen: list[Any]) -> Any:
        def clamp(parameter: Any) -> None:
            seen.append(parameter.grad.clone())
            parameter.grad.clamp_(-0.01, 0.01)

        return module[2].weight.register_post_accumulate_grad_hook(clamp)

    wanted, found = compared(hooked, adam)
    assert len(found) == 2
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("make", [adam, momentum])
def test_hooks_of_an_optimizer_run_before_and_after_its_step(make: Any) -> None:
    def hooked(module: Any, optimizer: Any, seen: list[Any]) -> Any:
        def clip(own: Any, *_: Any) -> None:
            assert own is optimizer
            seen.append(nn.utils.clip_grad_norm_(module.parameters(), 0.01))

        optimizer.register_step_post_hook(lambda *_: seen.append(module[0].bias.detach().clone()))
        return optimizer.register_step_pre_hook(clip)

    wanted, found = compared(hooked, make)
    assert len(found) == 6
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-9)


def test_hooks_of_all_optimizers_run() -> None:
    seen: list[Any] = []
    module = nn.Linear(3, 2)
    optimizer = optim.SGD(module.parameters(), 0.1)
    step = hagane.compile(loss_of, optimizer)
    with register_optimizer_step_post_hook(lambda own, *_: seen.append(own)):
        step(module, torch.ones(2, 3))
    step(module, torch.ones(2, 3))
    assert seen == [optimizer]
