"""Fragmentation gradient descent: put a pod where it fragments GPUs the least.

Source: Weng et al. (USENIX ATC 2023), section 5. The paper's simulator cuts scores to whole numbers
and gives ties to the node whose name is first. Both matter: by exact growth alone, pods spread over
nodes that are as good as equal, and on openb one GPU in twenty is lost.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hagane.tools.cluster.fragmentation import Floats, Workload, fragments, typical
from hagane.tools.cluster.kube.backoff import signature
from hagane.tools.cluster.kube.framework import MAX_SCORE, Cycle
from hagane.tools.cluster.kube.profile import Profile
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.schedulers.greedy import Greedy
from hagane.tools.cluster.state import CPU, MEMORY, Cluster, Ints


def first_by_name(cluster: Cluster, rows: Ints) -> int:
    """Return the row of the node whose name comes first."""
    key = "rank of names"
    if key not in cluster.caches:
        ranks = np.zeros(cluster.alive.shape[0], dtype=np.int64)
        for rank, record in enumerate(sorted(cluster.nodes(), key=lambda r: r.node.name)):
            ranks[record.row] = rank
        cluster.caches[key] = ranks
    known = cluster.caches[key]
    assert isinstance(known, np.ndarray)
    return int(rows[int(known[rows].argmin())])


class Fgd(Greedy):
    """Chooses node and device by the smallest growth of fragmentation.

    A pod's effect on a node is remembered by kind of pod and computed again only for nodes
    whose free resources have changed.

    Args:
        workload: the pods to expect; learned from arriving pods if None.
        profile: the filters.
        seed: unused; ties go to the node whose name is first.
    """

    name = "fgd"

    def __init__(
        self, workload: Workload | None = None, profile: Profile | None = None, seed: int = 0
    ):
        super().__init__(profile, seed)
        self.workload = workload
        self._learning = workload is None
        self._seen: list[Pod] = []
        self._known: dict[tuple[object, ...], tuple[Floats, Ints, Ints]] = {}

    def learn(self, pods: Iterable[Pod]) -> None:
        """Expect pods like these."""
        self.workload = typical(pods)
        self._learning = False
        self._known.clear()

    def added(self, pod: Pod, clock: float) -> None:
        """Learn from a pod that came, at every doubling of their number."""
        if not self._learning:
            return
        self._seen.append(pod)
        count = len(self._seen)
        if count & (count - 1) == 0:
            self.workload = typical(self._seen)
            self._known.clear()

    def pick(self, cycle: Cycle, rows: Ints) -> tuple[int, tuple[int, ...] | None]:
        """Return the row, and for a share its device, where fragmentation grows the least."""
        cluster, pod = cycle.cluster, cycle.pod
        assert self.workload is not None
        growth, device = self._growth(cluster, pod, rows)
        # A sigmoid of the GPUs that are no longer fragmented.
        scores = (MAX_SCORE / (1 + np.exp(np.minimum(growth / 1000, 700)))).astype(np.int64)
        row = first_by_name(cluster, rows[scores == scores.max()])
        if pod.gpu is None or pod.gpu.milli == 1000:
            return row, None
        return row, (int(device[np.flatnonzero(rows == row)[0]]),)

    def _growth(self, cluster: Cluster, pod: Pod, rows: Ints) -> tuple[Floats, Ints]:
        """Return by row how much fragmentation grows, and the best device for a share."""
        size = cluster.alive.shape[0]
        kind = signature(pod)
        if kind not in self._known or self._known[kind][0].shape[0] != size:
            unset = np.full(size, -1, dtype=np.int64)
            self._known[kind] = (np.zeros(size), np.zeros(size, dtype=np.int64), unset)
        growth, device, stamp = self._known[kind]
        now = cluster.stamps[rows]
        stale = rows[stamp[rows] != now]
        if stale.size:
            growth[stale], device[stale] = self._compute(cluster, pod, stale)
            stamp[stale] = cluster.stamps[stale]
        return growth[rows], device[rows]

    def _compute(self, cluster: Cluster, pod: Pod, rows: Ints) -> tuple[Floats, Ints]:
        assert self.workload is not None
        spare = cluster.allocatable[:, rows] - cluster.requested[:, rows]
        cpu, memory, free = spare[CPU], spare[MEMORY], cluster.gpu_free[rows]
        before = fragments(cpu, memory, free, self.workload)
        cpu = cpu - pod.requests.get("cpu", 0)
        memory = memory - pod.requests.get("memory", 0)
        best = np.full(rows.size, np.inf)
        device = np.zeros(rows.size, dtype=np.int64)
        gpu = pod.gpu
        if gpu is None:
            return fragments(cpu, memory, free, self.workload) - before, device
        if gpu.milli == 1000:
            whole = free == 1000
            first = np.cumsum(whole, axis=1) <= gpu.count
            after = np.where(whole & first, 0, free)
            return fragments(cpu, memory, after, self.workload) - before, device
        for index in range(free.shape[1]):
            fits = free[:, index] >= gpu.milli
            if not fits.any():
                continue
            after = free.copy()
            after[:, index] -= gpu.milli
            grown = fragments(cpu, memory, np.maximum(after, -1), self.workload) - before
            better = fits & (grown < best)
            best[better], device[better] = grown[better], index
        return best, device
