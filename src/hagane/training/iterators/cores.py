"""How many worker processes a process should start."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

# Processes of a parallel run on this machine, as its launchers tell them.
_LOCAL_RANKS = (
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "PALS_LOCAL_SIZE",
    "SLURM_NTASKS_PER_NODE",
)


def local_ranks(environment: Mapping[str, str]) -> int:
    """Return how many processes of a parallel run share this machine, 1 if there is none."""
    for name in _LOCAL_RANKS:
        value = environment.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return 1


def worker_count(allowed: int, installed: int, quota: float | None, ranks: int) -> int:
    """Return the number of workers for one of several processes on a machine.

    Args:
        allowed: Cores that this process may run on.
        installed: Cores of the machine.
        quota: Cores' worth of time that the container may use, or None.
        ranks: Processes of the parallel run on this machine.

    A launcher may have bound each rank to cores of its own; then ``allowed`` is its share already.
    """
    bound = ranks > 1 and allowed * ranks <= installed
    cores = float(allowed if bound else allowed / ranks)
    if quota is not None:
        cores = min(cores, quota / ranks)
    return max(1, math.floor(cores))


def default_worker_count(environment: Mapping[str, str] | None = None) -> int:
    """Return the number of workers for this process."""
    installed = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else installed
    ranks = local_ranks(os.environ if environment is None else environment)
    return worker_count(allowed, installed, _cpu_quota(Path("/sys/fs/cgroup/cpu.max")), ranks)


def _cpu_quota(path: Path) -> float | None:
    try:
        quota, period = path.read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None
