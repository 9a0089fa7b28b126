"""Sums over a run: integrals over time, and statistics of pods that are done.

Nothing here grows with the number of finished pods except the samples of a reservoir; pairs of pods
that preempt each other are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.sim.shares import GPU_RESOURCES, UserShare, gpus_of, user_of
from hagane.tools.cluster.state import CPU, MEMORY, Cluster

_RESERVOIR = 65536
_MANY_EVICTIONS = 1000  # of a pod by another one


def endless(key: str, by: str, node: str) -> str:
    """Return the text about a pod that is preempted again and again."""
    return (
        f"pod {by!r} preempted pod {key!r} on node {node!r} {_MANY_EVICTIONS} times, and could not "
        "take the room: its rules (affinity, topology spread) forbid it beside that pod, and that "
        "pod comes back first; give the pods nodes of their own, or end the run by 'until'"
    )


@dataclass(slots=True)
class Statistic:
    """Count, mean, largest and quantiles of numbers that go by.

    Quantiles come from a sample of 65,536 (all numbers, up to there), taken by a fixed stride so
    that they need no randomness.
    """

    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    largest: float = -math.inf
    stride: int = 1
    sample: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        """Take one number in."""
        if self.count % self.stride == 0:
            self.sample.append(value)
            if len(self.sample) >= _RESERVOIR:
                self.sample = self.sample[::2]
                self.stride *= 2
        self.count += 1
        self.total += value
        self.squares += value * value
        self.largest = max(self.largest, value)

    def summary(self) -> dict[str, float]:
        """Return mean, median, 95th and 99th percentile and largest; empty without numbers."""
        if not self.count:
            return {}
        half, most, nearly = np.percentile(self.sample, [50, 95, 99]).tolist()
        return {
            "mean": self.total / self.count,
            "p50": half,
            "p95": most,
            "p99": nearly,
            "max": self.largest,
        }


class Accounting:
    """The sums of one run."""

    def __init__(self, cluster: Cluster, start: float = 0.0):
        self.cluster = cluster
        self.since = start
        self.start = start
        self.busy = {"gpu": 0.0, "cpu": 0.0, "memory": 0.0}
        self.offered = {"gpu": 0.0, "cpu": 0.0, "memory": 0.0}
        self.queue_seconds = 0.0
        self.queue_peak = 0
        self.counts = dict.fromkeys(
            (
                "submitted",
                "bound",
                "succeeded",
                "failed",
                "deleted",
                "preempted",
                "restarts",
                "node_failures",
            ),
            0,
        )
        self.evictions: dict[tuple[str, str], int] = {}
        self.waiting = Statistic()
        self.completion = Statistic()
        self.slowdown = Statistic()
        self.lost_gpu_seconds = 0.0
        self.lost_seconds = 0.0
        self.users: dict[str, UserShare] = {}
        self.now = dict.fromkeys(self.busy, 0.0)
        self.total = dict.fromkeys(self.busy, 0.0)
        self.refresh()
        for record in cluster.nodes():
            for pod in record.pods.values():
                requests = pod.requests
                cpu, memory = requests.get("cpu", 0) / 1000, requests.get("memory", 0)
                self._hold(pod, cpu, memory, gpus_of(requests))

    def preempt(self, key: str, by: str) -> bool:
        """Count a preemption; return whether this pair has had so many that they will not end."""
        self.counts["preempted"] += 1
        self.evictions[key, by] = self.evictions.get((key, by), 0) + 1
        return self.evictions[key, by] > _MANY_EVICTIONS

    def refresh(self) -> None:
        """Count afresh the resources of nodes and pods; call when nodes change."""
        cluster = self.cluster
        size = cluster.size
        for store, columns in (
            (self.total, cluster.allocatable[:, :size]),
            (self.now, cluster.requested[:, :size]),
        ):
            store["cpu"] = float(columns[CPU].sum()) / 1000
            store["memory"] = float(columns[MEMORY].sum())
            store["gpu"] = sum(
                float(columns[cluster.resources[name]].sum())
                / (1000 if name.endswith("milli") else 1)
                for name in GPU_RESOURCES
                if name in cluster.resources
            )
        for user in self.users.values():
            user.settle(self.since)
            user.measure(self.total)

    def advance(self, clock: float, queue: int) -> None:
        """Integrate up to now, with the state as it has been since the last call."""
        passed = clock - self.since
        if passed > 0:
            for name, value in self.now.items():
                self.busy[name] += value * passed
                self.offered[name] += self.total[name] * passed
            self.queue_seconds += queue * passed
            self.since = clock
        self.queue_peak = max(self.queue_peak, queue)

    def hold(self, pod: Pod, sign: int) -> None:
        """Count a pod's request in or out."""
        requests = pod.requests
        cpu, memory = sign * requests.get("cpu", 0) / 1000, sign * requests.get("memory", 0)
        gpu = sign * gpus_of(requests)
        now = self.now
        now["cpu"] += cpu
        now["memory"] += memory
        now["gpu"] += gpu
        self._hold(pod, cpu, memory, gpu)

    def _hold(self, pod: Pod, cpu: float, memory: float, gpu: float) -> None:
        user = self._user(pod)
        user.settle(self.since)
        user.cpu += cpu
        user.memory += memory
        user.gpu += gpu
        user.measure(self.total)

    def _user(self, pod: Pod) -> UserShare:
        name = user_of(pod)
        user = self.users.get(name)
        if user is None:
            user = self.users[name] = UserShare(since=self.since)
        return user

    def done(self, pod: Pod, submitted: float, clock: float, work: float) -> None:
        """Take in a pod that succeeded.

        Args:
            pod: the pod.
            submitted: when it came.
            clock: when it was done.
            work: how long it would have taken alone.
        """
        spent = clock - submitted
        self.completion.add(spent)
        # Bounded slowdown: work of less than ten seconds counts as ten.
        self.slowdown.add(max(1.0, spent / max(work, 10.0)))
        user = self._user(pod)
        user.pods += 1
        user.ideal += work
        user.spent += spent
        user.gpu_seconds += work * gpus_of(pod.requests)

    def summary(self, clock: float) -> dict[str, object]:
        """Return all sums at the end of a run."""
        span = max(clock - self.start, 0.0)
        used = {
            name: (self.busy[name] / self.offered[name] if self.offered[name] else 0.0)
            for name in self.busy
        }
        rates = [u.ideal / u.spent for u in self.users.values() if u.spent > 0 < u.ideal]
        shares = list(self.dominant_shares(clock).values())
        return {
            "seconds": span,
            **self.counts,
            "utilisation": used,
            "gpu_hours": self.busy["gpu"] / 3600,
            "queue_length": {
                "mean": self.queue_seconds / span if span else 0.0,
                "max": self.queue_peak,
            },
            "waiting_seconds": self.waiting.summary(),
            "completion_seconds": self.completion.summary(),
            "slowdown": self.slowdown.summary(),
            "jain_index": jain(rates),
            "finish_time_fairness": max((1 / r for r in rates), default=1.0),
            "dominant_share": {
                "mean": sum(shares) / len(shares) if shares else 0.0,
                "max": max(shares, default=0.0),
                "jain": jain(shares),
            },
            "lost_gpu_hours": self.lost_gpu_seconds / 3600,
            "lost_hours": self.lost_seconds / 3600,
        }

    def dominant_shares(self, clock: float) -> dict[str, float]:
        """Return every user's dominant share, averaged over the time of the run."""
        span = clock - self.start
        out = {}
        for name, user in self.users.items():
            user.settle(clock)
            out[name] = user.share_seconds / span if span > 0 else user.share
        return out


def jain(values: list[float]) -> float:
    """Return Jain's fairness index: 1 for equal shares, 1/n if one has everything."""
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0
