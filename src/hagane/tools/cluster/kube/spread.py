"""PodTopologySpread: matching pods evenly over zones, hosts or the values of any label.

Source: ``plugins/podtopologyspread`` (``common.go``, ``filtering.go``, ``scoring.go``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from hagane.tools.cluster.kube.framework import MAX_SCORE, Cycle, Filter, Score
from hagane.tools.cluster.kube.nodes import required_match
from hagane.tools.cluster.model.objects import HOSTNAME, ZONE, Node, Pod, Spread
from hagane.tools.cluster.model.selectors import Requirement, Selector, untolerated
from hagane.tools.cluster.state import Cluster, Ints, Mask, Rows

SYSTEM_DEFAULTS = (
    Spread(3, HOSTNAME, "ScheduleAnyway"),
    Spread(5, ZONE, "ScheduleAnyway"),
)
_HARD, _SOFT = "DoNotSchedule", "ScheduleAnyway"
_NONE = "node(s) didn't match pod topology spread constraints (missing required label)"
_SKEW = "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True, slots=True)
class Defaults:
    """The constraints of pods that have none of their own."""

    constraints: tuple[Spread, ...] = SYSTEM_DEFAULTS
    system: bool = True


def default_selector(pod: Pod, cluster: Cluster) -> Selector | None:
    """Return the selector of a pod's services and owner, or None if nothing selects it."""
    parts: list[Requirement] = []
    for service in cluster.services:
        chosen = service.selector if service.namespace == pod.namespace else None
        if chosen is not None and chosen.matches(pod.labels):
            parts += chosen.requirements
    for workload in cluster.workloads:
        if pod.owner and pod.owner == workload.template.owner and workload.selector is not None:
            parts += workload.selector.requirements
    return Selector(tuple(parts)) if parts else None


def constraints_of(cycle: Cycle, when: str, defaults: Defaults) -> tuple[Spread, ...]:
    """Return the hard or soft constraints of a pod, the default ones if it has none at all."""
    pod = cycle.pod
    if pod.spread:
        return tuple(s for s in pod.spread if s.when == when)
    wanted = [s for s in defaults.constraints if s.when == when]
    if not wanted or not (cycle.cluster.services or cycle.cluster.workloads):
        return ()
    selector = default_selector(pod, cycle.cluster)
    return () if selector is None else tuple(replace(s, selector=selector) for s in wanted)


def count_matching(pods: Iterable[Pod], selector: Selector | None, namespace: str) -> int:
    """Return how many pods of a namespace match, pods that are being deleted left out.

    A selector without requirements, which matches everything elsewhere, counts nothing here.
    """
    if not selector:
        return 0
    return sum(
        pod.namespace == namespace and not pod.deleting and selector.matches(pod.labels)
        for pod in pods
    )


def includes(pod: Pod, node: Node, spread: Spread) -> bool:
    """Return whether a node counts for a constraint, by its inclusion policies."""
    if spread.honor_affinity and not required_match(pod, node):
        return False
    if spread.honor_taints:
        hard = ("NoSchedule", "NoExecute")
        return untolerated(node.taints, pod.tolerations, hard) is None
    return True


def _has_all(node: Node, spreads: tuple[Spread, ...]) -> bool:
    return all(s.topology_key in node.labels for s in spreads)


