"""The one way from a model's file to parts that run, and what it tells of itself."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane
import hagane.cli
from hagane.cli.inspect import describe_session
from hagane.machine import best_level
from hagane.native import Target
from hagane.runtime.backends import NativeBackend
from hagane.runtime.pipeline import build, read
from hagane.runtime.settings import Settings, settings_of


def network(batch: int | str = 1) -> onnx.ModelProto:
    """Return a convolution whose weights come from a Constant node through a Mul, and a GELU."""
    draw = np.random.default_rng(0).standard_normal
    weights = numpy_helper.from_array(draw((8, 3, 3, 3)).astype(np.float32))
    scale = numpy_helper.from_array(np.full((8, 1, 1, 1), 2, np.float32), "scale")
    half, one, root = (
        numpy_helper.from_array(np.array(number, np.float32), name)
        for name, number in (("half", 0.5), ("one", 1.0), ("root", 2**0.5))
    )
    nodes = [
        helper.make_node("Constant", [], ["w0"], value=weights),
        helper.make_node("Mul", ["w0", "scale"], ["w"]),
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("Div", ["c", "root"], ["d"]),
        helper.make_node("Erf", ["d"], ["e"]),
        helper.make_node("Add", ["e", "one"], ["a"]),
        helper.make_node("Mul", ["c", "a"], ["m"]),
        helper.make_node("Mul", ["m", "half"], ["g"]),
        helper.make_node("StringNormalizer", ["s"], ["t"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 9, 9]),
            helper.make_tensor_value_info("s", TensorProto.STRING, [2]),
        ],
        [
            helper.make_tensor_value_info("g", TensorProto.FLOAT, [batch, 8, 7, 7]),
            helper.make_tensor_value_info("t", TensorProto.STRING, [None]),
        ],
        [scale, half, one, root],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def inspect(path: Path, *options: str) -> None:
    """Run ``hagane inspect``."""
    with pytest.raises(SystemExit) as ended:
        hagane.cli.main(["inspect", str(path), *options])
    assert ended.value.code == 0


NATIVE = Settings((NativeBackend(Target(best_level())),))


def test_stages_are_recorded_in_order_with_their_changes() -> None:
    found = read(network(), NATIVE)
    assert [stage.name for stage in found.stages] == ["load", "legalise", "infer"]
    assert found.opsets == {"": 21}
    built = build(found.model, found.types, NATIVE)
    assert [stage.name for stage in built.stages] == ["passes", "adapt", "plan", "open"]
    changed = {change.name for change in built.stages[0].changes if change.count}
    assert {"fuse_gelu", "fold_constants"} <= changed
    assert all(stage.seconds >= 0 for stage in (*found.stages, *built.stages))
    assert built.obstacle is None


def test_a_plan_compiles_nothing_until_it_is_opened() -> None:
    found = read(network(), NATIVE)
    built = build(found.model, found.types, NATIVE, ready=False)
    assert [stage.name for stage in built.stages] == ["passes", "adapt", "plan"]
    (part,) = built.program.parts("native")
    with pytest.raises(AssertionError, match="open the part first"):
        part.run([np.zeros((1, 3, 9, 9), np.float32)])
    built.program.open(lambda: None)
    assert part.run([np.zeros((1, 3, 9, 9), np.float32)])[0].shape == (1, 8, 7, 7)


def test_a_plan_tells_of_the_session_that_would_run() -> None:
    settings = settings_of(hagane.SessionOptions(), logging.getLogger("test"))
    found = read(network(), settings)
    told = describe_session(build(found.model, found.types, settings, ready=False))
    made = hagane.InferenceSession(network())
    parts = list(made._programs.general.parts())
    assert told["engines"] == {
        name: sum(len(part.nodes) for part in parts if part.backend == name)
        for name in ("native", "reference")
    }
    assert told["no_native_kernel"] == ["StringNormalizer: there is no kernel for it"]


def test_kernels_take_the_sizes_that_a_run_has() -> None:
    found = read(network("n"), NATIVE)
    told = describe_session(build(found.model, found.types, NATIVE, ready=False))
    assert told["no_native_kernel"] == ["StringNormalizer: there is no kernel for it"]
    fixed = Settings(NATIVE.backends, shapes={"x": [2, 3, 9, 9]})
    found = read(network("n"), fixed)
    told = describe_session(build(found.model, found.types, fixed, ready=False))
    assert told["no_native_kernel"] == ["StringNormalizer: there is no kernel for it"]


def test_inspect_names_no_node_that_the_session_runs_natively(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(network(), path)
    inspect(path, "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["no_native_kernel"] == ["StringNormalizer: there is no kernel for it"]
    # The tensor of the Constant node is counted: 8 * 3 * 3 * 3 + 8 + 3 numbers.
    assert report["parameters"] == 227
    assert report["parameter_bytes"] == 4 * 227


def test_inspect_tells_that_the_reference_engine_was_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    path = tmp_path / "model.onnx"
    onnx.save(network(), path)
    inspect(path, "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["engines"] == {"reference": 8}  # all but the Constant node
    assert "Conv: the reference engine was chosen" in report["no_native_kernel"]


def test_columns_that_a_size_decides_do_not_stop_a_product() -> None:
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"]),
    ]
    w = np.random.default_rng(0).standard_normal((48, 5)).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
        [numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    x = np.ones((2, 3, 4, 4), np.float32)
    (y,) = hagane.InferenceSession(model).run(None, {"x": x})
    np.testing.assert_allclose(y, x.reshape(2, 48) @ w, rtol=1e-4)
