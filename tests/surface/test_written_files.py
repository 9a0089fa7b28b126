"""Files beside a model: adapters, weights, models of ``ModelCompiler``; the package reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hagane.onnxruntime as ort
from hagane.onnxruntime import environment, state
from hagane.ops.contrib import blocked
from tests.native.models import session

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def model(rows: int = 0) -> onnx.ModelProto:
    """Return ``x w + x a b``, whose a and b an adapter may give."""
    made = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]>
        g (float[n,4] x, float[4,r] a, float[r,4] b) => (float[n,4] y)
        { base = MatMul(x, w) xa = MatMul(x, a) more = MatMul(xa, b) y = Add(base, more) }"""
    )
    for name, shape in (("w", (4, 4)), ("a", (4, rows)), ("b", (rows, 4))):
        array = np.ones(shape, np.float32)
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    return made


def adapter(package: Any, path: Path) -> None:
    values = {
        "a": np.full((4, 2), 0.5, np.float32),
        "b": np.full((2, 4), 2.0, np.float32),
    }
    made = package.AdapterFormat()
    made.set_adapter_version(3)
    made.set_model_version(4)
    made.set_parameters(
        {k: package.OrtValue.ortvalue_from_numpy_with_onnx_type(v, 1) for k, v in values.items()}
    )
    made.export_adapter(str(path))


