"""Images resized by factors: sizes and places as PyTorch and ONNX Runtime round them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

import hagane
from hagane.graph import to_proto


def engines(function: Any, type_: str) -> list[Any]:
    model = hagane.capture(function, type_)
    text = to_proto(model).SerializeToString()
    return [hagane.InferenceSession(model), onnxruntime.InferenceSession(text)]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
@pytest.mark.parametrize("factor", [1.1, 1.3, 4 / 3, 1.9, 0.7, 1 / 3])
def test_rows_of_all_sizes_are_resized_as_pytorch_does(mode: str, factor: float) -> None:
    def resized(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(x, scale_factor=factor, mode=mode)

    found = engines(resized, "float32[1, 2, w]")
    generator = torch.Generator().manual_seed(0)
    for size in (3, 4, 5, 9, 10, 20, 31, 64):
        x = torch.randn((1, 2, size), generator=generator)
        for engine in found:
            (y,) = engine.run(None, {"x": x.numpy()})
            np.testing.assert_allclose(y, resized(x).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("axes", [2, 3])
def test_pictures_of_all_sizes_are_resized_as_pytorch_does(mode: str, axes: int) -> None:
    def resized(x: torch.Tensor, factors: list[float]) -> torch.Tensor:
        return torch.nn.functional.interpolate(x, scale_factor=factors, mode=mode)

    sizes = (1, 2, 3, 4, 9, 20)
    for factor in (1.02, 1.3, 1.95, 2.05, 2.3, 0.7, 0.95, 3.4):
        factors = [2.0, factor, factor][-axes:]

        def function(x: torch.Tensor, factors: list[float] = factors) -> torch.Tensor:
            return resized(x, factors)

        shape = ", ".join(["1, 2", *"dhw"[-axes:]])
        for engine in engines(function, f"float32[{shape}]"):
            for height, width in zip(sizes, reversed(sizes), strict=True):
                size = (1, 2, 2, height, width)[:2] + (2, height, width)[-axes:]
                if factor * min(height, width) < 1:
                    continue
                x = torch.randn(size, generator=torch.Generator().manual_seed(0))
                (y,) = engine.run(None, {"x": x.numpy()})
                np.testing.assert_allclose(
                    y, resized(x, factors).numpy(), err_msg=f"{factor} {size}"
                )


def test_an_axis_whose_size_stays_is_copied_where_rows_are_blended() -> None:
    def resized(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(x, scale_factor=(1.3, 2.0), mode="bilinear")

    x = torch.randn((1, 2, 3, 5), generator=torch.Generator().manual_seed(0))
    for type_ in ("float32[1, 2, h, w]", "float32[1, 2, 3, 5]"):
        for engine in engines(resized, type_):
            (y,) = engine.run(None, {"x": x.numpy()})
            np.testing.assert_allclose(y, resized(x).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [[1, 1, "h", "w"], [1, 1, 10, 30]])
@pytest.mark.parametrize("factor", [1.3, 2.3, 0.7, 0.9, 3.3])
def test_a_product_of_floats_that_comes_out_whole_is_the_size(
    shape: list[Any], factor: float
) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("s", TensorProto.FLOAT, [4], [1, 1, factor, factor])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feed = {"x": np.random.default_rng(0).normal(size=(1, 1, 10, 30)).astype(np.float32)}
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)
    (found,) = hagane.InferenceSession(model).run(None, feed)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_size_that_only_a_multiple_shows_is_read_from_it() -> None:
    def halves(x: torch.Tensor) -> torch.Tensor:
        b, n, _ = x.shape
        return x.reshape(b, (n - 1) // 2, -1).sum(2)

    unshuffle = torch.nn.PixelUnshuffle(2)
    for function, type_, shapes in (
        (unshuffle, "float32[b, 3, 2*h, 2*w]", [(1, 3, 4, 6), (3, 3, 2, 8)]),
        (halves, "float32[b, 2*n + 1, 4*n]", [(2, 3, 4), (1, 5, 8), (3, 7, 12)]),
    ):
        for engine in engines(function, type_):
            for shape in shapes:
                x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
                (y,) = engine.run(None, {engine.get_inputs()[0].name: x.numpy()})
                expected = function(x).numpy()
                np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
