"""Every example runs, with its own assertions on what the real model says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = (
    "classify_pictures",
    "compare_sentences",
    "detect_speech",
    "read_text",
    "transcribe_notes",
    "type_files",
)


@pytest.mark.fetches
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_ends_well(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
