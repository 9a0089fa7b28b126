"""Damaged, hostile and malformed models: each a clear error, never a crash or a hang."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.errors import (
    ExternalDataError,
    HaganeError,
    InvalidGraph,
    InvalidModel,
    NoSuchFile,
    TypeInferenceError,
    UnsupportedModel,
)
from hagane.graph import load, save, to_text

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
Y = onnx.ValueInfoProto(name="y")


def model_of(
    nodes: list[onnx.NodeProto],
    initializers: list[onnx.TensorProto] | None = None,
    opset: int = 17,
    **graph: list[onnx.ValueInfoProto],
) -> onnx.ModelProto:
    content = helper.make_graph(
        nodes, "graph", graph.get("inputs", [X]), graph.get("outputs", [Y]), initializers or []
    )
    return helper.make_model(content, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def dense() -> onnx.ModelProto:
    weight = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w")
    return model_of([helper.make_node("MatMul", ["x", "w"], ["y"], "dense")], [weight])


def test_a_model_comes_from_path_bytes_proto_or_ir(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(dense(), path)
    feed = {"x": np.ones((1, 3), np.float32)}
    sources = (path, str(path), path.read_bytes(), dense(), load(path))
    results = [hagane.InferenceSession(source).run(None, feed)[0] for source in sources]
    for result in results:
        np.testing.assert_array_equal(result, [[6, 9]])


def test_a_number_as_the_name_of_a_size_is_no_size() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["0", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["7", 3])
    session = hagane.InferenceSession(model_of([node], inputs=[x], outputs=[y]))
    for rows in (0, 2, 5):
        (found,) = session.run(None, {"x": np.ones((rows, 3), np.float32)})
        assert found.shape == (rows, 3)


def test_loading_changes_neither_proto_nor_ir() -> None:
    proto = dense()
    before = proto.SerializeToString()
    model = load(proto)
    hagane.InferenceSession(proto)
    text = to_text(model)
    hagane.InferenceSession(model)
    assert proto.SerializeToString() == before
    assert to_text(model) == text


def test_a_missing_file_is_named() -> None:
    with pytest.raises(NoSuchFile, match=r"there is no model file 'nowhere\.onnx'"):
        load("nowhere.onnx")
    with pytest.raises(FileNotFoundError):
        load("nowhere.onnx")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty: expected a serialized ONNX model"),
        (b"not a model", "is not an ONNX model, or was truncated|holds no graph"),
        (dense().SerializeToString()[:40], "was truncated|holds no graph|is not an ONNX model"),
        (b"PK\x03\x04" + bytes(60), "is not an ONNX model|holds no graph"),
    ],
)
def test_bytes_that_are_no_model_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        load(data)


def test_something_else_than_a_model_is_refused() -> None:
    with pytest.raises(InvalidModel, match="a model is a path, bytes.*got int"):
        load(42)  # type: ignore[arg-type]


@pytest.mark.parametrize("position", range(0, 200, 7))
def test_a_truncated_file_never_gives_a_wrong_model(position: int) -> None:
    data = dense().SerializeToString()
    with pytest.raises(HaganeError):
        hagane.InferenceSession(data[: position % (len(data) - 1)])


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_corrupted_bytes_end_in_a_result_or_a_named_error(data: st.DataObject) -> None:
    content = bytearray(dense().SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, len(content) - 1))
        content[where] = data.draw(st.integers(0, 255))
    try:
        session = hagane.InferenceSession(bytes(content))
        session.run(None, {"x": np.ones((1, 3), np.float32)})
    except HaganeError:
        pass


def test_weights_shorter_than_their_shape_are_refused() -> None:
    model = dense()
    model.graph.initializer[0].dims[0] = 10**12
    with pytest.raises(InvalidModel, match=r"tensor 'w'.*needs 8000000000000 bytes, .* holds 24"):
        load(model)


@pytest.mark.parametrize(
    ("dims", "message"), [([-3, 2], "negative dimension"), ([3, 3], "needs 36 bytes")]
)
def test_impossible_shapes_of_weights_are_refused(dims: list[int], message: str) -> None:
    model = dense()
    model.graph.initializer[0].ClearField("dims")
    model.graph.initializer[0].dims.extend(dims)
    with pytest.raises(InvalidModel, match=message):
        load(model)


def external(folder: Path, location: str, length: int | None = None) -> Path:
    model = dense()
    tensor = model.graph.initializer[0]
    raw = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("length", length)):
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    (folder / "weights.bin").write_bytes(raw)
    path = folder / "model" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(model.SerializeToString())
    (path.parent / "weights.bin").write_bytes(raw)
    (path.parent / "short.bin").write_bytes(raw[:-1])
    return path


def test_external_weights_beside_the_model_are_used(tmp_path: Path) -> None:
    session = hagane.InferenceSession(external(tmp_path, "weights.bin"))
    (y,) = session.run(None, {"x": np.ones((1, 3), np.float32)})
    np.testing.assert_array_equal(y, [[6, 9]])


@pytest.mark.parametrize(
    ("location", "length", "message"),
    [
        ("../weights.bin", None, "lies outside the model's folder"),
        ("/etc/passwd", None, "lies outside the model's folder"),
        ("", None, "lies outside the model's folder"),
        ("nothing.bin", None, "there is no external file"),
        ("short.bin", None, "needs 24 bytes at offset 0, 'short.bin' holds 23"),
        ("weights.bin", 12, "declared length 12"),
    ],
)
def test_external_weights_that_cannot_be_right_are_refused(
    tmp_path: Path, location: str, length: int | None, message: str
) -> None:
    with pytest.raises(ExternalDataError, match=message):
        load(external(tmp_path, location, length))


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = external(tmp_path, "link.bin")
    (path.parent / "link.bin").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(ExternalDataError, match="lies outside the model's folder"):
        load(path)


def test_a_link_in_a_circle_is_no_file(tmp_path: Path) -> None:
    path = external(tmp_path, "link.bin")
    (path.parent / "link.bin").symlink_to("link.bin")
    with pytest.raises(ExternalDataError, match="there is no external file"):
        load(path)


def test_external_weights_need_a_folder(tmp_path: Path) -> None:
    data = external(tmp_path, "weights.bin").read_bytes()
    with pytest.raises(ExternalDataError, match="pass the path of the model file instead"):
        load(data)


def test_a_cycle_is_shown() -> None:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "second"),
        helper.make_node("Relu", ["b"], ["y"], "third"),
    ]
    with pytest.raises(InvalidGraph, match="the graph has a cycle: .*'first' <- .*'second' <- "):
        load(model_of(nodes))


def test_nodes_in_the_wrong_order_are_put_in_order() -> None:
    nodes = [
        helper.make_node("Relu", ["a"], ["y"], "second"),
        helper.make_node("Neg", ["x"], ["a"], "first"),
    ]
    (y,) = hagane.InferenceSession(model_of(nodes)).run(None, {"x": -np.ones((1, 3), np.float32)})
    np.testing.assert_array_equal(y, [[1, 1, 1]])


def test_an_undefined_name_is_named_with_its_reader() -> None:
    node = helper.make_node("Add", ["x", "ghost"], ["y"], "sum")
    with pytest.raises(InvalidGraph, match="Add 'sum': input 1 is 'ghost', which no node"):
        load(model_of([node]))


def test_an_output_that_nothing_computes_is_named() -> None:
    with pytest.raises(InvalidGraph, match="output 'y' is never computed"):
        load(model_of([helper.make_node("Relu", ["x"], ["z"])]))


def test_a_name_defined_twice_is_named() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], "one"),
        helper.make_node("Neg", ["x"], ["y"], "two"),
    ]
    message = "'y' .*is defined twice: by Relu 'one' and by Neg 'two'"
    with pytest.raises(InvalidGraph, match=message):
        load(model_of(nodes))


def test_all_unknown_operators_are_listed_at_once() -> None:
    nodes = [
        helper.make_node("Frobnicate", ["x"], ["a"], "one"),
        helper.make_node("Munge", ["a"], ["y"], "two", domain="my.domain"),
    ]
    model = model_of(nodes)
    model.opset_import.append(helper.make_opsetid("my.domain", 1))
    with pytest.raises(UnsupportedModel) as caught:
        hagane.InferenceSession(model)
    assert "Frobnicate 'one': operator 'Frobnicate' of domain 'ai.onnx'" in str(caught.value)
    assert "operator 'Munge' of domain 'my.domain'" in str(caught.value)
    assert len(caught.value.problems) == 2


def test_an_opset_of_the_future_is_named() -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], opset=99)
    with pytest.raises(UnsupportedModel, match="opset 99 of domain 'ai.onnx': expected 1 to 28"):
        hagane.InferenceSession(model)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            helper.make_node("LeakyRelu", ["i"], ["y"], "act1"),
            r"LeakyRelu 'act1': expected a floating-point input 'X', got int64\[2, 3\]",
        ),
        (
            helper.make_node("Add", ["x", "i"], ["y"], "sum"),
            "expected inputs of one element type T, got A: float32",
        ),
        (
            helper.make_node("MatMul", ["x", "x"], ["y"], "product"),
            None,
        ),
        (
            helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
            r"expected the columns of the first to equal the rows .*\(3 and 4\); "
            r"got A: float32\[n, 3\], B: float32\[4, 2\]",
        ),
        (
            helper.make_node("Relu", ["x", "x"], ["y"], "act"),
            "Relu 'act': expected 1 inputs, got 2",
        ),
        (
            helper.make_node("Relu", ["x"], ["y"], "act", slope=1.0),
            "unknown attribute 'slope'; its attributes are: none",
        ),
        (
            helper.make_node("Concat", ["x", "x"], ["y"], "join"),
            "expected the attribute 'axis', which is absent",
        ),
        (
            helper.make_node("Concat", ["x", "x"], ["y"], "join", axis="1"),
            "expected the attribute 'axis' to be INT, got STRING",
        ),
        (
            helper.make_node("Concat", ["x", "x"], ["y"], "join", axis=2),
            "axis=2 is out of range for 2 axes",
        ),
        (
            helper.make_node("Transpose", ["x"], ["y"], "turn", perm=[0, 0]),
            r"expected perm to order the 2 axes of float32\[n, 3\], got \[0, 0\]",
        ),
        (
            helper.make_node("Conv", ["image", "kernel"], ["y"], "conv"),
            "expected W to hold channels / group = 3 / 1 channels",
        ),
        (
            helper.make_node("Reshape", ["x", "shape"], ["y"], "view"),
            None,
        ),
    ],
)
def test_a_node_that_does_not_fit_says_what_where_and_what_came(
    node: onnx.NodeProto, message: str | None
) -> None:
    inputs = [
        X,
        helper.make_tensor_value_info("i", TensorProto.INT64, [2, 3]),
        helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 2]),
        helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8]),
        helper.make_tensor_value_info("kernel", TensorProto.FLOAT, [4, 2, 3, 3]),
    ]
    shape = numpy_helper.from_array(np.array([-1, 3]), "shape")
    model = model_of([node], [shape], inputs=inputs)
    if message is None:  # n may be 3, so nothing is wrong yet
        hagane.InferenceSession(model)
        return
    with pytest.raises(TypeInferenceError, match=message):
        hagane.InferenceSession(model)


def test_huge_declared_sizes_end_in_an_error_not_in_memory() -> None:
    shape = numpy_helper.from_array(np.array([2**40, 2**20]), "shape")
    model = model_of([helper.make_node("ConstantOfShape", ["shape"], ["y"], "fill")], [shape])
    with pytest.raises(
        hagane.errors.TypeInferenceError,
        match=r"ConstantOfShape 'fill': .* which is 4,611,686,018,427,387,904 bytes",
    ):
        hagane.InferenceSession(model)


@pytest.mark.parametrize("version", [17, 14, 21])
def test_functions_are_inlined(version: int) -> None:
    function = helper.make_function(
        "local", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", version)],
    )  # fmt: skip
    model = model_of([helper.make_node("Twice", ["x"], ["y"], domain="local")])
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(function)
    (y,) = hagane.InferenceSession(model).run(None, {"x": np.ones((1, 3), np.float32)})
    np.testing.assert_array_equal(y, [[2, 2, 2]])


def test_functions_of_operators_that_changed_are_refused() -> None:
    function = helper.make_function(
        "local", "Summed", ["a"], ["b"], [helper.make_node("ReduceSum", ["a"], ["b"], axes=[0])],
        [helper.make_opsetid("", 11)],
    )  # fmt: skip
    model = model_of([helper.make_node("Summed", ["x"], ["y"], domain="local")])
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(function)
    with pytest.raises(hagane.errors.InvalidGraph, match="has version 17 in the model"):
        hagane.InferenceSession(model)


@pytest.mark.parametrize("apart", [False, True])
def test_what_is_saved_is_read_by_onnx_and_onnxruntime(tmp_path: Path, apart: bool) -> None:
    import onnxruntime

    path = tmp_path / "saved.onnx"
    model = dense()
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2]))
    save(load(model), path, external_data=apart)
    onnx.checker.check_model(path, full_check=True)
    assert (tmp_path / "saved.onnx.data").exists() == apart
    feed = {"x": np.ones((1, 3), np.float32)}
    for engine in (onnxruntime, hagane):
        session = engine.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(session.run(None, feed)[0], [[6, 9]])


def test_text_shows_types_weights_and_attributes() -> None:
    text = to_text(load(dense()))
    assert "graph graph(x: float32[n, 3]) {" in text
    assert "w: float32[3, 2] = [[0., 1.]," in text
    assert "MatMul(x, w)" in text
