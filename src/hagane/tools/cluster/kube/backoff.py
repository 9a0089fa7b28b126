"""The queue before kube-scheduler: active pods, pods that back off, pods that nothing fits.

Source: ``pkg/scheduler/backend/queue/scheduling_queue.go``.
"""

from __future__ import annotations

import heapq

import numpy as np

from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.state import PODS, Cluster, Ints, Mask

# After so many seconds a pod is tried again although nothing seems to have changed.
FLUSH_AFTER = 300.0


class Waiting:
    """A pod in the queue, how often it was tried and when last."""

    __slots__ = ("added", "attempts", "pod", "sequence", "state", "tried")

    def __init__(self, pod: Pod, added: float, sequence: int):
        self.pod = pod
        self.added = added
        self.sequence = sequence
        self.attempts = 0
        self.tried = 0.0
        self.state = "active"

    def __lt__(self, other: Waiting) -> bool:
        # PrioritySort: the higher priority first, then the earlier arrival.
        mine = (-self.pod.priority, self.added, self.sequence)
        return mine < (-other.pod.priority, other.added, other.sequence)


class BackoffQueue:
    """Pods by state. Times are seconds of simulated time.

    A pod that fits nowhere waits until something changes on a node where it might fit now; then
    it is tried again, but not before its back-off has passed, which doubles with every attempt.
    """

    def __init__(self, initial: float = 1.0, largest: float = 10.0):
        self.initial = initial
        self.largest = largest
        self.pods: dict[str, Waiting] = {}
        self._active: list[Waiting] = []
        self._backing_off: list[tuple[float, int, Waiting]] = []
        self._stuck: dict[tuple[object, ...], dict[str, Waiting]] = {}
        self._flushes: list[tuple[float, int, Waiting]] = []
        self._sequence = 0
        self._table: tuple[list[tuple[object, ...]], Ints, Ints] | None = None

    def add(self, pod: Pod, clock: float) -> None:
        """Let a new pod in."""
        self._sequence += 1
        entry = Waiting(pod, clock, self._sequence)
        self.pods[pod.key] = entry
        heapq.heappush(self._active, entry)

    def remove(self, key: str) -> None:
        """Forget a pod in any state."""
        entry = self.pods.pop(key, None)
        if entry is not None:
            if entry.state == "stuck":
                self._unstick(entry)
            entry.state = "gone"

    def pop(self, clock: float) -> Waiting | None:
        """Return the next pod to try now, or None."""
        while self._backing_off and self._backing_off[0][0] <= clock:
            entry = heapq.heappop(self._backing_off)[2]
            if entry.state == "backoff":
                entry.state = "active"
                heapq.heappush(self._active, entry)
        while self._flushes and self._flushes[0][0] <= clock:
            due, _, entry = heapq.heappop(self._flushes)
            if entry.state == "stuck" and entry.tried + FLUSH_AFTER <= due:
                self._wake(entry, clock)
        while self._active:
            entry = heapq.heappop(self._active)
            if entry.state == "active":
                entry.attempts += 1
                entry.tried = clock
                entry.state = "trying"
                return entry
        return None

    def fail(self, entry: Waiting, clock: float) -> None:
        """Put a pod aside that fits nowhere."""
        entry.state = "stuck"
        group = signature(entry.pod)
        if group not in self._stuck:
            self._stuck[group] = {}
            self._table = None
        self._stuck[group][entry.pod.key] = entry
        self._sequence += 1
        heapq.heappush(self._flushes, (clock + FLUSH_AFTER, self._sequence, entry))

    def delay(self, entry: Waiting, clock: float) -> None:
        """Try a pod again after its back-off, even without an event."""
        entry.state = "stuck"
        self._stuck.setdefault(signature(entry.pod), {})[entry.pod.key] = entry
        self._table = None
        self._wake(entry, clock)

    def next_time(self) -> float | None:
        """Return when the next pod stops backing off or is flushed, or None."""
        while self._backing_off and self._backing_off[0][2].state != "backoff":
            heapq.heappop(self._backing_off)
        while self._flushes and self._flushes[0][2].state != "stuck":
            heapq.heappop(self._flushes)
        times = [q[0][0] for q in (self._backing_off, self._flushes) if q]
        return min(times, default=None)

    def freed(self, rows: set[int], clock: float, cluster: Cluster) -> None:
        """Wake the pods that might fit on rows where something was freed."""
        if not self._stuck:
            return
        groups, needs, devices = self._needs(cluster)
        at = np.fromiter(sorted(r for r in rows if cluster.alive[r]), dtype=np.int64)
        if at.size == 0:
            return
        free = cluster.allocatable[:, at] - cluster.requested[:, at]
        free[PODS] = cluster.allocatable[PODS, at] - cluster.counts[at]
        ok: Mask = np.all(needs[:, :, None] <= free[None], axis=1)
        if cluster.gpu_free.shape[1]:
            have = (cluster.gpu_free[at][None] >= devices[:, 1][:, None, None]).sum(axis=2)
            ok &= have >= devices[:, 0][:, None]
        for index in np.flatnonzero(np.any(ok, axis=1)).tolist():
            for entry in list(self._stuck.get(groups[index], {}).values()):
                self._wake(entry, clock)

    def wake_all(self, clock: float) -> None:
        """Wake every pod that is stuck."""
        for group in list(self._stuck.values()):
            for entry in list(group.values()):
                self._wake(entry, clock)

    def _needs(self, cluster: Cluster) -> tuple[list[tuple[object, ...]], Ints, Ints]:
        table = self._table
        if table is None or table[1].shape[1] != len(cluster.resources):
            groups = list(self._stuck)
            for group in groups:  # a resource seen for the first time adds a column
                for name in next(iter(self._stuck[group].values())).pod.requests:
                    cluster.resource(name)
            needs = np.zeros((len(groups), len(cluster.resources)), dtype=np.int64)
            devices = np.zeros((len(groups), 2), dtype=np.int64)
            for index, group in enumerate(groups):
                pod = next(iter(self._stuck[group].values())).pod
                for name, value in pod.requests.items():
                    needs[index, cluster.resource(name)] = value
                needs[index, PODS] = 1
                if pod.gpu is not None:
                    devices[index] = pod.gpu.count, pod.gpu.milli
            self._table = table = (groups, needs, devices)
        return table

    def _wake(self, entry: Waiting, clock: float) -> None:
        self._unstick(entry)
        ready = entry.tried + self._backoff(entry)
        if ready > clock:
            entry.state = "backoff"
            heapq.heappush(self._backing_off, (ready, entry.sequence, entry))
        else:
            entry.state = "active"
            heapq.heappush(self._active, entry)

    def _backoff(self, entry: Waiting) -> float:
        if entry.attempts == 0:
            return 0.0
        return float(min(self.initial * 2.0 ** min(entry.attempts - 1, 1000), self.largest))

    def _unstick(self, entry: Waiting) -> None:
        group = signature(entry.pod)
        members = self._stuck.get(group)
        if members is not None:
            members.pop(entry.pod.key, None)
            if not members:
                del self._stuck[group]
                self._table = None


def signature(pod: Pod) -> tuple[object, ...]:
    """Return the needs of pods that can be placed on the same nodes."""
    if pod.gpu is None:
        return tuple(sorted(pod.requests.items()))
    return (*sorted(pod.requests.items()), pod.gpu.count, pod.gpu.milli)
