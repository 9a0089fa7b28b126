"""Functions of float64 are as exact as float64 is, whatever attributes ONNX keeps as float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import hagane

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "selu": lambda x: functional.selu(x),
    "celu": lambda x: functional.celu(x, 0.7),
    "norm": lambda x: torch.linalg.vector_norm(x, 3, dim=-1),
    "norm of a broken order": lambda x: torch.norm(x, p=2.7, dim=0),
    "norm of a negative order": lambda x: torch.linalg.vector_norm(x, -1.7, dim=-1),
    "normalize": lambda x: functional.normalize(x, p=2.3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_exact_in_float64(name: str) -> None:
    x = torch.randn((4, 5), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    session = hagane.InferenceSession(hagane.capture(FUNCTIONS[name], "float64[n, 5]"))
    found = session.run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(found, FUNCTIONS[name](x).numpy(), rtol=1e-13, atol=1e-15)
