"""Control flow, sequences and optionals beyond ONNX's own cases."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.errors import KernelError, TypeInferenceError
from hagane.graph import load
from hagane.ops import infer_types
from hagane.passes.legalise import legalise
from tests.conformance.cases import node_cases
from tests.oracle import run_onnxruntime


def test_loop16_seq_none_gives_the_listed_sequence() -> None:
    (case,) = (case for case in node_cases() if case.name == "test_loop16_seq_none")
    ((inputs, (expected,)),) = case.data_sets
    session = hagane.InferenceSession(case.model)
    names = [item.name for item in session.get_inputs()]
    (found,) = session.run(None, dict(zip(names, inputs, strict=True)))
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)


def vector(name: str, *shape: object) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


def model_of(nodes: list[onnx.NodeProto], outputs: list[str]) -> onnx.ModelProto:
    inputs = [
        vector("x", "n", 2),
        helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
        helper.make_tensor_value_info("count", TensorProto.INT64, []),
    ]
    graph = helper.make_graph(
        nodes, "graph", inputs, [onnx.ValueInfoProto(name=name) for name in outputs]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def branch(name: str, nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=nodes[-1].output[0])])


X = np.float32([[1, -2], [3, -4], [5, 6]])


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_reads_the_outer_graph(flag: bool) -> None:
    node = helper.make_node(
        "If", ["flag"], ["y"], "choice",
        then_branch=branch("then", [helper.make_node("Relu", ["x"], ["a"])]),
        else_branch=branch("else", [helper.make_node("Neg", ["x"], ["b"])]),
    )  # fmt: skip
    session = hagane.InferenceSession(model_of([node], ["y"]))
    (y,) = session.run(None, {"x": X, "flag": np.array(flag), "count": np.array(1)})
    np.testing.assert_array_equal(y, np.maximum(X, 0) if flag else -X)
    assert session.get_outputs()[0].shape == ["n", 2]


def test_branches_of_different_element_types_are_refused() -> None:
    node = helper.make_node(
        "If", ["flag"], ["y"], "choice",
        then_branch=branch("then", [helper.make_node("Relu", ["x"], ["a"])]),
        else_branch=branch("else", [helper.make_node("Shape", ["x"], ["b"])]),
    )  # fmt: skip
    with pytest.raises(
        TypeInferenceError,
        match=r"If 'choice': the branches give output 0 different types: float32\[n, 2\] and int64",
    ):
        hagane.InferenceSession(model_of([node], ["y"]))


def counting_loop() -> onnx.ModelProto:
    """Grow a tensor by itself ``count`` times while the flag holds, and note each sum."""
    body = helper.make_graph(
        [
            helper.make_node("Concat", ["state", "x"], ["grown"], axis=0),
            helper.make_node("ReduceSum", ["grown"], ["sum"], keepdims=0),
            helper.make_node("Identity", ["going"], ["still"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            vector("state", None, 2),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            vector("grown", None, 2),
            vector("sum"),
        ],
    )
    node = helper.make_node("Loop", ["count", "flag", "x"], ["end", "sums"], "grow", body=body)
    return model_of([node], ["end", "sums"])


@pytest.mark.parametrize(("count", "flag"), [(3, True), (1, True)])
def test_a_loop_may_change_the_shape_of_its_state(count: int, flag: bool) -> None:
    feed = {"x": X, "flag": np.array(flag), "count": np.array(count)}
    found = hagane.InferenceSession(counting_loop()).run(None, feed)
    for left, right in zip(found, run_onnxruntime(counting_loop(), feed), strict=True):
        np.testing.assert_allclose(left, right)


def test_the_growing_axis_of_a_loop_becomes_a_dimension_of_its_own() -> None:
    model = load(counting_loop())
    legalise(model)
    types = infer_types(model)
    end, sums = (str(types.types[value]) for value in model.graph.outputs)
    assert end.startswith("float32[loop_")
    assert end.endswith(", 2]")
    assert sums.startswith("float32[steps_")


def test_a_position_outside_a_sequence_is_named() -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("SequenceAt", ["s", "count"], ["y"], "at"),
    ]
    session = hagane.InferenceSession(model_of(nodes, ["y"]))
    feed = {"x": X, "flag": np.array(True), "count": np.array(2)}
    with pytest.raises(
        KernelError,
        match="Gather 'at' failed: index 2 is out of range for axis 0 with size 2",
    ):
        session.run(None, feed)


def test_a_branch_that_no_run_takes_may_be_wrong() -> None:
    squeezed = helper.make_node("Squeeze", ["x", "axis"], ["b"])
    node = helper.make_node(
        "If", ["always"], ["y"], "choice",
        then_branch=branch("then", [helper.make_node("Relu", ["x"], ["a"])]),
        else_branch=branch("else", [squeezed]),
    )  # fmt: skip
    model = model_of([node], ["y"])
    constants = {"always": np.array(True), "axis": np.array([1])}
    for name, array in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    feed = {"x": X, "flag": np.array(True), "count": np.array(0)}
    (found,) = hagane.InferenceSession(model).run(None, feed)
    np.testing.assert_array_equal(found, np.maximum(X, 0))
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array(False), "always"))
    with pytest.raises(TypeInferenceError, match="expected size 1 on the squeezed axis 1"):
        hagane.InferenceSession(model)
