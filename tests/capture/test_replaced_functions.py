"""Functions of PyTorch in whose place a program puts others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import hagane


def relu(x: Any, inplace: bool = False) -> Any:
    return x * 5


def steep(x: Any, inplace: bool = False) -> Any:
    return x * 2


class Model(nn.Module):
    def forward(self, x: Any) -> Any:
        return functional.relu(x) + torch.nn.functional.gelu(x)


@pytest.mark.parametrize("other", [functional.relu, functional.silu, relu, steep])
def test_the_function_that_runs_is_captured(
    other: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functional, "relu", other)
    x = np.array([[-1, 2]], np.float32)
    session = hagane.InferenceSession(hagane.capture(Model(), x="float32[n, 2]"))
    (found,) = session.run(None, {"x": x})
    np.testing.assert_allclose(found, Model()(torch.from_numpy(x)).numpy(), rtol=1e-5)
