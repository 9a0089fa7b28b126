"""Sums over a run: integrals over time, and statistics of pods that are done.

Nothing here grows with the number of finished pods except the samples of a reservoir.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.state import CPU, MEMORY, Cluster

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "alibabacloud.com/gpu-milli")
_RESERVOIR = 65536


def gpus_of(amounts: object) -> float:
    """Return GPUs in a map of amounts, shares as fractions."""
    assert isinstance(amounts, dict)
    total = 0.0
    for name in GPU_RESOURCES:
        value = amounts.get(name, 0)
        total += value / 1000 if name.endswith("milli") else value
    return total


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


@dataclass(slots=True)
class UserShare:
    """What one user got and wanted."""

    gpu_seconds: float = 0.0
    pods: int = 0
    ideal: float = 0.0
    spent: float = 0.0


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
        self.waiting = Statistic()
        self.completion = Statistic()
        self.slowdown = Statistic()
        self.lost_gpu_seconds = 0.0
        self.lost_seconds = 0.0
        self.users: dict[str, UserShare] = {}
        self.now = dict.fromkeys(self.busy, 0.0)
        self.total = dict.fromkeys(self.busy, 0.0)
        self.refresh()

    def refresh(self) -> None:
        """Count afresh what nodes offer and pods hold; call when nodes change."""
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
        now = self.now
        now["cpu"] += sign * requests.get("cpu", 0) / 1000
        now["memory"] += sign * requests.get("memory", 0)
        for name in GPU_RESOURCES:
            if name in requests:
                value = requests[name]
                now["gpu"] += sign * (value / 1000 if name.endswith("milli") else value)

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
        user = self.users.setdefault(pod.user or pod.namespace, UserShare())
        user.pods += 1
        user.ideal += work
        user.spent += spent
        user.gpu_seconds += work * gpus_of(dict(pod.requests))

    def summary(self, clock: float) -> dict[str, object]:
        """Return all sums at the end of a run."""
        span = max(clock - self.start, 0.0)
        used = {
            name: (self.busy[name] / self.offered[name] if self.offered[name] else 0.0)
            for name in self.busy
        }
        rates = [u.ideal / u.spent for u in self.users.values() if u.spent > 0]
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
            "lost_gpu_hours": self.lost_gpu_seconds / 3600,
            "lost_hours": self.lost_seconds / 3600,
        }


def jain(values: list[float]) -> float:
    """Return Jain's fairness index: 1 for equal shares, 1/n if one has everything."""
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0
