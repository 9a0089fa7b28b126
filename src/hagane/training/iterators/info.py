"""What code that runs in a worker may know of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker process, as the dataset in it sees it.

    Attributes:
        id: Its number, from 0.
        num_workers: Number of workers.
        seed: What the generators of this worker were seeded from.
        dataset: The dataset in this process; what is changed in it stays here.
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
