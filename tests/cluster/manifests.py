"""Short ways to write nodes and pods in tests."""

from __future__ import annotations

import json
from typing import Any

from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.profile import Profile, default_profile
from hagane.tools.cluster.model import Objects, Pod, parse_objects
from hagane.tools.cluster.state import Cluster


def node(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A node; resources by keyword ``has``, taints, images and unschedulable by their names."""
    has = spec.pop("has", {"cpu": "8", "memory": "32Gi", "pods": 110})
    images = spec.pop("images", [])
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {"allocatable": has, "images": images},
    }


def pod(name: str = "p", *requests: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """A pod with one container a request; metadata by ``labels`` and ``annotations``."""
    meta = {k: rest.pop(k) for k in ("labels", "annotations", "namespace") if k in rest}
    status = rest.pop("status", {})
    containers = rest.pop("containers", None)
    if containers is None:
        containers = [
            {"name": f"c{i}", "resources": {"requests": r}} for i, r in enumerate(requests)
        ]
    return {
        "kind": "Pod",
        "metadata": {"name": name, **meta},
        "spec": {"containers": containers, **rest},
        "status": status,
    }


def objects(*manifests: dict[str, Any]) -> Objects:
    return parse_objects("\n---\n".join(json.dumps(m) for m in manifests), "test.yaml")


def one(manifest: dict[str, Any], *others: dict[str, Any]) -> Pod:
    return objects(manifest, *others).pods[0]


def cycle_of(
    wanted: dict[str, Any], *manifests: dict[str, Any], version: tuple[int, int] = (1, 34)
) -> Cycle:
    known = objects(*manifests)
    cluster = Cluster.of(known)
    return Cycle(one(wanted), cluster, version)


def profile(**rest: Any) -> Profile:
    return default_profile(**rest)
