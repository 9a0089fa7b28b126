"""Compiled steps of losses with branches and loops that the data decide."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

import hagane
from hagane.errors import InvalidArgument


class Settling(nn.Module):
    """Iterates until the values are small."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.offset = nn.Linear(3, 3), nn.Parameter(torch.ones(3))

    def forward(self, x: Any) -> Any:
        y, steps = self.inner(x), 0
        while y.norm() > 1 and steps < 8:
            y = torch.tanh(self.inner(y)) * 0.7
            steps += 1
            if y.max() > 0.5:
                y = y - self.offset * 0.1
        return y


class ByHand(nn.Module):
    """A recurrence over rows, some of which are left out, and a list of its states."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.back = nn.Linear(3, 4), nn.Linear(4, 4, bias=False)

    def forward(self, x: Any) -> Any:
        h, states = x.new_zeros(4), []
        for row in x:
            if row.sum() < 1.5:
                continue
            h = torch.tanh(self.up(row) + self.back(h))
            states.append(h)
        return torch.stack(states)


class Routed(nn.Module):
    """Two experts, each for the rows that it is chosen for."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(3, 2), nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def forward(self, x: Any) -> Any:
        weights = self.gate(x).softmax(-1)
        best = weights.argmax(-1)
        out = torch.zeros_like(x)
        for place, expert in enumerate(self.experts):
            rows = best == place
            if rows.any():
                out[rows] += expert(x[rows]) * weights[rows, place, None]
        return out


class Halting(nn.Module):
    """Adds updates until the probabilities of halting sum to one (Graves, 2016)."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.halt = nn.GRUCell(3, 3), nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        h, total, out = torch.zeros_like(x), x.new_zeros(x.shape[0]), torch.zeros_like(x)
        for _ in range(6):
            if bool((total > 0.99).all()):
                break
            h = self.cell(x, h)
            share = torch.sigmoid(self.halt(h)).squeeze(-1)
            going = (total < 0.99).to(x.dtype)
            share = torch.where(total + share > 0.99, 1 - total, share) * going
            out, total = out + share.unsqueeze(-1) * h, total + share
        return out


def loss(model: nn.Module, x: Any) -> Any:
    return (model(x) ** 2).sum()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind",
    [Settling, ByHand, *(pytest.param(kind, marks=pytest.mark.long) for kind in (Routed, Halting))],
)
def test_losses_with_control_flow_learn_as_in_pytorch(kind: Any) -> None:
    torch.manual_seed(0)
    plain = kind().double()
    compiled = copy.deepcopy(plain)
    eager, made = (optim.SGD(net.parameters(), lr=0.05) for net in (plain, compiled))
    step = hagane.compile(loss, made)
    for rows in (4, 7, 1, 4):
        x = torch.randn(rows, 3, dtype=torch.float64).abs()
        x[0] += 1
        expected = loss(plain, x)
        eager.zero_grad()
        expected.backward()
        eager.step()
        torch.testing.assert_close(step(compiled, x).detach(), expected.detach())
        for ours, theirs in zip(compiled.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs)


class Cropped(nn.Module):
    """A convolution over pieces whose places the data tell."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv2d(2, 3, 3), nn.Linear(12, 2)

    def forward(self, x: Any, places: Any) -> Any:
        found = []
        for k in range(places.shape[0]):
            top, left = places[k, 0], places[k, 1]
            piece = self.conv(x[:, :, top : top + 5, left : left + 5])
            found.append(self.out(nn.functional.adaptive_avg_pool2d(piece, 2).flatten(1)))
        return (torch.stack(found, 1) ** 2).mean()


@pytest.mark.long
def test_pieces_of_sizes_that_a_run_tells_have_planned_memory_though_layers_are_wider() -> None:
    torch.manual_seed(0)
    plain = Cropped()
    compiled = copy.deepcopy(plain)
    eager, made = (optim.SGD(net.parameters(), lr=0.05) for net in (plain, compiled))
    step = hagane.compile(lambda net, x, places: net(x, places), made)
    for size, places in (((2, 2, 9, 8), [[0, 1], [3, 2], [4, 3]]), ((1, 2, 5, 6), [[0, 0]])):
        x, where = torch.randn(size), torch.tensor(places)
        eager.zero_grad()
        wanted = plain(x, where)
        wanted.backward()
        eager.step()
        torch.testing.assert_close(step(compiled, x, where), wanted.detach())
        assert step.memory()["predicted"] > 0
    torch.testing.assert_close(list(compiled.parameters()), list(plain.parameters()))


class Weighing(nn.Module):
    """Weighs the results so far by as many rows from the end of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.table = nn.Linear(3, 3), nn.Parameter(torch.ones(16, 3) / 8)

    def forward(self, x: Any) -> Any:
        kept: list[Any] = []
        for row in x:
            if kept:
                memory = torch.stack(kept)
                weights = torch.einsum("d,jd->j", row, self.table[-memory.shape[0] :])
                row = row + torch.einsum("j,jd->d", weights.softmax(0), memory)
            kept.append(torch.tanh(self.inner(row)))
        return torch.stack(kept)


def test_sizes_of_a_first_iteration_say_nothing_of_later_ones() -> None:
    torch.manual_seed(0)
    theirs = Weighing().double()
    ours = copy.deepcopy(theirs)
    one, other = (optim.SGD(m.parameters(), 0.1) for m in (theirs, ours))

    def loss(module: Any, x: Any) -> Any:
        return module(x).square().mean()

    step = hagane.compile(loss, other)
    for rows in (4, 4, 6):
        x = torch.randn(rows, 3).double()
        one.zero_grad()
        wanted = loss(theirs, x)
        wanted.backward()
        one.step()
        torch.testing.assert_close(step(ours, x), wanted.detach(), rtol=1e-9, atol=0)
    for mine, their in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, their, rtol=1e-8, atol=1e-10)


class Holder:
    """What is met in a loop for the first time."""

    last: Any = None


def test_an_object_that_a_loop_meets_and_changes_is_named() -> None:
    module = nn.Linear(3, 3)
    module.holder = Holder()

    def loss(module: Any, x: Any) -> Any:
        total = x.new_zeros(3)
        for row in x:
            row = module(row)
            if module.holder.last is not None:
                row = row + module.holder.last
            module.holder.last = row.detach()
            total = total + row
        return total.square().mean()

    step = hagane.compile(loss, optim.SGD(module.parameters(), 0.1))
    with pytest.raises(InvalidArgument, match=r"changes 'module.holder.last' of a Holder"):
        step(module, torch.randn(4, 3))
