"""Tensors of which a program knows the content: long lists of numbers, numbers by their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import hagane
from hagane.errors import CaptureError

KERNELS = [[[float(i * j - k) for i in range(7)] for j in range(5)] for k in range(4)]


def written_in_place(x: Any) -> Any:
    table = torch.tensor([[float(i - j) for i in range(20)] for j in range(20)])
    table[0] = x.sum()
    return table[:2].sum(), table[1] * x.sum()


def of_a_global(x: Any) -> Any:
    kernel = torch.tensor(KERNELS, dtype=x.dtype, device=x.device)
    return kernel[:, None, ...] * x.sum()


def truths(x: Any) -> Any:
    return torch.tensor([[True, False] * 40, [False, False] * 40]).sum() * x


def in_numpy(x: Any) -> Any:
    table = np.array([[i * j for i in range(20)] for j in range(20)], dtype=np.float32)
    steps = np.arange(400.0).reshape(20, 20).astype(np.float32)
    return (torch.from_numpy(table) + torch.as_tensor(steps)) * x.sum()


@pytest.mark.parametrize(
    "function", [written_in_place, of_a_global, truths, in_numpy], ids=lambda f: f.__name__
)
def test_long_lists_of_numbers_are_constants(function: Any) -> None:
    x = torch.rand(3)
    found = hagane.compile(function, fullgraph=True)(x)
    torch.testing.assert_close(found, function(x))


def between(x: Any, low: Any, high: Any) -> Any:
    return torch.histc(x, 4, low, high)


def between_items(x: Any, low: Any, high: Any) -> Any:
    edges = torch.linspace(x.min().item(), x.max().item(), 5)
    return torch.histc(x, bins=4, min=x.min().item(), max=x.max()), edges[1:] + (low + high)


@pytest.mark.parametrize("function", [between, between_items], ids=lambda f: f.__name__)
@pytest.mark.parametrize("bounds", [(0, 0), (2, 2), (2, 5.5)], ids=str)
@pytest.mark.parametrize("content", [[1.0, 2, 3, 3, 8], [2.0, 2, 2]], ids=str)
def test_bounds_of_bins_may_be_data_and_equal(function: Any, bounds: Any, content: Any) -> None:
    x = torch.tensor(content)
    found = hagane.compile(function, fullgraph=True)(x, *bounds)
    torch.testing.assert_close(found, function(x, *bounds))


def test_bounds_of_bins_in_the_wrong_order_are_an_error() -> None:
    with pytest.raises(CaptureError, match="max must not be smaller than min, got 1 and 3"):
        hagane.compile(between, fullgraph=True)(torch.rand(3), 3, 1)
    with (
        pytest.warns(hagane.CompileNotice, match="max must not be smaller than min"),
        pytest.raises(RuntimeError, match="max must be larger than min"),
    ):
        hagane.compile(between)(torch.rand(3), 3, 1)


def test_a_module_under_its_own_name_is_that_module() -> None:
    def function(x: Any) -> Any:
        return torch.torch.deg2rad(x) + torch.torch.nn.functional.relu(x)

    x = torch.randn(3)
    found = hagane.compile(function, fullgraph=True)(x)
    torch.testing.assert_close(found, function(x))
