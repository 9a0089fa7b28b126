"""Steps that fail as PyTorch's do leave module and optimizer as they were; the next one follows."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim
from torch.nn import functional

import hagane
from hagane.errors import KernelError


def labelled(module: Any, x: Any, target: Any) -> Any:
    return functional.cross_entropy(module(x), target)


def _same(ours: Any, theirs: Any) -> None:
    for mine, their in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True):
        torch.testing.assert_close(mine, their, rtol=1e-9, atol=1e-11)


def _eager(module: Any, optimizer: Any, x: Any, target: Any) -> None:
    optimizer.zero_grad()
    labelled(module, x, target).backward()
    optimizer.step()


def test_an_index_outside_leaves_the_optimizer_without_states() -> None:
    torch.manual_seed(0)
    theirs = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(8, 3)).double()
    ours = copy.deepcopy(theirs)
    one, other = optim.Adam(theirs.parameters(), 0.1), optim.Adam(ours.parameters(), 0.1)
    step = hagane.compile(labelled, other)
    target = torch.tensor([0, 1])
    with pytest.raises(KernelError, match="9"):
        step(ours, torch.tensor([[0, 9], [1, 2]]), target)
    assert not other.state
    x = torch.tensor([[0, 4], [1, 2]])
    for module, optimizer in ((theirs, one), (ours, other)):  # by hand, after the failure
        _eager(module, optimizer, x, target)
    _eager(theirs, one, x, target)
    step(ours, x, target)
    _same(ours, theirs)


@pytest.mark.parametrize("wrong", [-1, 3])
def test_a_class_outside_the_classes_fails(wrong: int) -> None:
    torch.manual_seed(0)
    module = nn.Linear(4, 3).double()
    before = copy.deepcopy(module)
    step = hagane.compile(labelled, optim.SGD(module.parameters(), 0.1))
    with pytest.raises(KernelError, match="out of range for axis 1 with size 3"):
        step(module, torch.randn(2, 4).double(), torch.tensor([0, wrong]))
    _same(module, before)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_mean_over_no_label_leaves_parameters_as_they_are(smoothing: float) -> None:
    def loss(module: Any, x: Any, target: Any) -> Any:
        return functional.cross_entropy(module(x), target, label_smoothing=smoothing)

    torch.manual_seed(0)
    module = nn.Linear(4, 3).double()
    before = copy.deepcopy(module)
    step = hagane.compile(loss, optim.SGD(module.parameters(), 0.1))
    found = step(module, torch.randn(2, 4).double(), torch.full((2,), -100))
    assert found.isnan()  # as PyTorch has it
    _same(module, before)


def test_one_row_has_no_variance() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)).double()
    step = hagane.compile(labelled, optim.SGD(module.parameters(), 0.1))
    for count in (6, 5):
        step(module, torch.randn(count, 4).double(), torch.zeros(count, dtype=torch.int64))
    before = copy.deepcopy(module)
    with pytest.raises(KernelError, match="batch >= 2"):
        step(module, torch.randn(1, 4).double(), torch.zeros(1, dtype=torch.int64))
    _same(module, before)
    step(module, torch.randn(3, 4).double(), torch.zeros(3, dtype=torch.int64))


def test_an_argument_whose_sign_is_lazy_is_read() -> None:
    def loss(module: Any, x: Any) -> Any:
        return module(x).square().mean()

    torch.manual_seed(0)
    module = nn.Linear(4, 3).double()
    step = hagane.compile(loss, optim.SGD(module.parameters(), 0.1))
    x = torch.randn(2, 4, 2).double()
    lazy = torch.view_as_complex(x).conj().imag
    assert lazy.is_neg()
    wanted = loss(module, lazy).detach()
    torch.testing.assert_close(step(module, lazy), wanted)
