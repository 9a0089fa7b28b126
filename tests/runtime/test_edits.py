"""What a session was made of is changed afterwards: its model, its options, the folder, files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

import hagane
from hagane.errors import InvalidModel

W = np.ones((4, 3, 3, 3), np.float32)


def layer() -> onnx.ModelProto:
    """Return a convolution of open sizes, and an input of any rank."""
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"]), helper.make_node("Neg", ["a"], ["b"])],
        "g",
        [
            helper.make_tensor_value_info("x", 1, ["n", 3, "h", "k"]),
            helper.make_tensor_value_info("a", 1, None),
        ],
        [helper.make_tensor_value_info(name, 1, None) for name in ("y", "b")],
        [numpy_helper.from_array(W, "w")],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def feed(size: int, rank: int) -> dict[str, np.ndarray]:
    return {
        "x": np.ones((1, 3, size, size), np.float32),
        "a": np.ones((1,) * rank, np.float32),
    }


def check(session: hagane.InferenceSession) -> None:
    """Fail unless runs of new sizes and ranks give what the model said."""
    for size, rank in ((5, 1), (6, 2), (7, 3)):
        y, b = session.run(None, feed(size, rank))
        np.testing.assert_array_equal(y, np.full((1, 4, size - 2, size - 2), 27))
        np.testing.assert_array_equal(b, -np.ones((1,) * rank))


def edit_proto(engine: str) -> hagane.InferenceSession:
    proto = layer()
    session = made(proto, engine)
    proto.graph.initializer[0].raw_data = bytes(W.nbytes)
    proto.graph.node[1].op_type = "Abs"
    return session


def edit_graph(engine: str) -> hagane.InferenceSession:
    model = ir.from_proto(layer())
    session = made(model, engine)
    model.graph.initializers["w"].const_value = ir.tensor(0 * W, name="w")
    list(model.graph)[1].op_type = "Abs"
    return session


def edit_bytes(engine: str) -> hagane.InferenceSession:
    content = bytearray(layer().SerializeToString())
    session = made(content, engine)
    content[:] = bytes(len(content))
    return session


def made(model: object, engine: str) -> hagane.InferenceSession:
    options = hagane.SessionOptions()
    options.add_session_config_entry("hagane.engine", engine)
    return hagane.InferenceSession(model, options)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("edited", [edit_proto, edit_graph, edit_bytes])
def test_a_session_keeps_the_model_that_it_was_made_of(
    edited: Callable[[str], hagane.InferenceSession], engine: str
) -> None:
    check(edited(engine))


def test_weights_of_a_model_in_memory_are_those_of_programs_that_are_made_later() -> None:
    proto = layer()
    del proto.graph.node[1], proto.graph.input[1], proto.graph.output[1]
    session = hagane.InferenceSession(proto)
    proto.graph.initializer[0].raw_data = bytes(W.nbytes)
    session.prepare({"x": (1, 3, 5, 5)})
    (y,) = session.run(None, {"x": np.ones((1, 3, 5, 5), np.float32)})
    np.testing.assert_array_equal(y, np.full((1, 4, 3, 3), 27))


def test_a_session_keeps_the_options_that_it_was_made_with(tmp_path: Path) -> None:
    options = hagane.SessionOptions()
    session = hagane.InferenceSession(layer(), options)
    options.add_free_dimension_override_by_name("h", 99)
    options.optimized_model_filepath = str(tmp_path / "other.onnx")
    options.intra_op_num_threads = 7
    check(session)
    assert session.get_session_options().intra_op_num_threads == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("beside", [False, True])
def test_a_program_may_change_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(layer(), "m.onnx", save_as_external_data=beside, location="w.bin", size_threshold=0)
    for _ in range(2):
        session = hagane.InferenceSession("m.onnx")
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "elsewhere")
        check(session)
        session.profile(feed(5, 1), runs=1)
        monkeypatch.chdir(tmp_path)


def test_a_file_of_weights_that_was_changed_is_not_read_for_another_rank(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(layer(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    session = hagane.InferenceSession(path)
    session.run(None, feed(5, 1))
    with (tmp_path / "w.bin").open("r+b") as file:
        file.write((2 * W).tobytes())
    np.testing.assert_array_equal(session.run(None, feed(6, 1))[0], np.full((1, 4, 4, 4), 27))
    with pytest.raises(InvalidModel, match=r"w\.bin' was changed after the session was made"):
        session.run(None, feed(5, 2))
