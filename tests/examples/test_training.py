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


ALL = [
    "autoencoder", "digits", "drawing", "pixels", "reversal", "segmentation UNet",
    "segmentation FCN", "words GPT", "words BERT",
    *(f"pictures {network}" for network in (
        "MLP", "VGG16", "GoogLeNet", "ResNet18", "ResNet50", "ResNet152")),
]  # fmt: skip


def test_networks_and_data_of_the_others_fit_each_other() -> None:
    pictures, words = example("pictures"), example("words")
    for network in pictures.NETWORKS:
        build, side, *_ = pictures.NETWORKS[network]
        assert build()(np.zeros((2, 3, side, side), np.float32)).shape == (2, 10)
    letters, kinds = words.text()
    assert 0 < letters.min() <= letters.max() < kinds
    rows = words.Rows(letters, hides=True)
    read, told, counts = rows[0]
    assert ((read == told) == (counts == 0)).all()


@pytest.mark.long
@pytest.mark.parametrize("given", ALL)
def test_an_example_of_training_learns_what_it_asserts(given: str, tmp_path: Path) -> None:
    name, *arguments = given.split()
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
