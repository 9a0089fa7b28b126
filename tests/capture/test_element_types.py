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
