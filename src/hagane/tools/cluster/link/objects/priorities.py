"""Priority classes of the API server, and pods that name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hagane.tools.cluster.link.objects.refusal import Refused
from hagane.tools.cluster.link.objects.store import Store
from hagane.tools.cluster.link.wire import priority_class_object
from hagane.tools.cluster.model.documents import Place
from hagane.tools.cluster.model.objects import PriorityClass
from hagane.tools.cluster.model.read_objects import read_priority_class
from hagane.tools.cluster.model.read_pod import BUILT_IN_CLASSES


def show(store: Store) -> None:
    """Add the classes that every cluster begins with."""
    for name, item in BUILT_IN_CLASSES.items():
        store.create("priorityclasses", name, priority_class_object(item))


def read(value: Mapping[str, Any]) -> PriorityClass:
    """Return the class in a body; raises InvalidManifest."""
    name = (value.get("metadata") or {}).get("name")
    return read_priority_class(dict(value), Place(f"PriorityClass {name!r}", "", 0))


def with_priority(store: Store, value: dict[str, Any]) -> dict[str, Any]:
    """Return a pod, or what makes pods, with the priority and the policy of the class it names.

    A class may be deleted later, and its pods keep their priority: as in Kubernetes, it is looked
    up when they are made.

    Raises:
        Refused: There is no class of that name.
    """
    spec = value.get("spec")
    if not isinstance(spec, dict):
        return value
    template = spec.get("template")
    if isinstance(template, dict):
        return {**value, "spec": {**spec, "template": with_priority(store, template)}}
    classes = [read(each) for each in store.all("priorityclasses")[0]]
    name = spec.get("priorityClassName")
    if name:
        found = next((each for each in classes if each.name == name), None)
        if found is None and "priority" not in spec:
            known = ", ".join(sorted(each.name for each in classes))
            raise Refused(
                403,
                "Forbidden",
                f"no PriorityClass with name {name} was found: make it first; known are {known}",
            )
    else:
        found = min((c for c in classes if c.default), key=lambda c: c.value, default=None)
    if found is None:
        return value
    told = {
        "priorityClassName": found.name,
        "priority": found.value,
        "preemptionPolicy": found.preemption_policy,
    }
    return {**value, "spec": {**told, **spec}}
