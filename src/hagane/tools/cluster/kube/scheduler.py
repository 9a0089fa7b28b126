"""The kube-scheduler as a scheduler of the simulation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from hagane.tools.cluster.kube.backoff import BackoffQueue, Waiting, signature
from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.placement import choose, find_feasible, total_scores
from hagane.tools.cluster.kube.preemption import (
    Candidate,
    eligible,
    find_candidates,
    pick_candidate,
)
from hagane.tools.cluster.kube.profile import Profile, default_profile
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.sim.actions import Bind, Evict, SchedulerAction
from hagane.tools.cluster.sim.ports import Queue, Scheduler
from hagane.tools.cluster.state import Cluster, Ints

# Takes (cycle, feasible rows), returns the rows left, or the totals with something added.
ExtraFilter = Callable[[Cycle, Ints], Ints]
ExtraScore = Callable[[Cycle, Ints, Ints], Ints]


class KubeScheduler(Scheduler):
    """Filters, scores, preemption and back-off of kube-scheduler.

    Args:
        profile: plugins, weights and limits.
        seed: of the choice among equal nodes.
        extra_filters: predicates and extenders, called on the rows that passed all filters.
        extra_scores: prioritizers and extenders, called on the totals so far.
    """

    name = "kube-scheduler"

    def __init__(
        self,
        profile: Profile | None = None,
        seed: int = 0,
        extra_filters: tuple[ExtraFilter, ...] = (),
        extra_scores: tuple[ExtraScore, ...] = (),
    ):
        self.profile = profile or default_profile()
        self.chance = random.Random(seed)
        self.extra_filters = extra_filters
        self.extra_scores = extra_scores
        self.backoff = BackoffQueue(self.profile.initial_backoff, self.profile.max_backoff)
        self.nominated: dict[int, list[Pod]] = {}
        self.promised: dict[str, int] = {}
        self.start = 0
        self.attempts = 0
        # Of the last attempt that found no node: how many nodes each filter rejected.
        self.why = ""

    def added(self, pod: Pod, clock: float) -> None:
        """Put a new pod into the active queue, unless scheduling gates hold it back."""
        if not pod.gates:
            self.backoff.add(pod, clock)

    def gone(self, pod: Pod, clock: float) -> None:
        """Forget a pod."""
        self.backoff.remove(pod.key)
        self._forget(pod.key)

    def freed(self, rows: set[int], clock: float, nodes: Cluster) -> None:
        """Wake the pods that may fit on changed rows."""
        if any(w.pod.affinity or w.pod.spread for w in self.backoff.pods.values()):
            self.backoff.wake_all(clock)
        else:
            self.backoff.freed(rows, clock, nodes)

    def next_time(self, clock: float) -> float | None:
        """Return when the next back-off ends."""
        return self.backoff.next_time()

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> Iterator[SchedulerAction]:
        """Try every active pod once, the most important first.

        Binding only takes: where one pod fitted nowhere, a like pod later in the same turn does
        not fit either, and is put aside without asking the filters again.
        """
        full: dict[tuple[object, ...], str] = {}
        while (entry := self.backoff.pop(clock)) is not None:
            pod = entry.pod
            kind = self._kind(pod)
            if kind is not None and kind in full:
                self._say(queue, pod, full[kind])
                self.backoff.fail(entry, clock)
                continue
            cycle = Cycle(pod, nodes, self.profile.version)
            row = self.place(cycle)
            if row is None:
                lowest = nodes.lowest_priority()
                hopeless = lowest is None or lowest >= pod.priority
                if kind is not None and (hopeless or not self.profile.preemption):
                    full[kind] = self.why
                self._say(queue, pod, self.why)
                yield from self._preempt(cycle, entry, clock)
                continue
            self.backoff.remove(pod.key)
            self._forget(pod.key)
            name = nodes.records[row].node.name
            self.binding(pod, name)
            yield Bind(pod.key, name)
            if pod.affinity or pod.anti_affinity:
                self.backoff.wake_all(clock)

    @staticmethod
    def _say(queue: Queue, pod: Pod, why: str) -> None:
        pending = queue.get(pod.key)
        if pending is not None:
            pending.why = why

    def _kind(self, pod: Pod) -> tuple[object, ...] | None:
        """Return the facts that decide a pod's place; None if others have a say."""
        if pod.affinity or pod.anti_affinity or pod.spread or pod.ports or self.extra_filters:
            return None
        own = (pod.priority, pod.node_name, pod.node_selector, pod.node_affinity, pod.tolerations)
        # Labels matter to the anti-affinity of others.
        return (*signature(pod), *own, pod.namespace, tuple(sorted(pod.labels.items())))

    def place(self, cycle: Cycle) -> int | None:
        """Return the row for a pod, or None if it fits nowhere."""
        self.attempts += 1
        cluster = cycle.cluster
        found = find_feasible(self.profile, cycle, self.start, self.nominated or None)
        self.start = (self.start + found.tried) % max(cluster.size, 1)
        rows = found.rows
        for extra in self.extra_filters:
            if rows.size:
                rows = extra(cycle, rows)
        if not rows.size:
            counts = dict(found.rejected)
            if left := cluster.node_count - sum(counts.values()):
                # Room promised to others, or a predicate or an extender of the user.
                counts["other"] = left
            reasons = ", ".join(f"{number} {name}" for name, number in counts.items())
            self.why = f"0/{cluster.node_count} nodes: {reasons}"
            return None
        if rows.size == 1:
            return int(rows[0])
        totals = total_scores(self.profile, cycle, rows)
        for score in self.extra_scores:
            totals = score(cycle, rows, totals)
        return choose(rows, totals, self.chance)

    def preempt(self, cycle: Cycle) -> Candidate | None:
        """Return the node and the victims with which a pod would fit, or None."""
        if not self.profile.preemption or not eligible(cycle.cluster, cycle.pod):
            return None
        lowest = cycle.cluster.lowest_priority()
        if lowest is None or lowest >= cycle.pod.priority:
            return None
        offset = self.chance.randrange(max(cycle.cluster.node_count, 1))
        found = find_candidates(self.profile, cycle, offset, self.nominated)
        return pick_candidate(self.choose_candidate(cycle, found))

    def choose_candidate(self, cycle: Cycle, candidates: list[Candidate]) -> list[Candidate]:
        """Return the candidates for preemption that are left; extenders may drop some."""
        return candidates

    def binding(self, pod: Pod, node: str) -> None:
        """Learn that a pod is about to be bound; extenders may do it themselves."""

    def _preempt(self, cycle: Cycle, entry: Waiting, clock: float) -> Iterator[SchedulerAction]:
        best = self.preempt(cycle)
        if best is None:
            promised = self.promised.get(entry.pod.key)
            if promised is not None and eligible(cycle.cluster, cycle.pod):
                # No eviction makes room for it any more: others may have what was promised to it.
                self._forget(entry.pod.key)
                entry.pod = replace(entry.pod, nominated="")
                self.backoff.freed({promised}, clock, cycle.cluster)
            self.backoff.fail(entry, clock)
            return
        row = cycle.cluster.rows[best.node]
        self._forget(entry.pod.key)
        entry.pod = replace(entry.pod, nominated=best.node)
        # Less important pods lose the promise of this node.
        for other in [p for p in self.nominated.get(row, ()) if p.priority < entry.pod.priority]:
            self._forget(other.key)
        self.nominated.setdefault(row, []).append(entry.pod)
        self.promised[entry.pod.key] = row
        self.backoff.fail(entry, clock)
        for victim in best.victims:
            yield Evict(victim.key, entry.pod.key)

    def _forget(self, key: str) -> None:
        row = self.promised.pop(key, None)
        if row is not None:
            left = [p for p in self.nominated[row] if p.key != key]
            if left:
                self.nominated[row] = left
            else:
                del self.nominated[row]
