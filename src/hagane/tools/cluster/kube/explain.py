"""Why a pod goes where it goes: every filter and every score of every node."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.placement import choose
from hagane.tools.cluster.kube.preemption import (
    Candidate,
    eligible,
    find_candidates,
    pick_candidate,
)
from hagane.tools.cluster.kube.profile import Profile
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.state import Cluster, Ints

# Scores of extenders reach from 0 to 10.
_EXTENDER_SCALE = 10


class Asked(Protocol):
    """An extender, as far as an explanation asks it."""

    @property
    def name(self) -> str:
        """The name under which filters and scores appear."""

    @property
    def weight(self) -> int:
        """The factor of its scores."""

    def filter(self, cycle: Cycle, rows: Ints) -> tuple[Ints, dict[str, str]]:
        """Return the rows it leaves, and its reasons by node."""

    def scores(self, cycle: Cycle, rows: Ints) -> Ints | None:
        """Return scores from 0 to 10; None if it gives none."""

    def preempt(
        self, pod: Pod, candidates: Sequence[Candidate], cluster: Cluster
    ) -> list[Candidate]:
        """Return the candidates that it leaves."""


@dataclass(slots=True)
class Verdict:
    """One node's answer to a pod.

    Attributes:
        filters: reasons by failing filter or extender.
        scores: (raw, normalised) by plugin or extender; empty on nodes that some filter rejects.
        total: the weighted sum.
    """

    filters: dict[str, str] = field(default_factory=dict)
    scores: dict[str, tuple[int, int]] = field(default_factory=dict)
    total: int = 0


@dataclass(slots=True)
class Explanation:
    """The verdict of every node, the node that is chosen, or the pods to evict instead."""

    nodes: dict[str, Verdict]
    chosen: str | None
    preemption_node: str | None = None
    victims: tuple[Pod, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the explanation in the form of ``hagane cluster explain --json``."""
        return {
            "nodes": {
                name: {
                    "filters": verdict.filters,
                    "scores": {
                        plugin: {"raw": raw, "normalised": normalised}
                        for plugin, (raw, normalised) in verdict.scores.items()
                    },
                }
                for name, verdict in self.nodes.items()
            },
            "chosen": self.chosen,
            "preemption": {
                "node": self.preemption_node,
                "victims": [short_name(p) for p in self.victims],
            },
        }


def short_name(pod: Pod) -> str:
    """Return a pod's name, with its namespace unless that is the default one."""
    return pod.name if pod.namespace == "default" else pod.key


def explain(
    profile: Profile,
    cluster: Cluster,
    pod: Pod,
    seed: int = 0,
    extenders: Sequence[Asked] = (),
) -> Explanation:
    """Return every node's answer to a pod; nothing is bound.

    Every filter is asked about every node, where kube-scheduler would stop at the first that
    fails, and no node is left out by sampling. Extenders are asked about the nodes that are left,
    one after the other, as kube-scheduler asks them.
    """
    cycle = Cycle(pod, cluster, profile.version)
    everything = slice(0, cluster.size)
    ok = cluster.alive[everything].copy()
    verdicts = {record.node.name: Verdict() for record in cluster.nodes()}
    for rule in profile.filters:
        if pod.gates or rule.skip(cycle):
            continue
        mask = rule.mask(cycle, everything)
        for record in cluster.nodes():
            if not mask[record.row]:
                verdict = verdicts[record.node.name]
                verdict.filters[rule.name] = rule.reason(cycle, record.row)
        ok &= mask
    if pod.gates:
        for verdict in verdicts.values():
            verdict.filters["SchedulingGates"] = (
                f"waiting for scheduling gates: [{' '.join(pod.gates)}]"
            )
        return Explanation(verdicts, None)
    rows = np.flatnonzero(ok)
    for extender in extenders:
        if rows.size:
            rows = _extended(extender, cycle, rows, verdicts)
    if rows.size:
        totals = np.zeros(rows.size, dtype=np.int64)
        names = [cluster.records[row].node.name for row in rows.tolist()]
        for plugin, weight in profile.scores:
            raw = plugin.raw(cycle, rows)
            # A plugin that skips a pod adds nothing.
            normalised = np.zeros_like(rows) if raw is None else plugin.normalise(cycle, raw)
            raw = np.zeros_like(rows) if raw is None else raw
            totals += normalised * weight
            for name, value, scaled in zip(names, raw.tolist(), normalised.tolist(), strict=True):
                verdicts[name].scores[plugin.name] = (value, scaled)
        for extender in extenders:
            points = extender.scores(cycle, rows)
            for at, name in enumerate(names if points is not None else ()):
                assert points is not None
                value = int(points[at])
                verdicts[name].scores[extender.name] = (value, value * _EXTENDER_SCALE)
                totals[at] += value * _EXTENDER_SCALE * extender.weight
        for name, total in zip(names, totals.tolist(), strict=True):
            verdicts[name].total = total
        row = choose(rows, totals, random.Random(seed))
        return Explanation(verdicts, cluster.records[row].node.name)
    best = None
    if profile.preemption and eligible(cluster, pod):
        candidates = find_candidates(profile, cycle)
        for extender in extenders:
            candidates = extender.preempt(pod, candidates, cluster)
        best = pick_candidate(candidates)
    if best is None:
        return Explanation(verdicts, None)
    return Explanation(verdicts, None, best.node, best.victims)


def _extended(extender: Asked, cycle: Cycle, rows: Ints, verdicts: dict[str, Verdict]) -> Ints:
    """Return the rows that an extender leaves, and note why it does not leave the others."""
    left, reasons = extender.filter(cycle, rows)
    kept = set(left.tolist())
    for row in rows.tolist():
        if row not in kept:
            name = cycle.cluster.records[row].node.name
            verdicts[name].filters[extender.name] = reasons.get(name, "no reason given")
    return left
