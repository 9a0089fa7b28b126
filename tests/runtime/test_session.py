from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hagane as ort
from hagane.errors import InvalidArgument, InvalidFeed


def affine() -> onnx.ModelProto:
    """y = relu(x @ w + b), x: float32[batch, 3]."""
    w = helper.make_tensor("w", TensorProto.FLOAT, [3, 2], [1, 2, 3, 4, 5, 6])
    b = helper.make_tensor("b", TensorProto.FLOAT, [2], [-10, -20])
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["affine"], name="gemm"),
            helper.make_node("Relu", ["affine"], ["y"], name="relu"),
        ],
        "affine",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [w, b],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


X = np.array([[1, 1, 1], [2, 2, 2]], dtype=np.float32)
Y = np.array([[0, 0], [8, 4]], dtype=np.float32)


def test_a_program_for_onnxruntime_runs_unchanged() -> None:
    session = ort.InferenceSession(
        affine().SerializeToString(), ort.SessionOptions(), providers=["CPUExecutionProvider"]
    )
    (argument,) = session.get_inputs()
    assert (argument.name, argument.type, argument.shape) == ("x", "tensor(float)", ["batch", 3])
    (result,) = session.run(None, {argument.name: X})
    np.testing.assert_array_equal(result, Y)
    assert result.dtype == np.float32
    assert session.get_outputs()[0].shape == ["batch", 2]


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        ({}, r"missing input 'x' \(float32\[batch, 3\]\)"),
        ({"z": X, "x": X}, "unknown input 'z'; the model takes: x: float32"),
        ({"x": X.astype(np.float64)}, r"got float64\[2, 3\]; convert it first"),
        ({"x": X[0]}, r"expected float32\[batch, 3\] \(2 axes\), got float32\[3\] \(1 axes\)"),
        ({"x": X[:, :2]}, "axis 1 has size 2, expected 3"),
        ({"x": None}, r"input 'x': expected float32\[batch, 3\], got None"),
        ({"x": object()}, "expected a NumPy array"),
    ],
)
def test_feeds_that_do_not_fit_are_named(feed: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidFeed, match=message):
        ort.InferenceSession(affine()).run(None, feed)


def test_unknown_outputs_are_named() -> None:
    with pytest.raises(InvalidArgument, match="unknown output 'nope'; the model has: y"):
        ort.InferenceSession(affine()).run(["nope"], {"x": X})
