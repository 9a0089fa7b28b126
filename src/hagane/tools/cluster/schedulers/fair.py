"""Fair shares: dominant resource fairness with quotas, and throttles.

Source: Ghodsi et al., "Dominant Resource Fairness" (NSDI 2011), algorithm 1.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.profile import Profile
from hagane.tools.cluster.model.objects import Amounts, Pod
from hagane.tools.cluster.model.selectors import Selector
from hagane.tools.cluster.schedulers.greedy import Greedy
from hagane.tools.cluster.sim.actions import Bind, SchedulerAction
from hagane.tools.cluster.sim.ports import Queue
from hagane.tools.cluster.sim.shares import user_of
from hagane.tools.cluster.state import Cluster


@dataclass(frozen=True, slots=True)
class Quota:
    """A user's guaranteed share, and how much more may be borrowed.

    Attributes:
        amounts: the guarantee, by resource; a resource that is absent is unlimited.
        borrow: whether resources that others leave may be used beyond it.
        weight: of the user's share.
    """

    amounts: Amounts
    borrow: bool = True
    weight: float = 1.0


class Drf(Greedy):
    """Serves the user whose dominant share, divided by the weight, is the smallest.

    Users below their quota come before borrowing users.

    Args:
        quotas: by user.
        profile: the filters and scores.
        seed: of ties among nodes.
    """

    name = "drf"

    def __init__(
        self,
        quotas: Mapping[str, Quota] | None = None,
        profile: Profile | None = None,
        seed: int = 0,
    ):
        super().__init__(profile, seed)
        self.quotas = dict(quotas or {})

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> Iterator[SchedulerAction]:
        """Serve one pod of the poorest user at a time."""
        waiting: dict[str, list[Pod]] = {}
        for entry in queue.entries():
            waiting.setdefault(user_of(entry.pod), []).append(entry.pod)
        held = self.held(nodes)
        total = {
            name: int(nodes.allocatable[index].sum()) for name, index in nodes.resources.items()
        }
        heap = [
            (*self._rank(user, pods[0], held.get(user, {}), total), user)
            for user, pods in waiting.items()
        ]
        heapq.heapify(heap)
        while heap:
            user = heapq.heappop(heap)[-1]
            pod = waiting[user].pop(0)
            mine = held.setdefault(user, {})
            if self.allows(pod, nodes) and self._within(user, pod, mine):
                found = self.place(Cycle(pod, nodes, self.profile.version))
                if found is not None:
                    for name, value in pod.requests.items():
                        mine[name] = mine.get(name, 0) + value
                    yield Bind(pod.key, nodes.records[found[0]].node.name, found[1])
            if waiting[user]:
                rank = self._rank(user, waiting[user][0], mine, total)
                heapq.heappush(heap, (*rank, user))

    def held(self, nodes: Cluster) -> dict[str, dict[str, int]]:
        """Return the holdings of every user."""
        out: dict[str, dict[str, int]] = {}
        for record in nodes.nodes():
            for pod in record.pods.values():
                mine = out.setdefault(user_of(pod), {})
                for name, value in pod.requests.items():
                    mine[name] = mine.get(name, 0) + value
        return out

    def share(self, user: str, held: Amounts, total: Amounts) -> float:
        """Return a user's weighted dominant share."""
        quota = self.quotas.get(user)
        largest = max((v / total[n] for n, v in held.items() if total.get(n)), default=0.0)
        return largest / (quota.weight if quota else 1.0)

    def _rank(self, user: str, pod: Pod, held: Amounts, total: Amounts) -> tuple[bool, float]:
        return self._beyond(user, pod, held), self.share(user, held, total)

    def _beyond(self, user: str, pod: Pod, held: Amounts) -> bool:
        quota = self.quotas.get(user)
        return quota is not None and any(
            held.get(name, 0) + pod.requests.get(name, 0) > limit
            for name, limit in quota.amounts.items()
        )

    def _within(self, user: str, pod: Pod, held: Amounts) -> bool:
        quota = self.quotas.get(user)
        return quota is None or quota.borrow or not self._beyond(user, pod, held)


@dataclass(frozen=True, slots=True)
class Throttle:
    """A limit on the resources of all pods that a selector matches."""

    name: str
    selector: Selector
    amounts: Amounts
    pods: int | None = None


class Throttled(Greedy):
    """Arrival order, under throttles; pods that a throttle stops don't hold up the others."""

    name = "throttle"

    def __init__(
        self, throttles: tuple[Throttle, ...], profile: Profile | None = None, seed: int = 0
    ):
        super().__init__(profile, seed)
        self.throttles = throttles

    def allows(self, pod: Pod, nodes: Cluster) -> bool:
        """Return whether every throttle that matches has room for the pod."""
        for throttle in self.throttles:
            if not throttle.selector.matches(pod.labels):
                continue
            held: dict[str, int] = {}
            count = 0
            for record in nodes.nodes():
                for other in record.pods.values():
                    if throttle.selector.matches(other.labels):
                        count += 1
                        for name, value in other.requests.items():
                            held[name] = held.get(name, 0) + value
            if throttle.pods is not None and count >= throttle.pods:
                return False
            for name, limit in throttle.amounts.items():
                if held.get(name, 0) + pod.requests.get(name, 0) > limit:
                    return False
        return super().allows(pod, nodes)
