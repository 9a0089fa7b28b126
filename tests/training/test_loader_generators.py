"""Random numbers in the workers of a DataLoader, beside PyTorch's own."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.data as theirs

from hagane.training import DataLoader
from hagane.training.iterators.randomness import Loader
from tests.training.loader_datasets import Drawing, DrawingStream

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def set_each(worker: int) -> None:
    """Seed the generators alike in every run."""
    random.seed(worker)
    np.random.seed(7 + worker)
    torch.manual_seed(worker)


def set_from_torch(worker: int) -> None:
    """Seed the other generators from PyTorch's, as its documentation has it."""
    random.seed(torch.initial_seed() % 2**32)
    np.random.seed(torch.initial_seed() % 2**32)


def epochs(kind: Any, dataset: Any, begin: Any, seed: int = 3) -> list[Any]:
    torch.manual_seed(seed)
    loader = kind(dataset, 1, num_workers=2, worker_init_fn=begin, persistent_workers=True)
    return [[[part.tolist() for part in batch] for batch in loader] for _ in range(2)]


@pytest.mark.parametrize("begin", [set_each, set_from_torch])
@pytest.mark.parametrize("dataset", [Drawing(), DrawingStream()], ids=["by index", "iterable"])
def test_generators_that_worker_init_fn_sets_give_what_they_give_with_pytorch(
    dataset: Any, begin: Any
) -> None:
    ours = epochs(DataLoader, dataset, begin)
    assert ours == epochs(theirs.DataLoader, dataset, begin)
    # What PyTorch's generator settles changes the numbers, where it is asked.
    assert (ours == epochs(DataLoader, dataset, begin, seed=4)) is (begin is set_each)


def test_kept_workers_draw_anew_in_each_epoch_of_a_stream() -> None:
    once, again = epochs(DataLoader, DrawingStream(), None)
    assert once != again
    assert [once, again] == epochs(DataLoader, DrawingStream(), None)


class Late:
    """Draws from the sample of a place on; says how often it was asked."""

    def __init__(self, first: int):
        self.first, self.asked = first, 0

    def __getitem__(self, index: int) -> float:
        self.asked += 1
        return float(np.random.random()) if index >= self.first else 0.0


def test_samples_of_a_large_batch_that_draw_late_have_their_own_numbers() -> None:
    made = []
    for chunk in (100, 1, 7):
        dataset = Late(40)
        loader = Loader(dataset, keep_global=False)
        samples: list[float] = []
        for start in range(0, 100, chunk):
            numbers = list(range(start, min(start + chunk, 100)))
            part: list[float] = []

            def begin(part: list[float] = part) -> Any:
                part.clear()
                return part.append

            loader.load(5, numbers, [0] * len(numbers), begin)
            samples += part
        made.append(samples)
    assert made[0] == made[1] == made[2]
    assert len(set(made[0])) == 61


def test_samples_of_a_large_batch_that_draw_nothing_are_asked_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = Late(1000)
    seeds = []
    loader = Loader(dataset, keep_global=False)
    monkeypatch.setattr(loader._generators, "seed", seeds.append)
    samples: list[float] = []
    loader.load(5, list(range(500)), [0] * 500, lambda: samples.append)
    assert (dataset.asked, len(samples)) == (500, 500)
    assert len(seeds) < 20


def test_annotations_name_the_batch_of_a_loader() -> None:
    assert DataLoader[list[torch.Tensor]].__origin__ is DataLoader
