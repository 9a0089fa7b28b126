"""Sums of residual networks in models of bytes: rounded, or kept as floats on request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import hagane
from hagane.cli import main
from hagane.ship.quantize import QuantizeOptions, Scheme, quantize
from tests.native.models import draw
from tests.ship.models import Case, make, node, save


def residual(*, rectified: bool) -> Case:
    """Return two residual blocks, whose sums a Relu follows or the next convolution reads."""
    nodes = [node("Conv", ["x", "w0", "b"], ["c0"], pads=[1] * 4), node("Relu", ["c0"], ["s0"])]
    constants = {"w0": draw((8, 3, 3, 3)) / 4, "b": draw((8,), 1)}
    for i in (1, 2):
        constants[f"w{i}"] = draw((8, 8, 3, 3), i) / 9
        nodes += [
            node("Conv", [f"s{i - 1}", f"w{i}", "b"], [f"c{i}"], pads=[1] * 4),
            node("Add", [f"c{i}", f"s{i - 1}"], [f"a{i}" if rectified else f"s{i}"]),
        ]
        if rectified:
            nodes.append(node("Relu", [f"a{i}"], [f"s{i}"]))
    nodes.append(node("Conv", ["s2", "w1"], ["y"]))
    return make(nodes, {"x": (2, 3, 9, 8)}, ["y"], constants, {"x": draw((2, 3, 9, 8), 7)})


def added(path: Path) -> list[str]:
    """Return what is added to convolutions' results."""
    return [n.input[1] for n in onnx.load(path).graph.node if n.op_type == "Add"]


@pytest.mark.parametrize("rectified", [True, False])
def test_rectified_images_are_added_as_bytes_and_others_as_floats(
    tmp_path: Path, rectified: bool
) -> None:
    path, made = tmp_path / "m.onnx", tmp_path / "q.onnx"
    feed = save(residual(rectified=rectified), path)
    quantize(path, lambda: [feed], made)
    assert added(made) == ["s0_rounded", "s1_rounded" if rectified else "s1"]
    (expected,) = hagane.InferenceSession(path).run(None, feed)
    # (As floats that are rounded: its kernels of bytes cut sums to 16 bits on some processors.)
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for session in (hagane.InferenceSession(made), onnxruntime.InferenceSession(made, plain)):
        (found,) = session.run(None, feed)
        error = float(np.sum((found - expected) ** 2) / np.sum(expected**2))
        assert error < 1e-3


def test_sums_stay_floats_on_request(tmp_path: Path) -> None:
    path, made = tmp_path / "m.onnx", tmp_path / "q.onnx"
    feed = save(residual(rectified=True), path)
    quantize(path, lambda: [feed], made, QuantizeOptions(scheme=Scheme(float_sums=True)))
    assert added(made) == ["s0", "s1"]


def test_images_that_no_layer_of_bytes_reads_are_not_rounded(tmp_path: Path) -> None:
    """A sum that the end of the model averages stays as it is."""
    path, made = tmp_path / "m.onnx", tmp_path / "q.onnx"
    model, feed = residual(rectified=True)
    del model.graph.node[-1]
    model.graph.node.append(node("GlobalAveragePool", ["s2"], ["y"]))
    save((model, feed), path)
    quantize(path, lambda: [feed], made)
    read = [n.input[0] for n in onnx.load(made).graph.node if n.op_type == "GlobalAveragePool"]
    assert read == ["s2"]


def test_the_command_keeps_sums_as_floats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, made = tmp_path / "m.onnx", tmp_path / "q.onnx"
    feed = save(residual(rectified=True), path)
    np.save(tmp_path / "feed.npy", feed["x"])
    (tmp_path / "data.py").write_text(
        "import numpy as np\n"
        f"def make():\n    return [{{'x': np.load({str(tmp_path / 'feed.npy')!r})}}]\n"
    )
    options = ["--data", f"{tmp_path / 'data.py'}:make", "-o", str(made), "--float-sums"]
    with pytest.raises(SystemExit) as ended:
        main(["quantize", str(path), *options])
    assert ended.value.code == 0, capsys.readouterr()
    assert added(made) == ["s0", "s1"]
