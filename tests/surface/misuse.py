"""The commonest ways to misuse ONNX Runtime's interface, and the exception that each raises.

``python -m tests.surface.misuse onnxruntime`` prints it for the real package, with ``hagane``
for hagane in its place, as JSON: by case the names of the exception's classes, or ``null``.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Case = Callable[[Any, Path], Any]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def proto(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int, list[Any] | None]],
    outputs: dict[str, tuple[int, list[Any] | None]],
    initializers: dict[str, np.ndarray] | None = None,
    opset: int = 20,
    **more: Any,
) -> onnx.ModelProto:
    def values(of: dict[str, tuple[int, list[Any] | None]]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(n, t, s) for n, (t, s) in of.items()]

    weights = [numpy_helper.from_array(a, n) for n, a in (initializers or {}).items()]
    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs), weights)
    imports = more.pop("imports", [helper.make_opsetid("", opset)])
    return helper.make_model(graph, opset_imports=imports, ir_version=more.pop("ir", 10))


F, I64 = TensorProto.FLOAT, TensorProto.INT64


def add_model(shape: list[Any] | None = None) -> onnx.ModelProto:
    shape = ["n", 3] if shape is None else shape
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return proto([node], {"x": (F, shape)}, {"y": (F, shape)}, {"w": np.ones(3, np.float32)})


def sequence_model() -> onnx.ModelProto:
    """Return a model with a sequence of matrices for an output."""
    graph = helper.make_graph(
        [helper.make_node("SplitToSequence", ["x"], ["y"], axis=0)],
        "split",
        [helper.make_tensor_value_info("x", F, ["rows", 3])],
        [helper.make_tensor_sequence_value_info("y", F, [1, 3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def held(ort: Any) -> dict[str, Any]:
    return {"x": ort.OrtValue.ortvalue_from_numpy(X)}


def session(ort: Any, model: onnx.ModelProto | None = None, *rest: Any, **more: Any) -> Any:
    model = model or add_model()
    more.setdefault("providers", ["CPUExecutionProvider"])
    return ort.InferenceSession(model.SerializeToString(), *rest, **more)


X = np.ones((2, 3), np.float32)


# Making a session.
@case
def no_such_file(ort, _):
    ort.InferenceSession("/nowhere/model.onnx")


@case
def a_directory(ort, folder):
    ort.InferenceSession(str(folder))


@case
def an_empty_path(ort, _):
    ort.InferenceSession("")


@case
def an_empty_file(ort, folder):
    (folder / "empty.onnx").write_bytes(b"")
    ort.InferenceSession(str(folder / "empty.onnx"))


@case
def a_text_file(ort, folder):
    (folder / "text.onnx").write_text("version https://git-lfs.github.com/spec/v1\n")
    ort.InferenceSession(str(folder / "text.onnx"))


@case
def bytes_of_nonsense(ort, _):
    ort.InferenceSession(b"this is no model at all")


@case
def no_bytes(ort, _):
    ort.InferenceSession(b"")


@case
def a_truncated_file(ort, folder):
    model = proto(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        {"x": (F, [64, 64])},
        {"y": (F, [64, 64])},
        {"w": np.ones((64, 64), np.float32)},
    )
    data = model.SerializeToString()
    (folder / "cut.onnx").write_bytes(data[: len(data) // 2])
    ort.InferenceSession(str(folder / "cut.onnx"))


@case
def a_model_proto(ort, _):
    ort.InferenceSession(add_model())


@case
def none_for_a_model(ort, _):
    ort.InferenceSession(None)


@case
def an_unknown_operator(ort, _):
    session(
        ort, proto([helper.make_node("Frobnicate", ["x"], ["y"])], {"x": (F, [2])}, {"y": (F, [2])})
    )


@case
def an_unknown_domain(ort, _):
    node = helper.make_node("Thing", ["x"], ["y"], domain="com.example")
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("com.example", 1)]
    session(ort, proto([node], {"x": (F, [2])}, {"y": (F, [2])}, imports=imports))


@case
def an_opset_of_the_future(ort, _):
    session(
        ort,
        proto(
            [helper.make_node("Relu", ["x"], ["y"])], {"x": (F, [2])}, {"y": (F, [2])}, opset=999
        ),
    )


@case
def an_ir_version_of_the_future(ort, _):
    session(
        ort,
        proto([helper.make_node("Relu", ["x"], ["y"])], {"x": (F, [2])}, {"y": (F, [2])}, ir=99),
    )


@case
def a_value_nobody_defines(ort, _):
    session(
        ort,
        proto([helper.make_node("Add", ["x", "ghost"], ["y"])], {"x": (F, [2])}, {"y": (F, [2])}),
    )


@case
def a_cycle(ort, _):
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    session(ort, proto(nodes, {"x": (F, [2])}, {"b": (F, [2])}))


@case
def an_output_nobody_makes(ort, _):
    session(ort, proto([helper.make_node("Relu", ["x"], ["y"])], {"x": (F, [2])}, {"z": (F, [2])}))


@case
def a_name_defined_twice(ort, _):
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])]
    session(ort, proto(nodes, {"x": (F, [2])}, {"y": (F, [2])}))


@case
def shapes_that_do_not_fit(ort, _):
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    session(
        ort,
        proto([node], {"x": (F, [2, 3])}, {"y": (F, [2, 5])}, {"w": np.ones((4, 5), np.float32)}),
    )


@case
def types_that_do_not_fit(ort, _):
    node = helper.make_node("Add", ["x", "k"], ["y"])
    session(ort, proto([node], {"x": (F, [2]), "k": (I64, [2])}, {"y": (F, [2])}))


@case
def a_type_the_operator_lacks(ort, _):
    session(
        ort, proto([helper.make_node("Sin", ["x"], ["y"])], {"x": (I64, [2])}, {"y": (I64, [2])})
    )


@case
def an_attribute_of_the_wrong_type(ort, _):
    node = helper.make_node("Softmax", ["x"], ["y"], axis="last")
    session(ort, proto([node], {"x": (F, [2])}, {"y": (F, [2])}))


@case
def an_attribute_nobody_knows(ort, _):
    node = helper.make_node("Relu", ["x"], ["y"], slope=2)
    session(ort, proto([node], {"x": (F, [2])}, {"y": (F, [2])}))


@case
def too_few_inputs(ort, _):
    session(ort, proto([helper.make_node("Add", ["x"], ["y"])], {"x": (F, [2])}, {"y": (F, [2])}))


@case
def external_data_that_is_missing(ort, folder):
    model = add_model()
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights.bin")
    path = folder / "external.onnx"
    path.write_bytes(model.SerializeToString())
    ort.InferenceSession(str(path))


@case
def an_unknown_provider(ort, _):
    session(ort, providers=["QuantumExecutionProvider"])


@case
def providers_as_a_number(ort, _):
    session(ort, providers=3)


@case
def providers_of_numbers(ort, _):
    session(ort, providers=[3])


@case
def options_of_another_length(ort, _):
    session(ort, providers=["CPUExecutionProvider"], provider_options=[{}, {}])


@case
def session_options_as_a_dict(ort, _):
    session(ort, None, {"intra_op_num_threads": 1})


# Running.
@case
def a_missing_input(ort, _):
    session(ort).run(None, {})


@case
def an_unknown_input(ort, _):
    session(ort).run(None, {"x": X, "z": X})


@case
def a_misspelt_input(ort, _):
    session(ort).run(None, {"X": X})


@case
def an_unknown_output(ort, _):
    session(ort).run(["z"], {"x": X})


@case
def an_output_name_as_text(ort, _):
    session(ort).run("y", {"x": X})


@case
def a_double_for_a_float(ort, _):
    session(ort).run(None, {"x": X.astype(np.float64)})


@case
def an_integer_for_a_float(ort, _):
    session(ort).run(None, {"x": X.astype(np.int64)})


@case
def too_many_axes(ort, _):
    session(ort).run(None, {"x": X[None]})


@case
def another_size(ort, _):
    session(ort).run(None, {"x": np.ones((2, 4), np.float32)})


@case
def sizes_that_do_not_broadcast(ort, _):
    node = helper.make_node("Add", ["a", "b"], ["y"])
    model = proto([node], {"a": (F, ["n"]), "b": (F, ["m"])}, {"y": (F, ["k"])})
    session(ort, model).run(None, {"a": X[0], "b": np.ones(2, np.float32)})


@case
def products_that_do_not_fit(ort, _):
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    model = proto([node], {"a": (F, ["n", "k"]), "b": (F, ["l", "m"])}, {"y": (F, ["n", "m"])})
    session(ort, model).run(None, {"a": X, "b": X})


@case
def an_index_out_of_range(ort, _):
    node = helper.make_node("Gather", ["x", "i"], ["y"])
    model = proto([node], {"x": (F, [3]), "i": (I64, [1])}, {"y": (F, [1])})
    session(ort, model).run(None, {"x": X[0], "i": np.array([7])})


@case
def a_reshape_that_does_not_fit(ort, _):
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    model = proto([node], {"x": (F, ["n"]), "s": (I64, [2])}, {"y": (F, None)})
    session(ort, model).run(None, {"x": X[0], "s": np.array([2, 2])})


@case
def none_for_an_input(ort, _):
    session(ort).run(None, {"x": None})


@case
def text_for_an_input(ort, _):
    session(ort).run(None, {"x": "hello"})


@case
def a_list_for_a_tensor(ort, _):
    session(ort).run(None, {"x": [[1.0, 2.0, 3.0]]})


@case
def a_feed_that_is_a_list(ort, _):
    session(ort).run(None, [X])


@case
def a_feed_that_is_an_array(ort, _):
    session(ort).run(None, X)


@case
def an_object_array(ort, _):
    session(ort).run(None, {"x": np.array([[1, None, 2]], dtype=object)})


@case
def run_options_of_another_type(ort, _):
    session(ort).run(None, {"x": X}, {"terminate": True})


@case
def a_run_that_is_terminated(ort, _):
    options = ort.RunOptions()
    options.terminate = True
    session(ort).run(None, {"x": X}, options)


@case
def a_string_for_a_float(ort, _):
    session(ort).run(None, {"x": np.array([["a", "b", "c"]])})


# Options.
@case
def an_unknown_option(ort, _):
    ort.SessionOptions().use_magic = True


@case
def an_option_of_another_type(ort, _):
    ort.SessionOptions().intra_op_num_threads = "four"


@case
def a_level_as_a_number(ort, _):
    ort.SessionOptions().graph_optimization_level = 1


@case
def an_option_by_keyword(ort, _):
    ort.SessionOptions(intra_op_num_threads=2)


@case
def an_entry_nobody_set(ort, _):
    ort.SessionOptions().get_session_config_entry("session.nothing")


@case
def an_entry_that_is_no_text(ort, _):
    ort.SessionOptions().add_session_config_entry("session.key", 1)


@case
def an_unknown_run_option(ort, _):
    ort.RunOptions().use_magic = True


@case
def a_run_entry_nobody_set(ort, _):
    ort.RunOptions().get_run_config_entry("nothing")


@case
def a_library_that_is_missing(ort, _):
    ort.SessionOptions().register_custom_ops_library("/nowhere/libcustom.so")


@case
def a_name_that_is_missing(ort, _):
    ort.NoSuchThing  # noqa: B018


# Values and bindings.
@case
def a_binding_of_an_unknown_input(ort, _):
    session(ort).io_binding().bind_cpu_input("z", X)


@case
def a_binding_of_an_unknown_output(ort, _):
    made = session(ort)
    binding = made.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("z")
    made.run_with_iobinding(binding)


@case
def a_binding_without_input(ort, _):
    made = session(ort)
    binding = made.io_binding()
    binding.bind_output("y")
    made.run_with_iobinding(binding)


@case
def a_binding_without_output(ort, _):
    made = session(ort)
    binding = made.io_binding()
    binding.bind_cpu_input("x", X)
    made.run_with_iobinding(binding)


@case
def a_binding_of_another_type(ort, _):
    made = session(ort)
    binding = made.io_binding()
    binding.bind_cpu_input("x", X.astype(np.float64))
    binding.bind_output("y")
    made.run_with_iobinding(binding)


@case
def a_buffer_without_shape(ort, _):
    session(ort).io_binding().bind_output("y", "cpu", 0, np.float32, None, X.ctypes.data)


@case
def a_buffer_of_another_shape(ort, _):
    made = session(ort)
    binding = made.io_binding()
    binding.bind_cpu_input("x", X)
    room = np.zeros((5, 3), np.float32)
    binding.bind_output("y", "cpu", 0, np.float32, [5, 3], room.ctypes.data)
    made.run_with_iobinding(binding)


@case
def a_buffer_of_another_type(ort, _):
    made = session(ort)
    binding = made.io_binding()
    binding.bind_cpu_input("x", X)
    room = np.zeros((2, 3), np.float64)
    binding.bind_output("y", "cpu", 0, np.float64, [2, 3], room.ctypes.data)
    made.run_with_iobinding(binding)


@case
def a_binding_of_another_session(ort, _):
    one, other = session(ort), session(ort)
    one.run_with_iobinding(other.io_binding())


@case
def an_unknown_device(ort, _):
    ort.OrtValue.ortvalue_from_numpy(X, "abacus", 0)


@case
def a_device_that_is_absent(ort, _):
    ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0)


@case
def a_value_from_a_list(ort, _):
    ort.OrtValue.ortvalue_from_numpy([1.0, 2.0])


@case
def an_update_of_another_shape(ort, _):
    ort.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace(np.ones((4, 4), np.float32))


@case
def an_update_of_another_type(ort, _):
    ort.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace(X.astype(np.float64))


@case
def an_update_with_a_list(ort, _):
    ort.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace([1.0])


@case
def a_value_of_a_negative_shape(ort, _):
    ort.OrtValue.ortvalue_from_shape_and_type([-1, 2], np.float32)


@case
def a_value_of_an_unknown_type(ort, _):
    ort.OrtValue.ortvalue_from_shape_and_type([2], "M8[s]")


@case
def an_array_for_a_value(ort, _):
    session(ort).run_with_ort_values(None, {"x": X})


@case
def dlpack_of_text(ort, _):
    ort.OrtValue.ortvalue_from_numpy(np.array(["a"])).__dlpack__()


@case
def dlpack_from_a_list(ort, _):
    ort.OrtValue.from_dlpack([1.0])


@case
def sparse_indices_of_another_length(ort, _):
    values, indices = np.ones(2, np.float32), np.array([0], np.int64)
    ort.SparseTensor.sparse_coo_from_numpy(
        np.array([3, 3], np.int64), values, indices, ort.OrtDevice.make("cpu", 0)
    )


@case
def a_trace_nobody_recorded(ort, _):
    session(ort).end_profiling()


@case
def an_unknown_provider_later(ort, _):
    session(ort).set_providers(["NoSuchExecutionProvider"])


@case
def output_names_as_an_iterator(ort, _):
    session(ort).run(iter(["y"]), {"x": X})


@case
def a_number_of_threads_beyond_32_bits(ort, _):
    ort.SessionOptions().intra_op_num_threads = 2**31


@case
def a_size_as_text(ort, _):
    ort.SessionOptions().add_free_dimension_override_by_name("n", "3")


@case
def a_severity_as_text(ort, _):
    ort.set_default_logger_severity("2")


@case
def an_array_bound_as_a_value(ort, _):
    session(ort).io_binding().bind_ortvalue_input("x", X)


@case
def a_value_of_complex_numbers(ort, _):
    ort.OrtValue.ortvalue_from_numpy(np.ones(2, np.complex64))


@case
def a_value_of_dates(ort, _):
    ort.OrtValue.ortvalue_from_numpy(np.zeros(2, "M8[s]"))


@case
def a_value_of_objects(ort, _):
    ort.OrtValue.ortvalue_from_numpy(np.array([1.5, 2], object))


@case
def a_model_said_to_be_in_the_package_format(ort, _):
    options = ort.SessionOptions()
    options.add_session_config_entry("session.load_model_format", "ORT")
    session(ort, None, options)


@case
def an_unknown_attribute_of_a_description(ort, _):
    session(ort).get_modelmeta().nothing = 1


@case
def a_shape_of_a_sequence(ort, _):
    session(ort, sequence_model()).run_with_ort_values(None, held(ort))[0].shape()


def run_all(ort: Any) -> dict[str, list[str] | None]:
    found: dict[str, list[str] | None] = {}
    for name, function in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                function(ort, Path(folder))
                found[name] = None
            except Exception as error:
                found[name] = [one.__name__ for one in type(error).__mro__]
                if "-v" in sys.argv:
                    print(name, type(error).__name__, str(error)[:150], file=sys.stderr)
    return found


def surface_of(ort: Any) -> dict[str, list[str]]:
    """Return the public names of a package and of its classes."""
    state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    found = {"onnxruntime": dir(ort), "onnxruntime_pybind11_state": dir(state)}
    for name, one in objects_of(ort).items():
        found[name] = dir(one)
    return {
        name: [one for one in names if not one.startswith("_") or one.startswith("__dlpack")]
        for name, names in found.items()
    }


def objects_of(ort: Any) -> dict[str, Any]:
    """Return an object of each class whose names are compared."""
    made, device = session(ort), ort.OrtDevice.make("cpu", 0)
    kind = (ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    return {
        "IOBinding": made.io_binding(),
        "InferenceSession": made,
        "ModelMetadata": made.get_modelmeta(),
        "NodeArg": made.get_inputs()[0],
        "OrtArenaCfg": ort.OrtArenaCfg({"max_mem": 1}),
        "OrtDevice": device,
        "OrtEpDevice": ort.get_ep_devices()[0],
        "OrtExternalInitializerInfo": ort.OrtExternalInitializerInfo("weights.bin", 0, 4),
        "OrtHardwareDevice": ort.get_ep_devices()[0].device,
        "OrtMemoryInfo": ort.OrtMemoryInfo("Cpu", *kind),
        "OrtValue": ort.OrtValue.ortvalue_from_numpy(X),
        "RunOptions": ort.RunOptions(),
        "SessionOptions": ort.SessionOptions(),
        "SparseTensor": ort.SparseTensor.sparse_coo_from_numpy(
            np.array([3, 3], np.int64), X[0], np.array([0, 4, 8], np.int64), device
        ),
    }


if __name__ == "__main__":
    if sys.argv[1] == "hagane":
        import hagane

        hagane.install_as_onnxruntime()
    package = importlib.import_module("onnxruntime")
    package.set_default_logger_severity(4)
    answer = {"names": surface_of(package), "misuse": run_all(package)}
    sys.stdout.write("\n" + json.dumps(answer))
