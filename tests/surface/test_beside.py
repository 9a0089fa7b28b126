"""The interface beside that of the installed package: names, and errors of misuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

# Where hagane differs on purpose, with the reason.
DIFFERENT = {
    "an_update_of_another_type": "ONNX Runtime copies the bytes of a wider type",
}
# Names of modules that ONNX Runtime's own code imports.
THEIR_IMPORTS = {"contextlib"}


def _asked(package: str) -> dict[str, Any]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.surface.misuse", package],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "HAGANE_ENGINE": "reference"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def theirs() -> dict[str, Any]:
    return _asked("onnxruntime")


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    return _asked("hagane")


def test_every_public_name_of_the_installed_package_exists(
    theirs: dict[str, Any], ours: dict[str, Any]
) -> None:
    assert len(theirs["names"]["onnxruntime"]) > 50
    missing = {
        place: sorted(lacking)
        for place, names in theirs["names"].items()
        if (lacking := set(names) - set(ours["names"][place]) - THEIR_IMPORTS)
    }
    assert missing == {}


def test_misuse_raises_what_the_installed_package_raises(
    theirs: dict[str, Any], ours: dict[str, Any]
) -> None:
    assert len(theirs["misuse"]) > 70
    different = {}
    for case, expected in theirs["misuse"].items():
        got = ours["misuse"][case]
        same = got is None if expected is None else got is not None and expected[0] in got
        if not same and case not in DIFFERENT:
            different[case] = (expected and expected[0], got)
    assert different == {}


@pytest.mark.long
def test_random_sequences_of_calls_give_what_the_installed_package_gives() -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.surface.random_calls", "0", "60"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "HAGANE_ENGINE": "reference"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout.splitlines()[-1] == "0 differences", done.stdout
