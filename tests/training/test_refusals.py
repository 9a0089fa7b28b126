"""Clipping of gradients, and additions to modules and optimizers that a step cannot follow."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

import hagane
from hagane.errors import InvalidArgument


def squares(module: Any, x: Any) -> Any:
    return module(x).square().sum()


def test_gradients_are_scaled_to_a_norm() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    other = copy.deepcopy(module)
    ours, theirs = (optim.SGD(one.parameters(), lr=0.1, momentum=0.9) for one in (module, other))
    step = hagane.compile(squares, ours, max_norm=0.5)
    for scale in (3.0, 0.01, 1.0):  # of which the second is within the norm
        x = scale * torch.randn(6, 4)
        theirs.zero_grad()
        squares(other, x).backward()
        nn.utils.clip_grad_norm_(other.parameters(), 0.5)
        theirs.step()
        step(module, x)
    for mine, one in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, one)


@pytest.mark.parametrize("wrong", [0, -1.0, float("inf"), True, "1"])
def test_a_norm_is_a_positive_number(wrong: Any) -> None:
    module = nn.Linear(2, 1)
    with pytest.raises(InvalidArgument, match="max_norm: expected a positive number, got"):
        hagane.compile(squares, optim.SGD(module.parameters(), lr=0.1), max_norm=wrong)


def test_a_norm_is_for_steps_of_modules() -> None:
    with pytest.raises(InvalidArgument, match="max_norm is for a step of training"):
        hagane.compile(nn.Linear(2, 1), max_norm=1.0)
    net = hagane.links.Linear(2, 1)
    optimizer = hagane.optimizers.SGD().setup(net)
    with pytest.raises(InvalidArgument, match="hook GradientClipping"):
        hagane.compile(squares, optimizer, max_norm=1.0)


def clip(*_: Any) -> None:
    raise AssertionError("is not called")


def test_hooks_are_refused_by_name() -> None:
    module, x = nn.Linear(3, 2), torch.ones(2, 3)
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    step = hagane.compile(squares, optimizer)
    handle = optimizer.register_step_pre_hook(clip)
    with pytest.raises(InvalidArgument, match=r"the hook 'clip' \(register_step_pre_hook\)"):
        step(module, x)
    handle.remove()
    handle = module.bias.register_hook(clip)
    with pytest.raises(InvalidArgument, match="parameter 1 of group 0 .* has the hook 'clip'"):
        step(module, x)
    handle.remove()
    step(module, x)


def test_computed_parameters_are_refused_by_name() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)))
    step = hagane.compile(squares, optim.SGD(module.parameters(), lr=0.1))
    with pytest.raises(InvalidArgument, match=r"'module\.1\.weight' is computed by WeightNorm"):
        step(module, torch.ones(2, 3))
    nn.utils.parametrize.remove_parametrizations(module[1], "weight")
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    hagane.compile(squares, optimizer)(module, torch.ones(2, 3))
