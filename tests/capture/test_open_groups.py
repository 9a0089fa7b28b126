"""Convolutions whose groups and kernels only a run knows: weights that a network computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn import functional

import hagane
from hagane.errors import CaptureError
from hagane.graph import to_proto


def modulated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    b, c, height, width = x.shape
    kernels = w.reshape(b * 5, c, 3, 3)
    y = functional.conv2d(x.reshape(1, b * c, height, width), kernels, padding=1, groups=b)
    return y.view(b, 5, height, width)


def enlarged(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    b, c, height, width = x.shape
    y = functional.conv_transpose2d(
        x.reshape(1, b * c, height, width), w.reshape(b * c, 2, 3, 3), stride=2, padding=1,
        output_padding=1, groups=b,
    )  # fmt: skip
    return y.view(b, 2, 2 * height, 2 * width)


def correlated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    b, c, height, width = x.shape
    templates = w.view(b * c, 1, w.size(2), w.size(3))
    y = functional.conv2d(x.view(1, b * c, height, width), templates, groups=b * c)
    return y.view(b, c, y.size(2), y.size(3))


def with_bias(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    channels = x.size(1)
    bias = torch.arange(channels).float()
    return functional.conv1d(
        x, w.repeat(channels, 1, 1), bias, stride=2, dilation=2, groups=channels
    )


def matched(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return functional.conv2d(x, w, padding=1, dilation=2)


CASES: list[tuple[Callable[..., Any], Sequence[str], Sequence[Sequence[Sequence[int]]]]] = [
    (modulated, ("float32[b,3,h,w]", "float32[b,5,3,3,3]"),
     [((2, 3, 4, 5), (2, 5, 3, 3, 3)), ((1, 3, 3, 3), (1, 5, 3, 3, 3))]),
    (enlarged, ("float32[b,c,h,w]", "float32[b,c,2,3,3]"),
     [((2, 3, 4, 5), (2, 3, 2, 3, 3)), ((3, 1, 3, 2), (3, 1, 2, 3, 3))]),
    (correlated, ("float32[b,c,h,w]", "float32[b,c,k,l]"),
     [((2, 3, 4, 5), (2, 3, 3, 2)), ((1, 2, 3, 3), (1, 2, 3, 3))]),
    (with_bias, ("float32[b,c,t]", "float32[1,1,3]"),
     [((2, 3, 8), (1, 1, 3)), ((1, 1, 5), (1, 1, 3))]),
    (matched, ("float32[n,c,h,w]", "float32[m,c,k,k]"),
     [((1, 3, 5, 6), (2, 3, 3, 3)), ((2, 2, 3, 3), (1, 2, 2, 2))]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "types", "shapes"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_groups_and_kernels_of_any_number_agree_with_their_gradients(
    function: Callable[..., Any], types: Sequence[str], shapes: Sequence[Sequence[Sequence[int]]]
) -> None:
    model = hagane.capture(function, *types)
    output = str(model.graph.outputs[0].name)
    graph = hagane.gradient(model, of=output, with_respect_to=["x", "w"], seeds=True)
    generator = torch.Generator().manual_seed(0)
    for engine in (
        hagane.InferenceSession(graph),
        onnxruntime.InferenceSession(to_proto(graph).SerializeToString()),
    ):
        for pair in shapes:
            x, w = (torch.randn(tuple(s), generator=generator).requires_grad_() for s in pair)
            expected = function(x, w)
            seed = torch.randn(expected.shape, generator=generator)
            expected.backward(seed)
            feed = {"x": x.detach().numpy(), "w": w.detach().numpy(), f"{output}.seed": seed}
            names = [output, "x.gradient", "w.gradient"]
            found = engine.run(names, {k: np.asarray(v) for k, v in feed.items()})
            assert x.grad is not None
            assert w.grad is not None
            for ours, theirs in zip(found, (expected.detach(), x.grad, w.grad), strict=True):
                np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-4)


def test_weights_that_the_groups_do_not_divide_are_refused() -> None:
    def wrong(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        b, c, height, width = x.shape
        return functional.conv2d(x.reshape(1, b * c, height, width), w, groups=b)

    with pytest.raises(CaptureError, match=r"expected weights that b groups divide, got"):
        hagane.capture(wrong, "float32[b,3,h,w]", "float32[7,3,3,3]")
