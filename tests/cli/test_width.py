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

from hagane.cli.terminal.width import fitted


def test_text_is_folded_and_set_in_and_source_is_cut() -> None:
    lines = ["  word " * 12, "  12 | " + "x" * 80, "     | " + "^" * 80, "short"]
    found = list(fitted(lines, 40))
    assert max(map(len, found)) <= 40
    assert found[1].startswith("      word")
    assert " ".join(found[:-3]).split() == ["word"] * 12
    assert found[-3].endswith("…")
    assert found[-1] == "short"
    assert list(fitted(lines, None)) == lines


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
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "hagane", "inspect", str(tmp_path / "m.onnx")],
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
    assert done.wait() == 0
    lines = text.decode().splitlines()
    assert any("size_59" in line for line in lines)
    assert max(map(len, lines)) <= width
