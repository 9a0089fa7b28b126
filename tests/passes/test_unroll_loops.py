"""Short loops whose values change their ranks become their iterations."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.native.bodies import BOOL, FLOAT, INT64, by_onnxruntime, graph, info, node
from tests.native.models import draw, model, refused, session
from tests.passes.harness import applied


def any_rank(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, None)


def deeper(count: int, goes: str = "go") -> onnx.ModelProto:
    """Return a loop that gives a value another axis in each iteration, and doubles it."""
    nodes = [
        node("Unsqueeze", "s zeros", "deep"),
        node("Expand", "deep twice", "wide"),
        node("Cast", "i", "number", to=FLOAT),
        node("Add", "wide number", "more"),
        node("ReduceSum", "more", "total", keepdims=0),
        node("Less", "total most", "small"),
        node("Identity", goes, "goes"),
    ]
    body = graph(
        nodes,
        [info("i", INT64), info("go", BOOL), any_rank("s")],
        [info("goes", BOOL), any_rank("more"), info("total")],
        {"zeros": np.array([0]), "most": np.float32(1e9)},
    )
    outer = [
        node("Loop", "n - x", "last totals", body=body),
        node("Shape", "last", "shape"),
        node("ReduceMax", "last", "y", keepdims=0),
    ]
    constants = {"n": np.array(count), "twice": np.array([2, 1])}
    return model(
        outer, {"x": draw((3,))}, ["last", "totals", "shape", "y"], constants, {"x": ["n"]}
    )


def test_a_loop_that_adds_axes_is_written_out() -> None:
    proto = deeper(3)
    assert applied(proto, {"x": draw((3,))})[0]["unroll_loops"] == 1
    made = session(proto)
    assert refused(made) == {}
    for n in (3, 1, 7):
        feed = {"x": draw((n,), n)}
        results = made.run(None, feed)
        assert results[0].shape == (1, 1, 2, n)
        for left, right in zip(results, by_onnxruntime(proto, feed), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5)


@pytest.mark.parametrize("proto", [deeper(17), deeper(0), deeper(3, "small")])
def test_loops_of_many_iterations_or_of_an_end_of_their_own_stay(proto: onnx.ModelProto) -> None:
    feed = {"x": draw((3,))}
    assert applied(proto, feed)[0].get("unroll_loops", 0) == 0


def test_loops_whose_values_keep_their_rank_stay() -> None:
    body = graph(
        [node("Add", "s s", "more"), node("Identity", "go", "goes")],
        [info("i", INT64), info("go", BOOL), info("s", shape=("n",))],
        [info("goes", BOOL), info("more", shape=("n",))],
    )
    feed = {"x": draw((3,))}
    proto = model([node("Loop", "n - x", "y", body=body)], feed, ["y"], {"n": np.array(3)})
    assert "unroll_loops" not in applied(proto, feed)[0]
