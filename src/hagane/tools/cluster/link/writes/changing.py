"""Writes of clients: new objects, replaced, patched and applied ones, evictions of pods."""

from __future__ import annotations

import re
import uuid
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hagane.tools.cluster.link.objects.refusal import Refused
from hagane.tools.cluster.link.objects.resources import Resource
from hagane.tools.cluster.link.objects.target import Target
from hagane.tools.cluster.link.reads.selecting import is_label
from hagane.tools.cluster.link.writes.applying import Conflict, Doubled, applied
from hagane.tools.cluster.link.writes.bodies import JSON_PATCH, STRATEGIC
from hagane.tools.cluster.link.writes.patching import BadPatch, json_patched, merged
from hagane.tools.cluster.link.writes.strategic import BadStrategicPatch, patched_strategically
from hagane.tools.cluster.model.documents import Place
from hagane.tools.cluster.model.quantity import amount
from hagane.tools.cluster.model.read_objects import read_budget
from hagane.tools.cluster.model.read_pod import USER_LABEL, read_selector
from hagane.tools.cluster.model.reader import Reader

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


def with_defaults(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return a new pod, that was read, with values for fields that clients select by.

    Raises:
        Refused: It has no containers, or two of one name.
    """
    spec = pod.get("spec") or {}
    names = [each.get("name") for each in spec.get("containers") or ()]
    if not names or len(set(map(str, names))) < len(names):
        raise Refused(
            422,
            "Invalid",
            f"Pod {pod['metadata']['name']!r} is invalid: spec.containers: expected at least one, "
            f"each with a name of its own, got {names}",
        )
    spec = {"restartPolicy": "Always", "schedulerName": "default-scheduler", **spec}
    return {**pod, "spec": spec, "status": {"phase": "Pending", **(pod.get("status") or {})}}


def check_labels(value: Mapping[str, Any]) -> None:
    """Refuse labels that could not be selected by.

    Raises:
        Refused: A name or value is no label.
    """
    labels = (value.get("metadata") or {}).get("labels") or {}
    if not isinstance(labels, Mapping):
        raise Refused(422, "Invalid", f"metadata.labels: expected an object, got {labels!r}")
    for key, text in labels.items():
        if not is_label(key, text):
            raise Refused(
                422,
                "Invalid",
                f"metadata.labels: {key}={text!r} is no label: expected at most 63 letters, "
                "digits, '-', '_' and '.', the first and last a letter or digit",
            )


def check_template(value: Mapping[str, Any], place: Place) -> None:
    """Refuse a set of replicas that does not select the pods that it makes.

    Raises:
        Refused: The selector is missing, or does not match the template's labels.
    """
    kind = str(value["kind"])
    if kind not in ("Deployment", "ReplicaSet", "StatefulSet"):
        return
    spec = Reader(value.get("spec"), place / "spec")
    labels = spec.at("template").at("metadata").labels("labels")
    selector = read_selector(spec.at("selector"))
    if not selector or not selector.matches(labels):
        raise Refused(
            422,
            "Invalid",
            f"{kind} {value['metadata']['name']!r} is invalid: spec.template.metadata.labels: "
            f"`selector` does not match template `labels` ({dict(labels)})",
        )


def put_in_place(value: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object that takes another's place.

    Raises:
        Refused: The other has changed since the client read it.
    """
    _check_version(value, body)
    return {**body, "metadata": dict(body.get("metadata") or {})}


def applied_to(
    value: Mapping[str, Any], target: Target, body: Mapping[str, Any], manager: str, force: bool
) -> dict[str, Any]:
    """Return an object with a configuration applied by a manager (server-side apply).

    Args:
        value: The object as it is; of a new one its metadata alone.
        target: What the path names.
        body: The configuration.
        manager: Who applies it.
        force: Take fields over from other managers.

    Raises:
        Refused: The configuration is that of another object, or other managers have its fields.
    """
    kind, meta = target.resource, body.get("metadata") or {}
    for name, own, expected in (
        ("apiVersion", body.get("apiVersion"), kind.group_version),
        ("kind", body.get("kind"), kind.kind),
        ("metadata.name", meta.get("name", target.name), target.name),
        ("metadata.namespace", meta.get("namespace", target.namespace), target.namespace),
    ):
        if own != expected:
            raise Refused(400, "BadRequest", f"{name}: expected {expected!r}, got {own!r}")
    if meta.get("managedFields"):
        raise Refused(400, "BadRequest", "metadata.managedFields: expected none in what is applied")
    if not manager:
        raise Refused(
            422, "Invalid", "fieldManager: a name is needed to apply: add ?fieldManager=NAME"
        )
    _check_version(value, body)
    # As with other writes, the status belongs to its subresource.
    part = {n: v for n, v in body.items() if n == "metadata" or (n == "status") == bool(target.sub)}
    try:
        return applied(value, part, manager, target.sub, timestamp(), force)
    except Conflict as error:
        raise Refused(409, "Conflict", str(error)) from None
    except Doubled as error:
        raise Refused(400, "BadRequest", str(error)) from None


def timestamp() -> str:
    """Return the time of now, as objects have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _check_version(value: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    """Refuse a write that speaks of another version of an object."""
    read = (body.get("metadata") or {}).get("resourceVersion")
    now = value["metadata"].get("resourceVersion")
    if read and read != now:
        raise Refused(
            409,
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and "
            f"try again (read at {read}, now {now})",
        )


def patched(value: Mapping[str, Any], body: Any, form: str) -> dict[str, Any]:
    """Return an object with a patch applied.

    Args:
        value: The object.
        body: The patch.
        form: Its form, of :mod:`hagane.tools.cluster.link.writes.bodies`.

    Raises:
        Refused: The patch does not fit, or speaks of an earlier version.
    """
    try:
        if form == JSON_PATCH:
            return json_patched(value, body)
        _check_version(value, body)
        return (patched_strategically if form == STRATEGIC else merged)(value, body)
    except (BadPatch, BadStrategicPatch) as error:
        raise Refused(422, "Invalid", f"the patch cannot be applied: {error}") from None


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


def check_pod(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse a change of a pod other than that of its status, labels and annotations.

    A client that puts a whole pod may leave out fields that it does not know, and may write out
    empty ones; of the fields that it gives none may be another.

    Raises:
        Refused: Another field changes, or the user of a pod that is bound.
    """
    was, given = old.get("spec") or {}, new.get("spec") or {}
    before, after = _filled(was), _filled(given)
    for name in after:
        if after[name] != before.get(name):
            raise Refused(
                422,
                "Invalid",
                f"pod {key}: spec.{name}: of a pod the status, labels and annotations may change "
                f"here, got {given[name]!r} in the place of {was.get(name)!r}; delete it and make "
                "another",
            )
    users = [(each["metadata"].get("labels") or {}).get(USER_LABEL) for each in (old, new)]
    if users[0] != users[1] and before.get("nodeName"):
        raise Refused(
            422,
            "Invalid",
            f"pod {key}: metadata.labels: {USER_LABEL} stays as it is once a pod is bound, as "
            "what it takes is counted for its user",
        )


def _filled(value: Any) -> Any:
    """Return a value without empty members, and with amounts in one form, as clients write them."""
    if isinstance(value, Mapping):
        parts = {
            name: {k: amount(k, v) for k, v in each.items()}
            if name in ("requests", "limits", "overhead") and isinstance(each, Mapping)
            else _filled(each)
            for name, each in value.items()
        }
        return {name: each for name, each in parts.items() if each}
    if isinstance(value, list):
        return [_filled(each) for each in value]
    return value


def scale(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many replicas a set of pods has, as clients read it (autoscaling/v1)."""
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


def with_data(kind: Resource, value: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the texts of a secret (``stringData``) among its data."""
    if kind.plural != "secrets" or not value.get("stringData"):
        return value
    told = {k: b64encode(str(v).encode()).decode() for k, v in value["stringData"].items()}
    rest = {name: each for name, each in value.items() if name != "stringData"}
    return {"type": "Opaque", **rest, "data": {**(value.get("data") or {}), **told}}


def held_back(value: dict[str, Any], now: str) -> dict[str, Any]:
    """Return an object that is to go once its finalizers are taken away."""
    return {**value, "metadata": {"deletionTimestamp": now, **value["metadata"]}}


def is_free(value: dict[str, Any]) -> bool:
    """Return whether an object that is to go has no finalizers any more."""
    meta = value["metadata"]
    return bool(meta.get("deletionTimestamp")) and not meta.get("finalizers")
