"""Compiled steps of losses with branches and loops that the data decide."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

import hagane


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
