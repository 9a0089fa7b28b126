"""Old forms of operators, brought to the current form, against ONNX Runtime's reading of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hagane.errors import TypeInferenceError, UnsupportedModel
from hagane.graph import CURRENT_OPSETS, load
from hagane.passes.legalise import legalise
from tests.oracle import assert_agrees, assert_node_agrees, node_model


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


X = normal(2, 3, 4, 5)
CASES: dict[str, tuple[int, str, list[np.ndarray | None], dict[str, Any]]] = {
    "BatchNormalization-7": (
        7,
        "BatchNormalization",
        [X, normal(3), normal(3, seed=1), normal(3, seed=2), np.abs(normal(3, seed=3))],
        {"epsilon": 1e-3},
    ),
    "BatchNormalization-9": (
        9,
        "BatchNormalization",
        [X, normal(3), normal(3, seed=1), normal(3, seed=2), np.abs(normal(3, seed=3))],
        {},
    ),
    "BatchNormalization-8 of elements": (
        8,
        "BatchNormalization",
        [normal(2, 3, 4), *(normal(3, 4, seed=i) for i in range(3)), np.abs(normal(3, 4, seed=3))],
        {"spatial": 0},
    ),
    "Clip-7": (7, "Clip", [X], {"min": -0.5, "max": 0.25}),
    "Clip-7 from below": (7, "Clip", [X], {"min": 0.1}),
    "Clip-10 unbounded": (10, "Clip", [X], {}),
    "Dropout-7": (7, "Dropout", [X], {"ratio": 0.3}),
    "Dropout-7 and its mask": (7, "Dropout", [X], {}),
    "Dropout-11 and its mask": (11, "Dropout", [X], {}),
    "Hardmax-11 over two axes": (11, "Hardmax", [X], {"axis": 2}),
    "LogSoftmax-7 by default": (7, "LogSoftmax", [X], {}),
    "Pad-7": (7, "Pad", [X], {"pads": [0, 1, 2, 0, 0, 0, 1, 3], "value": 1.5}),
    "Pad-10 reflect": (10, "Pad", [X], {"pads": [0, 0, 1, 2, 0, 0, 1, 2], "mode": "reflect"}),
    "ReduceMax-11": (11, "ReduceMax", [X], {"axes": [1, -1], "keepdims": 0}),
    "ReduceLogSumExp-13 of integers": (
        13,
        "ReduceLogSumExp",
        [np.arange(12, dtype=np.int32).reshape(3, 4)],
        {"axes": [1]},
    ),
    "ReduceLogSum-18 of integers": (18, "ReduceLogSum", [np.arange(1, 13)], {}),
    "ReduceMean-7 of all": (7, "ReduceMean", [X], {}),
    "ReduceL2-13": (13, "ReduceL2", [X], {"axes": [2]}),
    "ReduceSum-11": (11, "ReduceSum", [X], {"axes": [0, 3]}),
    "Softmax-7 over three axes": (7, "Softmax", [X], {"axis": 1}),
    "Softmax-11 from the last but one": (11, "Softmax", [X], {"axis": -2}),
    "Softmax-11 of all": (11, "Softmax", [X], {"axis": 0}),
    "Slice-7": (7, "Slice", [X], {"starts": [1, -3], "ends": [3, 100], "axes": [1, 3]}),
    "Slice-9 without axes": (9, "Slice", [X], {"starts": [0, 1], "ends": [1, -1]}),
    "Squeeze-7": (7, "Squeeze", [normal(1, 3, 1, 2)], {"axes": [0, 2]}),
    "Squeeze-11 from the back": (11, "Squeeze", [normal(1, 3, 1)], {"axes": [-1]}),
    "Unsqueeze-7": (7, "Unsqueeze", [normal(3, 2)], {"axes": [0, 3]}),
    "Unsqueeze-11 from the back": (11, "Unsqueeze", [normal(3, 2)], {"axes": [-1]}),
    "Upsample-7 nearest": (7, "Upsample", [X], {"scales": [1.0, 1.0, 2.0, 3.0]}),
    "Upsample-7 linear": (
        7,
        "Upsample",
        [X],
        {"scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear"},
    ),
    "Upsample-9": (9, "Upsample", [X, np.float32([1, 1, 2, 2])], {"mode": "nearest"}),
    "Resize-10 down": (10, "Resize", [X, np.float32([1, 1, 0.5, 0.6])], {"mode": "nearest"}),
    "Resize-10 both ways": (10, "Resize", [X, np.float32([1, 1, 0.5, 2])], {"mode": "nearest"}),
    "Resize-10 linear": (10, "Resize", [X, np.float32([1, 1, 2.5, 2])], {"mode": "linear"}),
    "TopK-7": (7, "TopK", [X], {"k": 2, "axis": 1}),
    "Scatter-9": (
        9,
        "Scatter",
        [normal(3, 3), np.array([[1, 0, 2]]), normal(1, 3, seed=1)],
        {"axis": 0},
    ),
    "RoiAlign-10": (
        10,
        "RoiAlign",
        [X, np.float32([[0, 0, 3, 3], [1, 1, 4, 3]]), np.array([0, 1])],
        {"output_height": 2, "output_width": 2, "sampling_ratio": 2},
    ),
    "GridSample-16": (
        16,
        "GridSample",
        [X, np.clip(normal(2, 3, 3, 2), -1, 1)],
        {"mode": "bilinear", "padding_mode": "zeros"},
    ),
    "GridSample-16 bicubic": (
        16,
        "GridSample",
        [X, np.clip(normal(2, 3, 3, 2), -1, 1)],
        {"mode": "bicubic", "padding_mode": "border", "align_corners": 1},
    ),
    "DFT-17": (17, "DFT", [normal(1, 8, 2)], {"axis": 1}),
}


@pytest.mark.parametrize("name", CASES)
def test_an_old_form_means_what_it_meant(name: str) -> None:
    opset, op_type, inputs, attributes = CASES[name]
    outputs = 2 if op_type == "TopK" or "mask" in name else 1
    constants = (1,) if op_type in ("Upsample", "Resize") and len(inputs) > 1 else ()
    assert_node_agrees(op_type, inputs, outputs, opset=opset, constants=constants, **attributes)


@pytest.mark.parametrize("opset", [7, 11, 13, 18, 21])
def test_split_by_attribute_input_and_number_of_outputs(opset: int) -> None:
    x = normal(6, 2)
    if opset < 13:
        assert_node_agrees("Split", [x], 3, opset=opset, axis=0, split=[1, 2, 3])
    else:
        lengths = np.array([1, 2, 3])
        assert_node_agrees("Split", [x, lengths], 3, opset=opset, axis=0, constants=(1,))
    equal = {"num_outputs": 3} if opset >= 18 else {}
    assert_node_agrees("Split", [x], 3, opset=opset, axis=0, **equal)


def test_group_normalization_18_spreads_scale_and_bias_over_channels() -> None:
    model, feed = node_model(
        "GroupNormalization",
        [normal(2, 6, 4), normal(3), normal(3, seed=1)],
        opset=18,
        num_groups=3,
    )
    assert_agrees(model, feed)


def scan_8() -> onnx.ModelProto:
    """Running sums over time of a batch of sequences, as opset 8 writes it."""
    element = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("sum", "item")]
    body = helper.make_graph(
        [
            helper.make_node("Add", ["sum", "item"], ["total"]),
            helper.make_node("Identity", ["total"], ["shown"]),
        ],
        "body",
        element,
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("total", "shown")],
    )
    graph = helper.make_graph(
        [
            helper.make_node(
                "Scan", ["", "start", "x"], ["end", "sums"], num_scan_inputs=1, body=body
            )
        ],
        "scan",
        [
            helper.make_tensor_value_info("start", TensorProto.FLOAT, [3, 2]),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4, 2]),
        ],
        [
            helper.make_tensor_value_info("end", TensorProto.FLOAT, [3, 2]),
            helper.make_tensor_value_info("sums", TensorProto.FLOAT, [3, 4, 2]),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=8)


def test_scan_8_runs_over_its_batch() -> None:
    assert_agrees(scan_8(), {"start": normal(3, 2), "x": normal(3, 4, 2, seed=1)})


def test_legalising_twice_changes_nothing() -> None:
    for opset, op_type, inputs, attributes in CASES.values():
        model, _ = node_model(op_type, inputs, opset=opset, **attributes)
        graph = load(model)
        legalise(graph)
        once = [(node.op_type, len(node.inputs)) for node in graph.graph]
        assert graph.opset_imports[""] == CURRENT_OPSETS[""]
        legalise(graph)
        assert [(node.op_type, len(node.inputs)) for node in graph.graph] == once


def test_all_unusable_opsets_and_forms_are_listed_at_once() -> None:
    graph = helper.make_graph(
        [
            helper.make_node("Reshape", ["x"], ["a"], "first", shape=[2]),
            helper.make_node("Pad", ["a"], ["y"], "second", paddings=[0, 0]),
        ],
        "old",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    opsets = [helper.make_opsetid("", 1), helper.make_opsetid("ai.onnx.ml", 99)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=3)
    with pytest.raises(UnsupportedModel) as caught:
        legalise(load(model))
    text = str(caught.value)
    assert "opset 99 of domain 'ai.onnx.ml': expected 1 to 5" in text
    assert "Reshape 'first': opset 1 has another form of it" in text
    assert "Pad 'second': opset 1 has another form of it" in text


def test_batch_normalization_in_training_form_is_refused_by_name() -> None:
    statistics = [normal(3, seed=i) for i in range(4)]
    model, _ = node_model("BatchNormalization", [X, *statistics], 3, opset=9)
    with pytest.raises(UnsupportedModel, match=r"BatchNormalization 'node'.*training outputs"):
        legalise(load(model))


@pytest.mark.parametrize(
    ("opset", "op_type", "n_inputs", "message"),
    [
        (7, "Upsample", 1, "Upsample '-> y': expected the attribute 'scales', which is absent"),
        (6, "Pad", 3, "Pad '-> y' .opset 6.: expected 1 inputs, got 3|'pads', which is absent"),
        (6, "TopK", 1, "TopK '-> y': expected the attribute 'k', which is absent"),
        (10, "Resize", 1, r"Resize '-> y' \(opset 10\): expected 2 inputs, got 1"),
        (11, "Squeeze", 2, r"Squeeze '-> y' \(opset 11\): expected 1 inputs, got 2"),
    ],
)
def test_an_old_form_that_its_opset_lacks_is_refused_by_name(
    opset: int, op_type: str, n_inputs: int, message: str
) -> None:
    names = [f"x{number}" for number in range(n_inputs)]
    node = helper.make_node(op_type, names, ["y"])
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in names]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    with pytest.raises(TypeInferenceError, match=message):
        legalise(load(model))


def test_absent_inputs_at_the_end_that_an_operator_lacks_are_dropped() -> None:
    node = helper.make_node("Relu", ["x", "", ""], ["y"])
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])]
    graph = helper.make_graph([node], "g", inputs, outputs)
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
    legalise(model)
    assert [len(each.inputs) for each in model.graph] == [1]


def test_upsample_without_scales_is_refused_by_name() -> None:
    model, _ = node_model("Upsample", [X], opset=6, height_scale=2.0, width_scale=2.0)
    with pytest.raises(UnsupportedModel, match="Upsample 'node'.*expected 'scales'"):
        legalise(load(model))