@pytest.mark.parametrize("writer", [ort, theirs])
@pytest.mark.parametrize("reader", [ort, theirs])
def test_adapters_are_read_and_written_as_the_package_does(
    writer: Any, reader: Any, tmp_path: Path
) -> None:
    adapter(writer, tmp_path / "one.onnx_adapter")
    found = reader.AdapterFormat.read_adapter(str(tmp_path / "one.onnx_adapter"))
    assert (found.get_adapter_version(), found.get_model_version()) == (3, 4)
    assert found.get_format_version() == 1
    values = found.get_parameters()
    assert sorted(values) == ["a", "b"]
    np.testing.assert_array_equal(values["b"].numpy(), np.full((2, 4), 2))

    loaded = reader.LoraAdapter()
    loaded.Load(str(tmp_path / "one.onnx_adapter"))
    options = reader.RunOptions()
    options.add_active_adapter(loaded)
    session = reader.InferenceSession(
        model().SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (plain,) = session.run(None, {"x": X})
    (adapted,) = session.run(None, {"x": X}, options)
    np.testing.assert_array_equal(adapted - plain, X @ np.full((4, 4), 2, np.float32))


def test_bytes_that_are_no_adapter_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "no"
    path.write_bytes(b"no adapter at all")
    for read in (ort.AdapterFormat.read_adapter, ort.LoraAdapter().Load):
        with pytest.raises(RuntimeError, match="'.*no' does not appear to be an adapter"):
            read(str(path))
    with pytest.raises(RuntimeError, match="cannot be read"):
        ort.AdapterFormat.read_adapter(tmp_path / "absent")
    adapter(ort, path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(RuntimeError, match="damaged|has .* bytes for"):
        ort.AdapterFormat.read_adapter(path)
    with pytest.raises(TypeError, match="expected a LoraAdapter, got int"):
        ort.RunOptions().add_active_adapter(3)  # type: ignore[arg-type]


def test_weights_of_an_optimized_model_go_to_the_file_that_the_options_name(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "out.onnx")
    for key, value in (("file_name", "out.bin"), ("min_size_in_bytes", "32")):
        options.add_session_config_entry(
            f"session.optimized_model_external_initializers_{key}", value
        )
    (want,) = ort.InferenceSession(model(2).SerializeToString(), options).run(None, {"x": X})
    assert (tmp_path / "out.bin").stat().st_size >= 64
    for package in (ort, theirs):
        made = package.InferenceSession(
            str(tmp_path / "out.onnx"), providers=["CPUExecutionProvider"]
        )
        np.testing.assert_allclose(made.run(None, {"x": X})[0], want, rtol=1e-6)
    options.add_session_config_entry(
        "session.optimized_model_external_initializers_min_size_in_bytes", "many"
    )
    with pytest.raises(state.InvalidArgument, match="expected a number of bytes, got 'many'"):
        ort.InferenceSession(model(2).SerializeToString(), options)


def test_a_model_compiler_writes_models_that_the_package_reads(tmp_path: Path) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "m_ctx.onnx"
    onnx.save(model(2), source)
    compiler = ort.ModelCompiler(
        ort.SessionOptions(),
        source,
        external_initializers_file_path="m.bin",
        external_initializers_size_threshold=32,
        flags=ort.OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS,
    )
    compiler.compile_to_file()
    assert (tmp_path / "m.bin").stat().st_size == 64  # w alone has more bytes than 32
    want = theirs.InferenceSession(str(source)).run(None, {"x": X})[0]
    np.testing.assert_array_equal(theirs.InferenceSession(str(target)).run(None, {"x": X})[0], want)
    with pytest.raises(state.Fail, match="'.*m_ctx.onnx' exists already"):
        compiler.compile_to_file()
    placed: list[tuple[str, list[int]]] = []

    def place(name: str, value: Any, before: Any) -> None:
        placed.append((name, value.shape()))

    data = ort.ModelCompiler(
        ort.SessionOptions(),
        source.read_bytes(),
        graph_optimization_level=ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
        get_initializer_location_func=place,
    ).compile_to_bytes()
    assert ("w", [4, 4]) in placed
    np.testing.assert_array_equal(theirs.InferenceSession(data).run(None, {"x": X})[0], want)
    strict = ort.ModelCompiler(
        ort.SessionOptions(), source, flags=ort.OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED
    )
    with pytest.raises(state.Fail, match="Unable to compile any nodes"):
        strict.compile_to_bytes()
    with pytest.raises(state.NoSuchFile, match="Input model path does not exist"):
        ort.ModelCompiler(ort.SessionOptions(), tmp_path / "absent.onnx").compile_to_bytes()


def test_options_that_a_model_keeps_are_taken_where_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = model(2)
    told = {"inter_op_num_threads": 5, "intra_op_num_threads": 2, "graph_optimization_level": 99}
    helper.set_model_props(made, {"ort_config": json.dumps({"session_options": told})})
    data = made.SerializeToString()
    assert ort.InferenceSession(data).get_session_options().inter_op_num_threads == 0
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    options = ort.InferenceSession(data).get_session_options()
    assert (options.inter_op_num_threads, options.intra_op_num_threads) == (5, 2)
    helper.set_model_props(made, {"ort_config": '{"session_options": {"execution_mode": 7}}'})
    with pytest.raises(state.InvalidArgument, match="'ort_config' cannot be used.*unset ORT_LOAD"):
        ort.InferenceSession(made.SerializeToString())


# How many roundings one way through the model below has: products and additions of its four
# convolutions, of their bias, of the four elements that Resize weighs.
_ROUNDINGS = (27 + 1) + (9 + 4) + (40 + 1) + 4 + 180


def _convolutions() -> onnx.ModelProto:
    """Return a model that ONNX Runtime stores in blocks of channels at its highest level."""
    made = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]>
        g (float[n,3,12,10] x) => (float[n,20,h,w] y, float[n,h,w,40] z)
        { a = Conv <strides = [2, 1], pads = [1, 1, 1, 1]> (x, w0, b0) c = Relu(a)
          d = Conv <pads = [1, 1, 1, 1], group = 40> (c, w1) e = Sigmoid(d) f = Add(e, c)
          g = MaxPool <kernel_shape = [2, 2], pads = [1, 0, 0, 1]> (f)
          k = Conv(g, w2, b2) y = Clip(k, low, high)
          m = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (f, , scales)
          o = Conv <group = 2, pads = [1, 1, 1, 1]> (m, w3) z = Transpose <perm = [0, 2, 3, 1]> (o)
        }"""
    )
    random = np.random.default_rng(0)
    shapes = {
        "w0": (40, 3, 3, 3), "b0": (40,), "w1": (40, 1, 3, 3), "w2": (20, 40, 1, 1), "b2": (20,),
        "w3": (40, 20, 3, 3),
    }  # fmt: skip
    values = {key: random.standard_normal(shape) for key, shape in shapes.items()}
    values |= {"low": np.array(-1), "high": np.array(2), "scales": np.array([1, 1, 2, 2])}
    for name, value in values.items():
        made.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
    return made


def _exact(x: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the model's outputs in float64, and the sums of the sizes of what they add up.

    The second come from the model with absolute values everywhere, in which Softplus stands for
    Sigmoid, as nowhere smaller and nowhere flatter, and nothing for Clip.
    """
    values = _convolutions()
    for weight in values.graph.initializer:
        if weight.name != "scales":
            array = numpy_helper.to_array(weight).astype(np.float64)
            weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    for value in (*values.graph.input, *values.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    sizes = onnx.ModelProto.FromString(values.SerializeToString())
    for weight in sizes.graph.initializer:
        array = np.abs(numpy_helper.to_array(weight))
        weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    for node in sizes.graph.node:
        node.op_type = {"Sigmoid": "Softplus", "Clip": "Identity"}.get(node.op_type, node.op_type)
        if node.op_type == "Identity":
            del node.input[1:]
    x = x.astype(np.float64)
    return ReferenceEvaluator(values).run(None, {"x": x}), ReferenceEvaluator(sizes).run(
        None, {"x": np.abs(x)}
    )


def test_files_with_blocks_of_channels_mean_what_they_mean_there(tmp_path: Path) -> None:
    path = tmp_path / "written.onnx"
    options = theirs.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    theirs.InferenceSession(_convolutions().SerializeToString(), options)
    names = {f"{node.domain}.{node.op_type}" for node in onnx.load(path).graph.node}
    assert names >= {f"com.microsoft.nchwc.{name}" for name in ("Conv", "ReorderOutput")}
    x = np.random.default_rng(1).standard_normal((2, 3, 12, 10)).astype(np.float32)
    exact, sizes = _exact(x)
    runs = {
        "theirs": theirs.InferenceSession(path).run(None, {"x": x}),
        "native": session(onnx.load(path), engine="native").run(None, {"x": x}),
        "reference": session(onnx.load(path), engine="reference").run(None, {"x": x}),
    }
    for engine, found in runs.items():
        for one, value, size in zip(found, exact, sizes, strict=True):
            # roundings are as often up as down: they add up like their number's root
            bound = np.sqrt(_ROUNDINGS) * 2.0**-24 * size
            assert np.all(np.abs(np.asarray(one) - value) <= bound), engine


def test_blocks_of_another_processor_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18, "com.microsoft.nchwc": 1]>
        g (float[1,24,4,4] x) => (float[1,20,4,4] y)
        { y = com.microsoft.nchwc.ReorderOutput <channels = 20> (x) }"""
    )
    monkeypatch.setattr(blocked, "block_size", lambda: 8)
    ort.InferenceSession(made.SerializeToString())
    monkeypatch.setattr(blocked, "block_size", lambda: 16)
    with pytest.raises(Exception, match=r"20 channels in blocks of 16, .*got 24: .*save it again"):
        ort.InferenceSession(made.SerializeToString())


def test_global_threads_leave_no_session_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_threads", [2])
    options = ort.SessionOptions()
    with pytest.raises(RuntimeError, match="set SessionOptions.use_per_session_threads = False"):
        ort.InferenceSession(model().SerializeToString(), options)
    options.use_per_session_threads = False
    ort.InferenceSession(model().SerializeToString(), options)


def test_sparse_inputs_are_fed_as_sparse_tensors() -> None:
    a, b = np.zeros((3, 3), np.float32), np.arange(9, dtype=np.float32).reshape(3, 3)
    a[0, 1], a[2, 2] = 2, 3
    node = helper.make_node(
        "SparseToDenseMatMul", ["a", "b"], ["y"], domain="com.microsoft", transB=1
    )
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_sparse_tensor_value_info("a", onnx.TensorProto.FLOAT, [3, 3]),
            helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, [3, 3]),
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, 3])],
    )
    data = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("com.microsoft", 1)], ir_version=9
    ).SerializeToString()
    for package in (ort, theirs):
        sparse = package.SparseTensor.sparse_coo_from_numpy(
            [3, 3],
            a[a != 0],
            np.ascontiguousarray(np.argwhere(a)),
            package.OrtDevice.make("cpu", 0),
        )
        assert not sparse.values().flags.writeable
        assert not sparse.as_coo_view().indices().flags.writeable
        feed = {
            "a": package.OrtValue.ort_value_from_sparse_tensor(sparse),
            "b": package.OrtValue.ortvalue_from_numpy(b),
        }
        (y,) = package.InferenceSession(data).run_with_ort_values(["y"], feed)
        np.testing.assert_array_equal(y.numpy(), a @ b.T)


def test_bytes_of_one_length_are_texts_whose_last_zeros_count() -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18, "ai.onnx.ml": 4]>
        g (string[n] x) => (int64[n] y, string[u] words, int64[u] first)
        { y = ai.onnx.ml.LabelEncoder <keys_strings = ["A", "B"], values_int64s = [5, 6]> (x)
          words, first = Unique(x) }"""
    )
    made.graph.node[0].attribute[0].strings[:] = [b"A\0", b"A"]
    data = made.SerializeToString()
    for package in (ort, theirs):
        session = package.InferenceSession(data)
        y, words, first = session.run(None, {"x": np.array([b"A\0", b"B\0", b"A\0"], np.void)})
        assert (y.tolist(), words.tolist(), first.tolist()) == ([5, -1, 5], ["A\0", "B\0"], [0, 1])
        y, words, first = session.run(None, {"x": np.array(["A", "A\0"], object)})
        assert (y.tolist(), words.tolist(), first.tolist()) == ([6, 5], ["A", "A\0"], [0, 1])
