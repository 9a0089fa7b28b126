"""Weights rounded so that errors make up for each other."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.errors import InvalidArgument
from hagane.ship.quantize import QuantizeOptions, Scheme, quantize
from hagane.ship.quantize.graph import Source
from hagane.ship.quantize.rounding import round_together
from hagane.ship.quantize.windows import Windows


def layer(path: Path, operator: str, shape: tuple[int, ...], weight: np.ndarray, **given: object):
    """Write a model of one layer; return its source and its only layer."""
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "w"], ["y"], "layer", **given)],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    source = Source(path)
    return source, source.layers[0]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


CONVOLUTIONS = {
    "plain": ((2, 3, 9, 8), (5, 3, 3, 2), {}),
    "padded": ((3, 4, 7, 6), (6, 4, 3, 3), {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    "groups": ((2, 6, 7, 7), (4, 3, 3, 3), {"group": 2, "dilations": [2, 1]}),
    "depthwise": ((1, 5, 8, 9), (10, 1, 3, 3), {"group": 5, "pads": [1, 1, 1, 1]}),
    "upper": ((1, 2, 8, 7), (3, 2, 3, 4), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    "lower": ((1, 2, 8, 7), (3, 2, 4, 3), {"auto_pad": "SAME_LOWER"}),
    "valid": ((1, 2, 8, 7), (3, 2, 3, 3), {"auto_pad": "VALID", "strides": [3, 2]}),
    "one axis": ((2, 4, 11), (3, 4, 5), {"pads": [2, 2], "strides": [2]}),
    "three axes": ((1, 2, 4, 5, 6), (3, 2, 2, 3, 1), {"pads": [1, 0, 0, 0, 1, 2]}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_windows_times_weights_are_the_convolution(tmp_path: Path, name: str) -> None:
    shape, weights, given = CONVOLUTIONS[name]
    weight, x = draw(*weights), draw(*shape, seed=1)
    source, one = layer(tmp_path / "m.onnx", "Conv", shape, weight, **given)
    (expected,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x})
    windows = Windows.of_layer(source, one)
    found = np.matmul(
        windows.rows(weight), windows.of(x, 10**6, np.random.default_rng(0)).transpose(0, 2, 1)
    ).reshape(weights[0], shape[0], *expected.shape[2:])
    np.testing.assert_allclose(np.moveaxis(found, 0, 1), expected, atol=1e-4)
    np.testing.assert_array_equal(windows.weight(windows.rows(weight), weight.shape), weight)


@pytest.mark.parametrize(
    ("operator", "shape", "weights", "given"),
    [
        ("MatMul", (2, 3, 7), (7, 5), {}),
        ("Gemm", (4, 7), (7, 5), {}),
        ("Gemm", (4, 7), (5, 7), {"transB": 1}),
    ],
)
def test_rows_times_weights_are_the_product(
    tmp_path: Path,
    operator: str,
    shape: tuple[int, ...],
    weights: tuple[int, int],
    given: dict[str, int],
) -> None:
    weight, x = draw(*weights), draw(*shape, seed=1)
    source, one = layer(tmp_path / "m.onnx", operator, shape, weight, **given)
    (expected,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x})
    windows = Windows.of_layer(source, one)
    found = windows.of(x, 10**6, np.random.default_rng(0))[0] @ windows.rows(weight)[0].T
    np.testing.assert_allclose(found, expected.reshape(-1, 5), atol=1e-5)
    np.testing.assert_array_equal(windows.weight(windows.rows(weight), weights), weight)


def test_of_many_windows_some_are_drawn(tmp_path: Path) -> None:
    weight, x = draw(4, 2, 3, 3), draw(2, 2, 20, 20)
    source, one = layer(tmp_path / "m.onnx", "Conv", x.shape, weight)
    windows = Windows.of_layer(source, one)
    some = windows.of(x, 50, np.random.default_rng(0))
    every = windows.of(x, 10**6, np.random.default_rng(0))
    assert (some.shape, every.shape) == ((1, 50, 18), (1, 648, 18))
    assert {row.tobytes() for row in some[0]} <= {row.tobytes() for row in every[0]}
    assert len({row.tobytes() for row in some[0]}) == 50


def test_inputs_that_do_not_depend_on_each_other_are_rounded_to_the_nearest() -> None:
    weight = draw(2, 3, 5)
    scale = np.abs(weight).max(2) / 127
    found = round_together(weight, scale, np.tile(np.diag([1.0, 2, 3, 4, 0]), (2, 1, 1)))
    np.testing.assert_array_equal(found, np.round(weight / scale[..., None]))


def test_small_weights_are_nearly_as_good_as_the_best_of_all() -> None:
    random = np.random.default_rng(5)
    better = total = of_all = 0.0
    for _ in range(20):
        mixed = random.standard_normal((4, 4)) @ np.diag([3, 1, 0.3, 0.1])
        products = (mixed @ mixed.T)[None]
        weight = random.uniform(-3, 3, (1, 1, 4))
        scale = np.ones((1, 1))

        def loss(levels: np.ndarray) -> float:
            change = (weight - levels)[0, 0]  # noqa: B023
            return float(change @ products[0] @ change)  # noqa: B023

        around = [(np.floor(w), np.ceil(w)) for w in weight[0, 0]]
        best = min(loss(np.array([[each]])) for each in itertools.product(*around))
        found, nearest = loss(round_together(weight, scale, products)), loss(np.round(weight))
        better += found
        total += nearest
        of_all += best
    assert better < 0.5 * total
    assert better < 2 * of_all


def test_results_of_models_are_closer_for_it(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    # Inputs that depend on each other, as those of pictures do, and have a mean.
    mixed = random.standard_normal((6, 32))
    feeds = []
    for _ in range(40):
        x = random.standard_normal((16, 6)) @ mixed + 0.1 * random.standard_normal((16, 32)) + 1
        feeds.append({"x": x.astype(np.float32)})
    weight = draw(32, 48)
    layer(tmp_path / "m.onnx", "Gemm", (16, 32), weight)
    expected = [feed["x"] @ weight for feed in feeds[20:]]
    errors = {}
    for fit, correct in itertools.product((False, True), repeat=2):
        options = QuantizeOptions(
            scheme=Scheme(weights_only=True), fit_rounding=fit, correct_bias=correct
        )
        quantize(tmp_path / "m.onnx", lambda: feeds[:20], tmp_path / "q.onnx", options)
        # (ONNX Runtime rounds the inputs of such products too: it is no oracle here.)
        session = hagane.InferenceSession(tmp_path / "q.onnx")
        found = [session.run(None, feed)[0] for feed in feeds[20:]]
        errors[fit, correct] = sum(
            float(np.sum((a - b) ** 2)) for a, b in zip(expected, found, strict=True)
        )
    assert errors[True, False] < 0.15 * errors[False, False]
    assert errors[True, True] < 0.15 * errors[False, True]
    made = {
        item.name: numpy_helper.to_array(item)
        for item in onnx.load(tmp_path / "q.onnx").graph.initializer
    }
    rounded = made["w_1_bytes"].astype(np.float32) * made["w_1_scale"]
    assert np.abs(rounded - weight).max() > 0.5 * made["w_1_scale"].min()
    exact = feeds[-1]["x"] @ rounded + made["layer_corrected"]
    np.testing.assert_allclose(found[-1], exact, rtol=1e-4, atol=1e-4)


def test_four_bits_are_refused(tmp_path: Path) -> None:
    layer(tmp_path / "m.onnx", "Gemm", (2, 32), draw(32, 8))
    options = QuantizeOptions(scheme=Scheme(weights_only=True, bits=4), fit_rounding=True)
    with pytest.raises(InvalidArgument, match="--fit-rounding rounds to eight bits"):
        quantize(tmp_path / "m.onnx", lambda: [{"x": draw(2, 32)}], tmp_path / "q.onnx", options)
