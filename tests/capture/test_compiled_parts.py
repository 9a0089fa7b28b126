"""Compiled functions and modules as parts of other programs."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import pytest
import torch
from torch import nn

import hagane


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.linear(x)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = hagane.compile(Inner())
        self.rest = nn.Sequential(hagane.compile(nn.Linear(3, 2)), nn.Tanh())

    def forward(self, x: Any) -> Any:
        return self.rest(self.first(x))


@hagane.compile
def doubled(x: Any) -> Any:
    return x * 2


def called(x: Any) -> Any:
    return doubled(x) + 1


@torch.no_grad()
def test_a_compiled_module_is_a_module_of_others() -> None:
    model, x = Outer(), torch.ones(2, 3)
    assert isinstance(model.first, nn.Module)
    assert [*model.state_dict()] == [
        f"{part}.{name}" for part in ("first.linear", "rest.0") for name in ("weight", "bias")
    ]
    model.eval()
    assert not model.first.training
    inner = model.first
    expected = model(x)
    assert inner.captures
    model.load_state_dict({name: value * 0 for name, value in model.state_dict().items()})
    assert not torch.equal(model(x), expected)
    assert model(x).abs().sum() == 0


@torch.no_grad()
def test_compiled_parts_are_followed() -> None:
    model, x = Outer().eval(), torch.ones(2, 3)
    whole = hagane.compile(model, fullgraph=True)
    torch.testing.assert_close(whole(x), model(x))
    names = hagane.capture(model, x="float32[n, 3]").graph.initializers
    assert {"first.linear.weight", "rest.0.bias"} <= {*names}
    torch.testing.assert_close(hagane.compile(called, fullgraph=True)(x), called(x))


@pytest.mark.long  # seconds, to import its compiler
@pytest.mark.filterwarnings("ignore:.*torch.jit")
@torch.no_grad()
def test_what_torch_compile_made_is_followed() -> None:
    inner, function = torch.compile(Inner().eval()), torch.compile(lambda x: x * 2)
    x = torch.ones(2, 3)
    found = hagane.compile(lambda x: inner(x) + function(x), fullgraph=True)(x)
    torch.testing.assert_close(found, inner._orig_mod(x) + x * 2)


@torch.no_grad()
def test_copies_and_pickles_are_compiled_anew() -> None:
    model, x = hagane.compile(Inner().eval()), torch.ones(2, 3)
    expected = model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(other(x), expected)
        assert len(other.captures) == 1
        other.linear.weight.zero_()
    torch.testing.assert_close(model(x), expected)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.count.add_(1)
        return x + self.count


def test_calls_of_several_threads_change_state_one_after_the_other() -> None:
    model = Counter()
    compiled, x = hagane.compile(model), torch.ones(1)

    def run() -> None:
        with torch.no_grad():
            for _ in range(50):
                compiled(x)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.count.item() == 200


def test_containers_have_their_items() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval()
    compiled = hagane.compile(net)
    assert len(compiled) == 2
    assert compiled[0] is net[0]
    assert [*compiled] == [*net]
    assert bool(hagane.compile(nn.ReLU()))
    assert isinstance(hagane.compile(nn.ModuleList([nn.ReLU()])), nn.ModuleList)


class Renamed(nn.Module):
    """Has an attribute that is called as an argument."""

    def __init__(self, first: Any) -> None:
        super().__init__()
        self.x = first

    def forward(self, x: Any) -> Any:
        if self.x is None:
            self.x = torch.zeros(1)
        self.x = self.x + x
        return self.x * 2


@pytest.mark.parametrize("first", [None, torch.zeros(1), 0])
@pytest.mark.filterwarnings("ignore::hagane.CompileNotice")
def test_state_may_have_the_name_of_an_argument(first: Any) -> None:
    net = Renamed(first).eval()
    compiled = hagane.compile(net)
    with torch.no_grad():
        assert [compiled(torch.ones(1)).item() for _ in range(3)] == [2, 4, 6]
    assert net.x.item() == 3
