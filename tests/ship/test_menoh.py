"""Programs for Menoh, unchanged, over builds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hagane
from hagane.ship.library import menoh_header
from tests.ship.conftest import Maker
from tests.ship.models import CASES

HERE = Path(__file__).parent


def compiled(folder: Path, tmp_path: Path, source: str = "menoh.c") -> Path:
    if shutil.which("cc") is None:
        pytest.skip("there is no cc on this machine")
    program = tmp_path / "program"
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", str(HERE / source)]
    command += ["-I", str(folder), "-L", str(folder), "-lmenoh", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def test_a_program_for_menoh_runs_a_build(builds: Maker, tmp_path: Path) -> None:
    folder = builds("images", menoh=True)
    program = compiled(folder, tmp_path)
    shutil.copytree(folder, tmp_path / "net.hagane")
    environment = {"LD_LIBRARY_PATH": str(folder), "PATH": "/nowhere"}
    done = subprocess.run(
        [str(program), str(tmp_path / "net.onnx"), "no"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    x = (np.arange(720) % 13 / np.float32(13)).astype(np.float32).reshape(2, 3, 12, 10)
    (expected,) = hagane.InferenceSession(CASES["images"]()[0]).run(None, {"x": x})
    found = np.array(done.stdout.split(), np.float32).reshape(2, 7)
    np.testing.assert_array_equal(found, expected)


def test_graphs_that_are_made_node_by_node_are_compiled(builds: Maker, tmp_path: Path) -> None:
    folder = builds("images", menoh=True)
    environment = with_command(folder, tmp_path)
    done = subprocess.run(
        [str(compiled(folder, tmp_path)), str(folder), "compile"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.glob("menoh-*"))


def test_parameters_may_be_profiled_and_gemm_makes_matrices(builds: Maker, tmp_path: Path) -> None:
    folder = builds("images", menoh=True)
    program = compiled(folder, tmp_path, "menoh_parameters.c")
    environment = with_command(folder, tmp_path)
    done = subprocess.run(
        [str(program)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    x = (np.arange(12) % 5 - 2.0).reshape(2, 6)
    product = x @ (np.arange(18) % 7 - 3.0).reshape(3, 6).T + [1, 2, 3]
    expected = np.concatenate([product.ravel(), np.maximum(product, 0).ravel()])
    np.testing.assert_array_equal(np.array(done.stdout.split(), float), expected)


def with_command(folder: Path, tmp_path: Path) -> dict[str, str]:
    """Return an environment that has the command hagane."""
    command = tmp_path / "bin" / "hagane"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hagane "$@"\n')
    command.chmod(0o755)
    own = str(Path(hagane.__file__).parents[1])
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder),
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": own,
        "TMPDIR": str(tmp_path),
    }


def test_the_header_has_menohs_functions_and_codes(builds: Maker) -> None:
    header = menoh_header()
    functions = set(re.findall(r"\b(menoh_\w+)\(", header)) - {"menoh_get_last_error_message"}
    assert len(functions) == 38
    assert len(set(re.findall(r"^  (menoh_error_code_\w+)", header, re.MULTILINE))) == 24
    if shutil.which("nm") is None:
        pytest.skip("nm is not on this machine")
    library = builds("images", menoh=True) / "libmenoh.so"
    text = subprocess.run(["nm", "-D", str(library)], capture_output=True, text=True).stdout
    own = {line.split()[-1] for line in text.splitlines() if " T " in line}
    assert own == functions | {"menoh_get_last_error_message"}
