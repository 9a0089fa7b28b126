"""What belongs to an object, and goes with it: dependents by owner, and what a namespace holds.

Source: Kubernetes, "Garbage Collection" (1.34): an object without any owner left is deleted, one
that has others loses the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hagane.tools.cluster.link.objects import resources
from hagane.tools.cluster.link.objects.refusal import Refused
from hagane.tools.cluster.link.objects.resources import Resource
from hagane.tools.cluster.link.objects.store import Store

# Of a list of objects no single one is compared with what the client has read.
NOTHING: Mapping[str, Any] = {"metadata": {}}
POLICIES = ("Background", "Foreground", "Orphan")


def belonging(
    store: Store, kind: Resource, gone: Mapping[str, Any]
) -> Iterator[tuple[Resource, dict[str, Any], list[Any]]]:
    """Yield what belonged to an object, with its kind and the owners that it still has."""
    meta = gone["metadata"]
    uid, inside = meta.get("uid"), meta["name"] if kind.plural == "namespaces" else None
    for name in list(store.objects):
        found = resources.named(name)
        for value in store.all(name)[0] if found is not None else ():
            assert found is not None
            owners = value["metadata"].get("ownerReferences") or []
            left = [each for each in owners if not uid or each.get("uid") != uid]
            if inside and value["metadata"].get("namespace") == inside:
                yield found, value, []
            elif len(left) < len(owners):
                yield found, value, left


def check_deletion(value: Mapping[str, Any], options: Mapping[str, Any], policy: object) -> None:
    """Refuse a deletion by an unknown policy, or of another object than the client has read.

    Args:
        value: The object.
        options: The ``DeleteOptions``.
        policy: Its ``propagationPolicy``, or that of the query.

    Raises:
        Refused: It is not to be deleted.
    """
    if policy is not None and policy not in POLICIES:
        known = ", ".join(POLICIES)
        raise Refused(422, "Invalid", f"propagationPolicy: expected {known}, got {policy!r}")
    wanted = (options.get("preconditions") or {}) if value is not NOTHING else {}
    for field in ("uid", "resourceVersion"):
        now = value["metadata"].get(field)
        if isinstance(wanted, Mapping) and wanted.get(field) not in (None, "", now):
            raise Refused(
                409,
                "Conflict",
                f"preconditions.{field}: expected {wanted[field]!r}, the object has {now!r}",
            )
