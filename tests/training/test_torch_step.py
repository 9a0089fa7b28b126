"""Compiled steps leave module and optimizer as PyTorch's own steps do."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

from hagane.errors import InvalidArgument
from hagane.training.step import TorchStep


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.second(nn.functional.relu(self.first(x)))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.inner = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1, bias=False) for _ in range(2)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(2)])
        self.last = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        x = nn.functional.max_pool2d(nn.functional.relu(self.stem(x)), 2)
        for convolution, norm in zip(self.inner, self.norms, strict=True):
            x = x + nn.functional.relu(norm(convolution(x)))
        return self.last(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Counted(nn.Module):
    """Normalises with both ways of running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.BatchNorm1d(3), nn.BatchNorm1d(3, momentum=None)

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x) * 2)


def test_counts_of_batches_compile_nothing_anew(caplog: pytest.LogCaptureFixture) -> None:
    net = Counted()
    step = TorchStep(lambda net, x: net(x).square().mean(), optim.SGD(net.parameters(), lr=0.1))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            step(net, torch.randn(5, 3))
    assert not caplog.messages
    assert (int(net.first.num_batches_tracked), int(net.second.num_batches_tracked)) == (3, 3)


class Strided(nn.Module):
    """Strides, dilation and groups; maxima of rectified pixels, among which many are equal."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 5, stride=2, padding=2, bias=False)
        self.inner = nn.Conv2d(8, 12, 3, stride=2, padding=1, groups=2)
        self.beside = nn.Conv2d(8, 12, 1, stride=2, bias=False)
        self.wide = nn.Conv2d(12, 12, 3, padding=2, dilation=2)
        self.norms = nn.ModuleList([nn.BatchNorm2d(n, momentum=0.3) for n in (8, 12, 12)])
        self.up = nn.ConvTranspose2d(12, 6, 3, stride=2)
        self.last = nn.Linear(6, 5)

    def forward(self, x: Any) -> Any:
        x = nn.functional.max_pool2d(nn.functional.relu(self.norms[0](self.stem(x))), 3, 2, 1)
        x = nn.functional.relu(self.norms[1](self.inner(x)) + self.beside(x))
        x = nn.functional.avg_pool2d(self.norms[2](self.wide(x)), 3, 1, 1)
        return self.last(self.up(x).mean((2, 3)))


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.cells = nn.LSTM(6, 5, batch_first=True)
        self.out = nn.Linear(5, 4)

    def forward(self, x: Any) -> Any:
        return self.out(self.cells(self.embed(x))[0]).transpose(1, 2)


class Reader(nn.Module):
    """Two layers of both directions, from states of the caller's, whose last states count."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.cells = nn.LSTM(6, 5, 2, bidirectional=True)
        self.first = nn.Parameter(torch.randn(2, 4, 1, 5))
        self.out = nn.Linear(10, 4)

    def forward(self, x: Any) -> Any:
        h, c = self.first.expand(2, 4, x.shape[0], 5)
        y, (h, c) = self.cells(self.embed(x.t()), (h.contiguous(), c.contiguous()))
        return self.out(y + torch.cat([h[3], c[2]], 1)).permute(1, 2, 0)


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.drop = nn.Dropout(0.25)

    def forward(self, x: Any) -> Any:
        return self.drop(x) * self.weight


def cross_entropy(module: Any, x: Any, t: Any) -> Any:
    return nn.functional.cross_entropy(module(x), t)


def mean(module: Any, x: Any) -> Any:
    return module(x).mean()


def vectors() -> Iterator[tuple[Any, Any]]:
    for rows in (6, 6, 5, 9):
        yield torch.randn(rows, 4), torch.randint(0, 3, (rows,))


def pictures() -> Iterator[tuple[Any, Any]]:
    for rows in (4, 3, 4):
        yield torch.randn(rows, 3, 9, 7), torch.randint(0, 5, (rows,))


def doubles() -> Iterator[tuple[Any, Any]]:
    for rows in (3, 3, 2, 3):
        yield torch.randn(rows, 3, 21, 18).double(), torch.randint(0, 5, (rows,))


def sentences() -> Iterator[tuple[Any, Any]]:
    for rows, length in ((3, 4), (2, 4), (3, 6)):
        yield torch.randint(0, 20, (rows, length)), torch.randint(0, 4, (rows, length))


