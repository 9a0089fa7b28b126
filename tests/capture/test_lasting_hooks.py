"""Hooks that the first call installs for good, and questions for the parameters of functions."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest
import torch
from torch import nn

import hagane
from hagane.errors import CaptureError


class Recorded(nn.Module):
    """A network whose first call hangs recorders into its layers, as libraries have it."""

    def __init__(self, guarded: bool):
        super().__init__()
        self.guarded = guarded
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
        self.record: Any = None

    def _install(self) -> None:
        def note(module: nn.Module, given: Any, result: Any) -> None:
            if self.record is not None:
                self.record.append(result)

        for layer in self.layers:
            layer.register_forward_hook(note)
        if self.guarded:
            self.installed = True

    def forward(self, x: Any, states: bool = False) -> Any:
        if states and not getattr(self, "installed", False):
            self._install()
        self.record = [x] if states else None
        try:
            for layer in self.layers:
                x = torch.tanh(layer(x))
            found = None if self.record is None else tuple(self.record)
        finally:
            self.record = None
        return (x, found) if states else x


@pytest.mark.filterwarnings("ignore:.*captured anew")  # the eager call installs them
def test_hooks_that_are_installed_once_are_followed() -> None:
    module, x = Recorded(guarded=True).eval(), torch.randn(4, 3)
    compiled = hagane.compile(module, fullgraph=True)
    for _ in range(2):
        got, states = compiled(x, states=True)
        assert torch.allclose(compiled(x), got, atol=1e-6)
        with torch.no_grad():
            expected, kept = Recorded.forward(module, x, states=True)
        assert torch.allclose(got, expected, atol=1e-6)
        assert len(states) == len(kept) == 3
        assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(states, kept, strict=True))


def test_hooks_that_each_call_adds_are_refused() -> None:
    with pytest.raises(CaptureError, match="leaves a forward hook on the module 'layers.0'"):
        hagane.capture(Recorded(guarded=False).eval(), torch.randn(4, 3), states=True)


def outer(a: Any, b: int = 2, *rest: Any, scale: float, **named: Any) -> Any:
    del b, rest, scale, named
    return a


class Asking(nn.Module):
    """Asks for the parameters of methods, functions, lambdas and partial functions."""

    def part(self, x: Any, y: int = 1) -> Any:
        return x * y

    def forward(self, x: Any) -> Any:
        self.seen = True
        short = lambda p, q=2: p * q  # noqa: E731

        def inner(u: Any, *more: Any, w: float = 1.5) -> Any:
            return u + w + len(more)

        functions = (self.part, outer, short, inner, Asking.part, functools.partial(outer, 1))
        counts = [len(inspect.signature(one).parameters) for one in functions]
        asked = inspect.signature(inner).parameters["w"].default
        names = inspect.getfullargspec(self.part).args
        return x * torch.tensor(counts) + asked * names.index("y")


def test_parameters_of_functions_are_those_of_the_program() -> None:
    module, x = Asking().eval(), torch.randn(6)
    expected = module(x)
    assert torch.allclose(hagane.compile(module, fullgraph=True)(x), expected)
