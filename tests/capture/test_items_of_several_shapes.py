"""Items of different shapes or kinds at places that the data decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane

EXPERTS = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])
for _parameter in EXPERTS.parameters():  # of eighths, whose sums are exact
    _parameter.data = (_parameter.data * 8).round() / 8


def chosen_tensor(x: Any, place: Any) -> Any:
    return [x, x[:, :2], x.sum(1)][int(place)].sum()


def chosen_layer(x: Any, place: Any) -> Any:
    return EXPERTS[int(place)](x)


def set_at(x: Any, place: Any) -> Any:
    rows = [x, x[:, :2], x.sum(1)]
    rows[int(place)] = x[0]
    return rows[0].sum() + rows[1].sum() * 2 + rows[2].sum() * 4


@pytest.mark.parametrize(
    "function", [chosen_tensor, chosen_layer, set_at], ids=lambda f: f.__name__
)
def test_places_count_from_the_back_too(function: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(function, "float32[n, 3]", "int64"))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for place in range(-3, 3):
        (got,) = session.run(None, {"x": x, "place": np.array(place)})
        with torch.no_grad():
            want = function(torch.from_numpy(x), torch.tensor(place))
        np.testing.assert_allclose(got, want, rtol=1e-5)
