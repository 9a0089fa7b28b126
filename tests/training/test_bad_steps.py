"""Steps that cannot be done: what is told, and that nothing is changed; copies of steps."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

import hagane
import hagane.functions as F  # noqa: N812
from hagane.errors import CaptureError, InvalidArgument
from hagane.training.errors import Diverged


def mean(module: Any, x: Any) -> Any:
    return module(x).mean()


def with_backward(module: Any, x: Any) -> Any:
    loss = module(x).mean()
    loss.backward()
    return loss


def test_tensors_that_no_step_reads_are_named() -> None:
    module, x = nn.Linear(3, 2), torch.ones(4, 3)
    step = hagane.compile(mean, optim.SGD(module.parameters(), 0.1))
    with pytest.raises(InvalidArgument, match=r"'x' lies on the device 'meta'.*\.cpu\(\)"):
        step(module, x.to("meta"))
    with pytest.raises(InvalidArgument, match=r"'x' is a tensor of the layout torch\.sparse_coo"):
        step(module, x.to_sparse())
    with pytest.raises(InvalidArgument, match=r"'module\.weight' lies on the device 'meta'"):
        step(nn.Linear(3, 2, device="meta"), x)
    lazy = nn.Sequential(nn.LazyLinear(2))
    with pytest.raises(InvalidArgument, match=r"'module\.0\.weight' has no sizes yet.*call the"):
        step(lazy, x)


def test_losses_that_train_by_themselves_are_told_that_the_step_does() -> None:
    module = nn.Linear(3, 2)
    step = hagane.compile(with_backward, optim.SGD(module.parameters(), 0.1))
    with pytest.raises(CaptureError, match="updates by itself: leave backward, zero_grad and"):
        step(module, torch.ones(4, 3))


def test_what_is_no_loss_is_named_with_its_place() -> None:
    module = nn.Linear(3, 2)
    place = rf"made at {__file__}:\d+"
    for loss, text in (
        (lambda m, x: m(x).sum(1), rf"got float32\[batch\], {place}: reduce it, as in loss\.mean"),
        (lambda m, x: m(x).argmax(), rf"got int64\[\], {place}: no gradient goes through it; ret"),
        (lambda m, x: m(x).detach().sum(), rf"the loss, {place}, does not depend on any parameter"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            hagane.compile(loss, optim.SGD(module.parameters(), 0.1))(module, torch.ones(4, 3))


class Recorder:
    """Answers anything, as records of experiments that are off do."""

    def __getattr__(self, name: str) -> Recorder:
        if name.startswith("__"):
            raise AttributeError(name)
        return Recorder()

    def __call__(self, *_: Any) -> Recorder:
        return self


recorder = Recorder()


def test_an_object_that_answers_anything_is_no_module() -> None:
    def recorded(module: Any, x: Any) -> Any:
        recorder.add("calls", 1)
        return module(x).mean()

    module = nn.Linear(3, 2)
    step = hagane.compile(recorded, optim.SGD(module.parameters(), 0.1))
    x = torch.ones(4, 3)
    wanted = module(x).mean().detach()
    torch.testing.assert_close(step(module, x), wanted)


def test_what_belongs_outside_of_a_loss_or_in_one_module_is_told() -> None:
    module = nn.Linear(3, 2)

    def clipped(module: Any, x: Any) -> Any:
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        return module(x).mean()

    optimizer = optim.SGD(module.parameters(), 0.1)
    with pytest.raises(
        CaptureError, match=r"clip_grad_norm_' cannot be captured: .*max_norm=\.\.\."
    ):
        hagane.compile(clipped, optimizer)(module, torch.ones(4, 3))
    with pytest.raises(InvalidArgument, match=r"first argument, got list: gather .*nn\.ModuleList"):
        hagane.compile(mean, optimizer)([module], torch.ones(4, 3))


def test_what_is_no_optimizer_of_a_step_is_named() -> None:
    with pytest.raises(InvalidArgument, match=r"got the class SGD: make one, as in torch\.optim"):
        hagane.compile(mean, optim.SGD)
    sparse = optim.SparseAdam(nn.Embedding(3, 2, sparse=True).parameters())
    with pytest.raises(InvalidArgument, match=r"takes sparse gradients.*use torch\.optim\.Adam"):
        hagane.compile(mean, sparse)


def test_a_loss_that_is_not_a_number_changes_nothing_in_debug_mode() -> None:
    module = nn.Linear(3, 2)
    optimizer = optim.Adam(module.parameters(), 0.1)
    step, before = hagane.compile(mean, optimizer), copy.deepcopy(module.state_dict())
    with hagane.using_config("debug", True), pytest.raises(Diverged, match="NaN came in by x;"):
        step(module, torch.full((4, 3), torch.nan))
    torch.testing.assert_close(module.state_dict(), before)
    assert not optimizer.state
    link = hagane.links.Linear(3, 2)
    weights = link.W.array.copy()
    made = hagane.compile(
        lambda link, x: F.mean(link(x) / (x[:, :2] - 1)) * 0,
        hagane.optimizers.SGD().setup(link),
    )
    with (
        np.errstate(all="ignore"),
        hagane.using_config("debug", True),
        pytest.raises(Diverged, match="no input or parameter held NaN before: call the loss"),
    ):
        made(link, np.ones((4, 3), "f"))
    np.testing.assert_array_equal(link.W.array, weights)


def test_a_copy_of_a_step_goes_on_with_the_copies_of_its_optimizer() -> None:
    module, x = nn.Linear(3, 2), torch.ones(4, 3)
    optimizer = optim.SGD(module.parameters(), 0.1, momentum=0.9)
    step = hagane.compile(mean, optimizer, accumulate=2, max_norm=1.0)
    step(module, x)
    with pytest.raises(InvalidArgument, match=r"\(accumulate\), which a copy would not have"):
        copy.deepcopy(step)
    step(module, x)
    pairs = [copy.deepcopy((module, step)), pickle.loads(pickle.dumps((module, step)))]
    wanted = [step(module, x) for _ in range(3)]
    for other, copied in pairs:
        assert [copied(other, x) for _ in range(3)] == wanted
        torch.testing.assert_close(other.state_dict(), module.state_dict(), rtol=0, atol=0)
