"""Submitters that react: users that wait and think, and a backlog that is kept full."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterator

from hagane.tools.cluster.model.objects import Container, Phase, Pod
from hagane.tools.cluster.sim.actions import Delete, Submit, SubmitterAction, Terminate
from hagane.tools.cluster.sim.ports import Metrics, Submitter
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.jobs import Maker

_GIB = 1024**3


class Users(Submitter):
    """A number of users, each with one pod at a time and a pause before the next one.

    Args:
        count: users.
        think: mean seconds of thought, exponentially distributed.
        make: makes pods.
        chance: the source of chance.
        limit: pods in all; None never ends.
        name: prefix of the pods' names.
    """

    def __init__(
        self,
        count: int,
        think: float,
        make: Maker,
        chance: random.Random,
        limit: int | None = None,
        name: str = "users",
    ):
        self.name = name
        self.think = think
        self.make = make
        self.chance = chance
        self.left = limit
        self.made = 0
        self._ready = [(self._thought(), user) for user in range(count)]
        heapq.heapify(self._ready)
        self._owners: dict[str, int] = {}

    def submit(self, clock: float, nodes: Cluster, metrics: Metrics) -> Iterator[SubmitterAction]:
        """Submit for every user at the end of a pause."""
        while self._ready and self._ready[0][0] <= clock and self.left != 0:
            user = heapq.heappop(self._ready)[1]
            pod = self.make(f"{self.name}-{self.made}")
            self.made += 1
            self.left = None if self.left is None else self.left - 1
            self._owners[pod.key] = user
            yield Submit(pod)
        if self.left == 0:
            yield Terminate()

    def next_time(self, clock: float) -> float | None:
        """Return when the next user is ready; never, while all wait for their pods."""
        return self._ready[0][0] if self._ready else math.inf

    def finished(self, pod: Pod, clock: float) -> None:
        """Let the pod's user think."""
        user = self._owners.pop(pod.key, None)
        if user is not None:
            heapq.heappush(self._ready, (clock + self._thought(), user))

    def _thought(self) -> float:
        return self.chance.expovariate(1 / self.think) if self.think else 0.0


class Backlog(Submitter):
    """Keeps a number of pods pending, as the example program of k8s-cluster-simulator does.

    At every call it deletes the pod it submitted last and fills the queue up; after 1,024 pods it
    ends. Pods request 4 CPUs, 4 GiB and one GPU, use random amounts in one to four phases of up to
    an hour, and one in three has priority 1.

    Args:
        target: pods to keep pending.
        chance: the source of chance.
        total: pods after which it ends.
    """

    name = "backlog"

    def __init__(self, target: int, chance: random.Random, total: int = 1024):
        self.target = target
        self.chance = chance
        self.total = total
        self.made = 0

    def submit(self, clock: float, nodes: Cluster, metrics: Metrics) -> Iterator[SubmitterAction]:
        """Fill the queue up."""
        missing = self.target - metrics["Queue"]["PendingPodsNum"]
        if missing <= 0:
            return
        if self.made > 0:
            yield Delete(f"default/pod-{self.made - 1}")
        for _ in range(missing):
            yield Submit(self._pod())
        if self.made > self.total:
            yield Terminate()

    def _pod(self) -> Pod:
        chance = self.chance
        phases = []
        for _ in range(chance.randrange(1, 5)):
            usage = {
                "cpu": 1000 * chance.randrange(1, 5),
                "memory": _GIB * chance.randrange(1, 5),
                "nvidia.com/gpu": chance.randrange(2),
            }
            phases.append(Phase(60.0 * chance.randrange(60), usage))
        requests = {"cpu": 4000, "memory": 4 * _GIB, "nvidia.com/gpu": 1}
        limits = {"cpu": 6000, "memory": 6 * _GIB, "nvidia.com/gpu": 1}
        pod = Pod(
            f"pod-{self.made}",
            containers=(Container("container", "container", requests, limits),),
            requests=requests,
            limits=limits,
            scored=(4000, 4 * _GIB),
            priority=chance.randrange(3) // 2,
            phases=tuple(phases),
        )
        self.made += 1
        return pod
