"""Run a score plugin, or a filter, as Kubernetes' own unit tests run theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.tools.cluster.kube.framework import Cycle, Filter, Score
from hagane.tools.cluster.state import Cluster
from tests.cluster.manifests import cycle_of, node, objects, one, pod

Manifest = dict[str, Any]
Version = tuple[int, int]
NOTHING = pod("p")


def scored(
    plugin: Score,
    wanted: Manifest,
    nodes: list[Manifest],
    pods: list[Manifest] | None = None,
    candidates: list[str] | None = None,
    version: Version = (1, 34),
    others: tuple[Manifest, ...] = (),
) -> list[int] | None:
    """Return normalised scores of the candidates, in order; None where the plugin skips the pod."""
    for index, other in enumerate(pods or ()):
        other["metadata"]["name"] = f"existing-{index}"
    known = objects(*nodes, *(pods or ()), *others)
    cluster = Cluster.of(known)
    names = candidates or [n["metadata"]["name"] for n in nodes]
    rows = np.array([cluster.rows[name] for name in names], dtype=np.int64)
    cycle = Cycle(one(wanted), cluster, version)
    raw = plugin.raw(cycle, rows)
    return None if raw is None else plugin.normalise(cycle, raw).tolist()


def reasons(
    rule: Filter, wanted: Manifest, *manifests: Manifest, version: Version = (1, 34)
) -> dict[str, str]:
    """Return reasons by node; nodes that pass are left out."""
    cycle = cycle_of(wanted, *manifests, version=version)
    if rule.skip(cycle):
        return {}
    mask = rule.mask(cycle, slice(0, cycle.cluster.size))
    return {
        r.node.name: rule.reason(cycle, r.row) for r in cycle.cluster.nodes() if not mask[r.row]
    }


def sized(*sizes: tuple[object, object] | Manifest) -> list[Manifest]:
    """Return node1, node2, … of (CPU, memory) or of whole capacities."""
    out = []
    for index, size in enumerate(sizes):
        has = size if isinstance(size, dict) else {"cpu": str(size[0]), "memory": str(size[1])}
        out.append(node(f"node{index + 1}", has=has))
    return out


def on(name: str, *requests: Manifest, **rest: Any) -> Manifest:
    """Return a pod that is bound to a node."""
    return pod(rest.pop("name", "x"), *requests, nodeName=name, **rest)


def expression(key: str, operator: str, *values: str) -> Manifest:
    """Return a requirement of a selector."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def ids(cases: list[Any]) -> list[str]:
    """Return the first member of every case: its name upstream."""
    return [case[0] for case in cases]
