from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hagane.training.datasets import TupleDataset
from hagane.training.iterators import MultiprocessIterator, SerialIterator
from tests.training.sample_datasets import Drawing, Mixed

X = np.arange(60, dtype=np.float32).reshape(20, 3)
T = np.arange(20)


@pytest.mark.parametrize("collate", [None, "stack"])
@pytest.mark.parametrize("dataset", [X, TupleDataset(X, T), Mixed(), list(range(9)), Drawing()])
def test_batches_are_equal_for_no_one_and_two_workers(dataset: Any, collate: Any) -> None:
    serial = SerialIterator(dataset, 7, seed=5, collate=collate)
    expected = [repr(serial.next()) for _ in range(8)]
    for workers in (0, 1, 2):
        with MultiprocessIterator(
            dataset, 7, n_processes=workers, seed=5, collate=collate
        ) as iterator:
            assert [repr(iterator.next()) for _ in range(8)] == expected


def test_a_resumed_run_is_the_same_run_with_another_number_of_workers() -> None:
    with MultiprocessIterator(Drawing(), 5, n_processes=2, n_prefetch=3) as one:
        for _ in range(4):
            one.next()
        state = one.state_dict()
        expected = [one.next() for _ in range(6)]
    with MultiprocessIterator(Drawing(), 5, n_processes=1) as other:
        other.load_state_dict(state)
        assert [other.next() for _ in range(6)] == expected
