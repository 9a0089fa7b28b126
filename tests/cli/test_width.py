"""Output for people is no wider than their terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from hagane.cli.rtl import _table
from hagane.cli.terminal.width import fitted

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))


def test_text_is_folded_and_set_in_and_source_is_cut() -> None:
    lines = ["  word " * 12, "  12 | " + "x" * 80, "     | " + "^" * 80, "short"]
    found = list(fitted(lines, 40))
    assert max(map(len, found)) <= 40
    assert found[1].startswith("      word")
    assert " ".join(found[:-3]).split() == ["word"] * 12
    assert found[-3].endswith("…")
    assert found[-1] == "short"
    assert list(fitted(lines, None)) == lines


def test_a_table_of_points_leaves_out_columns_of_zeros_where_it_does_not_fit() -> None:
    row = {"total": 14, "covered": 12, "dead": 2, "unknown": 0}
    row |= {"reachable": 0, "waived": 0, "dead_within_cycles": 1}
    whole = list(_table({"condition": row}, None))
    assert whole[0].endswith("unknown  dead in K cycles only")
    assert list(_table({"condition": row}, 100)) == whole
    narrow = list(_table({"condition": row}, 60))
    assert max(map(len, narrow)) <= 60
    assert narrow[0].split() == [*["total", "covered", "dead", "unknown", "in", "K", "cycles"]]
    assert narrow[1].split() == ["condition", "14", "12", "2", "0", "1"]


def on_terminal(width: int, *words: str) -> list[str]:
    """Return the lines of a command on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "hagane", *words],
        stdout=theirs,
        env={**os.environ, "COLUMNS": str(width), "TERM": "dumb"},
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other end was closed
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    assert done.wait() in (0, 1)  # 1: findings
    return text.decode().splitlines()


@pytest.mark.parametrize("width", [60, 100])
def test_inspect_folds_long_lists(tmp_path: Path, width: int) -> None:
    sizes = [f"size_{i}" for i in range(60)]
    shaped = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, sizes[:6]) for i in (0, 1)]
    rest = [helper.make_tensor_value_info(s, TensorProto.FLOAT, [s]) for s in sizes]
    nodes = [helper.make_node("Add", ["x0", "x1"], ["y"])]
    nodes += [helper.make_node("Relu", [s], [f"r_{s}"]) for s in sizes]
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    results = [helper.make_tensor_value_info(f"r_{s}", TensorProto.FLOAT, None) for s in sizes]
    graph = helper.make_graph(nodes, "wide", [*shaped, *rest], [out, *results])
    imports = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), tmp_path / "m.onnx")
    lines = on_terminal(width, "inspect", str(tmp_path / "m.onnx"))
    assert any("size_59" in line for line in lines)
    assert max(map(len, lines)) <= width


@pytest.mark.long
@pytest.mark.fetches
@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", ["silero_vad", "mobile", "pitch"])
def test_real_models_are_listed_within_the_terminal(name: str, width: int) -> None:
    from fetch import fetch

    folder = {
        "silero_vad": lambda: fetch("silero-vad==6.2.3") / "silero_vad/data/silero_vad.onnx",
        "mobile": lambda: (
            fetch("rapidocr-onnxruntime==1.4.4")
            / "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx"
        ),
        "pitch": lambda: (
            fetch("basic-pitch==0.4.0") / "basic_pitch/saved_models/icassp_2022/nmp.onnx"
        ),
    }[name]
    lines = on_terminal(width, "inspect", str(folder()))
    assert len(lines) > 20
    assert max(map(len, lines)) <= width


FAULTY = """import torch


class Head(torch.nn.Module):
    def __init__(self, features: int = 512, classes: int = 1000) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(features, features), torch.nn.ReLU())
        self.last = torch.nn.Linear(features + 1, classes)

    def forward(self, pictures: "Float[Tensor, 'batch channels height width']"):
        return self.last(self.layers(pictures.flatten(1, 3).reshape(pictures.shape[0], -1, 512)))
"""


@pytest.mark.long
@pytest.mark.parametrize("width", [40, 80, 120])
def test_findings_and_measurements_lie_within_the_terminal(tmp_path: Path, width: int) -> None:
    path = tmp_path / "a_file_with_a_long_name_in_a_folder.py"
    path.write_text(FAULTY)
    lines = on_terminal(width, "check", str(path))
    assert any("error" in line for line in lines)
    assert max(map(len, lines)) <= width
    path = tmp_path / "samples_of_a_bench.py"
    path.write_text(
        "import numpy as np\n\n\ndef make():\n"
        "    return [tuple(np.zeros((3, n)) for n in range(1, 30)) for _ in range(40)]\n"
    )
    lines = on_terminal(
        width, "data", "bench", f"{path}:make", "--workers", "0", "--batches", "3", "--seconds", "1"
    )
    assert any("samples/s" in line for line in lines)
    assert max(map(len, lines)) <= width