def compare(
    make: Callable[[], Any],
    batches: Callable[[], Iterator[Any]],
    optimizer: Callable[[Any], Any],
    within: float = 1e-3,
) -> None:
    """Do the same steps in PyTorch and compiled, and compare all that they leave."""
    torch.manual_seed(0)
    theirs = make()
    ours = copy.deepcopy(theirs)
    one, other = optimizer(theirs.parameters()), optimizer(ours.parameters())
    schedules = [optim.lr_scheduler.ExponentialLR(each, 0.9) for each in (one, other)]
    step = TorchStep(cross_entropy, other)
    for batch in batches():
        one.zero_grad()
        loss = cross_entropy(theirs, *batch)
        loss.backward()
        one.step()
        found = step(ours, *batch)
        assert found.shape == ()
        torch.testing.assert_close(found, loss.detach(), rtol=within / 10, atol=within / 100)
        for schedule in schedules:
            schedule.step()
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, rtol=within, atol=within / 50)
    expected, states = one.state_dict()["state"], other.state_dict()["state"]
    assert states.keys() == expected.keys()
    for key, kept in expected.items():
        assert {n for n, v in kept.items() if v is not None} == states[key].keys()
        for name, value in states[key].items():
            torch.testing.assert_close(value, kept[name], rtol=within, atol=within / 10)


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: optim.SGD(p, 0.1),
    "Nesterov": lambda p: optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "dampened": lambda p: optim.SGD(p, 0.1, momentum=0.9, dampening=0.3, maximize=True),
    "Adam": lambda p: optim.Adam(p, 0.01, weight_decay=0.01, amsgrad=True),
    "AdamW": lambda p: optim.AdamW(p, 0.01),
    "NAdam": lambda p: optim.NAdam(p, 0.01, weight_decay=0.01, decoupled_weight_decay=True),
    "RAdam": lambda p: optim.RAdam(p, 0.01),
    "Adamax": lambda p: optim.Adamax(p, 0.01),
    "RMSprop": lambda p: optim.RMSprop(p, 0.01, momentum=0.5),
    "centered": lambda p: optim.RMSprop(p, 0.01, centered=True, eps=1e-3),
    "Adagrad": lambda p: optim.Adagrad(p, 0.01, lr_decay=0.1, initial_accumulator_value=0.2),
    "Adadelta": lambda p: optim.Adadelta(p, 0.5),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_each_optimizer_are_pytorchs(name: str) -> None:
    compare(Perceptron, vectors, OPTIMIZERS[name])


@pytest.mark.parametrize(
    ("make", "batches"), [(Residual, pictures), (Tagger, sentences), (Reader, sentences)]
)
def test_steps_of_networks_are_pytorchs(make: Any, batches: Any) -> None:
    compare(make, batches, lambda p: optim.SGD(p, 0.1, momentum=0.9))


def test_gradients_in_doubles_differ_from_pytorchs_by_rounding_alone() -> None:
    """In float32, pixels near zero are rectified or not by rounding, which later steps amplify."""

    def rule(parameters: Any) -> Any:
        return optim.SGD(parameters, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01)

    compare(lambda: Strided().double(), doubles, rule, within=1e-10)


def test_a_mean_over_all_batches_is_that_of_doubles() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, momentum=None)).double()
    theirs = copy.deepcopy(net)
    step = TorchStep(mean, optim.SGD(net.parameters(), 0.1))
    one = optim.SGD(theirs.parameters(), 0.1)
    for _ in range(4):
        x = torch.randn(6, 3, dtype=torch.float64)
        step(net, x)
        one.zero_grad()
        mean(theirs, x).backward()
        one.step()
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(net.state_dict()[name], value, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["Adam", "NAdam"])
def test_numbers_that_an_optimizer_counts_change_in_their_tensors(name: str) -> None:
    module = nn.Linear(3, 2)
    optimizer = getattr(optim, name)(module.parameters(), 0.1)
    step = TorchStep(mean, optimizer)
    step(module, torch.randn(4, 3))
    held = dict(optimizer.state_dict()["state"][0])  # of a program that copies no tensors
    step(module, torch.randn(4, 3))
    assert held["step"] == 2
    assert all(held[key] is value for key, value in optimizer.state_dict()["state"][0].items())


def test_a_loss_of_one_number_keeps_its_shape() -> None:
    module = nn.Linear(3, 1)
    step = TorchStep(lambda module, x: module(x).mean(0), optim.SGD(module.parameters(), 0.1))
    x = torch.randn(4, 3)
    expected = module(x).mean(0).detach()
    found = step(module, x)
    assert found.shape == (1,)
    torch.testing.assert_close(found, expected)


