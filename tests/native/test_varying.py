"""Convolutions and recurrent layers whose weights are inputs, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hagane.native.rules.varying import Run, runs_of
from tests.native.bodies import node
from tests.native.models import draw, every_level, model, refused, session
from tests.oracle import assert_agrees, run_onnxruntime

# Shapes of image and filter, and attributes: one for each form that a convolution takes.
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "few channels": ((1, 3, 8, 8), (4, 3, 3, 3), {}),
    "Winograd's size": ((3, 16, 14, 13), (33, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
    "pointwise": ((2, 64, 7, 7), (64, 64, 1, 1), {}),
    "depthwise": ((1, 32, 9, 9), (32, 1, 3, 3), {"group": 32, "pads": [1, 1, 1, 1]}),
    "stem": ((1, 3, 31, 32), (16, 3, 7, 7), {"strides": [2, 2]}),
    "one axis": ((1, 8, 20), (12, 8, 5), {"dilations": [2]}),
    "groups": ((3, 6, 5, 5), (9, 2, 3, 3), {"group": 3}),
    "volume": ((1, 4, 4, 5, 6), (6, 4, 2, 2, 2), {}),
    "few outputs": ((1, 64, 16, 16), (2, 64, 3, 3), {}),
}


@every_level
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_packs_weights_as_they_come(name: str, level: str) -> None:
    x, w, attributes = CONVOLUTIONS[name]
    feed = {"x": draw(x), "w": draw(w, 1), "b": draw((w[0],), 2)}
    proto = model([node("Conv", "x w b", "c", **attributes), node("Relu", "c", "y")], feed)
    made = session(proto, instructions=level)
    assert refused(made) == {}
    for seed in (1, 5):  # other weights, same kernels
        feed["w"] = draw(w, seed)
        (found,) = made.run(None, feed)
        np.testing.assert_allclose(found, run_onnxruntime(proto, feed)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("given", ["x w", "x w b"])
@pytest.mark.parametrize("strides", [[1, 1], [2, 2]])
def test_a_transposed_convolution_does_too(given: str, strides: list[int]) -> None:
    arrays = {"x": draw((2, 5, 6, 7)), "w": draw((5, 4, 2, 2), 1), "b": draw((4,), 2)}
    feed = {name: arrays[name] for name in given.split()}
    proto = model([node("ConvTranspose", given, "y", strides=strides)], feed)
    assert_agrees(proto, feed, rtol=1e-3, atol=1e-4)
    assert refused(session(proto)) == {}


def test_a_constant_bias_meets_weights_that_vary() -> None:
    feed = {"x": draw((2, 5, 6, 7)), "w": draw((18, 5, 3, 3), 1)}
    proto = model([node("Conv", "x w b", "y")], feed, constants={"b": draw((18,), 3)})
    assert_agrees(proto, feed)
    assert refused(session(proto)) == {}


def test_weights_that_are_computed_are_packed_too() -> None:
    feed = {"x": draw((1, 16, 6, 7)), "w": draw((18, 16, 3, 3), 1)}
    proto = model([node("Tanh", "w", "t"), node("Conv", "x t", "y")], feed)
    assert_agrees(proto, feed)
    assert refused(session(proto)) == {}


def test_a_batch_of_any_size_goes_through_weights_that_vary() -> None:
    feed = {"x": draw((1, 16, 6, 7)), "w": draw((18, 16, 3, 3), 1)}
    proto = model([node("Conv", "x w", "y")], feed, shapes={"x": ("n", 16, "h", "w")})
    made = session(proto)
    for shape in [(1, 16, 6, 7), (3, 16, 9, 5), (2, 16, 6, 7)]:
        feed["x"] = draw(shape, 4)
        (found,) = made.run(None, feed)
        np.testing.assert_allclose(found, run_onnxruntime(proto, feed)[0], rtol=1e-4, atol=1e-5)
    assert refused(made) == {}


@every_level
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("given", ["x w r", "x w r b"])
def test_a_recurrent_layer_does_too(kind: str, direction: str, given: str, level: str) -> None:
    gates, count, hidden = 4 if kind == "LSTM" else 3, 1 + (direction != "forward"), 5
    arrays = {
        "x": draw((4, 3, 7)), "w": draw((count, gates * hidden, 7), 1),
        "r": draw((count, gates * hidden, hidden), 2),
        "b": draw((count, 2 * gates * hidden), 3),
    }  # fmt: skip
    feed = {name: arrays[name] for name in given.split()}
    nodes = [node(kind, given, "y h", hidden_size=hidden, direction=direction)]
    proto = model(nodes, feed, ("y", "h"))
    made = session(proto, instructions=level)
    assert refused(made) == {}
    for found, want in zip(made.run(None, feed), run_onnxruntime(proto, feed), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_biases_within_a_reset_may_vary() -> None:
    feed = {
        "x": draw((4, 3, 7)), "w": draw((1, 15, 7), 1), "r": draw((1, 15, 5), 2),
        "b": draw((1, 30), 3),
    }  # fmt: skip
    nodes = [node("GRU", "x w r b", "y", hidden_size=5, linear_before_reset=1)]
    proto = model(nodes, feed)
    assert_agrees(proto, feed)
    assert refused(session(proto)) == {}


def test_places_in_loops_are_runs() -> None:
    numbers = np.arange(1, 241, dtype=np.int32).reshape(2, 3, 4, 10)
    for order in ((0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)):
        places = np.ascontiguousarray(numbers[:, ::-1].transpose(order)).reshape(-1)
        (run,) = runs_of(places) or ()
        assert (run.at, run.first, run.size) == (0, places[0], 240)
        np.testing.assert_array_equal(_walked(run), places)
    assert runs_of(np.random.default_rng(0).permutation(1000).astype(np.int32)) is None


def test_gaps_are_runs_of_nothing() -> None:
    places = np.concatenate([np.arange(5, 17), np.zeros(8), np.arange(17, 20)]).astype(np.int32)
    found = runs_of(places) or []
    assert sum(run.size for run in found) == places.size
    np.testing.assert_array_equal(np.concatenate([_walked(run) for run in found]), places)


def _walked(run: Run) -> np.ndarray:
    at = np.zeros(1, np.int64)
    for count, step in run.loops:
        at = (np.arange(count)[:, None] * step + at).reshape(-1)
    return run.first + at
