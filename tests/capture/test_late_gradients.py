"""Gradients of compiled calls whose program has changed since, and gradients of gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hagane

pytestmark = [
    pytest.mark.filterwarnings("ignore::hagane.CompileNotice"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]
Change = Callable[[nn.Module], object]


def _net() -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(), nn.Linear(3, 1)).eval()
    made.register_buffer("scale", torch.ones(1))
    return made


def test_a_loop_variable_that_has_moved_on_before_gradients_are_wanted() -> None:
    power = 1

    def f(x: Any) -> Any:
        return (x**power).sum()

    compiled = hagane.compile(f)
    x = torch.full((2,), 3.0, requires_grad=True)
    losses = []
    for power in (1, 2, 3):  # noqa: B007
        losses.append(compiled(x))
    torch.stack(losses).sum().backward()
    assert x.grad.tolist() == [1 + 6 + 27] * 2


@pytest.mark.parametrize(
    "change",
    [
        nn.Module.train,
        lambda net: net[0].register_forward_hook(lambda _, __, result: result * 9),
        lambda net: net.__setitem__(0, nn.Linear(2, 3)),
        lambda net: net[1].running_var.data.mul_(1),  # nothing
        lambda net: setattr(net[1], "eps", 7.0),
        lambda net: net.append(nn.Tanh()),
    ],
)
def test_modules_that_changed_between_a_call_and_its_gradients(change: Change) -> None:
    net, x = _net(), torch.randn(4, 2)
    found = []
    for called in (net, hagane.compile(copy.deepcopy(net))):
        given = x.clone().requires_grad_()
        weights = [*called.parameters()]
        loss = called(given).square().sum()
        change(getattr(called, "__hagane_original__", called))
        found.append(torch.autograd.grad(loss, [given, *weights]))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


def test_complex_and_turned_results_after_a_change() -> None:
    factor = 2.0

    def f(z: Any, x: Any) -> Any:
        return torch.fft.fft(z) * factor, (x * factor).permute(2, 0, 1)

    compiled = hagane.compile(f)
    z = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    x = torch.randn(2, 3, 4, requires_grad=True)
    found = []
    for called in (f, compiled):
        factor = 2.0
        first, second = called(z, x)
        if called is compiled:
            factor = 5.0
            assert len(compiled.captures) == 1
        weights = torch.arange(24.0).view(4, 2, 3)
        loss = first.abs().sum() + (second * weights).sum()
        found.append(torch.autograd.grad(loss, [z, x]))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


def test_what_only_the_program_knows_is_refused_after_a_change() -> None:
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return gradients[0] * 100

    factor = 1.0

    def f(x: Any) -> Any:
        return (Own.apply(x) * factor).sum()

    compiled, x = hagane.compile(f), torch.ones(2, requires_grad=True)
    assert torch.autograd.grad(compiled(x), x)[0].tolist() == [100, 100]
    loss = compiled(x)
    factor = 2.0
    with pytest.raises(RuntimeError, match=r"changed, and its graph.*gradients of its own; call"):
        loss.backward()


def test_gradients_of_gradients() -> None:
    net, x = _net(), torch.randn(4, 2)
    found = []
    for called in (net, hagane.compile(copy.deepcopy(net))):
        given = x.clone().requires_grad_()
        score = called(given)
        (slope,) = torch.autograd.grad(score.sum(), given, create_graph=True)
        loss = score.mean() + (slope.norm(dim=1) - 1).square().mean()
        found.append(torch.autograd.grad(loss, [given, *called.parameters()], allow_unused=True))
    for a, b in zip(*found, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b)
    cube = hagane.compile(lambda x: (x**3).sum())
    hessian = torch.autograd.functional.hessian(cube, torch.tensor([1.0, 2.0]))
    assert hessian.tolist() == [[6, 0], [0, 12]]


def test_tangents_go_through_the_program() -> None:
    from torch.autograd import forward_ad

    cube = hagane.compile(lambda x: x**3)
    with forward_ad.dual_level():
        made = cube(forward_ad.make_dual(torch.tensor([2.0]), torch.tensor([10.0])))
        assert forward_ad.unpack_dual(made).tangent.item() == 120


def test_autocast_around_backward_is_that_of_backward_alone() -> None:
    net = nn.Linear(2, 1)
    net.eval()
    x = torch.full((1, 2), 1.001)
    found = []
    for called in (net, hagane.compile(net)):
        loss = called(x).sum()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found.append(torch.autograd.grad(loss, net.weight)[0])
    assert torch.equal(*found)
