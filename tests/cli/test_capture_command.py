"""``hagane capture`` writes a model that returns what the program returns."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

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


def test_a_name_that_is_not_there_is_told(file: Path, tmp_path: Path) -> None:
    status, _, error = run(f"{file}:decoy", "-o", str(tmp_path / "x.onnx"))
    assert status == 1
    assert "has no 'decoy'; it has: decay, differing" in str(error)


def test_a_type_is_asked_for(file: Path, tmp_path: Path) -> None:
    status, _, error = run(f"{file}:decay", "-o", str(tmp_path / "x.onnx"))
    assert status == 1
    assert "the type of the argument 'x' of 'decay' is not known" in str(error)
