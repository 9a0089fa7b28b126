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
    """Places groups (label ``scheduling.x-k8s.io/pod-group``) all at once.

    A group is tried when as many of its pods as its smallest size (``min-member``) are pending or
    bound; the places of all are found before the first is bound. Pods without a group go alone.
    """

    name = "gang"

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> Iterator[SchedulerAction]:
        """Try every group, in the order in which their first pods came."""
        groups: dict[str, list[Pod]] = {}
        for entry in queue.entries():
            pod = entry.pod
            name = f"{pod.namespace}/{pod.group}" if pod.group else f"/{pod.key}"
            groups.setdefault(name, []).append(pod)
        bound: dict[str, int] = {}
        if any(pods[0].group for pods in groups.values()):
            for record in nodes.nodes():
                for pod in record.pods.values():
                    if pod.group:
                        name = f"{pod.namespace}/{pod.group}"
                        bound[name] = bound.get(name, 0) + 1
        for name, pods in groups.items():
            least = max(p.min_member for p in pods) - bound.get(name, 0)
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
