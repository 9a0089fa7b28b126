"""Preemption: which pods to evict where, so that a more important pod fits.

Source: ``plugins/defaultpreemption/default_preemption.go`` (victims on one node) and
``framework/preemption/preemption.go`` (the choice among nodes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.placement import Nominated, fits_with_nominated
from hagane.tools.cluster.kube.profile import Profile
from hagane.tools.cluster.model.objects import DisruptionBudget, Pod
from hagane.tools.cluster.state import Cluster


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node and the pods to evict there, the most important first."""

    node: str
    victims: tuple[Pod, ...]
    violations: int = 0


def allowed_disruptions(budget: DisruptionBudget, pods: Sequence[Pod]) -> int:
    """Return how many more of a budget's pods may go, from its status or from the pods bound."""
    if budget.allowed is not None:
        return budget.allowed
    selector = budget.selector
    mine = [
        p
        for p in pods
        if selector is not None and p.namespace == budget.namespace and selector.matches(p.labels)
    ]
    healthy = sum(not p.deleting for p in mine)
    if budget.min_available is not None:
        return max(0, healthy - _scaled(budget.min_available, len(mine)))
    if budget.max_unavailable is not None:
        return max(0, healthy - (len(mine) - _scaled(budget.max_unavailable, len(mine))))
    return healthy


def split_by_budget(
    pods: Sequence[Pod], budgets: Sequence[DisruptionBudget], allowed: Mapping[int, int]
) -> tuple[list[Pod], list[Pod]]:
    """Return (pods whose eviction breaks a budget, the others), each in the order given.

    Args:
        pods: the pods, most important first.
        budgets: the budgets.
        allowed: disruptions left by index of budget.
    """
    left = dict(allowed)
    breaking: list[Pod] = []
    harmless: list[Pod] = []
    for pod in pods:
        broken = False
        for index, budget in enumerate(budgets):
            if budget.namespace != pod.namespace or not pod.labels or not budget.selector:
                continue
            if not budget.selector.matches(pod.labels) or pod.name in budget.disrupted:
                continue
            left[index] -= 1
            broken |= left[index] < 0
        (breaking if broken else harmless).append(pod)
    return breaking, harmless


def importance(pod: Pod) -> tuple[int, float]:
    """Return a key that sorts the most important pod first: high priority, then early start."""
    return (-pod.priority, pod.started if pod.started is not None else math.inf)


def select_victims(
    profile: Profile,
    cluster: Cluster,
    pod: Pod,
    row: int,
    nominated: Nominated | None = None,
    allowed: Mapping[int, int] | None = None,
) -> Candidate | None:
    """Return the fewest important victims on one node, or None if evictions don't help there.

    All pods of lower priority leave; then each comes back if the pod still fits, first those
    whose eviction would break a budget, the most important first. The cluster ends as it began.
    """
    record = cluster.records[row]
    lower = [p for p in record.pods.values() if p.priority < pod.priority]
    if not lower:
        return None
    order = list(record.pods)
    devices = {p.key: record.devices.get(p.key) for p in lower}
    out: dict[str, Pod] = {}

    def remove(victim: Pod) -> None:
        out[victim.key] = cluster.unbind(victim.key)

    def add(victim: Pod) -> None:
        cluster.bind(out.pop(victim.key), row, devices[victim.key])

    try:
        for victim in lower:
            remove(victim)
        if not fits_with_nominated(profile, cluster, pod, row, nominated):
            return None
        lower.sort(key=importance)
        budgets = cluster.budgets
        limits = allowed if allowed is not None else budget_limits(cluster)
        breaking, harmless = split_by_budget(lower, budgets, limits)
        victims, violations = [], 0
        for group, counts in ((breaking, 1), (harmless, 0)):
            for victim in group:
                add(victim)
                if not fits_with_nominated(profile, cluster, pod, row, nominated):
                    remove(victim)
                    victims.append(victim)
                    violations += counts
        victims.sort(key=importance)
        return Candidate(record.node.name, tuple(victims), violations)
    finally:
        for victim in list(out.values()):
            add(victim)
        # Dicts keep insertion order; restore it, so that a dry run leaves no trace.
        record.pods = {key: record.pods[key] for key in order}


