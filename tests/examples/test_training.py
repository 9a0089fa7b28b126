"""Examples of training learn as much as they assert; each runs as it stands."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
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
    "autoencoder", "boxes", "digits", "drawing", "pixels", "reversal", "segmentation UNet",
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


def test_boxes_of_drawn_digits_hold_them_and_are_counted_right() -> None:
    module = example("boxes")
    pictures = module.Pictures(3, 0, 0, slice(0, 50))
    picture, boxes, labels = pictures.drawn(1)
    left, top, right, bottom = (300 * boxes[0]).round().astype(int)
    inside = picture[:, top:bottom, left:right]
    for edge in (inside[:, 0], inside[:, -1], inside[:, :, 0], inside[:, :, -1]):
        assert edge.max() > 0.5  # (what is behind them is darker)
    assert 1 <= labels.min() <= labels.max() <= 10
    offsets, classes = pictures[1][1:]
    assert set(classes) == {0, *labels}
    assert module.overlap(boxes[0], boxes[0]) == 1

    class Sure:
        """Tells the targets of the same picture, and of each object one class."""

        def __call__(self, _: Any) -> Any:
            scores = 9 * np.eye(11, dtype=np.float32)[classes]
            return hagane.Variable(offsets[None]), hagane.Variable(scores[None])

    places, found = module.detected(Sure(), picture)
    assert sorted(found) == sorted(labels)
    assert all(max(module.overlap(place, box) for place in places) > 0.9 for box in boxes)


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
