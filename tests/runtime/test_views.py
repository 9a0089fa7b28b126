"""Inputs of any rank, initializers that are fed, sizes that weights tell: all on kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import hagane
from hagane.errors import InvalidFeed, InvalidModel

RNG = np.random.default_rng(0)
W = RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)


def layer(shape: list[int | str | None] | None, *, fed: bool = False) -> onnx.ModelProto:
    """Return a convolution of an input of that shape; whether its weights may be fed."""
    inputs = [helper.make_tensor_value_info("x", 1, shape)]
    if fed:
        inputs.append(helper.make_tensor_value_info("w", 1, list(W.shape)))
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(W, "w")],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def check(model: onnx.ModelProto, *feeds: dict[str, Any]) -> hagane.InferenceSession:
    """Compare runs in one session with those of ONNX Runtime; none is on reference kernels."""
    session = hagane.InferenceSession(model)
    theirs = onnxruntime.InferenceSession(model.SerializeToString())
    for feed in (*feeds, *feeds):
        (found,), (wanted,) = session.run(None, feed), theirs.run(["y"], feed)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        assert "(reference)" not in str(session.profile(feed, runs=1))
    return session


def image(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def test_an_input_without_a_rank_has_that_of_each_feed() -> None:
    session = check(layer(None), {"x": image(1, 3, 6, 7)}, {"x": image(2, 3, 9, 4)})
    with pytest.raises(hagane.errors.HaganeError, match="of one rank, got"):
        session.run(None, {"x": image(3, 6, 7)})


def test_an_elementwise_model_takes_all_ranks_in_turns() -> None:
    graph = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, None)],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets)
    check(model, *({"x": image(*[2] * rank)} for rank in range(1, 5)))


def test_weights_that_are_fed_run_on_kernels_and_leave_the_default() -> None:
    x = image(1, 3, 6, 7)
    session = check(layer([1, 3, 6, 7], fed=True), {"x": x}, {"x": x, "w": -W}, {"x": x})
    with pytest.raises(InvalidFeed, match=r"input 'w': .* axis 0 has size 2, expected 4"):
        session.run(None, {"x": x, "w": W[:2]})


def test_a_size_that_weights_tell_is_that_of_feeds() -> None:
    session = check(layer(["n", "c", None, None]), {"x": image(1, 3, 6, 7)})
    assert session.get_inputs()[0].shape == ["n", "c", None, None]
    with pytest.raises(InvalidFeed, match="axis 1 has size 2, expected 3"):
        session.run(None, {"x": image(1, 2, 6, 7)})


def test_a_file_that_was_changed_is_not_read_for_another_rank(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(layer(None).SerializeToString())
    session = hagane.InferenceSession(str(path))
    path.write_bytes(layer(None, fed=True).SerializeToString())
    with pytest.raises(InvalidModel, match="was changed after the session was made"):
        session.run(None, {"x": image(1, 3, 6, 7)})


def test_one_name_for_two_sizes_runs_on_kernels() -> None:
    graph = helper.make_graph(
        [helper.make_node("Concat", ["x", "past"], ["y"], axis=0)],
        "g",
        [helper.make_tensor_value_info(name, 1, ["n", 3]) for name in ("x", "past")],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets)
    check(
        model,
        {"x": image(2, 3), "past": image(2, 3)},
        {"x": image(2, 3), "past": image(5, 3)},
        {"x": image(1, 3), "past": image(7, 3)},
    )
