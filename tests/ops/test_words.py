"""Words that no operator knows, attributes of later opsets, padding that exporters leave empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import hagane
from hagane.errors import TypeInferenceError

onnxruntime.set_default_logger_severity(4)

X = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6)
W = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)


def model(op: str, inputs: list[Any], opset: int = 21, domain: str = "", **attributes: Any) -> Any:
    """Return a model of one node, and its feed."""
    feed = {f"x{number}": np.asarray(each) for number, each in enumerate(inputs)}
    graph = helper.make_graph(
        [helper.make_node(op, list(feed), ["y"], "it", domain=domain, **attributes)],
        "g",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for name, a in feed.items()
        ],
        [helper.make_empty_tensor_value_info("y")],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, ir_version=10, opset_imports=imports), feed


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "known"),
    [
        ("Conv", [X, W], {"auto_pad": "SAME"}, "NOTSET, SAME_UPPER, SAME_LOWER, VALID"),
        ("MaxPool", [X], {"auto_pad": "same_upper", "kernel_shape": [2, 2]}, "NOTSET, SAME_UPPER"),
        ("BitShift", [np.uint8([1]), np.uint8([1])], {"direction": "UP"}, "LEFT, RIGHT"),
        ("DepthToSpace", [X], {"mode": "RCD", "blocksize": 1}, "DCR, CRD"),
        ("GridSample", [X, np.zeros((1, 2, 2, 2), np.float32)], {"mode": "best"}, "linear,"),
        ("Normalizer", [X[0, 0]], {"norm": "L3", "domain": "ai.onnx.ml"}, "MAX, L1, L2"),
    ],
)
def test_a_word_that_an_attribute_may_not_be_is_refused_as_by_onnxruntime(
    op: str, inputs: list[Any], attributes: Any, known: str
) -> None:
    made, _ = model(op, inputs, **attributes)
    with pytest.raises(Exception, match=r".") as refused:
        onnxruntime.InferenceSession(made.SerializeToString())
    assert "ONNXRuntimeError" in str(refused.value)
    name, value = next(iter(attributes.items()))
    with pytest.raises(TypeInferenceError, match=f"{op} 'it': expected {name} to be {known}") as e:
        hagane.InferenceSession(made.SerializeToString())
    assert f"got '{value}'" in str(e.value)


def test_an_attribute_of_a_later_opset_is_refused_by_name() -> None:
    made, _ = model(
        "DepthToSpace", [np.ones((1, 4, 2, 2), np.float32)], 10, blocksize=2, mode="CRD"
    )
    expected = r"DepthToSpace 'it': unknown attribute 'mode'; .* are: blocksize \(opset 10\)"
    with pytest.raises(TypeInferenceError, match=expected):
        hagane.InferenceSession(made.SerializeToString())


@pytest.mark.parametrize("op", ["Conv", "MaxPool", "AveragePool"])
def test_an_empty_auto_pad_leaves_the_pads_as_they_are(op: str) -> None:
    inputs, window = ([X, W], {}) if op == "Conv" else ([X], {"kernel_shape": [3, 3]})
    made, feed = model(op, inputs, auto_pad="", pads=[1, 1, 1, 1], **window)
    (found,) = hagane.InferenceSession(made.SerializeToString()).run(None, feed)
    (wanted,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feed)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_slope_may_be_larger_than_what_it_scales() -> None:
    slope = np.arange(6, dtype=np.float32).reshape(1, 6)
    made, feed = model("PRelu", [-X[0, 0, :, :1], slope])
    (found,) = hagane.InferenceSession(made.SerializeToString()).run(None, feed)
    (wanted,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feed)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_branch_with_inputs_is_refused() -> None:
    made, _ = model("Relu", [X])
    branch = helper.make_graph(
        [helper.make_node("Neg", ["a"], ["b"])],
        "inner",
        [helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, None)],
    )
    made.graph.input.append(helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []))
    node = helper.make_node("If", ["c"], ["y"], "it", then_branch=branch, else_branch=branch)
    made.graph.node[0].CopyFrom(node)
    with pytest.raises(
        TypeInferenceError, match=r"If 'it': expected then_branch to have no inputs, got 1"
    ):
        hagane.InferenceSession(made.SerializeToString())


def test_a_loop_counts_in_the_shape_that_its_body_declares() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["on"], ["goes_on"]),
            helper.make_node("Mul", ["i", "i"], ["square"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [1]),
            helper.make_tensor_value_info("on", onnx.TensorProto.BOOL, [1]),
        ],
        [
            helper.make_tensor_value_info("goes_on", onnx.TensorProto.BOOL, [1]),
            helper.make_tensor_value_info("square", onnx.TensorProto.INT64, [1]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", ""], ["y"], body=body)],
        "g",
        [helper.make_tensor_value_info("n", onnx.TensorProto.INT64, [])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT64, None)],
    )
    made = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 16)])
    feed = {"n": np.asarray(4)}
    (found,) = hagane.InferenceSession(made.SerializeToString()).run(None, feed)
    (wanted,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feed)
    np.testing.assert_array_equal(found, wanted)
    assert found.shape == (4, 1)


def test_sizes_that_data_tell_are_not_those_that_a_file_declares() -> None:
    made, _ = model("NonZero", [np.float32([0, 1, 2, 0])])
    made.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [1, 3])
    )
    session = hagane.InferenceSession(made.SerializeToString())
    (found,) = session.run(None, {"x0": np.float32([0, 5, 0, 0])})
    np.testing.assert_array_equal(found, [[1]])
    profile = session.profile({"x0": np.float32([0, 5, 0, 0])}, runs=1)
    assert "reference" not in str(profile)


@pytest.mark.parametrize("count", [2, None])
def test_fed_sizes_are_not_those_that_a_file_declares(count: int | None) -> None:
    value = helper.make_tensor_value_info
    data, shape = value("x", onnx.TensorProto.FLOAT, ["n", 2]), onnx.TensorProto.INT64
    made = helper.make_model(
        helper.make_graph(
            [helper.make_node("Reshape", ["x", "s"], ["y"])], "g",
            [data, value("s", shape, [count])], [value("y", onnx.TensorProto.FLOAT, [4, 1])],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )  # fmt: skip
    session = hagane.InferenceSession(made.SerializeToString())
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    for sizes in ([1, 4], [4, 1]):
        (found,) = session.run(None, {"x": x, "s": np.array(sizes)})
        np.testing.assert_array_equal(found, x.reshape(sizes))
    with pytest.raises(hagane.errors.KernelError, match="Reshape"):
        session.run(None, {"x": x, "s": np.array([1, 1])})
