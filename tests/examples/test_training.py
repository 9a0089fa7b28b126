"""Examples of training learn as much as they assert; each runs as it stands."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hagane import zoo

FOLDER = Path(__file__).parents[2] / "examples" / "training"


def example(name: str) -> Any:
    """Return the module of an example."""
    spec = importlib.util.spec_from_file_location(f"training_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_to_turn_round_are_read_backwards() -> None:
    module = example("reversal")
    source, before, target = module.rows(3, 0)
    np.testing.assert_array_equal(source[:, ::-1], target)
    np.testing.assert_array_equal(before[:, 1:], target[:, :-1])
    assert (before[:, 0] == module.START).all()
    np.random.seed(0)
    assert module.accuracy(zoo.Seq2Seq(10, 11, 4, 1), count=5) == 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["autoencoder", "digits", "reversal", "segmentation"])
def test_an_example_of_training_learns_what_it_asserts(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
