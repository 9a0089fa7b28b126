"""Samples of an iterable dataset, and the facts about a worker that its code may read."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.training.iterators.permutation import mix


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker process, as the dataset in it sees it.

    Attributes:
        id: Its number, from 0.
        num_workers: Number of workers.
        seed: The seed of the generators of this worker.
        dataset: The dataset in this process; changes of it stay here.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the worker that this process is, or None in a process that is none.

    An iterable dataset uses it to give each worker a part of its samples, as with PyTorch's
    function of this name, which returns the same in these workers.
    """
    return _info


def set_worker_info(info: WorkerInfo) -> None:
    """Say that this process is a worker."""
    global _info
    _info = info
    theirs = sys.modules.get("torch.utils.data._utils.worker")
    if theirs is not None:  # datasets written for PyTorch ask there
        kind = theirs.WorkerInfo
        theirs._worker_info = kind(  # type: ignore[attr-defined]
            id=info.id, num_workers=info.num_workers, seed=info.seed, dataset=info.dataset
        )


def seed_globals(seed: int) -> None:
    """Seed the generators of ``random``, NumPy and, if it is imported, PyTorch."""
    random.seed(seed)
    np.random.seed(np.random.SeedSequence(seed % 2**64).generate_state(8))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed % 2**63)


class Stream:
    """One worker's way through an iterable dataset, epoch after epoch.

    Args:
        dataset: Has ``__iter__``, called anew for each epoch.
        worker: Number of the worker, which sets its random numbers apart from the others'.
    """

    def __init__(self, dataset: Any, worker: int):
        self._dataset = dataset
        self._worker = worker
        self.seeded = False  # whether worker_init has set the generators, which then run on
        self._epoch = -1
        self._ended = False
        self._samples: Iterator[Any] = iter(())

    def take(
        self,
        count: int,
        seed: int,
        epoch: int,
        accept: Callable[[Any], object],
        entering: Callable[[int], object],
    ) -> int:
        """Hand on the next samples; return how many there were, fewer only at the end.

        The generators of the process run on from sample to sample. The worker has seeded them
        before its first epoch; each other one starts from ``seed``, its number and the worker's.
        """
        if epoch != self._epoch:
            self._epoch, self._ended = epoch, False
            self._samples = iter(())
            if epoch and not self.seeded:
                seed_globals(mix(seed + self._worker, epoch))
            entering(0)
            self._samples = iter(self._dataset)
        for place in range(0 if self._ended else count):
            entering(place)
            try:
                sample = next(self._samples)
            except StopIteration:
                self._ended = True
                return place
            accept(sample)
        return 0 if self._ended else count
