"""Resize of float64: coordinates, weights and gradients have its accuracy, as PyTorch's have."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from onnx import helper

import hagane
from tests.native.models import model, session

SIZES = [(13, 5), (3, 29)]


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("known", [True, False])
def test_doubles_are_resized_with_their_own_accuracy(known: bool, engine: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 11))
    modes = [(mode, corners) for mode in ("linear", "cubic") for corners in (False, True)]
    outputs = [f"{mode}{corners}{size}" for mode, corners in modes for size in SIZES]
    wanted = [
        torch.nn.functional.interpolate(
            torch.tensor(x), size=size, mode=f"bi{mode}", align_corners=corners
        ).numpy()
        for mode, corners in modes
        for size in SIZES
    ]
    nodes = [
        helper.make_node(
            "Resize", ["x", "", "", f"sizes{i % 2}"], [name], mode=modes[i // 2][0],
            coordinate_transformation_mode=_placed(modes[i // 2][1]),
        )
        for i, name in enumerate(outputs)
    ]  # fmt: skip
    sizes = {f"sizes{i}": np.array([2, 3, *size]) for i, size in enumerate(SIZES)}
    if known:
        proto, feed = model(nodes, {"x": x}, outputs, sizes), {"x": x}
    else:
        feed = {"x": x, **sizes}
        proto = model(nodes, feed, outputs, shapes={"x": ["n", "c", "h", "w"]})
    got = session(proto, engine=engine).run(None, feed)
    for name, left, right in zip(outputs, got, wanted, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12, err_msg=name)


def _placed(corners: bool) -> str:
    return "align_corners" if corners else "pytorch_half_pixel"


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_gradients_of_resized_doubles_have_their_accuracy(mode: str, known: bool) -> None:
    x = np.random.default_rng(1).standard_normal((1, 2, 6, 5))
    nodes = [
        helper.make_node(
            "Resize", ["x", "", "", "sizes"], ["y"], mode=mode,
            coordinate_transformation_mode="pytorch_half_pixel",
        ),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]  # fmt: skip
    sizes = np.array([1, 2, 13, 17])
    feed = {"x": x} if known else {"x": x, "sizes": sizes}
    shapes = None if known else {"x": ["n", "c", "h", "w"]}
    proto = model(nodes, feed, ["loss"], {"sizes": sizes} if known else None, shapes)
    made = hagane.gradient(proto, "loss", ["x"])
    (got,) = hagane.InferenceSession(made).run(["x.gradient"], feed)
    given = torch.tensor(x, requires_grad=True)
    resized = torch.nn.functional.interpolate(
        given, size=(13, 17), mode=f"bi{mode}", align_corners=False
    )
    resized.square().sum().backward()
    assert given.grad is not None
    np.testing.assert_allclose(got, given.grad.numpy(), rtol=1e-11, atol=1e-11)