class SpreadFilter(Filter):
    """No domain may hold more than ``maxSkew`` matching pods above the emptiest one."""

    name = "PodTopologySpread"

    def __init__(self, defaults: Defaults = Defaults()):
        self.defaults = defaults

    def skip(self, cycle: Cycle) -> bool:
        """Return whether the pod has no hard constraint."""
        cluster = cycle.cluster
        if not (cycle.pod.spread or cluster.services or cluster.workloads):
            return True
        return not self._constraints(cycle)

    def mask(self, cycle: Cycle, rows: Rows) -> Mask:
        """Return which rows keep the skew."""
        ok = np.zeros(cycle.cluster.alive.shape[0], dtype=bool)
        for record in cycle.cluster.nodes():
            ok[record.row] = not self._failure(cycle, record.row)
        return ok[rows]

    def reason(self, cycle: Cycle, row: int) -> str:
        """Return kube-scheduler's words."""
        return self._failure(cycle, row)

    def may_resolve(self, cycle: Cycle, row: int) -> bool:
        """Return whether evictions may help: not where a label is missing."""
        return self._failure(cycle, row) == _SKEW

    def _constraints(self, cycle: Cycle) -> tuple[Spread, ...]:
        found: tuple[Spread, ...] = cycle.once(
            "spread.hard", lambda: constraints_of(cycle, _HARD, self.defaults)
        )
        return found

    def _domains(self, cycle: Cycle) -> list[dict[str, int]]:
        spreads, pod = self._constraints(cycle), cycle.pod
        domains: list[dict[str, int]] = [{} for _ in spreads]
        for record in cycle.cluster.nodes():
            if not _has_all(record.node, spreads):
                continue
            for spread, domain in zip(spreads, domains, strict=True):
                if includes(pod, record.node, spread):
                    value = record.node.labels[spread.topology_key]
                    found = count_matching(record.pods.values(), spread.selector, pod.namespace)
                    domain[value] = domain.get(value, 0) + found
        return domains

    def _failure(self, cycle: Cycle, row: int) -> str:
        labels = cycle.cluster.records[row].node.labels
        domains = cycle.once("spread.domains", lambda: self._domains(cycle))
        for spread, domain in zip(self._constraints(cycle), domains, strict=True):
            value = labels.get(spread.topology_key)
            if value is None:
                return _NONE
            # Fewer domains than asked for count as if one more were empty.
            least = min(domain.values(), default=2**31 - 1)
            least = 0 if len(domain) < spread.min_domains else least
            own = spread.selector is not None and spread.selector.matches(cycle.pod.labels)
            if domain.get(value, 0) + own - least > spread.max_skew:
                return _SKEW
        return ""


class SpreadScore(Score):
    """The fewer matching pods in a node's domains, the better."""

    name = "PodTopologySpread"

    def __init__(self, defaults: Defaults = Defaults()):
        self.defaults = defaults

    def raw(self, cycle: Cycle, rows: Ints) -> Ints | None:
        """Return weighted counts, 0 for nodes that lack a label; None without constraints."""
        cluster, pod = cycle.cluster, cycle.pod
        if not (pod.spread or cluster.services or cluster.workloads):
            return None
        spreads = constraints_of(cycle, _SOFT, self.defaults)
        if not spreads:
            return None
        strict = bool(pod.spread) or not self.defaults.system
        records = [cluster.records[row] for row in rows.tolist()]
        ignored = [strict and not _has_all(r.node, spreads) for r in records]
        counts: list[dict[str, int]] = [{} for _ in spreads]
        for record, left_out in zip(records, ignored, strict=True):
            if left_out:
                continue
            for spread, count in zip(spreads, counts, strict=True):
                if spread.topology_key != HOSTNAME:
                    count.setdefault(record.node.labels.get(spread.topology_key, ""), 0)
        sizes = [
            len(records) - sum(ignored) if s.topology_key == HOSTNAME else len(c)
            for s, c in zip(spreads, counts, strict=True)
        ]
        for record in cluster.nodes():
            if strict and not _has_all(record.node, spreads):
                continue
            for spread, count in zip(spreads, counts, strict=True):
                value = record.node.labels.get(spread.topology_key, "")
                if value in count and includes(pod, record.node, spread):
                    count[value] += count_matching(
                        record.pods.values(), spread.selector, pod.namespace
                    )
        cycle.store["spread.ignored"] = np.array(ignored, dtype=bool)
        out = np.zeros(len(rows), dtype=np.int64)
        for index, (record, left_out) in enumerate(zip(records, ignored, strict=True)):
            if left_out:
                continue
            score = 0.0
            for spread, count, size in zip(spreads, counts, sizes, strict=True):
                labelled = record.node.labels.get(spread.topology_key)
                if labelled is None:
                    continue
                here = (
                    count_matching(record.pods.values(), spread.selector, pod.namespace)
                    if spread.topology_key == HOSTNAME
                    else count[labelled]
                )
                score += here * math.log(size + 2) + (spread.max_skew - 1)
            # Up to 1.23 the sum is cut, from 1.24 it is rounded (kubernetes pull request 107384).
            out[index] = math.floor(score + (0.5 if cycle.version >= (1, 24) else 0.0))
        return out

    def normalise(self, cycle: Cycle, raw: Ints) -> Ints:
        """Turn counts around: the fewest score 100, ignored nodes 0."""
        there = ~cycle.store["spread.ignored"]
        if not there.any():
            return np.zeros_like(raw)
        largest, smallest = int(raw[there].max()), int(raw[there].min())
        if largest == 0:
            return np.where(there, MAX_SCORE, 0).astype(np.int64)
        return np.where(there, MAX_SCORE * (largest + smallest - raw) // largest, 0)
