"""ONNX Runtime's interface over hagane, without the package."""

from __future__ import annotations

import importlib.metadata
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import hagane.onnxruntime as ort
from hagane.errors import InvalidArgument, NotOffered
from hagane.onnxruntime import aliasing, quantization, state
from tests.surface.misuse import add_model, proto

X = np.arange(6, dtype=np.float32).reshape(2, 3)
F = TensorProto.FLOAT


def session(**more: Any) -> ort.InferenceSession:
    return ort.InferenceSession(add_model().SerializeToString(), **more)


def test_a_bound_buffer_of_the_caller_is_written() -> None:
    made, room = session(), np.full((2, 3), -1, np.float32)
    binding = made.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
    binding.bind_output("y", "cpu", 0, TensorProto.FLOAT, [2, 3], room.ctypes.data)
    made.run_with_iobinding(binding)
    np.testing.assert_array_equal(room, X + 1)
    (first,) = binding.copy_outputs_to_cpu()
    X2 = X * 2
    binding.bind_cpu_input("x", X2)
    made.run_with_iobinding(binding)
    np.testing.assert_array_equal(room, X2 + 1)
    np.testing.assert_array_equal(first, X + 1)
    assert binding.get_outputs()[0].data_ptr() == room.ctypes.data


def test_a_bound_output_without_a_buffer_follows_the_shape_of_each_run() -> None:
    made = session()
    binding = made.io_binding()
    binding.bind_output("y")
    for rows in (2, 5):
        x = np.ones((rows, 3), np.float32)
        binding.bind_cpu_input("x", x)
        made.run_with_iobinding(binding)
        assert binding.get_outputs()[0].shape() == [rows, 3]


def test_a_buffer_of_another_shape_names_the_output_and_both_shapes() -> None:
    made, room = session(), np.zeros((5, 3), np.float32)
    binding = made.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y", "cpu", 0, np.float32, [5, 3], room.ctypes.data)
    with pytest.raises(RuntimeError, match=r"output 'y'.*float32\[5, 3\], got float32\[2, 3\]"):
        made.run_with_iobinding(binding)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.bool, torch.float8_e4m3fn]
)
def test_values_share_memory_with_pytorch_both_ways(dtype: torch.dtype) -> None:
    tensor = torch.arange(6).to(dtype)
    value = ort.OrtValue.from_dlpack(tensor)
    back = torch.from_dlpack(value)
    assert value.data_ptr() == tensor.data_ptr() == back.data_ptr()
    assert back.dtype == dtype
    value.update_inplace(np.zeros(6, value.numpy().dtype))
    assert not tensor.to(torch.float32).any()


def test_a_value_of_a_value_has_a_capsule() -> None:
    value = ort.OrtValue.ortvalue_from_numpy(X)
    shared = torch.utils.dlpack.from_dlpack(value._ortvalue.to_dlpack())
    shared[0, 0] = 9
    assert value.numpy()[0, 0] == 9


def test_a_tensor_with_gaps_is_refused_by_dlpack() -> None:
    with pytest.raises(RuntimeError, match="without gaps"):
        ort.OrtValue.from_dlpack(torch.ones(4, 4)[:, ::2])


def test_a_value_is_read_as_a_type_that_numpy_lacks() -> None:
    bits = np.array([0x3F80, 0x4000], np.uint16)
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    assert value.data_type() == "tensor(bfloat16)"
    assert value.element_type() == TensorProto.BFLOAT16
    assert value.numpy().astype(np.float32).tolist() == [1, 2]
    assert value.tensor_size_in_bytes() == 4
    with pytest.raises(RuntimeError, match="expected elements of 2 bytes.*got float32"):
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(X, TensorProto.BFLOAT16)


def test_values_and_vectors_run() -> None:
    made = session()
    (value,) = made.run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(X)})
    np.testing.assert_array_equal(np.asarray(value), X + 1)
    feeds, fetches = state.OrtValueVector(), state.OrtValueVector()
    feeds.push_back(value)
    made.run_with_ortvaluevector(None, ["x"], feeds, ["y"], fetches, [])
    np.testing.assert_array_equal(fetches[0].numpy(), X + 2)
    assert fetches.element_type_at(0) == F
    feeds.push_back_batch([X], [X.ctypes.data], [F], [X.shape], [ort.OrtDevice.make("cpu", 0)])
    assert feeds[1].data_ptr() == X.ctypes.data
    assert len(torch.utils.dlpack.from_dlpack(feeds.dlpack_at(1))) == 2


