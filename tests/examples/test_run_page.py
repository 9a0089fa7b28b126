"""What ``docs/run.md`` shows runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hagane

PAGE = Path(__file__).parents[2] / "docs" / "run.md"


def test_the_examples_of_the_page_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    page, _, standing_in = PAGE.read_text(encoding="utf-8").partition("## In ONNX Runtime's place")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)  # the page's own text
    assert (tmp_path / "trace.json").exists()
    assert "of peak" in capsys.readouterr().out
    got, want = np.asarray(names["y"]), hagane.InferenceSession(names["model"])  # type: ignore[arg-type]
    np.testing.assert_array_equal(got, want.run(None, {"x": names["x"]})[0])
    (block,) = re.findall(r"```python\n(.*?)```", standing_in, re.DOTALL)
    asked = "import onnxruntime; print(onnxruntime.InferenceSession.__module__)"
    done = subprocess.run([sys.executable, "-c", block + asked], capture_output=True, text=True)
    assert done.stdout == "hagane.onnxruntime.session\n", done.stderr
