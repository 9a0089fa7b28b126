"""How many replicas a set of pods has, as clients ask and tell it: its scale (autoscaling/v1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hagane.tools.cluster.link.listing import Refused


def scale(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scale of a set of replicas."""
    spec, meta = value.get("spec") or {}, value["metadata"]
    named = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    chosen = spec.get("selector") or {}
    labels = chosen.get("matchLabels", chosen if "matchExpressions" not in chosen else {})
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in named if name in meta},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": {
            "replicas": (value.get("status") or {}).get("replicas", 0),
            "selector": ",".join(f"{key}={word}" for key, word in sorted(labels.items())),
        },
    }


def scaled(value: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a set of replicas with the number that a scale asks for.

    Raises:
        Refused: It is no number of pods.
    """
    replicas = (asked.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        raise Refused(
            422, "Invalid", f"spec.replicas: expected a number of pods from 0 on, got {replicas!r}"
        )
    return {**value, "spec": {**(value.get("spec") or {}), "replicas": replicas}}
