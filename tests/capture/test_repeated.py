"""Attributes of another type after a call: captured where no later call depends on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane
from hagane.errors import CaptureError


class Anchors(nn.Module):
    """A grid that is made anew for another shape, as detectors have it."""

    shape: Any = None

    def __init__(self, keyed: bool):
        super().__init__()
        self.keyed = keyed
        self.register_buffer("grid", torch.empty(0))

    def forward(self, x: Any) -> Any:
        if self.shape is None or (self.keyed and self.shape != x.shape):
            self.grid = torch.arange(x.shape[1]).float()[None] * 2
            self.shape = x.shape
        return x + self.grid


class Reset(nn.Module):
    """A neuron that each call begins anew, over a memory of another shape."""

    def __init__(self, leak: float):
        super().__init__()
        self.memory = torch.zeros(0)
        self.leak = leak
        self.inner = nn.Linear(3, 4)

    def forward(self, x: Any) -> Any:
        begun = self.memory.numel() > 0
        self.memory = torch.zeros_like(self.memory)
        for _ in range(3):
            y = self.inner(x)
            if self.memory.shape != y.shape:
                self.memory = torch.zeros_like(y)
            self.memory = self.memory * 0.5 + y
        return self.memory.tanh() + (self.leak if self.leak and begun else 0)


class Previous(nn.Module):
    """The result depends on the call before."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Any = None

    def forward(self, x: Any) -> Any:
        y = x if self.last is None else x + self.last
        self.last = (x.sum(),)
        return y


class Scale(nn.Module):
    """The first call's size counts for all later ones."""

    def __init__(self) -> None:
        super().__init__()
        self.root: Any = None

    def forward(self, x: Any) -> Any:
        if self.root is None:
            self.root = (x.shape[1],)
        return x / self.root[0]


class Counting(nn.Module):
    """A count that begins with the first call, beside a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Any = None
        self.shape: Any = None

    def forward(self, x: Any) -> Any:
        self.count = 1 if self.count is None else self.count + 1
        self.shape = x.shape
        return x * 2


class Once(nn.Module):
    """The first call differs by an attribute that is not there yet."""

    def forward(self, x: Any) -> Any:
        if hasattr(self, "mean"):
            return x - self.mean
        self.mean = x.sum()
        return x


class Found(nn.Module):
    """What a library looks up once, and keeps for the next call."""

    def forward(self, x: Any) -> Any:
        if getattr(self, "rows", None) is None:
            self.rows, self.told = 3, "found"
        return x * self.rows


def agree(module: Any, text: str, *shapes: tuple[int, ...]) -> Any:
    model = hagane.capture(module, text)
    session = hagane.InferenceSession(model)
    for shape in shapes:
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        expected = module(torch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)
    return model


def test_a_cache_of_sizes_is_no_state() -> None:
    model = agree(Anchors(keyed=True), "float32[b, t]", (2, 3), (2, 3), (1, 5), (4, 2))
    assert [value.name for value in model.graph.inputs] == ["x"]
    assert [value.name for value in model.graph.outputs] == ["output"]


def test_a_cache_that_ran_before_is_none_either() -> None:
    module = Anchors(keyed=True)
    module(torch.zeros(2, 3))
    model = agree(module, "float32[b, t]", (2, 3), (1, 5), (4, 2))
    assert [value.name for value in model.graph.inputs] == ["x"]


def test_a_cache_without_a_key_serves_one_size() -> None:
    model = agree(Scale(), "float32[b, 4]", (2, 4), (3, 4))
    assert [value.name for value in model.graph.inputs] == ["x"]
    with pytest.raises(CaptureError, match="'grid' is .* state keeps its type"):
        hagane.capture(Anchors(keyed=False), "float32[b, t]")
    with pytest.raises(CaptureError, match=r"'root' is None before the call and \(int\(t\),\)"):
        hagane.capture(Scale(), "float32[b, t]")


def test_what_is_looked_up_once_is_a_cache() -> None:
    model = agree(Found(), "float32[b, 4]", (2, 4), (3, 4))
    assert [value.name for value in model.graph.outputs] == ["output"]


def test_a_memory_that_each_call_begins_anew_is_an_output() -> None:
    model = agree(Reset(0.0), "float32[b, 3]", (2, 3))
    assert [value.name for value in model.graph.inputs] == ["x"]
    assert [value.name for value in model.graph.outputs] == ["output", "memory.new"]


def test_a_call_that_the_one_before_changes_is_refused() -> None:
    with pytest.raises(CaptureError, match="'last' is None before the call"):
        hagane.capture(Previous(), "float32[b, 3]")
    with pytest.raises(CaptureError, match="'mean' is not set before the first call, and read"):
        hagane.capture(Once(), "float32[b, 3]")
    with pytest.raises(CaptureError, match="'count' is None before the first call"):
        hagane.capture(Counting(), "float32[b, 3]")
    with pytest.raises(CaptureError, match="'memory' is .*shape=\\(0,\\)"):
        hagane.capture(Reset(1.0), "float32[b, 3]")


@pytest.mark.filterwarnings("ignore::hagane.capturing.compiled.CompileNotice")
def test_compiled_calls_follow_a_cache() -> None:
    module, compiled = Anchors(keyed=True), hagane.compile(Anchors(keyed=True))
    with torch.no_grad():
        for shape in ((2, 3), (2, 3), (3, 3), (4, 5), (2, 3)):
            x = torch.randn(shape)
            torch.testing.assert_close(compiled(x), module(x))
