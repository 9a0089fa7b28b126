"""Gangs: pods of one group start together or not at all."""

from __future__ import annotations

from collections.abc import Iterator

from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.schedulers.greedy import Greedy
from hagane.tools.cluster.sim.actions import Bind, SchedulerAction
from hagane.tools.cluster.sim.ports import Queue
from hagane.tools.cluster.state import Cluster


class Gang(Greedy):
    """Places groups of pods all at once.

    A pod names its group as for coscheduling, Volcano or Kueue; its smallest size stands in the
    pod, or in a PodGroup of that name. A group without either is as large as the pods of it that
    have come. The places of all are found before the first is bound. Pods without a group go
    alone.
    """

    name = "gang"

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> Iterator[SchedulerAction]:
        """Try every group, in the order in which their first pods came."""
        groups: dict[str, list[Pod]] = {}
        for entry in queue.entries():
            pod = entry.pod
            groups.setdefault(_group(pod) or f"/{pod.key}", []).append(pod)
        bound: dict[str, int] = {}
        if any(pods[0].group for pods in groups.values()):
            for record in nodes.nodes():
                for pod in record.pods.values():
                    if pod.group:
                        bound[_group(pod)] = bound.get(_group(pod), 0) + 1
        for name, pods in groups.items():
            size = max(p.min_member for p in pods)
            if not size and name in nodes.groups:
                size = nodes.groups[name].min_member
            least = size - bound.get(name, 0) if size else len(pods)
            if len(pods) < least or not all(self.allows(p, nodes) for p in pods):
                continue
            places = self._places(pods, nodes)
            if len(places) >= max(least, 1):
                for pod, row, devices in places:
                    yield Bind(pod.key, nodes.records[row].node.name, devices)

    def _places(
        self, pods: list[Pod], nodes: Cluster
    ) -> list[tuple[Pod, int, tuple[int, ...] | None]]:
        """Return places for as many pods as fit together; the cluster stays as it is."""
        places: list[tuple[Pod, int, tuple[int, ...] | None]] = []
        try:
            for pod in pods:
                found = self.place(Cycle(pod, nodes, self.profile.version))
                if found is None:
                    continue
                devices = found[1]
                if devices is None and pod.gpu is not None:
                    devices = nodes.pick_devices(pod, found[0])
                nodes.bind(pod, found[0], devices)
                places.append((pod, found[0], devices))
        finally:
            for pod, _, _ in places:
                nodes.unbind(pod.key)
        return places


def _group(pod: Pod) -> str:
    """Return the key of a pod's group, or nothing."""
    return f"{pod.namespace}/{pod.group}" if pod.group else ""
