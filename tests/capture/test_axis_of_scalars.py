"""Functions along an axis of tensors without axes, which PyTorch takes for one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import hagane

CALLS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: torch.nn.functional.log_softmax(x, dim=-1),
    "cumsum": lambda x: x.cumsum(-1),
    "cummax": lambda x: x.cummax(0),
    "sort": lambda x: x.sort(0),
    "argsort": lambda x: x.argsort(-1),
    "median": lambda x: x.median(0),
    "norm": lambda x: x.norm(2, -1),
    "flip": lambda x: x.flip([0]),
    "topk": lambda x: x.topk(1, -1),
    "kthvalue": lambda x: x.kthvalue(1, 0),
    "movedim": lambda x: x.movedim(0, 0) + 1,
    "gather": lambda x: x.gather(0, torch.tensor(0)),
    "nonzero": lambda x: x.nonzero(),
    "places": lambda x: x.nonzero(as_tuple=True),
    "sum of integers": lambda x: (x > 0).sum().sum(dim=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_scalar_is_one_element_of_an_axis(name: str) -> None:
    session = hagane.InferenceSession(hagane.capture(CALLS[name], "float32[]"))
    for number in (2.5, 0.0):
        x = torch.tensor(number)
        expected = CALLS[name](x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for made, part in zip(session.run(None, {"x": x.numpy()}), expected, strict=True):
            assert made.shape == tuple(part.shape)
            np.testing.assert_allclose(made, part.numpy())
