"""Operators on integers and truth values have PyTorch's element types and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import hagane

CASES: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
    ("uint8", "uint8", lambda x, y: x.any()),
    ("uint8", "uint8", lambda x, y: x.all(0)),
    ("uint8", "uint8", lambda x, y: -1 / x),
    ("uint8", "int32", lambda x, y: x / 0.5),
    ("bool", "bool", lambda x, y: torch.add(x, y, alpha=2)),
    ("float64", "bool", lambda x, y: torch.add(x, y, alpha=2)),
    ("int32", "int64", lambda x, y: torch.sub(x, y, alpha=3)),
    ("int32", "int64", lambda x, y: torch.pow(x, y)),
    ("int8", "int8", lambda x, y: x**y),
    ("int64", "int64", lambda x, y: x**2),
    ("int64", "int64", lambda x, y: 2**y),
    ("int64", "float32", lambda x, y: torch.einsum("i , j -> j i", x[0], y[1])),
    ("int32", "float64", lambda x, y: torch.einsum("ij,j->ij", x, y[0])),
    ("uint8", "uint8", lambda x, y: x // (y + 1)),
    ("int64", "int32", lambda x, y: torch.floor(x) + torch.ceil(y).trunc()),
    ("int8", "int16", lambda x, y: x.max() + y.amin(0)),
    ("bool", "int32", lambda x, y: x.amax(1, keepdim=True) & (torch.relu(y) > 1)),
    ("float32", "bool", lambda x, y: x.to(int) + torch.ones(4, dtype=int)),
    ("float32", "bool", lambda x, y: torch.full_like(x, 1, dtype=bool) & y),
    ("float32", "int8", lambda x, y: x.new_zeros(3, 1, dtype=float) + y),
    ("float32", "int8", lambda x, y: x.cumsum(1, dtype=int) + torch.sum(y, dtype=int)),
    ("float32", "int8", lambda x, y: torch.tensor([1, 2, 3, 4], dtype=float) * y),
    ("float32", "int8", lambda x, y: x.type("torch.LongTensor") + y.type(torch.IntTensor)),
    ("float32", "int64", lambda x, y: x.type(y.type()) if x.type() != y.type() else x),
]


@pytest.mark.parametrize("case", CASES)
def test_results_have_the_type_and_the_values_of_pytorch(
    case: tuple[str, str, Callable[[Any, Any], Any]],
) -> None:
    first, second, function = case
    draw = np.random.default_rng(0)
    x = draw.integers(0 if first == "uint8" else -2, 3, (3, 4)).astype(first)
    y = draw.integers(0 if second == "uint8" else -3, 4, (3, 4)).astype(second)
    model = hagane.capture(function, f"{first}[3, 4]", f"{second}[3, 4]")
    feed = {value.name: {"x": x, "y": y}[str(value.name)] for value in model.graph.inputs}
    (found,) = hagane.InferenceSession(model).run(None, feed)
    expected = function(torch.from_numpy(x), torch.from_numpy(y)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6, strict=True)


def floors(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Any:
    return x // y, x % y, x // 7, (x - 1) // -3


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_quotients_at_the_ends_of_a_type_are_rounded_down(dtype: str) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    ends = [low, low + 1, low + 2, high, high - 1, 0, 1]
    pairs = [(x, y) for x in ends for y in (7, -7, 3, -2, 100, 1)]
    x, y = (np.array(column, dtype) for column in zip(*pairs, strict=True))
    model = hagane.capture(floors, f"{dtype}[n]", f"{dtype}[n]")
    found = hagane.InferenceSession(model).run(None, {"x": x, "y": y})
    for ours, theirs in zip(found, floors(x, y), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("name", ["weight", "pos_weight"])
@pytest.mark.parametrize("weights", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("held", [torch.float32, torch.float64])
def test_weights_of_a_loss_in_place_take_its_type(
    held: torch.dtype, weights: torch.dtype, name: str
) -> None:
    def loss(x: Any, y: Any, w: Any) -> Any:
        return torch.nn.functional.binary_cross_entropy_with_logits(x, y, **{name: w})

    x, y = torch.linspace(-2, 2, 8, dtype=held).view(2, 4), torch.ones(2, 4, dtype=held) / 4
    for w in (torch.tensor(3, dtype=weights), torch.tensor([1, 2, 3, 4], dtype=weights)):
        found = hagane.compile(loss, fullgraph=True)(x, y, w)
        torch.testing.assert_close(found, loss(x, y, w))


def test_weights_of_other_losses_have_its_sizes() -> None:
    def loss(x: Any, w: Any) -> Any:
        return torch.nn.functional.mse_loss(x, x * 2, weight=w)

    told = r"expected a weight of torch.Tensor.*\(2, 4\)"
    with pytest.raises(hagane.errors.CaptureError, match=told):
        hagane.capture(loss, "float32[2, 4]", "float32[4]")
