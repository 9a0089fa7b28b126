"""Lists and dicts of a model, which its compiled calls change: caches, buffers, counters."""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hagane


class Grown(nn.Module):
    """Keys of layers that grow along an axis."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[Any] = [None, None]

    def forward(self, x: Any) -> Any:
        for i, kept in enumerate(self.keys):
            self.keys[i] = x * i if kept is None else torch.cat([kept, x * i])
        return self.keys[0].shape[0] + self.keys[1].sum(0)


class Named(nn.Module):
    """A state and a count by names, one within another."""

    def __init__(self) -> None:
        super().__init__()
        self.state: Any = {"h": torch.zeros(4), "n": 0, "inner": [torch.ones(4)]}

    def forward(self, x: Any) -> Any:
        state = self.state
        state["h"] = torch.tanh(state["h"] + x.sum(0))
        state["n"] += 1
        state["inner"][0] = state["inner"][0] * 2
        return state["h"] * state["n"] + state["inner"][0]


class Written(nn.Module):
    """Buffers in a list that has two names, written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.state = [torch.zeros(4), torch.zeros(4)]
        self.again = self.state

    def forward(self, x: Any) -> Any:
        self.state[0].add_(x.sum(0))
        self.again[1] += 1
        return self.state[0] + self.state[1]


class Frames(nn.Module):
    """The last pictures and the oldest of others, in deques."""

    def __init__(self) -> None:
        super().__init__()
        self.last: deque[Any] = deque([torch.zeros(4)] * 3, maxlen=3)
        self.waiting: deque[Any] = deque([torch.ones(4), torch.zeros(4)])

    def forward(self, x: Any) -> Any:
        self.last.append(x.sum(0))
        oldest = self.waiting.popleft()
        self.waiting.append(x[0])
        return torch.stack(tuple(self.last)).mean(0) - oldest


class Swapped(nn.Module):
    """Two states that change places, where the data are positive."""

    def __init__(self) -> None:
        super().__init__()
        self.state = [torch.zeros(4), torch.ones(4)]

    def forward(self, x: Any) -> Any:
        if x.sum() > 0:
            self.state[0], self.state[1] = self.state[1], self.state[0] + x.sum(0)
        return self.state[0] * 1


class Layers(nn.Module):
    """Several objects of one class, each with a list."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last: list[Any] = [None]

        def forward(self, x: Any) -> Any:
            last, self.last[0] = self.last[0], x[-1:]
            return x if last is None else x + last

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([self.Layer() for _ in range(3)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


LASTING = ("keys", "state", "last", "waiting")


@pytest.mark.parametrize("make", [Grown, Named, Written, Swapped, Layers, Frames])
def test_calls_change_them_as_the_original_does(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    ours = make().eval()
    theirs = copy.deepcopy(ours)
    compiled = hagane.compile(ours, fullgraph=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", hagane.CompileNotice)  # of captures
        for call in range(9):
            x = torch.randn(3 + call % 2, 4)
            torch.testing.assert_close(compiled(x), theirs(x))
            if call == 6:  # others in their place
                for net in (ours, theirs):
                    for name in LASTING:
                        if hasattr(net, name):
                            setattr(net, name, copy.deepcopy(getattr(net, name)))
    assert len(compiled.captures) <= 5
    for name in LASTING:
        if hasattr(theirs, name):
            mine, kept = getattr(ours, name), getattr(theirs, name)
            assert type(mine) is type(kept)
            if isinstance(kept, deque):
                assert mine.maxlen == kept.maxlen
                mine, kept = [*mine], [*kept]
            torch.testing.assert_close(mine, kept)


def test_those_that_grow_are_changed_in_python() -> None:
    log: list[Any] = []

    def f(x: Any) -> Any:
        log.append(x.sum())
        return x * len(log)

    compiled = hagane.compile(f)
    with pytest.warns(hagane.CompileNotice, match="changes a list that it did not make"):
        assert compiled(torch.ones(1)).item() == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hagane.CompileNotice)
        assert [compiled(torch.ones(1)).item() for _ in range(2)] == [2, 3]
    assert len(log) == 3
