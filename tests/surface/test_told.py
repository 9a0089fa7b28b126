"""Texts of errors, and descriptions of models, as ONNX Runtime's users read them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import hagane.onnxruntime as ort
from hagane.errors import InvalidArgument
from hagane.onnxruntime import state
from tests.surface.misuse import F, X, proto, sequence_model
from tests.surface.test_surface import session


@pytest.mark.parametrize(
    ("feed", "text"),
    [
        ({}, "Required inputs (['x']) are missing from input feed ([])."),
        ({"z": X}, "Required inputs (['x']) are missing from input feed (['z'])."),
        ({"x": X, "z": X}, "Invalid input name: z"),
        (
            {"x": X.astype(np.float64)},
            "Unexpected input data type. Actual: (tensor(double)) , expected: (tensor(float))",
        ),
        ({"x": X[0]}, "Invalid rank for input: x Got: 1 Expected: 2 Please fix"),
        ({"x": X[:, :2]}, "for the following indices\n index: 1 Got: 2 Expected: 3\n Please"),
    ],
)
def test_errors_of_feeds_begin_with_what_programs_search_for(
    feed: dict[str, Any], text: str
) -> None:
    made = session()
    with pytest.raises(state.InvalidArgument) as caught:
        made.run(None, feed)
    theirs, _, own = str(caught.value).rpartition("\n")
    assert text in theirs
    assert theirs.startswith("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : ") == ("x" in feed)
    assert re.match("unknown input 'z'|missing input 'x'|input 'x': expected float32", own)


def test_errors_of_nodes_and_files_have_codes_in_front() -> None:
    gather = proto(
        [helper.make_node("Gather", ["x", "i"], ["y"], name="pick")],
        {"x": (F, ["n"]), "i": (TensorProto.INT64, ["k"])},
        {"y": (F, ["k"])},
    )
    made = ort.InferenceSession(gather.SerializeToString())
    with pytest.raises(state.InvalidArgument, match=r"running Gather node. Name:'pick' Status Mes"):
        made.run(None, {"x": X[0], "i": np.array([7])})
    half = proto(
        [helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])],
        {"x": (TensorProto.FLOAT16, [2])}, {"y": (TensorProto.UINT8, [2])},
    )  # fmt: skip
    with pytest.raises(state.Fail, match="expected a float32 input 'x', got float16"):
        ort.InferenceSession(half.SerializeToString())
    lacking = proto(
        [helper.make_node("Bend", ["x"], ["y"], domain="com.microsoft")], {"x": (F, [2])},
        {"y": (F, [2])}, imports=[helper.make_opsetid("com.microsoft", 1)],
    )  # fmt: skip
    with pytest.raises(state.Fail, match=r": com.microsoft:Bend\(-1\) is not a registered fun"):
        ort.InferenceSession(lacking.SerializeToString())
    with pytest.raises(state.NoSuchFile, match=r"^\[ONNXRuntimeError\] : 3 : NO_SUCHFILE : there"):
        ort.InferenceSession("nothing.onnx")
    with pytest.raises(InvalidArgument, match="Invalid output name:q\nunknown output 'q'; the mo"):
        session().run(["q"], {"x": X})


def test_a_sequence_has_no_shape_and_names_its_elements() -> None:
    made = ort.InferenceSession(sequence_model().SerializeToString())
    (out,) = made.get_outputs()
    assert (out.type, out.shape) == ("seq(tensor(float))", [])
    (value,) = made.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(X)})
    assert value.data_type() == "seq(tensor(float))"


def test_objects_become_texts_where_texts_are_expected() -> None:
    model = proto(
        [helper.make_node("Identity", ["x"], ["y"])],
        {"x": (TensorProto.STRING, ["n"])},
        {"y": (TensorProto.STRING, ["n"])},
    )
    (y,) = ort.InferenceSession(model.SerializeToString()).run(
        None, {"x": np.array(["a", 1, 2.5, None], object)}
    )
    assert y.tolist() == ["a", "1", "2.5", "None"]


def test_an_optional_input_may_be_left_out() -> None:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(F, [2]))
    graph = helper.make_graph(
        [helper.make_node("OptionalHasElement", ["x"], ["y"])],
        "has",
        [helper.make_value_info("x", kind)],
        [helper.make_tensor_value_info("y", TensorProto.BOOL, [])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    made = ort.InferenceSession(model.SerializeToString())
    assert [bool(made.run(None, f)[0]) for f in ({}, {"x": None}, {"x": X[0, :2]})] == [0, 0, 1]


def test_changes_of_descriptions_reach_no_session() -> None:
    made = session()
    made.get_inputs()[0].shape.append(7)
    assert made.get_inputs()[0].shape == ["n", 3]
    assert len({*made.get_inputs(), *made.get_outputs()}) == 2
    about = made.get_modelmeta()
    about.custom_metadata_map["a"] = "b"
    about.producer_name, about.version = "me", 4
    assert about.custom_metadata_map == {}
    about.custom_metadata_map = {"a": "b"}
    again = made.get_modelmeta()
    assert (again.producer_name, again.version, again.custom_metadata_map) == ("me", 4, {"a": "b"})
    assert session().get_modelmeta().custom_metadata_map == {}


def test_a_size_without_a_name_has_none_in_outputs_either() -> None:
    model = proto(
        [helper.make_node("Relu", ["x"], ["y"])], {"x": (F, ["n", None])}, {"y": (F, None)}
    )
    assert ort.InferenceSession(model.SerializeToString()).get_outputs()[0].shape == ["n", None]


def test_a_profile_ends_once(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p")
    made = session(sess_options=options)
    made.run(None, {"x": X})
    assert json.loads(Path(made.end_profiling()).read_text())
    assert made.end_profiling() == ""
    np.testing.assert_array_equal(made.run(None, {"x": X})[0], X + 1)
