"""Whole-queue schedulers that differ in their order of pods and their choice of nodes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from hagane.tools.cluster.kube.backoff import signature
from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.placement import choose, find_feasible, total_scores
from hagane.tools.cluster.kube.profile import Profile, default_profile
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.model.read_pod import GPU_COUNT
from hagane.tools.cluster.sim.actions import Bind, SchedulerAction
from hagane.tools.cluster.sim.ports import Queue, Scheduler
from hagane.tools.cluster.state import Cluster, Ints


class Greedy(Scheduler):
    """Serves pods in some order and puts each on the best of the nodes that pass all filters.

    Subclasses override :meth:`order`, :meth:`pick` and :meth:`allows`.

    Args:
        profile: the filters and scores.
        seed: of ties.
        strict: stop at the first pod that fits nowhere, as a plain FIFO does.
    """

    name = "greedy"

    def __init__(self, profile: Profile | None = None, seed: int = 0, strict: bool = False):
        # Whole-queue schedulers look at every node.
        self.profile = replace(profile or default_profile(), percentage=100)
        self.chance = random.Random(seed)
        self.strict = strict

    def order(self, clock: float, queue: Queue, nodes: Cluster) -> Iterable[Pod]:
        """Return pods in the order in which they are served; arrival, unless overridden."""
        return [entry.pod for entry in queue.entries()]

    def allows(self, pod: Pod, nodes: Cluster) -> bool:
        """Return whether a pod may be served now, free resources aside."""
        return not pod.gates

    def pick(self, cycle: Cycle, rows: Ints) -> tuple[int, tuple[int, ...] | None]:
        """Return one of the feasible rows, and devices or None."""
        return choose(rows, total_scores(self.profile, cycle, rows), self.chance), None

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> Iterator[SchedulerAction]:
        """Serve pods until no more fits."""
        full: set[tuple[object, ...]] = set()
        for pod in self.order(clock, queue, nodes):
            if pod.key not in queue or not self.allows(pod, nodes):
                continue
            # Binding only takes; a pod like one that did not fit does not fit either.
            kind = (*signature(pod), pod.node_selector, pod.node_affinity, pod.tolerations)
            plain = not (pod.affinity or pod.anti_affinity or pod.spread or pod.ports)
            if plain and kind in full:
                continue
            found = self.place(Cycle(pod, nodes, self.profile.version))
            if found is not None:
                yield Bind(pod.key, nodes.records[found[0]].node.name, found[1])
            elif self.strict:
                return
            elif plain:
                full.add(kind)

    def place(
        self, cycle: Cycle, without: int | None = None
    ) -> tuple[int, tuple[int, ...] | None] | None:
        """Return the row (not ``without``) and devices for a pod, or None if it fits nowhere."""
        rows = find_feasible(self.profile, cycle).rows
        if without is not None:
            rows = rows[rows != without]
        return self.pick(cycle, rows) if rows.size else None


class Fifo(Greedy):
    """First come, first served: a pod that fits nowhere holds up all behind it."""

    name = "fifo"

    def __init__(self, profile: Profile | None = None, seed: int = 0):
        super().__init__(profile, seed, strict=True)


class BestFit(Greedy):
    """Puts each pod where the least would stay free, all resources alike."""

    name = "best-fit"

    def pick(self, cycle: Cycle, rows: Ints) -> tuple[int, tuple[int, ...] | None]:
        """Return the row with the smallest rest in shares of the largest node, the first such."""
        cluster, pod = cycle.cluster, cycle.pod
        rest = np.zeros(rows.size)
        for name, index in cluster.resources.items():
            offered = cluster.allocatable[index, rows]
            # Counts of pods and of devices are no amounts that anything is left of.
            if name in ("pods", GPU_COUNT) or not offered.any():
                continue
            left = offered - cluster.requested[index, rows] - pod.requests.get(name, 0)
            rest += left / cluster.allocatable[index].max()
        return int(rows[int(rest.argmin())]), None


class ShortestRemaining(Greedy):
    """Serves the pod with the least work left first; pods without an end come last."""

    name = "shortest-remaining"

    def order(self, clock: float, queue: Queue, nodes: Cluster) -> Iterable[Pod]:
        """Return pods by duration, then arrival."""
        pods = [entry.pod for entry in queue.entries()]
        return sorted(pods, key=lambda p: float("inf") if p.duration is None else p.duration)