def test_a_sparse_tensor_is_fed_as_the_dense_one() -> None:
    device = ort.OrtDevice.make("cpu", 0)
    values, places = np.array([5, 7], np.float32), np.array([1, 5], np.int64)
    sparse = ort.SparseTensor.sparse_coo_from_numpy(np.array([2, 3]), values, places, device)
    rows = ort.SparseTensor.sparse_csr_from_numpy(
        np.array([2, 3]), values, np.array([1, 2]), np.array([0, 1, 2]), device
    )
    assert sparse.data_type() == "sparse_tensor(float)"
    assert rows.as_csrc_view().outer().tolist() == [0, 1, 2]
    dense = np.array([[0, 5, 0], [0, 0, 7]], np.float32)
    for tensor in (sparse, rows):
        value = ort.OrtValue.ort_value_from_sparse_tensor(tensor)
        assert value.is_sparse_tensor()
        (y,) = session().run(None, {"x": value})
        np.testing.assert_array_equal(y, dense + 1)
    with pytest.raises(RuntimeError, match="ORT_SPARSE_CSRC, got ORT_SPARSE_COO"):
        sparse.as_csrc_view()


def test_free_dimensions_are_fixed_by_name_and_denotation() -> None:
    model = add_model(["n", "c"])
    model.graph.input[0].type.tensor_type.shape.dim[1].denotation = "DATA_CHANNEL"
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("n", 4)
    options.add_free_dimension_override_by_denotation("DATA_CHANNEL", 3)
    made = ort.InferenceSession(model.SerializeToString(), options)
    assert made.get_inputs()[0].shape == [4, 3]
    with pytest.raises(state.InvalidArgument, match="axis 0 has size 2, expected 4"):
        made.run(None, {"x": X})


def test_an_initializer_is_replaced() -> None:
    options = ort.SessionOptions()
    weight = np.full(3, 10, np.float32)
    options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(weight))
    np.testing.assert_array_equal(session(sess_options=options).run(None, {"x": X})[0], X + 10)
    wrong = ort.SessionOptions()
    wrong.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(weight[:2]))
    with pytest.raises(state.InvalidArgument, match=r"'w': expected float\[3\], got float\[2\]"):
        session(sess_options=wrong)


def _outside(folder: Path) -> Path:
    model = add_model()
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "weights.bin", "offset": "4", "length": "12"}.items():
        weight.external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def test_external_initializers_come_from_memory(tmp_path: Path) -> None:
    path, options = _outside(tmp_path), ort.SessionOptions()
    held = np.array([0, 5, 6, 7], np.float32)
    options.add_external_initializers_from_files_in_memory(["weights.bin"], [held.tobytes()], [16])
    (y,) = ort.InferenceSession(path, options).run(None, {"x": X})
    np.testing.assert_array_equal(y, X + held[1:])
    given = ort.SessionOptions()
    given.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(held[1:])])
    np.testing.assert_array_equal(ort.InferenceSession(path, given).run(None, {"x": X})[0], y)
    short = ort.SessionOptions()
    short.add_external_initializers_from_files_in_memory(["weights.bin"], [held.tobytes()], [8])
    with pytest.raises(state.Fail, match="needs bytes 4 to 16 of 'weights.bin'.*given with 8"):
        ort.InferenceSession(path, short)


def test_a_name_that_is_not_offered_says_why() -> None:
    with pytest.raises(NotOffered, match="ModelPackage is not offered.*the .onnx file of one"):
        ort.ModelPackage()
    with pytest.raises(state.NotImplemented, match="C interface.*backends"):
        ort.SessionOptions().register_custom_ops_library("libcustom.so")


def test_unknown_options_name_the_nearest() -> None:
    with pytest.raises(AttributeError, match="did you mean 'intra_op_num_threads'"):
        ort.SessionOptions().intra_op_num_thread = 2  # type: ignore[attr-defined]


def test_errors_are_of_both_classes_and_can_be_pickled() -> None:
    with pytest.raises(state.InvalidArgument) as caught:
        session().run(None, {"x": X, "z": X})
    assert isinstance(caught.value, InvalidArgument)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, state.InvalidArgument)
    assert str(again) == str(caught.value)


def test_a_session_says_why_it_cannot_be_pickled_and_a_subclass_may_say_how() -> None:
    with pytest.raises(TypeError, match="send the model's path or bytes, and make a session there"):
        pickle.dumps(session())
    made = PickledByBytes(add_model().SerializeToString())
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.run(None, {"x": X})[0], X + 1)


