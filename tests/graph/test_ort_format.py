"""Models in ONNX Runtime's own format, which the installed package writes."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane
import hagane.onnxruntime as ort
from hagane.errors import HaganeError, InvalidModel
from hagane.graph.ort_format import is_ort, read_ort
from hagane.graph.ort_written import write_ort

F = TensorProto.FLOAT


def written(model: onnx.ModelProto, folder: Path, level: Any) -> Path:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.save_model_format", "ORT")
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(folder / "model.ort")
    onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return folder / "model.ort"


def network() -> onnx.ModelProto:
    """Return a model with branches, attributes of several types, metadata and open sizes."""
    random_ = np.random.default_rng(0)

    def body(name: str, kind: str) -> onnx.GraphProto:
        node = helper.make_node(kind, ["p"], [name])
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, F, None)])

    up, down = body("a", "Exp"), body("b", "Neg")
    weight = random_.standard_normal((4, 3, 3, 3)).astype(np.float32)
    value = numpy_helper.from_array(np.float32(0.5))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("LeakyRelu", ["c"], ["l"], alpha=0.2),
        helper.make_node("Constant", [], ["half"], value=value),
        helper.make_node("Mul", ["l", "half"], ["p"]),
        helper.make_node("ReduceSum", ["p"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["up"]),
        helper.make_node("If", ["up"], ["y"], then_branch=up, else_branch=down),
        helper.make_node("Einsum", ["y"], ["z"], equation="bchw->bc"),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", F, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("z", F, ["n", 4])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.float32(0), "zero")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.producer_name = "tests"
    helper.set_model_props(model, {"classes": "four"})
    return model


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED"])
def test_a_file_gives_what_its_writer_gives(tmp_path: Path, level: str) -> None:
    path = written(network(), tmp_path, getattr(onnxruntime.GraphOptimizationLevel, level))
    theirs = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    ours = hagane.InferenceSession(path)
    assert [(i.name, i.type, i.shape) for i in ours.get_inputs()] == [
        (i.name, i.type, i.shape) for i in theirs.get_inputs()
    ]
    assert ours.get_modelmeta().custom_metadata_map == {"classes": "four"}
    assert ours.get_modelmeta().producer_name == "tests"
    for sign in (1, -1):
        x = sign * np.random.default_rng(1).random((2, 3, 8, 8), np.float32)
        np.testing.assert_allclose(ours.run(None, {"x": x})[0], theirs.run(None, {"x": x})[0], 1e-5)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    whole = written(network(), tmp_path, level).read_bytes()
    assert is_ort(whole)
    for end in range(8, len(whole), 97):
        with pytest.raises(HaganeError):
            hagane.InferenceSession(whole[:end])
    generator = random.Random(0)
    for _ in range(200):
        broken = bytearray(whole)
        for _ in range(3):
            broken[generator.randrange(8, len(broken))] = generator.randrange(256)
        with suppress(InvalidModel):
            read_ort(bytes(broken))
    with pytest.raises(InvalidModel, match="ONNX Runtime's format is damaged: place"):
        read_ort(whole[:12])


@pytest.mark.parametrize("by_name", [True, False])
def test_a_written_file_gives_what_the_model_gives_here_and_there(
    tmp_path: Path, by_name: bool
) -> None:
    options = ort.SessionOptions()
    path = tmp_path / ("model.ort" if by_name else "model.bin")
    if not by_name:
        options.add_session_config_entry("session.save_model_format", "ORT")
    options.optimized_model_filepath = str(path)
    whole = ort.InferenceSession(network().SerializeToString(), options)
    assert is_ort(path.read_bytes())
    theirs = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    ours = hagane.InferenceSession(path.read_bytes())
    assert [(i.name, i.type, i.shape) for i in theirs.get_inputs()] == [
        ("x", "tensor(float)", ["n", 3, 8, 8])
    ]
    for session in (theirs, ours):
        assert session.get_modelmeta().custom_metadata_map == {"classes": "four"}
        for sign in (1, -1):
            x = sign * np.random.default_rng(1).random((2, 3, 8, 8), np.float32)
            expected = whole.run(None, {"x": x})[0]
            np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, 1e-5)


def test_weights_of_all_types_stand_in_a_written_file() -> None:
    arrays = {
        "texts": np.array([["a", "ö"], ["", "long"]], object),
        "halves": np.array([1.5, -2], np.float16),
        "bytes": np.arange(5, dtype=np.uint8),
        "truths": np.array([True, False]),
        "whole": np.array(2**40, np.int64),
        "none": np.zeros((0, 3), np.float32),
    }
    names = list(arrays)
    graph = helper.make_graph(
        [helper.make_node("Identity", [n], [f"{n}_out"]) for n in names],
        "weights",
        [],
        [
            helper.make_tensor_value_info(
                f"{n}_out", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape
            )
            for n, a in arrays.items()
        ],
        [numpy_helper.from_array(a, n) for n, a in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    data = write_ort(model)
    for session in (
        onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]),
        hagane.InferenceSession(data),
    ):
        for found, expected in zip(session.run(None, {}), arrays.values(), strict=True):
            np.testing.assert_array_equal(found, expected)
