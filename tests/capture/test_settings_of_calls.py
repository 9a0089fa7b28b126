"""Settings of library calls that the data decide: the graph has the call once for each way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import hagane
from hagane.graph import to_proto


def attended(x: Any, mask: Any) -> Any:
    chosen = None if mask.sum() == mask.numel() else mask[:, None, None, :]
    heads = x[:, None, :, None].expand(-1, 2, -1, 4)
    causal = x.shape[1] > 1 and chosen is None
    return functional.scaled_dot_product_attention(
        heads, heads * 2, heads, attn_mask=chosen, is_causal=causal
    )


def normalised(x: Any, mask: Any) -> Any:
    return torch.logsumexp(x, 1, keepdim=bool(mask.any())).reshape(-1)


def spread(x: Any, mask: Any) -> Any:
    return torch.var(x, 1, unbiased=bool(mask.all()))


def sorted_either_way(x: Any, mask: Any) -> Any:
    return torch.sort(x, dim=1, descending=bool(mask.all())).values


MASKS = ([[1, 1, 1], [1, 1, 1]], [[1, 1, 0], [1, 1, 1]], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0]])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", [attended, normalised, spread, sorted_either_way])
def test_a_setting_that_the_data_decide_is_followed_both_ways(program: Any) -> None:
    model = hagane.capture(program, "float32[batch, n]", "bool[batch, n]")
    session = hagane.InferenceSession(to_proto(model).SerializeToString())
    for rows in MASKS:
        mask = torch.tensor(rows).bool()
        x = torch.randn(mask.shape, generator=torch.Generator().manual_seed(3))
        (found,) = session.run(None, {"x": x.numpy(), "mask": mask.numpy()})
        np.testing.assert_allclose(found, program(x, mask).numpy(), rtol=1e-4, atol=1e-6)


def warned(x: Any) -> Any:
    return x + 1 if 2.0 in x[:, [-1, 0]] else x - 1


class Turned(torch.nn.LayerNorm):
    """Normalises over the axis in the middle, by the method of its base."""

    def forward(self, x: Any) -> Any:
        return torch.nn.LayerNorm.forward(self, x.transpose(1, 2)).transpose(1, 2)


class Placed(torch.nn.Module):
    """Looks rows up by a long array of places."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.register_buffer("places", torch.randint(0, 7, (300,), generator=generator))

    def forward(self, x: Any) -> Any:
        return x[self.places].view(30, 10, -1)


@pytest.mark.parametrize(
    ("program", "type_", "shapes"),
    [
        (warned, "float32[batch, 3]", [(1, 3), (4, 3)]),
        (Turned(4), "float32[batch, 4, n]", [(1, 4, 2), (3, 4, 5)]),
        (Placed(), "float32[7, n]", [(7, 1), (7, 4)]),
    ],
)
def test_what_libraries_write_is_captured(program: Any, type_: str, shapes: Any) -> None:
    model = hagane.capture(program, type_)
    session = hagane.InferenceSession(to_proto(model).SerializeToString())
    for shape in shapes:
        for shift in (0.0, 2.0):
            x = torch.arange(float(np.prod(shape))).reshape(shape) + shift
            (found,) = session.run(None, {"x": x.numpy()})
            np.testing.assert_allclose(found, program(x).detach().numpy(), rtol=1e-4, atol=1e-5)
