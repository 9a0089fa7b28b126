"""Unusual yet legal inputs, and what a session hands back."""

from __future__ import annotations

import gc
import pickle
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane as ort
from hagane.errors import InvalidArgument, InvalidFeed, KernelError
from tests.runtime.test_session import X, Y, affine


def identity(dtype: int, shape: list[object]) -> ort.InferenceSession:
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "identity",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("y", dtype, shape)],
    )
    opsets = [helper.make_opsetid("", 19)]
    return ort.InferenceSession(helper.make_model(graph, opset_imports=opsets, ir_version=9))


def test_non_contiguous_and_byte_swapped_arrays_are_taken() -> None:
    session = ort.InferenceSession(affine())
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    assert not wide.flags.c_contiguous
    for array in (wide, np.asfortranarray(X), X.astype(">f4"), X.tolist()):
        np.testing.assert_array_equal(session.run(None, {"x": array})[0], Y)


def test_nan_and_infinity_pass_through() -> None:
    (y,) = identity(TensorProto.FLOAT, [3]).run(None, {"x": np.float32([np.nan, np.inf, -0.0])})
    assert np.isnan(y[0])
    assert np.isinf(y[1])
    assert np.signbit(y[2])


def test_zero_sized_dimensions_give_empty_results() -> None:
    (y,) = ort.InferenceSession(affine()).run(None, {"x": np.zeros((0, 3), np.float32)})
    assert y.shape == (0, 2)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.bool_, np.int8, np.uint64])
def test_element_types_come_back_as_they_went_in(dtype: type) -> None:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = np.array([0, 1, 1]).astype(dtype)
    (y,) = identity(number, [3]).run(None, {"x": x})
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("x", [np.array(["a", "日本"]), np.array(["a", "日本"], dtype=object)])
def test_strings_come_back_as_objects(x: np.ndarray) -> None:
    (y,) = identity(TensorProto.STRING, [2]).run(None, {"x": x})
    assert y.dtype == object
    assert y.tolist() == ["a", "日本"]


def test_a_string_input_takes_no_other_objects() -> None:
    with pytest.raises(InvalidFeed, match="got objects that are not str"):
        identity(TensorProto.STRING, [2]).run(None, {"x": np.array(["a", 1], dtype=object)})


def test_results_are_owned_by_the_caller() -> None:
    x = np.ones(3, np.float32)
    session = identity(TensorProto.FLOAT, [3])
    (y,) = session.run(None, {"x": x})
    y[:] = 7
    np.testing.assert_array_equal(x, 1)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], 1)


def _of_a_list(kind: str, *names: str, **attributes: int) -> ort.InferenceSession:
    """Return a session of one operator of sequences that reads the list ``s`` and other inputs."""
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    listed = helper.make_sequence_type_proto(element)
    known = {
        "s": helper.make_value_info("s", listed),
        "at": helper.make_tensor_value_info("at", TensorProto.INT64, []),
        "x": helper.make_tensor_value_info("x", TensorProto.FLOAT, None),
    }
    kind_of_result = listed if kind == "SequenceInsert" else element
    graph = helper.make_graph(
        [helper.make_node(kind, ["s", *names], ["y"], **attributes)],
        "g",
        [known[name] for name in ("s", *names)],
        [helper.make_value_info("y", kind_of_result)],
    )
    opsets = [helper.make_opsetid("", 17)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return ort.InferenceSession(made.SerializeToString())


def test_items_of_a_list_do_not_become_results() -> None:
    items = [np.ones((2, 3), np.float32), np.zeros((1, 3), np.float32)]
    one = _of_a_list("SequenceAt", "at")
    for _ in range(3):
        (y,) = one.run(None, {"s": items, "at": np.array(0)})
        y[:] = 7
        assert items[0].max() == 1
    x = np.full((1, 3), 2, np.float32)
    (made,) = _of_a_list("SequenceInsert", "x").run(None, {"s": items, "x": x})
    assert [len(each) for each in made] == [2, 1, 1]
    assert not any(np.shares_memory(each, own) for each in made for own in (*items, x))


def test_items_of_a_list_are_checked_as_inputs_are() -> None:
    made = _of_a_list("ConcatFromSequence", axis=0)
    items = [np.ones((2, 3), np.float32), pickle.loads(pickle.dumps(np.ones((1, 3), np.float32)))]
    assert made.run(None, {"s": items})[0].shape == (3, 3)
    assert made.run(None, {"s": tuple(items)})[0].shape == (3, 3)
    with pytest.raises(InvalidFeed, match=r"input 's\[1\]': expected float32.*, got float64"):
        made.run(None, {"s": [items[0], np.ones((1, 3))]})


def test_outputs_are_written_where_they_are_bound() -> None:
    session = ort.InferenceSession(affine())
    binding = session.io_binding()
    target = ort.OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32)
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", target)
    memory = target.numpy()
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(memory, Y)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], Y)
    with pytest.raises(InvalidArgument, match="unknown output 'z'"):
        binding.bind_output("z")


def test_held_values_go_in_and_come_out() -> None:
    value = ort.OrtValue.ortvalue_from_numpy(X)
    (y,) = ort.InferenceSession(affine()).run_with_ort_values(None, {"x": value})
    assert (y.data_type(), y.shape(), y.device_name()) == ("tensor(float)", [2, 2], "cpu")
    np.testing.assert_array_equal(y.numpy(), Y)


