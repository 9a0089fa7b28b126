"""Parameters that only some runs reach: of branches not taken, of loops without an iteration."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hagane

torch = pytest.importorskip("torch")
nn = torch.nn


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        y = self.c(x)
        if x.sum() > 0:
            y = y + self.a(x)
            if x.max() > 2:
                y = y * self.b(x)
        return (y**2).mean()


class Loop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        h = self.a(x[:, 0])
        for t in range(1, x.shape[1]):
            h = torch.tanh(self.b(h) + x[:, t])
            if x[:, t].sum() > 0:
                h = h + self.c(h)
        return (h**2).mean()


class Routed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(3, 4)
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

    def forward(self, x: Any) -> Any:
        weights = self.gate(x).softmax(-1)
        best, chosen = weights.max(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mine = chosen == number
            if mine.any():
                out[mine] = expert(x[mine]) * best[mine][:, None]
        return (out**2).mean()


def data(kind: type[Any]) -> list[Any]:
    draw = np.random.default_rng(5)
    if kind is Loop:
        shapes = [(2, 3, 3), (2, 1, 3), (2, 2, 3), (2, 1, 3), (2, 4, 3)]
        return [torch.tensor(draw.normal(size=s).astype("f")) for s in shapes]
    offsets = [-2, 0.5, -1, 3, -2, 0.2]
    return [torch.tensor((draw.normal(size=(2, 3)) * 0.3 + o).astype("f")) for o in offsets]


Make = Callable[[Sequence[Any]], Any]
OPTIMIZERS: dict[str, Make] = {
    "AdamW": lambda ps: torch.optim.AdamW(ps, lr=0.05),
    "SGD": lambda ps: torch.optim.SGD(ps, lr=0.05, momentum=0.9, weight_decay=0.1),
    "Rprop": lambda ps: torch.optim.Rprop(ps, lr=0.05),  # one that does its own step
}


def assert_same(left: Any, right: Any, ours: Any, theirs: Any) -> None:
    """Compare parameters and all that the optimizers keep for them."""
    for (name, p), q in zip(left.named_parameters(), right.parameters(), strict=True):
        np.testing.assert_allclose(p.detach(), q.detach(), rtol=2e-4, atol=2e-5, err_msg=name)
        assert set(ours.state.get(p, {})) == set(theirs.state.get(q, {})), name
        for key, wanted in theirs.state.get(q, {}).items():
            if wanted is not None:
                np.testing.assert_allclose(
                    ours.state[p][key], wanted, rtol=2e-4, atol=2e-5, err_msg=f"{name} {key}"
                )


@pytest.mark.parametrize(
    ("kind", "optimizer"),
    [
        pytest.param(kind, name, marks=() if number % 3 == row else pytest.mark.long)
        for row, kind in enumerate((Branch, Loop, Routed))
        for number, name in enumerate(OPTIMIZERS)
    ],
)
def test_parameters_without_a_gradient_stay_as_they_are(kind: type[Any], optimizer: str) -> None:
    torch.manual_seed(1)
    ours = kind()
    theirs = copy.deepcopy(ours)
    own, peer = (OPTIMIZERS[optimizer](list(m.parameters())) for m in (ours, theirs))
    step = hagane.compile(lambda module, x: module(x), own)
    reached = set()
    for x in data(kind):
        peer.zero_grad()
        loss = theirs(x)
        loss.backward()
        peer.step()
        reached.add(tuple(p.grad is not None for p in theirs.parameters()))
        np.testing.assert_allclose(step(ours, x).detach(), loss.detach(), rtol=1e-4, atol=1e-6)
        assert_same(ours, theirs, own, peer)
    assert len(reached) > 1  # not all parameters were in all runs


def test_a_sum_of_gradients_reaches_what_one_of_its_calls_does() -> None:
    torch.manual_seed(2)
    ours = Branch()
    theirs = copy.deepcopy(ours)
    own, peer = (OPTIMIZERS["AdamW"](list(m.parameters())) for m in (ours, theirs))
    step = hagane.compile(lambda module, x: module(x), own, accumulate=2)
    xs = data(Branch)
    for first, second in ((xs[0], xs[2]), (xs[1], xs[4]), (xs[0], xs[4]), (xs[2], xs[3])):
        peer.zero_grad()
        for x in (first, second):
            (theirs(x) / 2).backward()
            step(ours, x)
        peer.step()
        assert_same(ours, theirs, own, peer)


def test_an_overflow_leaves_what_was_not_reached_as_well() -> None:
    torch.manual_seed(3)
    module = Branch()
    own = OPTIMIZERS["AdamW"](list(module.parameters()))
    step = hagane.compile(lambda m, x: m(x), own, precision="fp16")
    x = data(Branch)[0]
    for _ in range(20):  # the first scales of the loss overflow
        step(module, x)  # only `c` is reached
    kept = sorted(n for n, p in module.named_parameters() if own.state.get(p))
    assert kept == ["c.bias", "c.weight"]
    before = {n: p.detach().clone() for n, p in module.named_parameters()}
    step(module, x * 1e30)
    for name, p in module.named_parameters():
        np.testing.assert_array_equal(p.detach(), before[name])
    assert sorted(n for n, p in module.named_parameters() if own.state.get(p)) == kept


class Listed(nn.Module):
    """Its tensors are no registered parameters; ``parameters`` lists them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.ones(3, 2, requires_grad=True)

    def parameters(self, recurse: bool = True) -> Any:
        return [self.weight]

    def forward(self, x: Any) -> Any:
        return (x @ self.weight).sum()


def test_parameters_that_a_module_lists_by_itself_are_trained() -> None:
    module = Listed()
    step = hagane.compile(lambda m, x: m(x), torch.optim.SGD(module.parameters(), lr=0.1))
    step(module, torch.ones(4, 3))
    np.testing.assert_allclose(module.weight.detach(), 0.6, rtol=1e-6)
