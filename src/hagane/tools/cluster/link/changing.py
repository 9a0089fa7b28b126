"""Writes of clients: new objects, replaced and patched ones, evictions of pods."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from hagane.tools.cluster.link.listing import Refused
from hagane.tools.cluster.link.patching import BadPatch, json_patched, merged
from hagane.tools.cluster.link.resources import Resource
from hagane.tools.cluster.model.documents import Place
from hagane.tools.cluster.model.read_objects import read_budget

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.:-]*[a-z0-9])?")


def named_anew(
    kind: Resource, namespace: str, body: Mapping[str, Any], version: int
) -> dict[str, Any]:
    """Return a new object with its name, namespace and uid.

    Raises:
        Refused: It has no name, one that is not a DNS name, or another kind or namespace.
    """
    if body.get("kind", kind.kind) != kind.kind:
        raise Refused(400, "BadRequest", f"expected a {kind.kind}, got a {body['kind']}")
    meta = dict(body.get("metadata") or {})
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = f"{meta['generateName']}{version:05x}"
    name = str(meta.get("name") or "")
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise Refused(
            422,
            "Invalid",
            f"{kind.kind} {name!r} is invalid: metadata.name: expected lower-case letters, digits, "
            "'-' and '.', or generateName",
        )
    if kind.namespaced:
        own = meta.get("namespace", namespace)
        if own != namespace:
            raise Refused(
                400,
                "BadRequest",
                f"the namespace of the object ({own}) is not that of the request ({namespace})",
            )
        meta["namespace"] = namespace
    if "uid" not in meta:
        seed = f"{kind.name}/{namespace}/{name}/{version}"
        meta["uid"] = str(uuid.uuid5(uuid.NAMESPACE_URL, seed))
    return {"apiVersion": kind.group_version, "kind": kind.kind, **body, "metadata": meta}


def put_in_place(value: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object that takes another's place.

    Raises:
        Refused: The other has changed since the client read it.
    """
    meta = body.get("metadata") or {}
    read, now = meta.get("resourceVersion"), value["metadata"].get("resourceVersion")
    if read and read != now:
        raise Refused(
            409,
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and "
            f"try again (read at {read}, now {now})",
        )
    return {**body, "metadata": dict(meta)}


def patched(value: Mapping[str, Any], body: Any) -> dict[str, Any]:
    """Return an object with a merge patch, or a JSON patch, applied.

    Raises:
        Refused: The patch does not fit.
    """
    if isinstance(body, list):
        try:
            return json_patched(value, body)
        except BadPatch as error:
            raise Refused(422, "Invalid", f"the patch cannot be applied: {error}") from None
    return merged(value, body)


def deleted(kind: Resource, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status that answers the deletion of an object."""
    meta = value["metadata"]
    named = {"name": meta["name"], "group": kind.group, "kind": kind.plural, "uid": meta.get("uid")}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {name: word for name, word in named.items() if word},
    }


def evictable(pod: Mapping[str, Any], budgets: Sequence[Mapping[str, Any]]) -> str:
    """Return why a pod may not be evicted, or nothing."""
    labels = pod["metadata"].get("labels") or {}
    for budget in budgets:
        meta = budget["metadata"]
        if meta.get("namespace") != pod["metadata"].get("namespace"):
            continue
        selector = read_budget(dict(budget), Place("budget", "", 0)).selector
        if selector is None or not selector.matches(labels):
            continue
        if int((budget.get("status") or {}).get("disruptionsAllowed") or 0) < 1:
            return (
                "Cannot evict pod as it would violate the pod's disruption budget "
                f'"{meta["name"]}"'
            )
    return ""


def redescribed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels and annotations of an object where they are others than before."""
    before, after = old["metadata"], new["metadata"]
    names = ("labels", "annotations")
    return {
        name: dict(after.get(name) or {})
        for name in names
        if (after.get(name) or {}) != (before.get(name) or {})
    }
