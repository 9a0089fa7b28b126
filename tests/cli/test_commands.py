"""The command, as a person at a terminal uses it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from PIL import Image

import hagane
from hagane.cli import main
from tests.runtime.test_session import X, Y, affine


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "affine.onnx"
    onnx.save(affine(), path)
    return path


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run a command; return its exit status, output and error output."""
    try:
        main([str(word) for word in words])
        status = 0
    except SystemExit as stop:
        status = int(stop.code or 0)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_python_dash_m_hagane_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hagane", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"hagane {hagane.__version__}\n"


def test_help_lists_every_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "--help")
    assert status == 0
    for name in ("run", "inspect", "bench", "demo"):
        assert f" {name} " in out


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["check"], "--input 'x=float32[batch, 3, height, width]'"),
        (["check"], "as x=float32[batch, 3, height=224, width=224]; numbers"),
        (["inspect"], "arguments: shown are the predicted peak, the values kept"),
        (["chainer"], "its 'import chainer' finds hagane"),
        (["prob", "check"], "exit 0 if all hold"),
    ],
)
def test_help_of_a_subcommand_is_shown_as_written(
    words: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = call(capsys, *words, "--help")
    assert status == 0
    assert shown in " ".join(out.replace("│", " ").split())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is full")
@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_full_disk_is_told(model: Path, buffered: str) -> None:
    words = [sys.executable, "-m", "hagane", "run", str(model), "--input", "x=[[1,1,1],[2,2,2]]"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            words,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": buffered},
        )
    assert done.returncode == 2
    assert done.stderr == "hagane: error: cannot write: No space left on device\n"


def test_streams_that_the_caller_has_closed_lead_nowhere(model: Path) -> None:
    words = [sys.executable, "-m", "hagane", "run", str(model), "--input", "x=[[1,1,1],[2,2,2]]"]
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", *words], capture_output=True, text=True, check=False
    )
    assert (closed.returncode, closed.stderr) == (0, "")


def test_characters_that_a_stream_lacks_are_escapes(tmp_path: Path) -> None:
    program = tmp_path / "even.pml"
    program.write_text("// \N{GREEK SMALL LETTER PI}\nflip(\N{GREEK SMALL LETTER PI})")
    done = subprocess.run(
        [sys.executable, "-m", "hagane", "prob", "solve", str(program)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii:strict"},
    )
    assert done.returncode == 2
    assert "'\\u03c0'" in done.stderr


def test_run_reads_a_file_and_writes_outputs(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", X)
    folder = tmp_path / "out"
    status, out, _ = call(
        capsys, "run", model, "--input", f"x={tmp_path / 'x.npy'}", "--output", folder
    )
    assert status == 0
    assert "y: float32[2, 2]" in out
    np.testing.assert_array_equal(np.load(folder / "y.npy"), Y)


def test_run_takes_values_and_prints_json(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "run", model, "--input", "x=[[1,1,1],[2,2,2]]", "--json")
    assert status == 0
    report = json.loads(out)
    assert report["outputs"]["y"] == {"dtype": "float32", "shape": [2, 2], "data": Y.tolist()}
    assert report["seconds"] > 0
    assert report["first_seconds"] > 0


def test_run_makes_random_inputs_of_a_wanted_shape(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, first, _ = call(capsys, "run", model, "--random", 3, "--shape", "x=4,3", "--json")
    assert status == 0
    assert json.loads(first)["outputs"]["y"]["shape"] == [4, 2]
    _, again, _ = call(capsys, "run", model, "--random", 3, "--shape", "x=4,3", "--json")
    assert json.loads(first)["outputs"] == json.loads(again)["outputs"]


def test_run_reads_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("ReduceMean", ["x"], ["y"], axes=[0, 2, 3], keepdims=0)],
        "colour",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 6])],
        [onnx.ValueInfoProto(name="y")],
    )
    path = tmp_path / "colour.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    Image.new("RGB", (20, 10), (255, 0, 51)).save(tmp_path / "red.png")
    status, out, _ = call(capsys, "run", path, "--input", f"x={tmp_path / 'red.png'}", "--json")
    assert status == 0
    np.testing.assert_allclose(json.loads(out)["outputs"]["y"]["data"], [1, 0, 0.2], atol=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "nowhere.onnx"], "there is no model file 'nowhere.onnx'"),
        (["run", "MODEL"], "no value for x: pass --input x=FILE, or --random SEED"),
        (["run", "MODEL", "--input", "x"], "--input: expected NAME=VALUE, got 'x'"),
        (["run", "MODEL", "--input", "z=1"], "the model has no such input; it takes: x"),
        (["run", "MODEL", "--input", "x=no.npy"], "there is no file 'no.npy'"),
        (["run", "MODEL", "--input", "x=cat"], "expected numbers for tensor(float), got 'cat'"),
        (["run", "MODEL", "--random", "1", "--shape", "x=a"], "expected integers separated by"),
        (["run", "MODEL", "--random", "1", "--shape", "x=2,5"], "axis 1 has size 5, expected 3"),
        (["inspect", "MODEL", "--shape", "x"], "--shape: expected NAME=VALUE"),
        (["bench", "MODEL", "--vs", "abacus"], "unknown engine abacus; known: onnxruntime"),
    ],
)
def test_mistakes_end_with_a_message_and_status_2(
    model: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(model) if word == "MODEL" else word for word in words]
    status, _, err = call(capsys, *words)
    assert status == 2
    assert message in err
    assert "Traceback" not in err


