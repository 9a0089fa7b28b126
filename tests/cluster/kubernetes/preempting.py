"""The cluster of Kubernetes' unit tests of preemption.

Upstream: ``pkg/scheduler/framework/plugins/defaultpreemption/default_preemption_test.go``, 1.23.
"""

from __future__ import annotations

from typing import Any

from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.preemption import Candidate, find_candidates
from hagane.tools.cluster.kube.profile import Profile, default_profile
from hagane.tools.cluster.state import Cluster
from tests.cluster.manifests import node, objects, one, pod

NEGATIVE, LOW, MID, HIGH, VERY_HIGH = -100, 0, 100, 1000, 10000
SMALL, MEDIUM = {"cpu": "100m", "memory": "100"}, {"cpu": "200m", "memory": "200"}
LARGE, VERY_LARGE = {"cpu": "300m", "memory": "300"}, {"cpu": "500m", "memory": "500"}


def on(
    name: str, at: str, priority: int, size: dict[str, str], start: int | None = None, **rest: Any
) -> dict[str, Any]:
    """Return a bound pod; ``start`` in seconds."""
    status = {} if start is None else {"startTime": f"1970-01-01T00:00:{start:02}Z"}
    return pod(name, size, nodeName=at, priority=priority, status=status, **rest)


def machines(count: int, **labels: Any) -> list[dict[str, Any]]:
    """Return node1, node2, … of the capacity that upstream gives them."""
    return [
        node(f"node{i + 1}", {"hostname": f"node{i + 1}", **labels}, has=VERY_LARGE)
        for i in range(count)
    ]


def found(
    wanted: dict[str, Any],
    *manifests: dict[str, Any],
    profile: Profile | None = None,
    offset: int = 0,
) -> list[Candidate]:
    """Return the candidates; asserts that the search leaves the cluster as it was."""
    cluster = Cluster.of(objects(*manifests))
    before = {r.node.name: list(r.pods) for r in cluster.nodes()}
    candidates = find_candidates(profile or default_profile(), Cycle(one(wanted), cluster), offset)
    assert before == {r.node.name: list(r.pods) for r in cluster.nodes()}
    return candidates
