"""Objects as rows of a table, which kubectl prints.

Source: Kubernetes API concepts (1.34), "Receiving resources as Tables"; the columns are those of
the API server, without those about matters that are not simulated (addresses, images, kernels).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hagane.tools.cluster.link.objects.resources import Resource

# The name of a column, whether it is for wide tables alone, and its cell for an object.
Column = tuple[str, bool, Callable[[Mapping[str, Any]], Any]]

_ROLE = "node-role.kubernetes.io/"


def table(
    kind: Resource,
    objects: Sequence[Mapping[str, Any]],
    meta: Mapping[str, Any],
    now: Callable[[], float],
    shown: str = "",
) -> dict[str, Any]:
    """Return objects of a resource as a table.

    Args:
        kind: The resource.
        objects: Objects of it.
        meta: The metadata of their list.
        now: The simulated time, in seconds since 1970.
        shown: What a row has of its object: "None", "Object" or else its metadata.
    """
    columns: Sequence[Column] = (
        ("Name", False, lambda value: value["metadata"]["name"]),
        *_COLUMNS.get(kind.plural, ()),
        ("Age", False, lambda value: age(value, now())),
        *_WIDE.get(kind.plural, ()),
    )
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(meta),
        "columnDefinitions": [
            {
                "name": name,
                "type": "string",
                "format": "name" if name == "Name" else "",
                "description": "",
                "priority": int(wide),
            }
            for name, wide, _ in columns
        ],
        "rows": [
            {
                "cells": [cell(value) for _, _, cell in columns],
                **({} if shown == "None" else {"object": _of_row(kind, value, shown)}),
            }
            for value in objects
        ],
    }


def _of_row(kind: Resource, value: Mapping[str, Any], shown: str) -> dict[str, Any]:
    if shown == "Object":
        return {"apiVersion": kind.group_version, "kind": kind.kind, **value}
    named = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {**named, "metadata": value["metadata"]}


def age(value: Mapping[str, Any], now: float) -> str:
    """Return how old an object is, in the two largest units as kubectl has them.

    What was made after the simulated time is as old as the clock of this machine says.
    """
    text = value["metadata"].get("creationTimestamp")
    if not text:
        return "<unknown>"
    made = datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()
    seconds = int(max(0.0, (now if made <= now else datetime.now(UTC).timestamp()) - made))
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 180 * 60:
        minutes, rest = divmod(seconds, 60)
        return f"{minutes}m{rest}s" if minutes < 10 and rest else f"{minutes}m"
    if seconds < 48 * 3600:
        hours, rest = divmod(seconds // 60, 60)
        return f"{hours}h{rest}m" if hours < 8 and rest else f"{hours}h"
    days, rest = divmod(seconds // 3600, 24)
    return f"{days}d{rest}h" if days < 8 and rest else f"{days}d"


def _ready(pod: Mapping[str, Any]) -> str:
    count = len((pod.get("spec") or {}).get("containers") or ())
    running = (pod.get("status") or {}).get("phase") == "Running"
    return f"{count if running else 0}/{count}"


def _pod_status(pod: Mapping[str, Any]) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    phase = str((pod.get("status") or {}).get("phase", "Unknown"))
    return {"Succeeded": "Completed", "Failed": "Error"}.get(phase, phase)


def _node_status(node: Mapping[str, Any]) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = {each.get("type"): each.get("status") for each in conditions}.get("Ready")
    word = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    return word + ",SchedulingDisabled" * bool((node.get("spec") or {}).get("unschedulable"))


def _roles(node: Mapping[str, Any]) -> str:
    labels = node["metadata"].get("labels") or {}
    found = sorted(name.removeprefix(_ROLE) for name in labels if name.startswith(_ROLE))
    return ",".join(found) or "<none>"


def _at(*path: str, default: Any = "<none>") -> Callable[[Mapping[str, Any]], Any]:
    def cell(value: Mapping[str, Any]) -> Any:
        found: Any = value
        for step in path:
            found = found.get(step) if isinstance(found, Mapping) else None
        return default if found is None else found if isinstance(found, int) else str(found)

    return cell


def _about(event: Mapping[str, Any]) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _message(event: Mapping[str, Any]) -> str:
    return str(event.get("message") or event.get("note") or "")


_EVENT: tuple[Column, ...] = (
    ("Type", False, _at("type")),
    ("Reason", False, _at("reason")),
    ("Object", False, _about),
    ("Message", False, _message),
)
# Between the name and the age, by resource.
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": (
        ("Ready", False, _ready),
        ("Status", False, _pod_status),
        ("Restarts", False, lambda pod: 0),
    ),
    "nodes": (("Status", False, _node_status), ("Roles", False, _roles)),
    "namespaces": (("Status", False, _at("status", "phase")),),
    "priorityclasses": (
        ("Value", False, _at("value")),
        ("Global-Default", False, lambda value: str(bool(value.get("globalDefault"))).lower()),
    ),
    "poddisruptionbudgets": (
        ("Min Available", False, _at("spec", "minAvailable", default="N/A")),
        ("Max Unavailable", False, _at("spec", "maxUnavailable", default="N/A")),
        ("Allowed Disruptions", False, _at("status", "disruptionsAllowed", default=0)),
    ),
    "jobs": (("Completions", False, _at("spec", "completions", default=1)),),
    "events": _EVENT,
    "leases": (("Holder", False, _at("spec", "holderIdentity", default="")),),
}
# Behind the age, in wide tables.
_WIDE: dict[str, tuple[Column, ...]] = {
    "pods": (
        ("Node", True, _at("spec", "nodeName")),
        ("Nominated Node", True, _at("status", "nominatedNodeName")),
    ),
}
