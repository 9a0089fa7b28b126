"""InterPodAffinity: pods near, or far from, other pods.

Source: ``plugins/interpodaffinity`` (``filtering.go``, ``scoring.go``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from hagane.tools.cluster.kube.framework import MAX_SCORE, Cycle, Filter, Score
from hagane.tools.cluster.model.objects import Pod, PodTerm
from hagane.tools.cluster.state import Cluster, Ints, Mask, NodeRecord, Rows

Pair = tuple[str, str]
_AFFINITY = "node(s) didn't match pod affinity rules"
_ANTI = "node(s) didn't match pod anti-affinity rules"
_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


def term_matches(cluster: Cluster, owner: Pod, term: PodTerm, other: Pod) -> bool:
    """Return whether a term of ``owner`` selects ``other``, the topology left aside."""
    if term.selector is None:
        return False
    if not term.namespaces and term.namespace_selector is None:
        near = other.namespace == owner.namespace
    else:
        near = other.namespace in term.namespaces or (
            term.namespace_selector is not None
            and term.namespace_selector.matches(cluster.namespace_labels(other.namespace))
        )
    return near and term.selector.matches(other.labels)


def _bound(cluster: Cluster) -> Iterator[tuple[NodeRecord, Pod]]:
    for record in cluster.nodes():
        for pod in record.pods.values():
            yield record, pod


def _having_affinity(cluster: Cluster) -> Iterator[tuple[NodeRecord, Pod]]:
    for key, row in cluster.with_affinity.items():
        record = cluster.records[row]
        yield record, record.pods[key]


@dataclass(slots=True)
class _Counts:
    """Matches per (label, value): of the pod's affinity, its anti-affinity, others' to it."""

    affinity: dict[Pair, int]
    anti: dict[Pair, int]
    existing: dict[Pair, int]


class InterPodFilter(Filter):
    """Required affinity and anti-affinity, the pod's own and that of pods already there."""

    name = "InterPodAffinity"

    def skip(self, cycle: Cycle) -> bool:
        """Return whether neither the pod nor any bound pod has terms."""
        pod = cycle.pod
        return not (
            pod.affinity.required or pod.anti_affinity.required or cycle.cluster.with_affinity
        )

    def mask(self, cycle: Cycle, rows: Rows) -> Mask:
        """Return which rows satisfy everyone."""
        ok = np.zeros(cycle.cluster.alive.shape[0], dtype=bool)
        for record in cycle.cluster.nodes():
            ok[record.row] = not self.reason(cycle, record.row)
        return ok[rows]

    def reason(self, cycle: Cycle, row: int) -> str:
        """Return the first rule that fails, in kube-scheduler's words."""
        counts: _Counts = cycle.once("interpod", lambda: self._count(cycle))
        pod, labels = cycle.pod, cycle.cluster.records[row].node.labels
        if not self._near(cycle, counts, labels):
            return _AFFINITY
        for term in pod.anti_affinity.required:
            value = labels.get(term.topology_key)
            if value is not None and counts.anti.get((term.topology_key, value), 0) > 0:
                return _ANTI
        if any(labels.get(key) == value for key, value in counts.existing):
            return _EXISTING
        return ""

    def may_resolve(self, cycle: Cycle, row: int) -> bool:
        """Return whether evictions may help: not where the pod's affinity is unmet."""
        return self.reason(cycle, row) != _AFFINITY

    def _near(self, cycle: Cycle, counts: _Counts, labels: object) -> bool:
        assert isinstance(labels, dict)
        pod, terms = cycle.pod, cycle.pod.affinity.required
        exists = True
        for term in terms:
            value = labels.get(term.topology_key)
            if value is None:
                return False
            if counts.affinity.get((term.topology_key, value), 0) <= 0:
                exists = False
        if exists:
            return True
        # The first pod of a group that wants to be together may go anywhere.
        return not counts.affinity and _all_match(cycle.cluster, pod, terms, pod)

    def _count(self, cycle: Cycle) -> _Counts:
        pod, cluster = cycle.pod, cycle.cluster
        counts = _Counts({}, {}, {})
        for record, other in _having_affinity(cluster):
            for term in other.anti_affinity.required:
                if term_matches(cluster, other, term, pod):
                    _add(counts.existing, record, term)
        near, far = pod.affinity.required, pod.anti_affinity.required
        if near or far:
            for record, other in _bound(cluster):
                if near and _all_match(cluster, pod, near, other):
                    for term in near:
                        _add(counts.affinity, record, term)
                for term in far:
                    if term_matches(cluster, pod, term, other):
                        _add(counts.anti, record, term)
        return counts


def _all_match(cluster: Cluster, owner: Pod, terms: Iterable[PodTerm], other: Pod) -> bool:
    return all(term_matches(cluster, owner, term, other) for term in terms)


def _add(counts: dict[Pair, int], record: NodeRecord, term: PodTerm, by: int = 1) -> None:
    value = record.node.labels.get(term.topology_key)
    if value is not None:
        pair = (term.topology_key, value)
        counts[pair] = counts.get(pair, 0) + by


class InterPodScore(Score):
    """Preferred terms, the pod's own and those of pods already there, as sums of weights.

    Args:
        hard_weight: the worth of a required affinity of a bound pod.
        ignore_existing: skip pods that have no preferred terms of their own.
    """

    name = "InterPodAffinity"

    def __init__(self, hard_weight: int = 1, ignore_existing: bool = False):
        self.hard_weight = hard_weight
        self.ignore_existing = ignore_existing

    def raw(self, cycle: Cycle, rows: Ints) -> Ints | None:
        """Return sums of weights; None where no term applies."""
        cluster, pod = cycle.cluster, cycle.pod
        own = bool(pod.affinity.preferred or pod.anti_affinity.preferred)
        if not own and (self.ignore_existing or not cluster.with_affinity):
            return None
        scores: dict[Pair, int] = {}
        for record, other in _bound(cluster) if own else _having_affinity(cluster):
            for weight, term in pod.affinity.preferred:
                if term_matches(cluster, pod, term, other):
                    _add(scores, record, term, weight)
            for weight, term in pod.anti_affinity.preferred:
                if term_matches(cluster, pod, term, other):
                    _add(scores, record, term, -weight)
            for term in other.affinity.required if self.hard_weight > 0 else ():
                if term_matches(cluster, other, term, pod):
                    _add(scores, record, term, self.hard_weight)
            for weight, term in other.affinity.preferred:
                if term_matches(cluster, other, term, pod):
                    _add(scores, record, term, weight)
            for weight, term in other.anti_affinity.preferred:
                if term_matches(cluster, other, term, pod):
                    _add(scores, record, term, -weight)
        if not scores:
            return None
        out = np.zeros(len(rows), dtype=np.int64)
        for index, row in enumerate(rows.tolist()):
            labels = cluster.records[row].node.labels
            out[index] = sum(w for (key, value), w in scores.items() if labels.get(key) == value)
        return out

    def normalise(self, cycle: Cycle, raw: Ints) -> Ints:
        """Stretch from the smallest, 0, to the largest, 100."""
        smallest, largest = int(raw.min(initial=2**62)), int(raw.max(initial=-(2**62)))
        # The range held 0 up to 1.20 (kubernetes pull request 98096 changed it).
        if cycle.version < (1, 21):
            smallest, largest = min(smallest, 0), max(largest, 0)
        if largest <= smallest:
            return np.zeros_like(raw)
        scaled: Ints = (MAX_SCORE * ((raw - smallest) / (largest - smallest))).astype(np.int64)
        return scaled