def test_inspect_tells_sizes_and_costs(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawing = tmp_path / "graph.svg"
    status, out, _ = call(capsys, "inspect", model, "--json", "--graph", drawing)
    assert status == 0
    report = json.loads(out)
    assert report["inputs"] == [{"name": "x", "type": "float32[batch, 3]", "shape": ["batch", 3]}]
    assert report["outputs"][0]["shape"] == ["batch", 2]
    assert report["operators"] == {"Gemm": 1, "Relu": 1}
    assert report["parameters"] == 8
    assert report["flops"] == "14*batch"  # 2 * 3 * 2 in the product, 2 in the activation
    assert report["unresolved"] == []
    assert report["dimensions"] == ["batch"]
    assert drawing.read_text().startswith("<svg")


def test_inspect_names_what_passes_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"gate{i}" for i in range(6)]
    nodes = []
    for i, name in enumerate(names):
        nodes += [
            helper.make_node("Sigmoid", [f"x{i}"], [f"s{i}"]),
            helper.make_node("Mul", [f"x{i}", f"s{i}"], [f"x{i + 1}"], name=name),
        ]
    values = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in ("x0", "x6")
    ]
    path = tmp_path / "gates.onnx"
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    _, out, _ = call(capsys, "inspect", path, "--passes")
    assert "fuse_activations 6: products with gates" in out
    assert "  gate0, gate1, gate2, gate3 and 2 more\n" in out
    _, out, _ = call(capsys, "inspect", path, "--passes", "--json")
    assert json.loads(out)["passes"]["fuse_activations"] == names


def test_inspect_shows_tables_values_and_text(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = call(capsys, "inspect", model, "--values", "--shape", "x=n,3")
    assert "input  x: float32[n, 3]" in out
    assert "affine: float32[n, 2]" in out
    _, text, _ = call(capsys, "inspect", model, "--text")
    assert "affine: float32[batch, 2] = Gemm(x, w, b)" in text


def test_bench_reports_medians_and_ratios(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--rounds", 2, "--seconds", 0.02, "--threads", 1]
    status, out, _ = call(capsys, "bench", model, "--shape", "x=3,3", *quick, "--json")
    assert status == 0
    report = json.loads(out)
    assert set(report) == {"model", "threads", "shapes", "results", "ratios", "skipped"}
    assert report["shapes"] == {"x": [3, 3]}
    assert [row["engine"] for row in report["results"]] == ["hagane", "onnxruntime"]
    first, second = (row["median_ms"] for row in report["results"])
    assert report["ratios"]["onnxruntime/hagane"] == pytest.approx(second / first)
    assert set(report["results"][0]) == {
        "engine", "version", "precision", "median_ms", "min_ms", "peak_share",
    }  # fmt: skip


@pytest.mark.parametrize("options", [[], ["--profile"]])
def test_bench_asks_for_open_sizes_and_prints_those_it_runs(
    model: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    quick = ["--vs", "none", "--rounds", 1, "--seconds", 0.01, *options]
    status, _, err = call(capsys, "bench", model, *quick)
    assert status == 2
    text = " ".join(err.split())
    assert "the model leaves sizes open, and its time depends on them" in text
    assert "--shape x=batch,3" in text
    status, out, _ = call(capsys, "bench", model, "--shape", "x=5,3", *quick)
    assert status == 0
    assert "inputs: x[5, 3]" in out
    status, _, err = call(capsys, "bench", model, "--shape", "z=5,3", *quick)
    assert status == 2
    assert "the model has no input 'z'; it has: x" in " ".join(err.split())


def test_run_times_a_second_run_too(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "run", model, "--random", 1, "--shape", "x=2,3")
    assert re.search(r"run: [\d.]+ ms \(the first: [\d.]+ ms\)", out)


@pytest.mark.parametrize("words", [("run",), ("inspect",), ("check",)])
def test_a_path_that_no_file_can_have_is_told(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "A" * 5000])
    assert ended.value.code == 2
    assert "File name too long" in capsys.readouterr().err


def test_ctrl_c_while_modules_load_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hagane.__main__ import main as command

    class Interrupted:
        @property
        def main(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "hagane.cli", Interrupted())  # type: ignore[arg-type]
    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "")
