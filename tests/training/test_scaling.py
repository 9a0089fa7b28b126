"""Steps whose products take float16: the scale of the loss, and updates that are left out."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn, optim

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.errors import InvalidArgument
from hagane.training.step.scaling import Scale


def test_the_scale_takes_the_course_of_pytorchs() -> None:
    weight = nn.Parameter(torch.zeros(2))
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3)
    optimizer = optim.SGD([weight], 1.0)
    ours = Scale(factor=8.0, interval=3)
    for finite in (True, True, True, True, False, True, True, False, False, True, True, True, True):
        scaler.scale(torch.zeros(()))
        weight.grad = torch.tensor([1.0, 1.0 if finite else float("inf")])
        scaler.step(optimizer)
        scaler.update()
        ours = ours.after(finite=finite)
        assert ours.factor == scaler.get_scale()
        assert ours.grown == scaler._get_growth_tracker()
    assert ours.skipped == 3
    defaults, theirs = Scale(), torch.amp.GradScaler("cpu").state_dict()
    assert defaults.factor == theirs["scale"]
    assert defaults.growth == theirs["growth_factor"]
    assert defaults.backoff == theirs["backoff_factor"]
    assert defaults.interval == theirs["growth_interval"]
    largest = Scale(factor=2.0**127, interval=1)
    assert largest.after(finite=True).factor == largest.factor


def error(module: Any, x: Any, t: Any, factor: Any) -> Any:
    return factor * nn.functional.cross_entropy(module(x), t)


@pytest.mark.long
def test_losses_scales_and_states_follow_those_of_pytorchs_scaler() -> None:
    torch.manual_seed(0)
    # (A bias in front of a normalisation would have gradients of rounding alone.)
    theirs = nn.Sequential(
        nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3)
    )
    ours = copy.deepcopy(theirs)
    one, other = (optim.Adam(each.parameters(), 1e-2) for each in (theirs, ours))
    step = hagane.compile(error, other, precision="fp16")
    scaler = torch.amp.GradScaler("cpu")
    large = 1e6  # gradients overflow
    for rows, number in ((12, large), (12, 1.0), (7, 1.0), (12, large), (12, 1.0), (12, 1.0)):
        x = torch.randn(rows, 6)
        t, factor = (x[:, 0] > 0).long(), torch.tensor(number)
        with torch.autocast("cpu", torch.float16):
            expected = error(theirs, x, t, factor)
        one.zero_grad()
        scaler.scale(expected).backward()
        scaler.step(one)
        scaler.update()
        found = step(ours, x, t, factor)
        assert float(found) == pytest.approx(float(expected.detach()), rel=5e-3)
        assert step.loss_scale.factor == scaler.get_scale()
    assert step.loss_scale.skipped == 2
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, rtol=2e-2, atol=5e-3, msg=name)
    assert {p.dtype for p in ours.parameters()} == {torch.float32}
    counts = [[int(s["step"]) for s in o.state.values()] for o in (one, other)]
    assert counts[0] == counts[1] == [4] * len(counts[0])


@pytest.mark.long
def test_sums_and_norms_of_gradients_in_float16_are_those_of_pytorchs_scaler() -> None:
    torch.manual_seed(1)
    theirs = nn.Linear(4, 3)
    ours = copy.deepcopy(theirs)
    one, other = (optim.SGD(each.parameters(), 0.5, momentum=0.9) for each in (theirs, ours))
    step = hagane.compile(error, other, precision="fp16", accumulate=2, max_norm=0.1)
    scaler = torch.amp.GradScaler("cpu")
    # The second sum overflows in its first call, the third in its last.
    for number in (1.0, 2.0, 1e6, 1.0, 1.0, 1e6, 3.0, 1.0):
        x = torch.randn(5, 4)
        t, factor = (x[:, 0] > 0).long(), torch.tensor(number)
        with torch.autocast("cpu", torch.float16):
            expected = error(theirs, x, t, factor)
        scaler.scale(expected / 2).backward()
        before = [p.detach().clone() for p in ours.parameters()]
        found = step(ours, x, t, factor)
        assert float(found) == pytest.approx(float(expected.detach()), rel=5e-3)
        if step._sums._done:  # parameters stay until the sum ends
            assert all(torch.equal(a, b) for a, b in zip(before, ours.parameters(), strict=True))
            continue
        scaler.unscale_(one)
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
        scaler.step(one)
        scaler.update()
        one.zero_grad()
        assert step.loss_scale.factor == scaler.get_scale()
        for a, b in zip(theirs.parameters(), ours.parameters(), strict=True):
            torch.testing.assert_close(b, a, rtol=1e-2, atol=2e-3)
    assert step.loss_scale.skipped == 2


class Net(hagane.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.wide = L.Linear(6, 8)
            self.out = L.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.out(F.tanh(self.wide(x)))


def link_error(model: Any, x: Any, t: Any, factor: Any) -> Any:
    return factor * F.softmax_cross_entropy(model(x), t)


def test_an_overflow_leaves_links_as_they_are_and_the_next_call_goes_on() -> None:
    np.random.seed(0)
    model = Net()
    optimizer = hagane.optimizers.Adam(1e-2).setup(model)
    step = hagane.compile(link_error, optimizer, precision="fp16")
    x = np.random.randn(8, 6).astype(np.float32)
    t = (x[:, 0] > 0).astype(np.int32)
    one, large = np.array(1, np.float32), np.array(1e4, np.float32)
    first = float(step(model, x, t, one).array)
    before = {name: p.array.copy() for name, p in model.namedparams()}
    for factor, scale in ((large, 2.0**15), (np.array(np.nan, np.float32), 2.0**14)):
        step(model, x, t, factor)
        assert step.loss_scale.factor == scale
        for name, p in model.namedparams():
            np.testing.assert_array_equal(p.array, before[name])
        assert {p.update_rule.t for p in model.params()} == {1}
    for _ in range(20):
        last = float(step(model, x, t, one).array)
    assert last < 0.9 * first
    assert step.loss_scale.skipped == 2
    numbers = step.loss_scale.as_dict()
    step.set_loss_scale(**{**numbers, "factor": 2.0})
    assert step.loss_scale.factor == 2.0
    with pytest.raises(InvalidArgument, match="loss scale: expected backoff, factor"):
        step.set_loss_scale(factor=1.0)
    with pytest.raises(InvalidArgument, match="expected positive numbers"):
        step.set_loss_scale(**{**numbers, "factor": 0.0})
    plain = hagane.compile(link_error, optimizer)
    assert plain.loss_scale is None
    with pytest.raises(InvalidArgument, match="its precision is not 'fp16'"):
        plain.set_loss_scale(**numbers)
