"""Clipping of gradients, and additions to modules and optimizers that a step cannot follow."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

import hagane
from hagane.errors import CaptureError, InvalidArgument


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


HOOKS = {
    r"the module 'module\.0' has the hook 'clip' \(register_full_backward_hook\)": (
        lambda module: module[0].register_full_backward_hook(clip)
    ),
    r"the module 'module' has the hook 'clip' \(register_full_backward_pre_hook\)": (
        lambda module: module.register_full_backward_pre_hook(clip)
    ),
    r"the module 'module\.1' has the hook 'clip' \(register_backward_hook\)": (
        lambda module: module[1].register_backward_hook(clip)
    ),
    r"for all modules \(register_module_full_backward_hook\)": (
        lambda _: torch.nn.modules.module.register_module_full_backward_hook(clip)
    ),
    r"for all modules \(register_module_forward_hook\)": (
        lambda _: torch.nn.modules.module.register_module_forward_hook(clip)
    ),
}


@pytest.mark.parametrize("told", HOOKS)
def test_hooks_on_gradients_are_refused_by_name_whenever_they_come(told: str) -> None:
    module, x = nn.Sequential(nn.Linear(3, 2), nn.Tanh()), torch.ones(2, 3)
    step = hagane.compile(squares, optim.SGD(module.parameters(), lr=0.1))
    for _ in range(2):  # before anything is compiled, and after a step
        handle = HOOKS[told](module)
        try:
            with pytest.raises(InvalidArgument, match=told):
                step(module, x)
        finally:
            handle.remove()
        step(module, x)


def test_hooks_on_parameters_that_are_not_trained_are_refused() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    module[0].weight.register_hook(clip)
    step = hagane.compile(squares, optim.SGD(module[1].parameters(), lr=0.1))
    with pytest.raises(InvalidArgument, match=r"the parameter 'module\.0\.weight' has the hook"):
        step(module, torch.ones(2, 3))
    module[0].weight.requires_grad_(requires_grad=False)
    step(module, torch.ones(2, 3))
    module[0].bias.register_hook(clip)
    with pytest.raises(InvalidArgument, match=r"the parameter 'module\.0\.bias' has the hook"):
        step(module, torch.ones(2, 3))


@pytest.mark.parametrize("setting", [{"accumulate": 2}, {"max_norm": 1.0}, {"precision": "fp16"}])
def test_hooks_that_would_see_other_gradients_are_refused(setting: Any) -> None:
    module = nn.Linear(3, 2)
    step = hagane.compile(squares, optim.SGD(module.parameters(), lr=0.1), **setting)
    module.bias.register_hook(clip)
    with pytest.raises(InvalidArgument, match="has the hook 'clip' .* with " + next(iter(setting))):
        step(module, torch.ones(2, 3))


def test_gradients_beyond_the_arguments_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    first, module = nn.Linear(3, 4), nn.Linear(4, 2)
    x = torch.ones(2, 3)
    step = hagane.compile(squares, optim.SGD([*first.parameters(), *module.parameters()], lr=0.1))
    with pytest.raises(InvalidArgument, match=r"the argument 'x' was computed .*parameter 0 of gr"):
        step(module, first(x))
    step(module, first(x).detach())
    assert "depend on parameter 0 of group 0 of the optimizer" in caplog.text
    hagane.compile(squares, optim.SGD(module.parameters(), lr=0.1))(module, first(x))


def test_arguments_that_are_parameters_are_refused() -> None:
    module, x = nn.Linear(4, 2), nn.Parameter(torch.ones(2, 4))
    step = hagane.compile(squares, optim.SGD([x, *module.parameters()], lr=0.1))
    with pytest.raises(InvalidArgument, match="the argument 'x' is a parameter of group 0"):
        step(module, x)


def test_tensors_that_were_computed_of_parameters_are_refused_and_others_taken() -> None:
    """Eager PyTorch has gradients through them; a step would leave these out without a word."""
    module, other = nn.Linear(3, 3), nn.Linear(3, 3)
    module.wide = module.bias.expand(2, 3)
    step = hagane.compile(lambda m, x: (m(x) * m.wide).mean(), torch.optim.SGD(
        module.parameters(), 0.1))  # fmt: skip
    text = (
        r"step: 'm.wide', which the loss reads, was computed with gradients \(ExpandBackward0\) "
        "before the call, from parameter 1 of group 0 of the optimizer; .* compute it in the loss"
    )
    with pytest.raises(InvalidArgument, match=text):
        step(module, torch.ones(2, 3))
    del module.wide
    both = [*module.parameters(), *other.parameters()]
    step = hagane.compile(lambda m, x: m(x).mean(), torch.optim.SGD(both, 0.1))
    with pytest.raises(InvalidArgument, match="the argument 'x' was computed .* parameter 0 of"):
        step(module, module(torch.ones(2, 3)))
    step(module, nn.Linear(3, 3)(torch.ones(2, 3)))  # a generator's, of another optimizer


def test_a_parameter_that_a_group_has_twice_is_refused() -> None:
    module = nn.Linear(3, 2)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = torch.optim.SGD([*module.parameters(), module.bias], 0.1)
    step = hagane.compile(lambda m, x: m(x).square().mean(), optimizer)
    with pytest.raises(InvalidArgument, match="group 0 of the optimizer has a parameter twice"):
        step(module, torch.ones(2, 3))


def test_states_of_another_type_than_their_parameter_are_refused_before_anything_changes() -> None:
    module = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)
    step = hagane.compile(lambda m, x: m(x).square().mean(), optimizer)
    step(module, torch.ones(2, 3))
    module.double()
    before = [p.detach().clone() for p in module.parameters()]
    x = torch.ones(2, 3, dtype=torch.float64)
    told = r"keeps 'momentum_buffer' of 'm.weight' as torch.float32 \(2, 3\), and the "
    with pytest.raises(InvalidArgument, match=told):
        step(module, x)
    assert all(map(torch.equal, module.parameters(), before))
    optimizer.load_state_dict(optimizer.state_dict())  # the remedy
    step(module, x)
    assert optimizer.state[module.weight]["momentum_buffer"].dtype == torch.float64


@pytest.mark.parametrize("kind", ["float32", "int64", "complex64"])
def test_sparse_tensors_that_a_loss_reads_are_refused(kind: str) -> None:
    around = torch.eye(3, dtype=getattr(torch, kind)).to_sparse()

    def loss(module: Any, x: Any) -> Any:
        return module(around.to_dense().real.float() @ x).sum()

    module = nn.Linear(3, 2)
    step = hagane.compile(loss, optim.SGD(module.parameters(), lr=0.1))
    with pytest.raises(CaptureError, match=r"layout torch\.sparse_coo is read, .*to_dense"):
        step(module, torch.ones(3, 3))