def test_one_session_serves_many_threads() -> None:
    session = ort.InferenceSession(affine())
    wrong: list[int] = []

    def work(number: int) -> None:
        x = np.full((5, 3), number, np.float32)
        expected = np.maximum(x @ np.float32([[1, 2], [3, 4], [5, 6]]) + np.float32([-10, -20]), 0)
        for _ in range(50):
            if not np.array_equal(session.run(None, {"x": x})[0], expected):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_run_can_be_ended_from_outside() -> None:
    options = ort.RunOptions()
    options.terminate = True
    with pytest.raises(KernelError, match="ended by RunOptions.terminate"):
        ort.InferenceSession(affine()).run(None, {"x": X}, options)


def test_run_async_calls_back_with_results() -> None:
    done = threading.Event()
    received: list[object] = []

    def callback(results: list[np.ndarray], data: object, error: str) -> None:
        received.extend([results, data, error])
        done.set()

    ort.InferenceSession(affine()).run_async(None, {"x": X}, callback, "mine")
    assert done.wait(10)
    np.testing.assert_array_equal(received[0][0], Y)  # type: ignore[index]
    assert received[1:] == ["mine", ""]


def test_a_profile_names_each_node(tmp_path: Path) -> None:
    import json

    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(affine(), options)
    session.run(None, {"x": X})
    events = json.loads(Path(session.end_profiling()).read_text())
    assert events[-1]["args"]["op_name"] == "Gemm+Relu"
    assert all(event["dur"] >= 0 for event in events)
    with pytest.raises(InvalidArgument, match="set SessionOptions.enable_profiling"):
        ort.InferenceSession(affine()).end_profiling()


def test_a_dimension_can_be_fixed_by_name() -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 2)
    session = ort.InferenceSession(affine(), options)
    assert session.get_outputs()[0].shape == [2, 2]
    with pytest.raises(InvalidFeed, match="axis 0 has size 3, expected 2"):
        session.run(None, {"x": np.zeros((3, 3), np.float32)})


def test_an_overridden_initializer_that_changes_nothing_by_default_counts() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "factor"], ["p"]),
        helper.make_node("Add", ["p", "shift"], ["y"]),
    ]
    names = ("x", "factor", "shift")
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
        [
            numpy_helper.from_array(np.ones(3, np.float32), "factor"),
            numpy_helper.from_array(np.full(3, -0.0, np.float32), "shift"),
        ],
    )
    opsets = [helper.make_opsetid("", 17)]
    session = ort.InferenceSession(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    x = np.float32([1, 2, 3])
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], x)
    found = session.run(None, {"x": x, "factor": 2 * x, "shift": x})[0]
    np.testing.assert_array_equal(found, 2 * x * x + x)


def test_initializers_that_are_inputs_may_be_overridden() -> None:
    model = affine()
    model.graph.input.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [2]))
    session = ort.InferenceSession(model)
    assert [item.name for item in session.get_inputs()] == ["x"]
    assert [item.name for item in session.get_overridable_initializers()] == ["b"]
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], Y)
    zero = np.zeros(2, np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": X, "b": zero})[0], [[9, 12], [18, 24]])


def test_metadata_is_told() -> None:
    model = affine()
    model.producer_name, model.model_version = "maker", 3
    model.metadata_props.add(key="k", value="v")
    meta = ort.InferenceSession(model).get_modelmeta()
    assert (meta.producer_name, meta.version, meta.graph_name) == ("maker", 3, "affine")
    assert meta.custom_metadata_map == {"k": "v"}


def test_an_unknown_provider_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    session = ort.InferenceSession(affine(), providers=[("CUDAExecutionProvider", {})])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert "'CUDAExecutionProvider' is not available; the model runs on the CPU" in caplog.text


def test_a_failing_node_is_named_with_what_it_was_given() -> None:
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "i"], ["y"], "look_up")],
        "gather",
        [
            helper.make_tensor_value_info("table", TensorProto.FLOAT, ["rows", 2]),
            helper.make_tensor_value_info("i", TensorProto.INT64, ["n"]),
        ],
        [onnx.ValueInfoProto(name="y")],
    )
    session = ort.InferenceSession(helper.make_model(graph, ir_version=9))
    feed = {"table": np.zeros((3, 2), np.float32), "i": np.array([0, 5])}
    with pytest.raises(
        KernelError,
        match="Gather 'look_up' failed: index 5 is out of range for axis 0 with size 3",
    ):
        session.run(None, feed)


def test_intermediate_tensors_are_freed_at_their_last_use() -> None:
    steps = 12
    nodes = [helper.make_node("Neg", [f"t{i}"], [f"t{i + 1}"]) for i in range(steps)]
    shape = [64, 1024]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("t0", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(f"t{steps}", TensorProto.FLOAT, shape)],
    )
    session = ort.InferenceSession(helper.make_model(graph, ir_version=9))
    import tracemalloc

    x = np.zeros(shape, np.float32)
    session.run(None, {"t0": x})
    gc.collect()
    tracemalloc.start()
    session.run(None, {"t0": x})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * x.nbytes
