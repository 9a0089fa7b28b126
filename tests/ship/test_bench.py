"""A build timed beside the session."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from hagane.cli import main
from hagane.plugins import forget_operator
from hagane.runtime.bench import _Worker, compare
from tests.ship.conftest import Maker
from tests.ship.models import CASES, save


def test_a_build_is_timed_beside_the_session(builds: Maker, tmp_path: Path) -> None:
    save(CASES["any_batch"](), tmp_path / "m.onnx")
    engines = ["hagane", f"build:{builds('any_batch')}"]
    report = compare(tmp_path / "m.onnx", engines, {"x": (4, 33)}, 1, 1, 0.01)
    assert [row["engine"] for row in report["results"]] == engines
    assert report["ratios"].keys() == {f"{engines[1]}/hagane"}


def test_a_build_is_timed_alone(builds: Maker, capsys: pytest.CaptureFixture[str]) -> None:
    folder = builds("any_batch", shapes=("x=1..8,33",))
    words = ["bench", str(folder), "--rounds", "1", "--seconds", "0.01", "--json"]
    with pytest.raises(SystemExit) as left:
        main([*words, "--shape", "x=4,33"])
    assert left.value.code in (0, None)
    report = json.loads(capsys.readouterr().out)
    (row,) = report["results"]
    assert (row["engine"], row["precision"]) == ("build", "fp32")
    assert row["median_ms"] > 0
    assert f"hagane bench MODEL --build {folder}" in report["skipped"]["onnxruntime"]
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code != 0
    assert "--shape x=" in capsys.readouterr().err


def test_a_model_with_own_operators_is_timed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = tmp_path / "own.py"
    plugin.write_text(
        'import hagane\nhagane.register_operator("Twice", domain="timed", expression="x + x")\n'
    )
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 5]) for name in "xy"]
    node = helper.make_node("Twice", ["x"], ["y"], domain="timed")
    graph = helper.make_graph([node], "own", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("timed", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), tmp_path / "m.onnx")
    words = ["bench", str(tmp_path / "m.onnx"), "--vs", "none", "--rounds", "1", "--json"]
    try:
        with pytest.raises(SystemExit) as left:
            main(["--plugin", str(plugin), *words, "--seconds", "0.01"])
    finally:
        forget_operator("Twice", domain="timed")
    assert left.value.code in (0, None)
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert row["engine"] == "hagane"
    assert row["median_ms"] > 0


def test_an_engine_leaves_ctrl_c_to_the_process_that_asks(builds: Maker) -> None:
    worker = _Worker(f"build:{builds('any_batch')}", Path(), {"x": (2, 33)}, 1, "fp32", None)
    try:
        process = worker._process.pid
        assert process is not None
        os.kill(process, signal.SIGINT)
        assert len(worker.ask("time", 0.0)) == 1
    finally:
        worker.stop()
