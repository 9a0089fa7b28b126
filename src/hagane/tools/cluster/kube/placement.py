"""One pod over all nodes: which fit, how they score, which is chosen.

Source: ``pkg/scheduler/schedule_one.go`` (``findNodesThatFitPod``, ``numFeasibleNodesToFind``,
``prioritizeNodes``, ``selectHost``).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hagane.tools.cluster.kube.framework import Cycle, Filter
from hagane.tools.cluster.kube.profile import Profile
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.state import Cluster, Ints

_MIN_FEASIBLE = 100
_MIN_PERCENTAGE = 5
_CHUNK = 512
_NOTHING: Ints = np.zeros(0, dtype=np.int64)

# Pods that were promised a node, by row; they count as if they were there.
Nominated = Mapping[int, Sequence[Pod]]


@dataclass(slots=True)
class Feasible:
    """Rows that pass every filter, in the order they were tried, and how many were tried.

    Attributes:
        rejected: how many nodes each filter was the first to reject.
    """

    rows: Ints
    tried: int
    rejected: dict[str, int] = field(default_factory=dict)


def sample_size(nodes: int, percentage: int) -> int:
    """Return after how many feasible nodes the search stops.

    Everything below 100 nodes; otherwise the given percentage, or 50 % less one for every 125
    nodes, 5 % at least; 100 nodes at least.
    """
    if nodes < _MIN_FEASIBLE:
        return nodes
    if percentage == 0:
        percentage = max(50 - nodes // 125, _MIN_PERCENTAGE)
    if percentage >= 100:
        return nodes
    return max(nodes * percentage // 100, _MIN_FEASIBLE)


def find_feasible(
    profile: Profile, cycle: Cycle, start: int = 0, nominated: Nominated | None = None
) -> Feasible:
    """Return rows that pass every filter, searching from a row on and round."""
    cluster = cycle.cluster
    active = [f for f in profile.filters if not f.skip(cycle)]
    wanted = sample_size(cluster.node_count, profile.percentage)
    found: list[Ints] = []
    rejected: dict[str, int] = {}
    count = tried = 0
    whole = wanted >= cluster.node_count
    for window in _windows(cluster.size, start, cluster.size if whole else max(_CHUNK, wanted)):
        mask = cluster.alive[window].copy()
        left = int(np.count_nonzero(mask))
        for rule in active:
            mask &= rule.mask(cycle, window)
            before, left = left, int(np.count_nonzero(mask))
            if left < before:
                rejected[rule.name] = rejected.get(rule.name, 0) + before - left
            if not left:
                break
        rows = np.flatnonzero(mask) + window.start
        if nominated and rows.size:
            rows = _respecting(nominated, profile.filters, cycle, rows)
        if count + rows.size >= wanted and not whole:
            rows = rows[: wanted - count]
            tried += int(rows[-1]) - window.start + 1
            found.append(rows)
            break
        count += rows.size
        tried += window.stop - window.start
        if rows.size:
            found.append(rows)
    if not found:
        return Feasible(_NOTHING, tried, rejected)
    rows = found[0] if len(found) == 1 else np.concatenate(found)
    return Feasible(rows, tried, rejected)


def total_scores(profile: Profile, cycle: Cycle, rows: Ints) -> Ints:
    """Return the weighted sums of all scores of rows."""
    total = np.zeros(rows.size, dtype=np.int64)
    for plugin, weight in profile.scores:
        same = plugin.constant(cycle)
        if same is not None:
            if same:
                total += same * weight
            continue
        raw = plugin.raw(cycle, rows)
        if raw is not None:
            total += plugin.normalise(cycle, raw) * weight
    return total


def choose(rows: Ints, totals: Ints, chance: random.Random) -> int:
    """Return a row of the highest total, one of several by chance."""
    best = rows[totals == totals.max()]
    return int(best[0] if best.size == 1 else best[chance.randrange(best.size)])


def fits(profile: Profile, cluster: Cluster, pod: Pod, row: int) -> bool:
    """Return whether a pod passes every filter on one node as things are."""
    cycle = Cycle(pod, cluster, profile.version)
    rows = np.array([row], dtype=np.int64)
    return all(_passes(rule, cycle, rows) for rule in profile.filters)


def fits_with_nominated(
    profile: Profile, cluster: Cluster, pod: Pod, row: int, nominated: Nominated | None
) -> bool:
    """Return whether a pod fits both with and without the pods promised to the node."""
    if not fits(profile, cluster, pod, row):
        return False
    promised = _promised(nominated or {}, cluster, pod, row)
    if not promised:
        return True
    for other in promised:
        cluster.bind(other, row)
    try:
        return fits(profile, cluster, pod, row)
    finally:
        for other in promised:
            cluster.unbind(other.key)


def _passes(rule: Filter, cycle: Cycle, rows: Ints) -> bool:
    return rule.skip(cycle) or bool(rule.mask(cycle, rows)[0])


def _promised(nominated: Nominated, cluster: Cluster, pod: Pod, row: int) -> list[Pod]:
    return [
        other
        for other in nominated.get(row, ())
        if other.priority >= pod.priority
        and other.key != pod.key
        and other.key not in cluster.where
    ]


def _respecting(nominated: Nominated, rules: Iterable[Filter], cycle: Cycle, rows: Ints) -> Ints:
    """Drop rows on which the pod would not fit beside the pods promised to them.

    All rules count: one that no pod asked for yet may be asked for by a promised one.
    """
    cluster = cycle.cluster
    keep = np.ones(rows.size, dtype=bool)
    for index, row in enumerate(rows.tolist()):
        if row not in nominated:
            continue
        promised = _promised(nominated, cluster, cycle.pod, row)
        for other in promised:
            cluster.bind(other, row)
        again = Cycle(cycle.pod, cluster, cycle.version)
        one = np.array([row], dtype=np.int64)
        keep[index] = all(_passes(rule, again, one) for rule in rules)
        for other in promised:
            cluster.unbind(other.key)
    return rows[keep]


def _windows(size: int, start: int, chunk: int) -> Iterator[slice]:
    for low, high in ((start, size), (0, min(start, size))):
        for at in range(low, high, max(chunk, 1)):
            yield slice(at, min(at + chunk, high))
