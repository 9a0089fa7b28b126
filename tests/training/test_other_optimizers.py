"""Steps of optimizers without a compiled rule, one's own included, follow their own ``step``."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

import hagane
from hagane.errors import InvalidArgument


class Signed(optim.Optimizer):
    """Follows the signs of moving means, and keeps the first gradient as it is."""

    def __init__(self, parameters: Any, lr: float):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["mean"] = p.grad
                else:
                    state["mean"] = state["mean"].lerp(p.grad, 0.1)
                p.sub_(group["lr"] * state["mean"].sign())


class Centered(optim.SGD):
    """Takes the mean from gradients first."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for p in group["params"]:
                p.grad -= p.grad.mean()
        return super().step(closure)


MAKERS: dict[str, Callable[[Any], Any]] = {
    "ASGD": lambda p: optim.ASGD(p, 0.1, lambd=0.01, t0=2, weight_decay=0.1),
    "Rprop": lambda p: optim.Rprop(p, 0.01),
    "Adafactor": lambda p: optim.Adafactor(p, 0.05, weight_decay=0.1),
    "own": lambda p: Signed(p, 0.01),
    "derived": lambda p: Centered(p, 0.1, momentum=0.9),
}


def loss_of(module: Any, x: Any) -> Any:
    return module(x).square().mean()


def network() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)).double()


@pytest.mark.parametrize("name", MAKERS)
def test_steps_are_those_of_the_optimizer(name: str) -> None:
    theirs, ours = network(), network()
    one, other = MAKERS[name](theirs.parameters()), MAKERS[name](ours.parameters())
    schedule = optim.lr_scheduler.StepLR(other, 2, 0.5)
    step = hagane.compile(loss_of, other)
    for number in range(5):
        x = torch.randn(3 + number, 4).double()
        one.zero_grad()
        wanted = loss_of(theirs, x)
        wanted.backward()
        one.param_groups[0]["lr"] = other.param_groups[0]["lr"]
        one.step()
        torch.testing.assert_close(step(ours, x), wanted.detach())
        schedule.step()
    assert len(step._programs) == 1
    for mine, their in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, their, rtol=1e-9, atol=1e-12)
        assert mine.grad is None
        assert other.state[mine].keys() == one.state[their].keys()
        for key, value in one.state[their].items():
            torch.testing.assert_close(other.state[mine][key], value, rtol=1e-9, atol=1e-12)


def test_sums_of_gradients_are_clipped_before_the_optimizer_follows_them() -> None:
    theirs, ours = network(), network()
    one, other = (optim.Rprop(module.parameters(), 0.01) for module in (theirs, ours))
    step = hagane.compile(loss_of, other, accumulate=2, max_norm=0.1)
    for number in range(4):
        x = torch.randn(3, 4).double()
        (loss_of(theirs, x) / 2).backward()
        if number % 2:
            nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
            one.step()
            one.zero_grad()
        step(ours, x)
        for mine, their in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine, their, rtol=1e-9, atol=1e-12)


def test_an_overflow_leaves_such_optimizers_as_they_are() -> None:
    module = network().float()
    optimizer = optim.Rprop(module.parameters(), 0.01)
    step = hagane.compile(loss_of, optimizer, precision="fp16")
    step(module, torch.randn(3, 4))
    before = copy.deepcopy((module.state_dict(), optimizer.state_dict()["state"]))
    step(module, torch.full((3, 4), 1e30))
    assert step.loss_scale.skipped == 1
    after = (module.state_dict(), optimizer.state_dict()["state"])
    assert str(after) == str(before)


def test_optimizers_that_call_the_loss_are_refused() -> None:
    module = network()
    with pytest.raises(InvalidArgument, match=r"LBFGS\.step takes a function that computes the"):
        hagane.compile(loss_of, optim.LBFGS(module.parameters()))
    with pytest.raises(InvalidArgument, match=r"expected an optimizer of torch\.optim, got"):
        hagane.training.step.TorchStep(loss_of, module)


def test_gradients_that_were_there_stay() -> None:
    module = network()
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    other = network()
    steps = [hagane.compile(loss_of, optim.Rprop(m.parameters(), 0.01)) for m in (module, other)]
    x = torch.randn(3, 4).double()
    for step, one in zip(steps, (module, other), strict=True):
        step(one, x)
    for mine, their in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, their)
        assert bool((mine.grad == 1).all())


@pytest.mark.parametrize("when", [0, 2])
def test_a_step_that_a_program_puts_in_the_place_of_the_optimizers_is_called(when: int) -> None:
    def clipping(optimizer: Any, parameters: list[Any]) -> Callable[..., Any]:
        before = optimizer.step

        @functools.wraps(before)
        def clipped(closure: Any = None) -> Any:
            nn.utils.clip_grad_value_(parameters, 1e-3)
            return before(closure)

        return clipped

    def course(*, compiled: bool) -> list[Any]:
        torch.manual_seed(0)
        module = nn.Linear(3, 2)
        optimizer = optim.SGD(module.parameters(), 0.1)
        schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)  # wraps the step, too
        step = hagane.compile(loss_of, optimizer)
        for number in range(4):
            if number == when:
                optimizer.step = clipping(optimizer, [*module.parameters()])
            x = torch.randn(5, 3)
            if compiled:
                step(module, x)
            else:
                optimizer.zero_grad()
                loss_of(module, x).backward()
                optimizer.step()
            schedule.step()
        return [p.detach() for p in module.parameters()]

    for one, other in zip(course(compiled=True), course(compiled=False), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("first", [True, False])
def test_a_step_of_an_optimizer_may_call_it_by_any_name(first: bool) -> None:
    module, called = network(), list[Any]()
    optimizer = optim.SGD(module.parameters(), 0.1)
    if first:
        optim.lr_scheduler.StepLR(optimizer, 2)
    before = optimizer.step

    def noted(own: Any, *given: Any) -> Any:
        called.append(own)
        return before(*given)

    optimizer.step = types.MethodType(noted, optimizer)
    if not first:
        optim.lr_scheduler.StepLR(optimizer, 2)
    hagane.compile(loss_of, optimizer)(module, torch.ones(2, 4).double())
    assert called == [optimizer]
