"""``hagane capture`` writes a model that returns what the program returns."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from typer.testing import CliRunner

import hagane
from hagane.capturing.difference import Verified
from hagane.cli import build_app

SOURCE = """
import torch

def decay(x):
    while x.abs().max() > 0.5:
        x = torch.tanh(x)
    return x

def differing(x):
    return torch.exp(x) if decay.flag else torch.tanh(x)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    return path


def run(*arguments: str) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(build_app("capture"), ["capture", *arguments])
    return result.exit_code, result.output, result.exception


def test_a_model_is_written_and_agrees(file: Path, tmp_path: Path) -> None:
    made = tmp_path / "decay.onnx"
    status, printed, _ = run(
        f"{file}:decay", "--input", "x=float32[n, 3]", "-o", str(made), "--verify"
    )
    assert (status, made.is_file()) == (0, True), printed
    assert "opset 21" in printed
    assert "the graph returns what the original returns: 12 runs, 0 of 0 sides" in printed


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\njust text\n", "model.py:2: SyntaxError: invalid syntax"),
        ("\n\nimport no_such_module\n", "model.py:3: ModuleNotFoundError: No module named"),
    ],
)
def test_a_file_that_cannot_be_imported_is_told_by_its_line(
    file: Path, source: str, words: str
) -> None:
    file.write_text(source)
    _, _, error = run(f"{file}:decay", "-o", "unused.onnx")
    assert isinstance(error, hagane.errors.InvalidArgument)
    assert words in str(error)


def test_inputs_are_drawn_until_all_branches_went_both_ways(tmp_path: Path) -> None:
    file = tmp_path / "sides.py"
    file.write_text(
        "import torch\n\ndef sides(x):\n"
        "    if x.sum() > 30:\n        x = torch.exp(-x.abs())\n"
        "    if x.abs().sum() < 0:\n        x = x + 1\n"
        "    return x\n"
    )
    made = tmp_path / "sides.onnx"
    status, printed, _ = run(
        f"{file}:sides", "--input", "x=float32[n, 3]", "-o", str(made), "--verify"
    )
    assert status == 0, printed
    assert "sides.py:6:" in printed
    assert "no run in which the condition is true" in printed
    assert "3 of 4 sides of branches" in printed


def test_sides_of_a_loop_that_is_written_out_are_told_once(tmp_path: Path) -> None:
    file = tmp_path / "sides.py"
    file.write_text(
        "import torch\n\ndef sides(x):\n"
        "    for k in range(3):\n        if x.abs().sum() < 0:\n            x = x + k\n"
        "    return x\n"
    )
    _, printed, _ = run(
        f"{file}:sides", "--input", "x=float32[n, 3]", "-o", str(tmp_path / "s.onnx"), "--verify"
    )
    assert printed.count("not verified") == 1
    assert "no run in which the condition is true (3 times)" in printed


def test_a_name_that_is_not_there_is_told(file: Path, tmp_path: Path) -> None:
    status, _, error = run(f"{file}:decoy", "-o", str(tmp_path / "x.onnx"))
    assert status == 1
    assert "has no 'decoy'; it has: decay, differing" in str(error)


def test_a_type_is_asked_for(file: Path, tmp_path: Path) -> None:
    status, _, error = run(f"{file}:decay", "-o", str(tmp_path / "x.onnx"))
    assert status == 1
    assert "the type of the argument 'x' of 'decay' is not known" in str(error)


def test_a_graph_that_differs_is_not_written(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Verified("output 'output': the values differ by up to 1")
    monkeypatch.setattr("hagane.cli.capture.verified", lambda *_: told)
    made = tmp_path / "decay.onnx"
    status, printed, _ = run(
        f"{file}:decay", "--input", "x=float32[n, 3]", "-o", str(made), "--verify"
    )
    assert (status, made.exists()) == (1, False)
    assert "the values differ by up to 1" in printed
    assert "decay.onnx is not written" in printed


def test_weights_beyond_the_limit_of_a_file_go_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = sys.modules["hagane.graph.save"], "_EMBEDDED_LIMIT"
    monkeypatch.setattr(*limit, 1000)  # 2 GiB less a margin
    file = tmp_path / "net.py"
    file.write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.a = torch.nn.Linear(3, 40)\n        self.b = torch.nn.Linear(40, 30)\n"
        "    def forward(self, x):\n"
        "        y = self.a(x)\n        return self.b(y) if y.sum() > 0 else y @ self.b.weight.T\n"
    )
    made = tmp_path / "net.onnx"
    status, printed, _ = run(
        f"{file}:Net", "--input", "x=float32[n, 3]", "-o", str(made), "--verify"
    )
    assert status == 0, printed
    data = tmp_path / "net.onnx.data"
    assert data.stat().st_size >= 4 * 30 * 40
    assert made.stat().st_size < 4 * 30 * 40
    x = np.ones((2, 3), np.float32)
    (found,) = hagane.InferenceSession(made).run(None, {"x": x})
    (theirs,) = onnxruntime.InferenceSession(made).run(None, {"x": x})
    np.testing.assert_allclose(found, theirs, rtol=1e-5, atol=1e-6)