def budget_limits(cluster: Cluster) -> dict[int, int]:
    """Return the disruptions left by index of budget, before any eviction."""
    pods = [p for r in cluster.nodes() for p in r.pods.values()] if cluster.budgets else []
    return {i: allowed_disruptions(b, pods) for i, b in enumerate(cluster.budgets)}


def pick_candidate(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the best of some candidates, by five rules, the first one of equals.

    Fewest broken budgets; then the lowest of the highest victims' priorities; then the lowest sum
    of priorities; then the fewest victims; then the latest start among the highest victims.
    """

    def rank(candidate: Candidate) -> tuple[float, ...]:
        victims = candidate.victims
        highest = victims[0].priority
        starts = [p.started for p in victims if p.priority == highest]
        earliest = min((s if s is not None else math.inf for s in starts), default=math.inf)
        return (
            candidate.violations,
            highest,
            # Every priority counts as positive, so that fewer victims of -1 beat more of them.
            sum(p.priority + 2**31 for p in victims),
            len(victims),
            -earliest,
        )

    return min(candidates, key=rank, default=None)


def eligible(cluster: Cluster, pod: Pod) -> bool:
    """Return whether a pod may preempt: its policy allows it and it isn't waiting for victims."""
    if pod.preemption_policy == "Never":
        return False
    row = cluster.rows.get(pod.nominated, -1) if pod.nominated else -1
    if row < 0:
        return True
    return not any(
        p.deleting and p.priority < pod.priority for p in cluster.records[row].pods.values()
    )


def find_candidates(
    profile: Profile,
    cycle: Cycle,
    offset: int = 0,
    nominated: Nominated | None = None,
) -> list[Candidate]:
    """Return nodes where evictions would let the pod in, candidates without violations first.

    The search stops once the profile's number of candidates is found.

    Args:
        profile: the scheduler.
        cycle: the attempt that found no node.
        offset: where among the possible nodes to begin.
        nominated: pods promised to nodes.
    """
    cluster = cycle.cluster
    possible = _resolvable(profile, cycle)
    if not possible:
        return []
    wanted = len(possible) * profile.candidates_percentage // 100
    wanted = min(max(wanted, profile.candidates_absolute), len(possible))
    allowed = budget_limits(cluster)
    clean: list[Candidate] = []
    breaking: list[Candidate] = []
    for step in range(len(possible)):
        row = possible[(offset + step) % len(possible)]
        found = select_victims(profile, cluster, cycle.pod, row, nominated, allowed)
        if found is None or not found.victims:
            continue
        if not found.violations:
            clean.append(found)
        elif len(breaking) < wanted:
            # kube-scheduler's list of these has that many places.
            breaking.append(found)
        if clean and len(clean) + len(breaking) >= wanted:
            break
    return clean + breaking


def _resolvable(profile: Profile, cycle: Cycle) -> list[int]:
    """Return the rows where the first filter that fails could pass after evictions.

    Nodes without less important pods are among them, as for kube-scheduler, whose number of
    candidates is a share of them all.
    """
    cluster = cycle.cluster
    everything = slice(0, cluster.size)
    passed = cluster.alive[everything].copy()
    possible = np.zeros(cluster.size, dtype=bool)
    for rule in profile.filters:
        if rule.skip(cycle):
            continue
        mask = rule.mask(cycle, everything)
        for row in np.flatnonzero(passed & ~mask).tolist():
            possible[row] = rule.may_resolve(cycle, row)
        passed &= mask
    return [int(row) for row in np.flatnonzero(possible | passed)]


def _scaled(text: str, total: int) -> int:
    if text.endswith("%"):
        return -(-total * int(text[:-1]) // 100)
    return int(text)
