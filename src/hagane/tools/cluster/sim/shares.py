"""Users' holdings of the cluster: dominant shares over time, and work done.

The dominant share of a user is the largest of the user's shares of GPUs, CPU and memory (Ghodsi
et al., "Dominant Resource Fairness", NSDI 2011).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hagane.tools.cluster.model.objects import Pod

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "alibabacloud.com/gpu-milli")


def user_of(pod: Pod) -> str:
    """Return the user of a pod: its label ``hagane.dev/user``, else its namespace."""
    return pod.user or pod.namespace


def gpus_of(amounts: Mapping[str, int]) -> float:
    """Return GPUs in a map of amounts, shares as fractions."""
    total = 0.0
    for name in GPU_RESOURCES:
        if name in amounts:
            value = amounts[name]
            total += value / 1000 if name.endswith("milli") else value
    return total


@dataclass(slots=True)
class UserShare:
    """One user: the resources held, their dominant share, and the work done.

    Attributes:
        share: the dominant share since the time ``since``.
        share_seconds: the integral of the share up to then.
        peak: the largest share ever.
        ideal: seconds that the finished pods would have taken alone.
        spent: seconds from their submission to their ends.
    """

    gpu: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    share: float = 0.0
    share_seconds: float = 0.0
    peak: float = 0.0
    since: float = 0.0
    pods: int = 0
    gpu_seconds: float = 0.0
    ideal: float = 0.0
    spent: float = 0.0

    def settle(self, clock: float) -> None:
        """Integrate the share up to now."""
        self.share_seconds += self.share * (clock - self.since)
        self.since = clock

    def measure(self, total: Mapping[str, float]) -> None:
        """Take the share of the cluster's resources anew."""
        share = 0.0
        if total["gpu"]:
            share = self.gpu / total["gpu"]
        if total["cpu"]:
            share = max(share, self.cpu / total["cpu"])
        if total["memory"]:
            share = max(share, self.memory / total["memory"])
        self.share = share
        self.peak = max(self.peak, share)