def test_groups_have_rates_of_their_own() -> None:
    def two(parameters: Any) -> Any:
        first, *rest = parameters
        return optim.SGD([{"params": [first], "lr": 0.5, "weight_decay": 0.1}, {"params": rest}],
                         lr=0.01)  # fmt: skip

    compare(Perceptron, vectors, two)


def test_batches_vary_without_another_program() -> None:
    module = Perceptron()
    step = TorchStep(cross_entropy, optim.SGD(module.parameters(), 0.1))
    for batch in vectors():
        step(module, *batch)
    assert len(step._programs) == 1


def test_dropout_keeps_its_share_and_follows_the_seed() -> None:
    module = Dropping()
    step = TorchStep(mean, optim.SGD(module.parameters(), 0.0))
    x = torch.linspace(0.5, 1.5, 20_000).reshape(400, 50)
    torch.manual_seed(3)
    losses = [float(step(module, x)) for _ in range(5)]
    assert len(set(losses)) == 5
    assert all(abs(loss - 1) < 0.03 for loss in losses)
    torch.manual_seed(3)
    assert [float(step(module, x)) for _ in range(5)] == losses
    module.eval()
    assert abs(float(step(module, x)) - 1) < 1e-5


def test_parameters_that_the_loss_does_not_reach_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    module = Perceptron()
    module.spare = nn.Linear(2, 2)
    before = module.spare.weight.detach().clone()
    step = TorchStep(cross_entropy, optim.SGD(module.parameters(), 0.1, weight_decay=0.1))
    batch = next(vectors())
    with caplog.at_level(logging.WARNING, "hagane"):
        step(module, *batch)
        step(module, *batch)
    assert [r.message for r in caplog.records] == [
        "the loss does not depend on module.spare.weight, module.spare.bias: the step leaves them "
        "as they are"
    ]
    assert torch.equal(module.spare.weight.detach(), before)


def test_frozen_parameters_stay() -> None:
    module = Perceptron()
    module.first.requires_grad_(False)
    before = module.first.weight.clone()
    step = TorchStep(cross_entropy, optim.SGD(module.parameters(), 0.1))
    step(module, *next(vectors()))
    assert torch.equal(module.first.weight, before)


def rows(module: Any, x: Any, t: Any) -> Any:
    return nn.functional.cross_entropy(module(x), t, reduction="none")


def detached(module: Any, x: Any, t: Any) -> Any:
    return x.mean() + t.float().mean()


def test_mistakes_are_named() -> None:
    module, batch = Perceptron(), next(vectors())
    optimizer = optim.SGD(module.parameters(), 0.1)
    with pytest.raises(InvalidArgument, match=r"expected a loss of one .* number, got .*batch"):
        TorchStep(rows, optimizer)(module, *batch)
    with pytest.raises(InvalidArgument, match="does not depend on any parameter"):
        TorchStep(detached, optimizer)(module, *batch)
    with pytest.raises(InvalidArgument, match="expected a torch.nn.Module .* got Tensor"):
        TorchStep(cross_entropy, optimizer)(*batch, module)
    with pytest.raises(InvalidArgument, match="a module and x, t, got 1 arguments"):
        TorchStep(cross_entropy, optimizer)(module, batch[0])


# In doubles, as BatchNorm of five rows makes much of rounding.
MIX = torch.ones(3, dtype=torch.float64)
HEAD = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).double()


def test_tensors_and_modules_that_only_the_loss_names_are_read_anew_and_trained() -> None:
    def loss(module: Any, x: Any) -> Any:
        return (HEAD(module(x)) * MIX).square().mean()

    first = copy.deepcopy(HEAD.state_dict())
    found = []
    for compiled in (True, False):
        torch.manual_seed(0)
        HEAD.load_state_dict(first)
        MIX.fill_(1)
        module = nn.Linear(4, 3).double()
        optimizer = torch.optim.SGD([*module.parameters(), *HEAD.parameters()], lr=0.1)
        step = TorchStep(loss, optimizer) if compiled else None
        for number in range(4):
            stream = torch.Generator().manual_seed(number)
            x = torch.randn(5, 4, generator=stream, dtype=torch.float64)
            if number == 2:
                MIX.data.mul_(3)
            if step is None:
                optimizer.zero_grad()
                loss(module, x).backward()
                optimizer.step()
            else:
                step(module, x)
        found.append(copy.deepcopy([*module.state_dict().values(), *HEAD.state_dict().values()]))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
