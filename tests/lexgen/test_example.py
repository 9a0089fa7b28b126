"""The committed example decodes from a real model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))


@pytest.mark.fetches
def test_the_example_decodes_names_that_match_the_pattern() -> None:
    from fetch import fetch

    resources = fetch("microformer-mgm==0.5.8") / "mgm" / "resources"
    pattern = "(g__[A-Z][a-z]*bacter){2,3}"
    done = subprocess.run(
        [
            sys.executable, str(EXAMPLES / "lexgen" / "decode.py"),
            str(resources / "general_model"), str(resources / "MicroTokenizer.pkl"),
            "--pattern", pattern, "--count", "2",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    index, *texts = done.stdout.splitlines()
    assert re.match(r"index of \d+ states", index)
    assert len(texts) == 2
    assert all(re.fullmatch(pattern, text) for text in texts)
