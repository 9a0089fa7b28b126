from __future__ import annotations

import json
from pathlib import Path

import pytest

from hagane.cli import main

DATASET = """
import numpy as np

class Pictures:
    def __len__(self):
        return 40
    def __getitem__(self, index):
        if index == BAD:
            raise ValueError("broken picture")
        return np.full((2, 3), index, np.float32), index

BAD = None

def make():
    return Pictures()

def broken():
    raise OSError("no disk")

number = 3
"""


def write(folder: Path, name: str, text: str = DATASET) -> str:
    path = folder / f"{name}.py"
    path.write_text(text)
    return str(path)


def test_bench_prints_figures_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "pictures_of_bench")
    main_ok(["data", "bench", f"{path}:make", "--workers", "0,2", "--batches", "5", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["samples"] == 40
    assert report["batch"] == "(float32[32, 2, 3], int64[32])"
    assert [run["workers"] for run in report["runs"]] == [0, 2]
    for run in report["runs"]:
        assert run["limit"] in ("loading", "compute")
        assert run["loading_seconds"] > 0
        assert 0 <= run["waiting_share"] <= 1


def test_bench_says_what_the_limit_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "pictures_of_text")
    options = ["--workers", "1", "--batches", "5", "--compute-ms", "20", "--samples"]
    main_ok(["data", "bench", f"{path}:make", *options])
    out = capsys.readouterr().out
    assert "compute is the limit" in out
    assert "list of 32 × (float32[2, 3], int)" in out


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere.py:make", "there is no file 'nowhere.py'"),
        ("faulty.py", "expected DATASET.py:make, a file and a name in it, got 'faulty.py'"),
        ("faulty_a.py:makes", "there is no 'makes'; it defines np, Pictures, BAD, make"),
        ("faulty_b.py:broken", "faulty_b.py:18: broken() raised OSError: no disk"),
        ("faulty_c.py:number", "expected an object with __len__ and __getitem__, got int"),
        ("faulty_d.py:make", "faulty_d.py:1: SyntaxError"),
        ("faulty_e.py:make", "the sample at dataset index"),
    ],
)
def test_what_cannot_be_measured_is_named_without_a_traceback(
    target: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("faulty_a", "faulty_b", "faulty_c"):
        write(tmp_path, name)
    write(tmp_path, "faulty_d", "def make(:\n")
    write(tmp_path, "faulty_e", DATASET.replace("BAD = None", "BAD = 3"))
    with pytest.raises(SystemExit) as ended:
        main(["data", "bench", target, "--workers", "1", "--batches", "3"])
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert errors.startswith("hagane: error: ")
    assert message in errors
    assert "Traceback" not in errors


def main_ok(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
