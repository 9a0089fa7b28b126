"""Settings of the whole process, and models whose declarations contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from onnx import TensorProto, helper
from onnxruntime.capi import _pybind_state as their_module

import hagane.onnxruntime as ort
from hagane.errors import HaganeError
from hagane.onnxruntime import environment, state
from hagane.ops.random import draw
from tests.surface.misuse import I64, F, add_model, proto

X = np.ones((2, 3), np.float32)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    draw._open.clear()
    environment._threads.clear()


def test_a_seed_of_the_process_begins_open_draws_anew() -> None:
    nodes = [
        helper.make_node("RandomNormal", [], ["n"], shape=[4]),
        helper.make_node("Dropout", ["n", "rate", "on"], ["y"]),
    ]
    weights = {"rate": np.array(0.5, np.float32), "on": np.array(True)}
    model = proto(nodes, {}, {"n": (F, [4]), "y": (F, [4])}, weights).SerializeToString()
    drawn = []
    for seed in (3, 3, -1):
        ort.set_seed(seed)
        drawn.append(np.concatenate(ort.InferenceSession(model).run(None, {})))
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
    with pytest.raises(TypeError):
        ort.set_seed("3")  # type: ignore[arg-type]


def test_sessions_share_a_number_of_threads_if_they_say_so() -> None:
    ort.set_global_thread_pool_sizes(1, 1)
    options = ort.SessionOptions()
    options.use_per_session_threads = False
    made = ort.InferenceSession(add_model().SerializeToString(), options)
    assert made.get_session_options().intra_op_num_threads == 1
    assert options.intra_op_num_threads == 0
    np.testing.assert_array_equal(made.run(None, {"x": X})[0], X + 1)


def test_a_severity_that_does_not_exist_is_refused() -> None:
    options = ort.SessionOptions()
    options.log_severity_level = 9
    with pytest.raises(RuntimeError, match="log_severity_level: expected 0 to 4, got 9"):
        ort.InferenceSession(add_model().SerializeToString(), options)


@pytest.mark.parametrize("kind", [0, 1], ids=["FP4", "NF4"])
def test_weights_of_four_bits_of_bitsandbytes_are_those_of_the_package(kind: int) -> None:
    generator = np.random.default_rng(kind)
    for columns, rows, block in ((6, 66, 32), (13, 24, 64), (1, 16, 16), (3, 25, 16)):
        weights = np.round(generator.standard_normal((columns, rows)), 1).astype(np.float32)
        both = []
        for module in (their_module, state):
            packed = np.zeros((columns * rows + 1) // 2, np.uint8)
            largest = np.zeros(-(-columns * rows // block), np.float32)
            module.quantize_matmul_bnb4(packed, weights, largest, block, kind, columns, rows)
            both.append((packed, largest))
        for one, other in zip(*both, strict=True):
            np.testing.assert_array_equal(one, other)
        node = helper.make_node(
            "MatMulBnb4", ["x", "w", "m"], ["y"], domain="com.microsoft",
            K=rows, N=columns, block_size=block, quant_type=kind,
        )  # fmt: skip
        imports = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        parts = {"w": both[1][0], "m": both[1][1]}
        declared = {"x": (F, ["n", rows])}, {"y": (F, ["n", columns])}
        model = proto([node], *declared, parts, imports=imports).SerializeToString()
        x = generator.standard_normal((3, rows)).astype(np.float32)
        expected = theirs.InferenceSession(model).run(None, {"x": x})[0]
        found = ort.InferenceSession(model).run(None, {"x": x})[0]
        np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def relu(declared: int = F, inside: Any = None, **more: Any) -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    model = proto(nodes, {"x": (F, [2])}, {"y": (declared, [2])}, **more)
    if inside is not None:
        model.graph.value_info.append(helper.make_tensor_value_info("h", *inside))
    return model


def weighted(kind: int, shape: list[int]) -> onnx.ModelProto:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    inputs = {"x": (F, [2]), "w": (kind, shape)}
    return proto([node], inputs, {"y": (F, [2])}, {"w": np.ones(2, np.float32)})


def branch() -> onnx.ModelProto:
    def body(kind: str, declared: int) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(kind, declared, [2])
        return helper.make_graph([helper.make_node(kind, ["x"], [kind])], kind, [], [out])

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=body("Identity", I64), else_branch=body("Neg", F)
    )
    inputs: dict[str, Any] = {"c": (TensorProto.BOOL, []), "x": (F, [2])}
    return proto([node], inputs, {"y": (F, [2])})


def untyped() -> onnx.ModelProto:
    model = relu()
    model.graph.input[0].ClearField("type")
    return model


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (relu(I64), "Relu '-> y': output 'y' is declared int64, but it is float32"),
        (relu(inside=(I64, [2])), "output 'h' is declared int64, but it is float32.*correct"),
        (weighted(I64, [2]), "initializer 'w': its data is float32, but it is declared int64"),
        (weighted(F, [3]), r"'w': its data has the shape \[2\], but it is declared \[3\]"),
        (branch(), "output 'Identity' is declared int64, but it is float32"),
        (untyped(), "input 'x' has no type information"),
    ],
)
def test_declarations_that_contradict_are_refused_as_the_package_does(
    model: onnx.ModelProto, said: str
) -> None:
    with pytest.raises((their_module.Fail, their_module.InvalidGraph)):
        theirs.InferenceSession(model.SerializeToString())
    with pytest.raises(HaganeError, match=said) as caught:
        ort.InferenceSession(model.SerializeToString())
    assert isinstance(caught.value, state.Fail)


def test_shapes_that_contradict_are_refused_where_that_is_asked_for() -> None:
    model = relu(inside=(F, [5])).SerializeToString()
    np.testing.assert_array_equal(ort.InferenceSession(model).run(None, {"x": X[0, :2]})[0], 1)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.strict_shape_type_inference", "1")
    with pytest.raises(HaganeError, match=r"declared with the shape \[5\], but it is float32\[2\]"):
        ort.InferenceSession(model, options)


def test_basic_optimizations_keep_the_operators_that_other_tools_know(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Identity", ["x"], ["i"]),
        helper.make_node("Div", ["i", "two"], ["d"]),
        helper.make_node("Erf", ["d"], ["e"]),
        helper.make_node("Add", ["e", "one"], ["a"]),
        helper.make_node("Mul", ["i", "a"], ["m"]),
        helper.make_node("Mul", ["m", "half"], ["y"]),
    ]
    numbers = {"two": 2**0.5, "one": 1.0, "half": 0.5}
    weights = {name: np.array(number, np.float32) for name, number in numbers.items()}
    model = proto(nodes, {"x": (F, ["n"])}, {"y": (F, ["n"])}, weights).SerializeToString()
    kinds = {}
    for level in ("ORT_ENABLE_BASIC", "ORT_ENABLE_ALL"):
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.optimized_model_filepath = str(tmp_path / "model.optimized")
        ort.InferenceSession(model, options)
        written = onnx.load(tmp_path / "model.optimized")
        kinds[level] = [node.op_type for node in written.graph.node]
    assert kinds["ORT_ENABLE_BASIC"] == ["Div", "Erf", "Add", "Mul", "Mul"]
    assert kinds["ORT_ENABLE_ALL"] == ["Gelu"]
