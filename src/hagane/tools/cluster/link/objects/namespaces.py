"""Namespaces as the API server has them: of the cluster's files, of its objects, of clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hagane.tools.cluster.link.objects.refusal import Refused
from hagane.tools.cluster.link.objects.store import Store
from hagane.tools.cluster.sim.snapshot import rfc3339

# Every cluster begins with these.
FIRST = ("default", "kube-node-lease", "kube-public", "kube-system")


def namespace(name: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a namespace that is active."""
    begun = rfc3339(0.0)  # when simulated time begins
    metadata = {"name": name, "labels": dict(labels or {}), "creationTimestamp": begun}
    return active({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def active(value: dict[str, Any]) -> dict[str, Any]:
    """Return a namespace with what Kubernetes gives each: its name as a label, finalizer, phase."""
    meta = value["metadata"]
    labels = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}
    return {
        **value,
        "metadata": {**meta, "labels": labels},
        "spec": value.get("spec") or {"finalizers": ["kubernetes"]},
        "status": value.get("status") or {"phase": "Active"},
    }


def show(store: Store, names: Iterable[str], labels: Mapping[str, Mapping[str, str]]) -> None:
    """Add the namespaces of some names that are not there."""
    for name in names:
        store.create("namespaces", name, namespace(name, labels.get(name)))


def require(store: Store, name: str) -> None:
    """Check that a namespace is there.

    Raises:
        Refused: It is not, as Kubernetes answers.
    """
    if store.get("namespaces", name) is None:
        raise Refused(
            404, "NotFound", f'namespaces "{name}" not found; make it first, or write default'
        )
