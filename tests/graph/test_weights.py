"""Weights stay in their file: read when needed, given back, refused once the file has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hagane
from hagane.errors import InvalidModel
from hagane.graph import load
from hagane.graph.weights import StoredTensor, stored_weights
from hagane.graph.wire import Irregular, without_weights


def product(rows: int | str = "n", width: int = 64) -> onnx.ModelProto:
    """Return ``y = x @ w`` with a weight large enough to stay in the file."""
    random = np.random.default_rng(0)
    weight = random.standard_normal((width, width)).astype(np.float32)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, [rows, width])],
        [onnx.helper.make_tensor_value_info("y", 1, [rows, width])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    return onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10
    )


def weight_of(model: onnx.ModelProto) -> np.ndarray:
    """Return the one weight."""
    return onnx.numpy_helper.to_array(model.graph.initializer[0])


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(product(), path)
    return path


def test_a_large_weight_is_a_view_of_the_file(path: Path) -> None:
    model = load(path)
    tensor = model.graph.initializers["w"].const_value
    assert isinstance(tensor, StoredTensor)
    array = tensor.numpy()
    assert not array.flags.owndata
    assert not array.flags.writeable
    np.testing.assert_array_equal(array, weight_of(product()))
    assert tensor.tobytes() == weight_of(product()).tobytes()


def test_the_bytes_of_a_model_are_not_copied(path: Path) -> None:
    data = path.read_bytes()
    model = load(data)
    tensor = model.graph.initializers["w"].const_value
    assert isinstance(tensor, StoredTensor)
    assert np.shares_memory(tensor.numpy(), np.frombuffer(data, np.uint8))


def test_pages_that_were_given_back_are_read_again(path: Path) -> None:
    model = load(path)
    (store,) = stored_weights(model.graph)
    tensor = model.graph.initializers["w"].const_value
    assert tensor is not None
    before = tensor.numpy().copy()
    store.forget()
    np.testing.assert_array_equal(tensor.numpy(), before)
    store.close()
    np.testing.assert_array_equal(tensor.numpy(), before)


def test_a_session_survives_the_removal_of_its_file(path: Path) -> None:
    session = hagane.InferenceSession(path)
    path.unlink()
    for rows in (1, 5, 17):
        x = np.ones((rows, 64), np.float32)
        (y,) = session.run(None, {"x": x})
        np.testing.assert_allclose(y, x @ weight_of(product()), rtol=1e-5, atol=1e-5)


def test_weights_of_a_file_that_changed_are_refused(path: Path) -> None:
    model = load(path)
    (store,) = stored_weights(model.graph)
    store.close()
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(b"\0")
    tensor = model.graph.initializers["w"].const_value
    assert tensor is not None
    with pytest.raises(InvalidModel, match=r"was changed after the model was loaded.*new session"):
        tensor.numpy()


def test_a_session_does_not_read_what_its_file_became(path: Path) -> None:
    x = np.ones((3, 64), np.float32)
    session = hagane.InferenceSession(path)
    other = product()
    other.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(np.zeros((64, 64), np.float32), "w")
    )
    onnx.save(other, path)
    (y,) = session.run(None, {"x": x})
    np.testing.assert_allclose(y, x @ weight_of(product()), rtol=1e-5, atol=1e-5)


def test_a_model_read_without_its_weights_keeps_everything_else() -> None:
    model = product()
    model.doc_string = "kept"
    model.graph.initializer[0].doc_string = "of the weight"
    data = model.SerializeToString()
    light = onnx.ModelProto.FromString(without_weights(memoryview(data), "here", 4096))
    assert len(light.SerializeToString()) < 1000
    (tensor,) = light.graph.initializer
    entries = {entry.key: entry.value for entry in tensor.external_data}
    assert entries["location"] == "here"
    start, length = int(entries["offset"]), int(entries["length"])
    assert data[start : start + length] == weight_of(model).tobytes()
    assert tensor.doc_string == "of the weight"
    assert light.graph.node == model.graph.node
    assert light.doc_string == "kept"


def test_a_weight_whose_length_is_wrong_is_left_for_the_complete_reader() -> None:
    model = product()
    model.graph.initializer[0].dims[0] = 63
    with pytest.raises(InvalidModel, match=r"'w'.*needs 16128 bytes, the file holds 16384"):
        load(model.SerializeToString())


def held_by_a_node() -> onnx.ModelProto:
    """Return ``y = x @ w`` whose weight is a Constant, as Paddle writes it."""
    model = product()
    (weight,) = model.graph.initializer
    model.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["w"], value=weight))
    del model.graph.initializer[:]
    return model


def test_a_large_constant_stays_in_the_file_too(tmp_path: Path) -> None:
    model, path = held_by_a_node(), tmp_path / "model.onnx"
    data = model.SerializeToString()
    assert len(without_weights(memoryview(data), "here", 4096)) < 1000
    path.write_bytes(data)
    node = next(iter(load(path).graph))
    tensor = node.attributes["value"].as_tensor()
    assert isinstance(tensor, StoredTensor)
    assert not tensor.numpy().flags.owndata
    weight = weight_of(product())
    np.testing.assert_array_equal(tensor.numpy(), weight)
    x = np.ones((3, 64), np.float32)
    for engine in ("native", "reference"):
        options = hagane.SessionOptions()
        options.add_session_config_entry("hagane.engine", engine)
        (y,) = hagane.InferenceSession(path, options).run(None, {"x": x})
        np.testing.assert_allclose(y, x @ weight, rtol=1e-5, atol=1e-5)


def test_a_damaged_constant_is_left_for_the_complete_reader() -> None:
    model = held_by_a_node()
    model.graph.node[0].attribute[0].t.dims[0] = 63
    with pytest.raises(InvalidModel, match=r"'w'.*needs 16128 bytes, the file holds 16384"):
        load(model.SerializeToString())


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_irregular_or_kept(data: bytes) -> None:
    try:
        light = without_weights(memoryview(data), "here", 4096)
    except Irregular:
        return
    try:
        whole = onnx.ModelProto.FromString(data)
    except Exception:  # not a model either way
        return
    assert onnx.ModelProto.FromString(light) == whole


@given(st.integers(0, 16800), st.integers(0, 255))
def test_a_damaged_file_is_refused_or_read_alike(at: int, byte: int) -> None:
    data = bytearray(product().SerializeToString())
    data[at % len(data)] = byte
    try:
        found = load(bytes(data))
    except hagane.errors.HaganeError:
        return
    assert found.graph is not None


def test_a_session_needs_no_symbolic_algebra() -> None:
    """It is half a second of imports and 30 MiB, whichever module asks for the graph library."""
    text = (
        "import sys, hagane; hagane.InferenceSession(sys.stdin.buffer.read()); "
        "print([m for m in sys.modules if m.startswith('sympy.')])"
    )
    model = product().SerializeToString()
    done = subprocess.run(
        [sys.executable, "-c", text], input=model, capture_output=True, check=True
    )
    assert done.stdout.strip() == b"[]"
