"""Models that end in dicts and texts: kernels compute all before these, in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.errors import InvalidArgument, InvalidFeed, KernelError

ML = "ai.onnx.ml"
RANDOM = np.random.default_rng(0)
LABELS = {
    "numbers": {"classlabels_int64s": [4, -7, 5]},
    "texts": {"classlabels_strings": ["it's", "ü", 'a "b"']},
}


def classifier(kind: str, zipped: bool = True) -> onnx.ModelProto:
    """Return a linear classifier of three classes, whose scores become dicts."""
    listed = {key.replace("64s", "s"): value for key, value in LABELS[kind].items()}
    nodes = [
        helper.make_node(
            "LinearClassifier", ["x"], ["label", "margins"], domain=ML, post_transform="NONE",
            coefficients=RANDOM.standard_normal(12).tolist(), intercepts=[0.1, 0.2, -0.3], **listed,
        ),
        helper.make_node("Softmax", ["margins"], ["scores"], axis=1),
    ]  # fmt: skip
    texts = kind == "texts"
    outputs = [
        helper.make_tensor_value_info(
            "label", TensorProto.STRING if texts else TensorProto.INT64, ["n"]
        )
    ]
    if zipped:
        nodes.append(helper.make_node("ZipMap", ["scores"], ["rows"], domain=ML, **LABELS[kind]))
        key = TensorProto.STRING if texts else TensorProto.INT64
        rows = helper.make_sequence_type_proto(
            helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        )
        outputs.append(helper.make_value_info("rows", rows))
    outputs.append(helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 3]))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)]
    graph = helper.make_graph(nodes, "classifier", inputs, outputs)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def short(session: hagane.InferenceSession, feed: dict[str, Any], names: Any = None) -> Any:
    """Run a session by its short way."""
    assert session._call is not None
    return session._call(feed, names)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kind", list(LABELS))
def test_results_are_those_of_onnxruntime_by_the_short_way(kind: str, zipped: bool) -> None:
    proto = classifier(kind, zipped)
    session = hagane.InferenceSession(proto)
    other = onnxruntime.InferenceSession(proto.SerializeToString())
    for rows in (1, 5, 0, 33):
        feed = {"x": RANDOM.standard_normal((rows, 4)).astype(np.float32)}
        found, expected = short(session, feed), other.run(None, feed)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_allclose(found[-1], expected[-1], rtol=1e-5)
        assert found[-1].flags.writeable
        if zipped:
            assert [[*row] for row in found[1]] == [[*row] for row in expected[1]]
            for row, wanted in zip(found[1], expected[1], strict=True):
                assert [*row.values()] == pytest.approx([*wanted.values()])


def test_outputs_are_chosen_by_name_in_any_order() -> None:
    session = hagane.InferenceSession(classifier("texts"))
    feed = {"x": np.ones((2, 4), np.float32)}
    label, rows, scores = session.run(None, feed)
    chosen = short(session, feed, ["scores", "label"])
    np.testing.assert_array_equal(chosen[0], scores)
    assert chosen[1].tolist() == label.tolist()
    assert session.run(["rows"], feed) == [rows]
    assert session.run([], feed)[1] == rows


def test_feeds_and_names_that_do_not_fit_are_named() -> None:
    session = hagane.InferenceSession(classifier("numbers"))
    feed = {"x": np.ones((2, 4), np.float32)}
    with pytest.raises(InvalidArgument, match="'nothing'"):
        session.run(["nothing"], feed)
    with pytest.raises(InvalidFeed, match="expected float32"):
        session.run(None, {"x": np.ones((2, 4))})
    with pytest.raises(InvalidFeed, match="input 'x'"):
        session.run(None, {"x": np.ones((2, 5), np.float32)})


def test_results_stay_what_they_are_in_later_runs() -> None:
    session = hagane.InferenceSession(classifier("numbers"))
    first = session.run(None, {"x": np.ones((2, 4), np.float32)})
    kept = first[0].copy(), [dict(row) for row in first[1]], first[2].copy()
    session.run(None, {"x": -np.ones((2, 4), np.float32)})
    np.testing.assert_array_equal(first[0], kept[0])
    assert first[1] == kept[1]
    np.testing.assert_array_equal(first[2], kept[2])


def test_an_error_behind_the_part_names_its_node() -> None:
    proto = classifier("numbers")
    (rows,) = (node for node in proto.graph.node if node.op_type == "ZipMap")
    rows.name = "dicts"
    rows.attribute[0].ints.append(9)
    session = hagane.InferenceSession(proto)
    with pytest.raises(KernelError, match="ZipMap 'dicts' failed: .* expected 4 columns"):
        session.run(None, {"x": np.ones((2, 4), np.float32)})


def test_many_labels_make_dicts_too() -> None:
    labels = [f"class {n}" for n in range(300)]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 300])]
    made = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    rows = helper.make_value_info("rows", helper.make_sequence_type_proto(made))
    nodes = [
        helper.make_node("Neg", ["x"], ["y"]),
        helper.make_node("ZipMap", ["y"], ["rows"], domain=ML, classlabels_strings=labels),
    ]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)]
    graph = helper.make_graph(nodes, "wide", inputs, [rows])
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    x = RANDOM.standard_normal((2, 300)).astype(np.float32)
    (found,) = hagane.InferenceSession(proto).run(None, {"x": x})
    assert found == [dict(zip(labels, (-row).tolist(), strict=True)) for row in x]


def handed_on() -> onnx.ModelProto:
    """Return a model whose outputs are an input, a constant twice, and what is computed."""
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Add", ["w", "w"], ["z"]),
        helper.make_node("Identity", ["z"], ["again"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in ("x", "z", "y", "w", "again")
    ]
    weights = [numpy_helper.from_array(np.float32([1, 2, 3]), "w")]
    graph = helper.make_graph(nodes, "handed", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_outputs_that_are_inputs_or_constants_come_by_the_short_way() -> None:
    session = hagane.InferenceSession(handed_on())
    other = onnxruntime.InferenceSession(handed_on().SerializeToString())
    assert [each.shape for each in session.get_inputs()] == [["n", 4]]
    for rows in (3, 1, 5):
        x = RANDOM.standard_normal((rows, 4)).astype(np.float32)
        for fed in (x, np.asfortranarray(x), x[::-1]):
            for names in (None, ["again", "y"], ["w", "x"]):
                found, want = short(session, {"x": fed}, names), other.run(names, {"x": fed})
                for one, two in zip(found, want, strict=True):
                    np.testing.assert_array_equal(one, two)
                    assert one.flags.owndata
                    assert one.flags.c_contiguous
        for result in session.run(None, {"x": x}):
            before = x.copy()
            result += 1  # the caller's own
            np.testing.assert_array_equal(x, before)
        np.testing.assert_array_equal(session.run(["z"], {"x": x})[0], [2, 4, 6])
    value = hagane.OrtValue.ortvalue_from_numpy(x)
    for one, two in zip(session.run(None, {"x": value}), other.run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(one, two)