class PickledByBytes(ort.InferenceSession):
    """As packages do it that send sessions to other processes."""

    def __init__(self, data: bytes):
        super().__init__(data)
        self.data = data

    def __getstate__(self) -> dict[str, bytes]:
        return {"data": self.data}

    def __setstate__(self, state: dict[str, bytes]) -> None:
        self.__init__(state["data"])  # type: ignore[misc]


def test_providers_that_are_not_there_are_warned_of_beside_the_cpu_too() -> None:
    model = add_model().SerializeToString()
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not available; the model"):
        ort.InferenceSession(model, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])


def test_a_profile_has_the_runs_beside_their_nodes(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "times")
    made = ort.InferenceSession(add_model().SerializeToString(), options)
    for _ in range(3):
        made.run(None, {"x": X})
    events = json.loads(Path(made.end_profiling()).read_text())
    around = [event["name"] for event in events if event["cat"] == "Session"]
    assert around[0] == "session_initialization"
    assert around.count("SequentialExecutor::Execute") == 3
    runs = [event for event in events if event["name"] == "model_run"]
    nodes = [event for event in events if event["cat"] == "Node"]
    assert len(runs) == 3
    assert [node["args"]["node_index"] for node in nodes[: len(nodes) // 3]] == [
        str(number) for number in range(len(nodes) // 3)
    ]
    for node in nodes:
        inside = [
            run
            for run in runs
            if run["ts"] <= node["ts"] + 1
            and node["ts"] + node["dur"] <= run["ts"] + run["dur"] + 1
        ]
        assert len(inside) == 1


def test_messages_reach_a_callback() -> None:
    got: list[Any] = []
    ort.set_default_logger_callback(lambda *parts: got.append(parts), 2)
    try:
        made = session()
        made.set_providers(["CUDAExecutionProvider"])
    finally:
        ort.set_default_logger_callback(None)
    assert got[0][0] == 2
    assert "CUDAExecutionProvider" in got[0][-1]


def test_a_distribution_is_found_only_where_none_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finder = aliasing._FINDER
    context = importlib.metadata.DistributionFinder.Context(name="onnxruntime")
    assert list(finder.find_distributions(context)) == []
    monkeypatch.setattr(aliasing, "_is_installed", lambda: False)
    (found,) = finder.find_distributions(context)
    assert found.version.split(".")[0] == "1"
    assert found.metadata["Name"] == "onnxruntime"
    other = importlib.metadata.DistributionFinder.Context(name="numpy")
    assert list(finder.find_distributions(other)) == []


SCRIPT = """
import sys
import onnxruntime as ort
import onnxruntime.backend
import onnxruntime.datasets
import onnxruntime.transformers
from importlib.metadata import version
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession, IOBinding
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, NoSuchFile
import hagane
assert ort.InferenceSession is InferenceSession
assert issubclass(InferenceSession, hagane.InferenceSession)
assert C.SessionOptions is ort.SessionOptions
assert ort.__version__ == version("onnxruntime") == ort.get_version_string()
assert tuple(map(int, ort.__version__.split(".")[:2])) >= (1, 17)
try:
    ort.InferenceSession(sys.argv[1])
except NoSuchFile as error:
    print(type(error).__name__, *sys.argv[1:])
"""


def test_run_python_lets_a_script_find_hagane(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "hagane", "run-python", "--as-onnxruntime", str(script)]
    done = subprocess.run([*command, "a.onnx", "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "NoSuchFile a.onnx --help\n"


def test_standing_in_for_a_package_that_was_imported_is_refused() -> None:
    code = "import onnxruntime, hagane\nhagane.install_as_onnxruntime()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "onnxruntime was imported already; call it first" in done.stderr


def test_names_of_parts_that_are_not_installed_say_so() -> None:
    code = (
        "import hagane, importlib.machinery as m\n"
        "found = m.PathFinder.find_spec\n"
        "m.PathFinder.find_spec = staticmethod(\n"
        "    lambda name, *rest: None if name == 'onnxruntime' else found(name, *rest))\n"
        "hagane.install_as_onnxruntime()\n"
        "from onnxruntime.transformers.fusion_options import FusionOptions\n"
        "from onnxruntime.quantization import QuantType, quantize_static\n"
        "assert quantize_static.__module__ == 'hagane.onnxruntime.quantization'\n"
        "try:\n    FusionOptions('bert')\nexcept NotImplementedError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "transformers.fusion_options.FusionOptions is not offered" in done.stdout
    assert "in the package onnxruntime, which is not installed" in done.stdout


class Reader(quantization.CalibrationDataReader):
    def __init__(self, feeds: list[dict[str, Any]]):
        self.feeds = iter(feeds)

    def get_next(self) -> dict[str, Any] | None:
        return next(self.feeds, None)


def test_static_quantisation_is_there_without_the_package(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    weight = random.standard_normal((8, 4)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = proto([node], {"x": (F, ["n", 8])}, {"y": (F, ["n", 4])}, {"w": weight})
    x = random.standard_normal((16, 8)).astype(np.float32)
    for kind in (quantization.QuantType.QInt8, quantization.QuantType.QUInt8):
        path = tmp_path / f"{kind.name}.onnx"
        reader = Reader([{"x": x[i : i + 4]} for i in range(0, 16, 4)])
        quantization.quantize_static(model, path, reader, activation_type=kind)
        (y,) = ort.InferenceSession(path).run(None, {"x": x})
        np.testing.assert_allclose(y, x @ weight, atol=0.15)
        assert not np.array_equal(y, x @ weight)


def test_what_quantisation_does_not_offer_says_which_argument(tmp_path: Path) -> None:
    with pytest.raises(NotOffered, match=r"quantize_static with quant_format, nodes_to_exclude"):
        quantization.quantize_static(
            "model.onnx",
            tmp_path / "out.onnx",
            Reader([]),
            quantization.QuantFormat.QOperator,
            nodes_to_exclude=["one"],
        )
    with pytest.raises(NotOffered, match=r"quantize_dynamic.*hagane quantize --weights-only"):
        quantization.quantize_dynamic("model.onnx", "out.onnx")
    with pytest.raises(state.InvalidArgument, match="the calibration data reader"):
        quantization.quantize_static(add_and_multiply(), tmp_path / "out.onnx", Reader([]))


def add_and_multiply() -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return proto([node], {"x": (F, [2, 3])}, {"y": (F, [2, 3])}, {"w": np.eye(3, dtype=np.float32)})


def test_an_output_name_as_text_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a list of output names, got the text 'y': \['y'\]"):
        session().run("y", {"x": X})  # type: ignore[arg-type]


def test_results_of_a_graph_of_several_outputs_come_in_the_order_of_binding() -> None:
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Abs", ["x"], ["b"])]
    model = proto(nodes, {"x": (F, [3])}, {"a": (F, [3]), "b": (F, [3])})
    made = ort.InferenceSession(model.SerializeToString())
    binding = made.io_binding()
    binding.bind_cpu_input("x", X[1])
    binding.bind_output("b")
    binding.bind_output("a")
    made.run_with_iobinding(binding)
    b, a = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(b, -a)
    assert numpy_helper.from_array(b).data_type == F


def test_a_class_that_inherits_finds_what_it_reaches_for() -> None:
    class Own(ort.InferenceSession):
        def state(self) -> list[Any]:
            return [self._provider_options, self._model_meta.graph_name, self._sess_options]

    made = Own(add_model().SerializeToString(), providers=["CPUExecutionProvider"])
    options, name, settings = made.state()
    assert options == {"CPUExecutionProvider": {}}
    assert name == "g"
    assert isinstance(settings, ort.SessionOptions)
    assert [item.name for item in made._inputs_meta] == ["x"]


def test_the_installed_quantization_runs_over_hagane(tmp_path: Path) -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    weight = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    model = proto([node], {"x": (F, ["n", 8])}, {"y": (F, ["n", 4])}, {"w": weight})
    onnx.save(model, tmp_path / "model.onnx")
    code = (
        "import sys, hagane; hagane.install_as_onnxruntime()\n"
        "from onnxruntime.quantization import QuantType, quantize_dynamic\n"
        "quantize_dynamic(sys.argv[1], sys.argv[2], weight_type=QuantType.QInt8)\n"
        "import onnxruntime; print(onnxruntime.InferenceSession.__module__)\n"
    )
    paths = [str(tmp_path / name) for name in ("model.onnx", "small.onnx")]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "hagane.onnxruntime.session"
    x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    (y,) = ort.InferenceSession(paths[1]).run(None, {"x": x})
    np.testing.assert_allclose(y, x @ weight, atol=0.1)


def test_a_binding_of_an_unknown_output_is_refused_in_the_run() -> None:
    made = session()
    binding = made.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("q")
    with pytest.raises(RuntimeError, match="unknown output 'q'; the model has: y"):
        made.run_with_iobinding(binding)
    binding.clear_binding_outputs()
    binding.bind_output("y")
    made.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X + 1)


def overridable() -> ort.InferenceSession:
    model = proto(
        [helper.make_node("Mul", ["x", "k"], ["y"])],
        {"x": (F, [2, 3]), "k": (F, [3])},
        {"y": (F, [2, 3])},
        {"k": np.full(3, 2, np.float32)},
    )
    return ort.InferenceSession(model.SerializeToString())


def test_an_initializer_that_may_be_overridden_is_bound_and_left_alone_by_none() -> None:
    made, value = overridable(), ort.OrtValue.ortvalue_from_numpy(np.full(3, 5, np.float32))
    np.testing.assert_array_equal(made.run(None, {"x": X, "k": None})[0], X * 2)
    binding = made.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_input("k", value)
    binding.bind_output("y")
    made.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), X * 5)


def test_an_initializer_that_the_model_lacks_has_no_effect_and_a_warning() -> None:
    options = ort.SessionOptions()
    options.add_initializer("q", ort.OrtValue.ortvalue_from_numpy(X))
    with pytest.warns(UserWarning, match="the model has no initializer 'q', so that the value has"):
        made = session(sess_options=options)
    np.testing.assert_array_equal(made.run(None, {"x": X})[0], X + 1)


def test_one_number_is_a_scalar() -> None:
    model = proto(
        [helper.make_node("Add", ["x", "s"], ["y"])], {"x": (F, ["n"]), "s": (F, [])},
        {"y": (F, ["n"])},
    )  # fmt: skip
    made, x = ort.InferenceSession(model.SerializeToString()), np.arange(3, dtype=np.float32)
    for number in (np.float32(2), np.array(2, np.float32), np.array([2], np.float32), [2]):
        np.testing.assert_array_equal(made.run(None, {"x": x, "s": number})[0], x + 2)
    with pytest.raises(InvalidArgument, match=r"input 's': expected float32\[\] \(0 axes\)"):
        made.run(None, {"x": x, "s": x[:2]})


@pytest.mark.parametrize(
    ("names", "feed", "error", "message"),
    [
        (None, {"x": X, 3: X}, TypeError, "expected names of inputs and outputs, got 3"),
        ([None], {"x": X}, TypeError, "expected names of inputs and outputs, got None"),
        (None, {"x": np.uint32(1)}, RuntimeError, "input 'x': expected an array, got np.uint32"),
        (None, {"x": X, "q": [1]}, RuntimeError, "unknown input 'q'; the model takes: x"),
    ],
)
def test_arguments_of_other_types_raise_what_the_package_raises(
    names: Any, feed: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        session().run(names, feed)


def test_options_take_any_number_as_a_truth_value() -> None:
    options, of_run = ort.SessionOptions(), ort.RunOptions()
    options.enable_mem_pattern = None
    of_run.terminate = 1.5
    assert (options.enable_mem_pattern, of_run.terminate) == (False, True)
    for name, value in [("enable_mem_pattern", "x"), ("optimized_model_filepath", 3)]:
        with pytest.raises(TypeError, match=f"SessionOptions.{name}: expected"):
            setattr(options, name, value)
    with pytest.raises(RuntimeError, match="expected a key of 1 to 1024 characters, got ''"):
        options.add_session_config_entry("", "1")
    with pytest.raises(RuntimeError, match="'a': expected at most 8192 characters, got 9000"):
        of_run.add_run_config_entry("a", "b" * 9000)


def test_enumerations_versions_and_shapes_are_told_as_the_package_tells_them() -> None:
    assert str(ort.GraphOptimizationLevel.ORT_ENABLE_ALL) == "GraphOptimizationLevel.ORT_ENABLE_ALL"
    assert str(ort.OrtSparseFormat.ORT_SPARSE_COO) == "OrtSparseFormat.ORT_SPARSE_COO"
    assert session().get_modelmeta().version == 2**63 - 1
    with pytest.raises(TypeError, match="expected a shape of whole numbers, got "):
        ort.OrtValue.ortvalue_from_shape_and_type(["n"], np.float32)
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
    value.update_inplace(X.reshape(3, 2))
    np.testing.assert_array_equal(value.numpy(), X)


def test_an_empty_sparse_tensor_and_its_value() -> None:
    nothing, device = np.zeros(0, np.float32), ort.OrtDevice.make("cpu", 0)
    places = np.zeros(0, np.int64)
    made = ort.SparseTensor.sparse_coo_from_numpy([4], nothing, places, device)
    assert (made.dense_shape(), made.as_coo_view().indices().shape) == ([4], (0, 2))
    np.testing.assert_array_equal(made.dense(), np.zeros(4, np.float32))
    with pytest.raises(RuntimeError, match="the value holds a sparse one; as_sparse_tensor"):
        ort.OrtValue.ort_value_from_sparse_tensor(made).numpy()
