"""EASY backfilling: later pods may go ahead if they do not delay the first one.

Source: Lifka, "The ANL/IBM SP Scheduling System" (JSSPP 1995), node by node.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.placement import fits
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.schedulers.greedy import Greedy
from hagane.tools.cluster.sim.actions import Bind, SchedulerAction
from hagane.tools.cluster.sim.ports import Queue
from hagane.tools.cluster.state import Cluster


class Backfill(Greedy):
    """Arrival order; the first pod that fits nowhere gets a reservation.

    The reservation is the node where it could start soonest, by the pods' durations. Pods behind
    it start now if they fit and either leave that node alone or are done before.
    """

    name = "backfill"

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> Iterator[SchedulerAction]:
        """Serve the queue, then fill up around the reservation."""
        reserved: tuple[int, float] | None = None
        for entry in queue.entries():
            pod = entry.pod
            if not self.allows(pod, nodes):
                continue
            cycle = Cycle(pod, nodes, self.profile.version)
            found = self.place(cycle)
            if found is not None and reserved is not None and found[0] == reserved[0]:
                ends = math.inf if pod.duration is None else clock + pod.duration
                if ends > reserved[1]:
                    found = self.place(cycle, without=reserved[0])
            if found is not None:
                yield Bind(pod.key, nodes.records[found[0]].node.name, found[1])
            elif reserved is None:
                reserved = self._reserve(pod, nodes, clock)

    def _reserve(self, pod: Pod, nodes: Cluster, clock: float) -> tuple[int, float] | None:
        """Return the node and the time where a pod can start soonest."""
        best: tuple[int, float] | None = None
        for record in list(nodes.nodes()):
            time = self._earliest(pod, nodes, record.row, clock)
            if best is None or time < best[1]:
                best = (record.row, time)
        return best if best is not None and best[1] < math.inf else None

    def _earliest(self, pod: Pod, nodes: Cluster, row: int, clock: float) -> float:
        record = nodes.records[row]
        order = list(record.pods)

        def end(other: Pod) -> float:
            if other.duration is None or other.started is None:
                return math.inf
            return max(clock, other.started + other.duration)

        leaving = sorted(record.pods.values(), key=end)
        devices = dict(record.devices)
        gone: list[Pod] = []
        try:
            for other in leaving:
                if end(other) == math.inf:
                    return math.inf
                gone.append(nodes.unbind(other.key))
                if fits(self.profile, nodes, pod, row):
                    return end(other)
            return math.inf
        finally:
            for other in gone:
                nodes.bind(other, row, devices.get(other.key))
            record.pods = {key: record.pods[key] for key in order}
