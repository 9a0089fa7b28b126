"""Modules that write the content of their parameters, such as masked convolutions."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane
from hagane.errors import CaptureError


class Masked(nn.Conv1d):
    """A convolution of the past alone, as programs of PixelCNN mask it."""

    def __init__(self) -> None:
        super().__init__(1, 2, 3)
        self.register_buffer("mask", torch.tensor([1.0, 1.0, 0.0]))


class Multiplied(Masked):
    def forward(self, x: Any) -> Any:
        self.weight.data *= self.mask
        return super().forward(x)


class Called(Masked):
    def forward(self, x: Any) -> Any:
        self.weight.data.mul_(self.mask)
        self.weight.data[0] = 0.5
        return super().forward(x) + self.weight.sum()


class Set(Masked):
    def forward(self, x: Any) -> Any:
        self.weight.data = self.weight.data.clamp(-0.1, 0.1)
        return super().forward(x)


class Clamped(Masked):
    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            self.weight.clamp_(-0.1, 0.1)
        return super().forward(x)


@pytest.mark.filterwarnings("ignore::hagane.capturing.compiled.CompileNotice")
@pytest.mark.parametrize("kind", [Multiplied, Called, Set, Clamped])
def test_the_written_parameter_is_state_of_graph_and_module(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    module = kind().eval()
    held, compiled = copy.deepcopy(module), copy.deepcopy(module)
    session = hagane.InferenceSession(hagane.capture(module, "float32[b, 1, t]"))
    assert [value.name for value in session.get_outputs()][1:] == ["weight.new"]
    call = hagane.compile(compiled)
    for length in (5, 6):
        x = torch.randn(2, 1, length)
        feed = {"input": x.numpy(), "x": x.numpy(), "weight": held.weight.detach().numpy().copy()}
        feed = {v.name: feed[v.name] for v in session.get_inputs()}
        with torch.no_grad():
            expected = held(x)
            found = call(x)
        result, weight = session.run(None, feed)
        np.testing.assert_allclose(result, expected.numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(weight, held.weight.detach().numpy(), rtol=1e-6)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
        assert torch.equal(compiled.weight, held.weight)
        assert isinstance(compiled.weight, nn.Parameter)


class Shared(Masked):
    def forward(self, x: Any) -> Any:
        scaled = self.weight.data * 2
        self.weight.data = scaled
        scaled.mul_(3)
        return super().forward(x)


def test_content_that_a_name_holds_is_not_set() -> None:
    with pytest.raises(CaptureError, match="'data' of .* is set, for all that hold the tensor"):
        hagane.capture(Shared(), "float32[b, 1, t]")


class Symmetric(nn.Module):
    def forward(self, weight: Any) -> Any:
        return weight.triu() + weight.triu(1).T


@pytest.mark.filterwarnings("ignore::hagane.capturing.compiled.CompileNotice")
@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm", "own"])
def test_weights_that_parameters_compute_follow_these(kind: str) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    compiled = hagane.compile(module, fullgraph=True)
    x = torch.randn(3, 4)
    compiled(x)
    if kind == "own":
        nn.utils.parametrize.register_parametrization(module[0], "weight", Symmetric())
    else:
        getattr(nn.utils.parametrizations, kind)(module[0]).eval()
    for _ in range(3):
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), module(x))
            for parameter in module.parameters():
                parameter.add_(torch.randn_like(parameter))


def test_capture_takes_no_step_of_a_power_method() -> None:
    module = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)).train()
    before = copy.deepcopy(module.state_dict())
    hagane.capture(module, "float32[n, 3]")
    for name, value in module.state_dict().items():
        torch.testing.assert_close(value, before[name])
