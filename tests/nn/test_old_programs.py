"""Programs as they were written for Chainer, and the numbers that Chainer 7.8.1 gave for them.

``programs/chainer.json`` is what ``python tests/nn/programs/old.py`` prints with Chainer,
``programs/rules.json`` the numbers of ``rules.py``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "programs"
WANTED: dict[str, list[float]] = json.loads((FOLDER / "chainer.json").read_text())
QUICK = ("custom_functions", "hooks", "debugging")


def run(file: str, *names: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "hagane", "chainer", str(FOLDER / file), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def check(names: tuple[str, ...]) -> None:
    found = run("old.py", *names)
    assert list(found) == list(names)
    for name in names:
        assert found[name] == pytest.approx(WANTED[name], rel=1e-4, abs=1e-6), name


def test_functions_hooks_and_mistakes_of_old_programs_give_the_numbers_of_chainer() -> None:
    check(QUICK)


@pytest.mark.long
def test_taggers_gans_optimizers_and_trainers_of_old_programs_give_the_numbers_of_chainer() -> None:
    check(tuple(name for name in WANTED if name not in QUICK))


def test_optimizers_hooks_modes_and_layouts_of_snapshots_are_those_of_chainer() -> None:
    wanted = json.loads((FOLDER / "rules.json").read_text())
    found = run("rules.py")
    assert found.pop("layouts") == wanted.pop("layouts")
    assert list(found) == list(wanted)
    for name, numbers in wanted.items():
        assert found[name] == pytest.approx(numbers, rel=1e-4, abs=1e-5), name
