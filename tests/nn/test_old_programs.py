"""Programs as they were written for Chainer, and the numbers that Chainer 7.8.1 gave for them.

``programs/chainer.json`` is what ``python tests/nn/programs/old.py`` prints with Chainer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "programs"
WANTED: dict[str, list[float]] = json.loads((FOLDER / "chainer.json").read_text())
QUICK = ("custom_functions", "hooks", "debugging")


def check(names: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "hagane", "chainer", str(FOLDER / "old.py"), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == list(names)
    for name in names:
        assert found[name] == pytest.approx(WANTED[name], rel=1e-4, abs=1e-6), name


def test_functions_hooks_and_mistakes_of_old_programs_give_the_numbers_of_chainer() -> None:
    check(QUICK)


@pytest.mark.long
def test_taggers_gans_optimizers_and_trainers_of_old_programs_give_the_numbers_of_chainer() -> None:
    check(tuple(name for name in WANTED if name not in QUICK))
