"""How much free GPU a workload cannot use.

Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent" (USENIX ATC 2023), section 4. For one kind of task on one node, every free
thousandth is a fragment if the node cannot run the task; otherwise those on devices with too
little left are. A node's fragmentation is the mean over kinds, weighted by how often they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.state import CPU, MEMORY, Cluster, Ints

Floats = npt.NDArray[np.float64]


# (CPU, memory, GPUs, thousandths of each)
Kind = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Workload:
    """Kinds of tasks in columns, one entry a kind.

    Attributes:
        cpu: thousandths of a core.
        memory: bytes.
        count: GPUs.
        milli: thousandths of each.
        share: how often the kind comes; sums to 1.
    """

    cpu: Ints
    memory: Ints
    count: Ints
    milli: Ints
    share: Floats


def typical(pods: Iterable[Pod], coverage: float = 0.95) -> Workload:
    """Return the most frequent kinds of some pods, as many as make up the coverage."""
    seen: dict[Kind, int] = {}
    for pod in pods:
        key = kind_of(pod)
        seen[key] = seen.get(key, 0) + 1
    return frequent(seen, coverage)


def kind_of(pod: Pod) -> Kind:
    """Return a pod's kind."""
    gpu = pod.gpu
    return (
        pod.requests.get("cpu", 0),
        pod.requests.get("memory", 0),
        gpu.count if gpu else 0,
        gpu.milli if gpu else 0,
    )


def frequent(seen: Mapping[Kind, int], coverage: float = 0.95) -> Workload:
    """Return the most frequent of counted kinds, as many as make up the coverage."""
    ranked = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
    total, kept, so_far = sum(seen.values()), [], 0
    for key, count in ranked:
        kept.append((key, count))
        so_far += count
        if so_far >= coverage * total:
            break
    columns = np.array([key for key, _ in kept], dtype=np.int64).reshape(-1, 4)
    counts = np.array([count for _, count in kept], dtype=np.float64)
    share = counts / max(counts.sum(), 1.0)
    return Workload(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3], share)


def fragments(cpu: Ints, memory: Ints, free: Ints, workload: Workload) -> Floats:
    """Return fragmented thousandths of GPUs, one number a node.

    Args:
        cpu: (nodes,) free thousandths of cores.
        memory: (nodes,) free bytes.
        free: (nodes, devices) free thousandths; -1 where there is no device.
        workload: (kinds,) columns.
    """
    there = np.maximum(free, 0)
    total = there.sum(axis=1)
    enough = free[:, None, :] >= np.maximum(workload.milli, 1)[None, :, None]
    runs = (
        (cpu[:, None] >= workload.cpu)
        & (memory[:, None] >= workload.memory)
        & (enough.sum(axis=2) >= workload.count)
        & (workload.count > 0)
    )
    usable = np.where(enough, there[:, None, :], 0).sum(axis=2)
    each = np.where(runs, total[:, None] - usable, total[:, None])
    out: Floats = each @ workload.share
    return out


def fragmentation(cluster: Cluster, workload: Workload) -> float:
    """Return the fragmented GPUs of a cluster."""
    if not cluster.gpu_free.shape[1]:
        return 0.0
    rows = np.flatnonzero(cluster.alive)
    spare = cluster.allocatable[:, rows] - cluster.requested[:, rows]
    parts = fragments(spare[CPU], spare[MEMORY], cluster.gpu_free[rows], workload)
    return float(parts.sum()) / 1000
