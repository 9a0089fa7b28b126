"""The compiled module of ONNX Runtime (``C.OrtDevice``, ``session._sess``); maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from onnx import TensorProto, helper
from onnxruntime.capi import _pybind_state as their_module

import hagane.onnxruntime as ort
from hagane.errors import HaganeError
from hagane.onnxruntime import state
from hagane.onnxruntime.providers import check_and_normalize_provider_args
from hagane.onnxruntime.submodules import _backend
from tests.surface.misuse import add_model

X = np.arange(6, dtype=np.float32).reshape(2, 3)
CPU = state.OrtDevice(state.OrtDevice.cpu(), state.OrtDevice.default_memory(), 0)


def session() -> ort.InferenceSession:
    return ort.InferenceSession(add_model().SerializeToString())


def test_a_session_of_the_compiled_module_is_made_in_two_steps() -> None:
    made = state.InferenceSession(
        ort.SessionOptions(), add_model().SerializeToString(), False, False
    )
    with pytest.raises(RuntimeError, match="Session not initialized"):
        made.run(["y"], {"x": X}, None)
    made.initialize_session([], [], set())
    np.testing.assert_array_equal(made.run(["y"], {"x": X}, None)[0], X + 1)
    assert made.inputs_meta[0].name == "x"
    assert made.model_meta.graph_name == made.get_modelmeta().graph_name


def test_the_session_inside_a_session_takes_the_feed_first() -> None:
    value = state.OrtValue.ortvalue_from_numpy(X, CPU)
    found = session()._sess.run_with_ort_values({"x": value}, ["y"], None)
    assert isinstance(found, state.OrtValueVector)
    (y,) = found
    np.testing.assert_array_equal(y.numpy(), X + 1)


def test_bindings_of_the_compiled_module_take_arrays_values_and_addresses() -> None:
    made, room = session(), np.zeros((2, 3), np.float32)
    binding = state.SessionIOBinding(made._sess)
    binding.bind_input("x", X)
    binding.bind_output("y", CPU)
    made._sess.run_with_iobinding(binding, None)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X + 1)
    binding.bind_output("y", CPU, np.float32, [2, 3], room.ctypes.data)
    made._sess.run_with_iobinding(binding, None)
    np.testing.assert_array_equal(room, X + 1)
    assert len(binding.get_outputs()) == 1
    inner = made.io_binding()
    inner._iobinding.bind_input("x", X * 2)
    inner.bind_output("y")
    made._sess.run_with_iobinding(inner._iobinding, None)
    np.testing.assert_array_equal(inner.copy_outputs_to_cpu()[0], X * 2 + 1)


def test_what_classes_that_inherit_reach_for_is_there() -> None:
    made = session()
    with pytest.raises(
        ValueError, match=r"Required inputs \(\['x'\]\) are missing from input feed"
    ):
        made._validate_input(["z"])
    made._validate_input(["x"])
    assert made._model_bytes == add_model().SerializeToString()
    names, options = check_and_normalize_provider_args(
        [("CPUExecutionProvider", {"a": 1})], None, ["CPUExecutionProvider"]
    )
    assert (names, options) == (["CPUExecutionProvider"], [{"a": "1"}])
    with pytest.warns(UserWarning, match="Duplicate provider 'a' encountered, ignoring"):
        assert check_and_normalize_provider_args(["a", "a"], None, ["a"]) == (["a"], [{}])
    wrong: list[tuple[Any, Any]] = [(3, None), (["a"], 3), (["a"], ["b"]), ([("a", {1: 2})], [{}])]
    for providers, given in wrong:
        with pytest.raises(ValueError, match="provider"):
            check_and_normalize_provider_args(providers, given, ["a"])


def test_the_backend_takes_sessions_and_gives_lists() -> None:
    import types

    backend = types.ModuleType("backend")
    _backend(backend)
    (y,) = backend.run(session(), [X])
    np.testing.assert_array_equal(y, X + 1)
    assert isinstance(backend.prepare(add_model().SerializeToString(), "CPU").run(X), list)
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml",
                              int64_vocabulary=[0, 1])],
            "g",
            [helper.make_value_info("x", helper.make_map_type_proto(
                TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        ),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 1)],
        ir_version=9,
    )  # fmt: skip
    (y,) = backend.run(ort.InferenceSession(model.SerializeToString()), {0: 2.0, 1: 3.0})
    assert y.ravel().tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="Unexpected key type  <class 'str'>"):
        backend.run(ort.InferenceSession(model.SerializeToString()), {"a": 2.0})
    with pytest.raises(RuntimeError, match="expected the device 'CPU', got 'CUDA'"):
        backend.prepare(session(), "CUDA")


def test_output_names_may_come_from_a_generator_and_texts_from_new_arrays() -> None:
    np.testing.assert_array_equal(session().run((n for n in ["y"]), {"x": X})[0], X + 1)
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> g (string[n] x) => (string[n] y) '
        "{ y = Identity(x) }"
    )
    made = ort.InferenceSession(model.SerializeToString())
    if hasattr(np.dtypes, "StringDType"):
        new = np.array(["a", "bb"], dtype=np.dtypes.StringDType())
        assert made.run(None, {"x": new})[0].tolist() == ["a", "bb"]
    assert made.run(None, {"x": [1, "b"]})[0].tolist() == ["1", "b"]


@pytest.mark.parametrize(("bits", "qdq"), [(2, False), (4, False), (8, False), (4, True)])
@pytest.mark.parametrize("symmetric", [True, False])
def test_weights_of_few_bits_are_those_of_the_package(
    bits: int, *, qdq: bool, symmetric: bool
) -> None:
    K, N, size, each = 96, 5, 32, 8 // bits
    weights = np.random.default_rng(bits).normal(size=(K, N)).astype(np.float32)
    weights[:size, 0] = 0
    blocks = K // size
    shapes: Any = ((N, blocks, size // each), (N, blocks), (N, -(-blocks // each)))
    name = f"quantize_matmul_{bits}bits"
    if qdq:
        shapes = ((K * N // each,), (blocks, N), (-(-blocks * N // each),))
        name = f"quantize_qdq_matmul_{bits}bits"
    both = []
    for module in (their_module, state):
        packed, zeros = np.zeros(shapes[0], np.uint8), np.zeros(shapes[2], np.uint8)
        scales = np.zeros(shapes[1], np.float32)
        told = getattr(module, name)(packed, weights, scales, zeros, size, N, K, symmetric)
        both.append((packed, scales, zeros, told))
    for one, other in zip(both[0][:3], both[1][:3], strict=True):
        np.testing.assert_array_equal(one, other)
    assert both[0][3] == both[1][3]


def test_weights_of_another_shape_are_refused() -> None:
    with pytest.raises(HaganeError, match=r"expected src of shape \(32, 4\), got \(4, 32\)"):
        state.quantize_matmul_4bits(
            *(np.zeros((4, 1, 16), np.uint8), np.zeros((4, 32), np.float32)),
            *(np.zeros((4, 1), np.float32), np.zeros((4, 1), np.uint8), 32, 4, 32, True),
        )


def _ml(node: onnx.NodeProto, inputs: Any, outputs: Any) -> bytes:
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 1)]
    graph = helper.make_graph([node], "g", inputs, outputs)
    made = helper.make_model(graph, opset_imports=imports, ir_version=9)
    return bytes(made.SerializeToString())


def test_maps_have_their_type_and_give_numbers_of_it() -> None:
    node = helper.make_node(
        "DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b"]
    )
    inside = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])
    made = ort.InferenceSession(_ml(node, [helper.make_value_info("x", inside)], [output]))
    assert made.get_inputs()[0].type == "map(string,tensor(float))"
    (y,) = made.run(None, {"x": {"b": 1}})
    assert (y.dtype, y.tolist()) == (np.float32, [[0.0, 1.0]])  # it was int64
    with pytest.raises(HaganeError, match=r"input 'x': expected a dict .*, got 'b' \(str\) in"):
        made.run(None, {"x": {"a": "b"}})
    with pytest.raises(HaganeError, match="input 'x': expected a dict .*, got an array of float32"):
        made.run(None, {"x": X})


def test_the_example_of_the_package_runs() -> None:
    from onnxruntime.datasets import get_example

    path = get_example("logreg_iris.onnx")
    made, own = ort.InferenceSession(path), theirs.InferenceSession(path)
    assert [o.type for o in made.get_outputs()] == [o.type for o in own.get_outputs()]
    x = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    (labels, rows), (wanted, scores) = (s.run(None, {"float_input": x}) for s in (made, own))
    np.testing.assert_array_equal(labels, wanted)
    for row, score in zip(rows, scores, strict=True):
        assert row == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"coefficients": [1.0] * 6, "intercepts": [0.0] * 3, "classlabels_ints": [0, 1]},
         "expected a label for each of 3 scores, got 2"),
        ({"coefficients": [1.0] * 5, "classlabels_ints": [0, 1]},
         "expected coefficients for 2 features, got 5"),
    ],
)  # fmt: skip
def test_classifiers_whose_numbers_do_not_fit_say_so(node: dict[str, Any], said: str) -> None:
    made = helper.make_node("LinearClassifier", ["x"], ["l", "p"], domain="ai.onnx.ml", **node)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])]
    outputs = [
        helper.make_tensor_value_info("l", TensorProto.INT64, None),
        helper.make_tensor_value_info("p", TensorProto.FLOAT, None),
    ]
    with pytest.raises(HaganeError, match=said):
        ort.InferenceSession(_ml(made, inputs, outputs)).run(None, {"x": X[:, :2]})
