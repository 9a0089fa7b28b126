"""All other objects from manifests, and whole files of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.model.documents import Document, Place, parse_documents, read_documents
from hagane.tools.cluster.model.objects import (
    DisruptionBudget,
    Node,
    Objects,
    Pod,
    PodGroup,
    PriorityClass,
    Service,
    Workload,
)
from hagane.tools.cluster.model.read_pod import GPU_COUNT, GPU_MILLI, read_pod, read_selector
from hagane.tools.cluster.model.read_volumes import Volumes
from hagane.tools.cluster.model.reader import Reader
from hagane.tools.cluster.model.schema import SCHEMA, check_fields, nearest
from hagane.tools.cluster.model.selectors import Taint

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WORKLOADS = ("Job", "Deployment", "ReplicaSet", "StatefulSet")
_LISTS = ("List", "NodeList", "PodList", "PersistentVolumeList", "PersistentVolumeClaimList")
_CLUSTER_WIDE = ("Node", "PriorityClass", "Namespace", "PersistentVolume", "StorageClass")


def load_objects(*paths: Path | str) -> Objects:
    """Return the objects of some files of manifests, multi-document files included.

    Raises:
        InvalidManifest: at the first field that is wrong, and for names that appear twice.
    """
    return collect([d for path in paths for d in read_documents(path)])


def parse_objects(text: str, source: str = "<string>") -> Objects:
    """Return the objects of a text of manifests; raises as :func:`load_objects`."""
    return collect(parse_documents(text, source))


def load_pod(path: Path | str, known: Objects) -> Pod:
    """Return the one pod in a file, its priority resolved by classes known or in the file.

    Raises:
        InvalidManifest: if there is not exactly one, or it is wrong.
    """
    documents = list(_flatten(read_documents(path)))
    pods = [(v, p) for v, p in documents if kind_of(v, p) == "Pod"]
    if len(pods) != 1:
        kinds = ", ".join(dict.fromkeys(kind_of(v, p) for v, p in documents)) or "nothing"
        raise InvalidManifest(
            f"{path}: expected one Pod, got {len(pods)} in a file of {kinds}: put the pod to place "
            "into a file of its own"
        )
    classes = {c.name: c for c in known.priority_classes}
    for value, place in documents:
        if kind_of(value, place) == "PriorityClass":
            found = read_priority_class(value, place)
            classes[found.name] = found
    value, place = pods[0]
    volumes = _volumes(documents)
    if known.volumes is not None:
        volumes = known.volumes.with_more(volumes)
    return volumes.placed(read_pod(value, place, classes), Reader(value, place).at("spec"))


def _volumes(documents: Iterable[tuple[Any, Place]]) -> Volumes:
    return Volumes.of((kind_of(value, place), value, place) for value, place in documents)


def collect(documents: Iterable[Document], known: Objects | None = None) -> Objects:
    """Return the objects of documents; raises as :func:`load_objects`.

    Args:
        documents: Manifests.
        known: Objects of other files, whose volumes pods may claim and whose classes they may name.
    """
    flat = list(_flatten(documents))
    classes = {c.name: c for c in known.priority_classes} if known is not None else {}
    own: list[PriorityClass] = []
    for value, place in flat:
        if kind_of(value, place) == "PriorityClass":
            found = read_priority_class(value, place)
            if found.name in classes:
                raise (place / "metadata" / "name").error(f"duplicate PriorityClass {found.name!r}")
            classes[found.name] = found
            own.append(found)
    volumes = _volumes(flat)
    if known is not None and known.volumes is not None:
        volumes = known.volumes.with_more(volumes)
    nodes, pods, budgets, workloads, services, groups = [], [], [], [], [], []
    namespaces: dict[str, dict[str, str]] = {}
    seen: dict[tuple[str, str], Place] = {}
    for value, place in flat:
        kind = kind_of(value, place)
        meta = Reader(value, place).at("metadata")
        name = meta.text("name")
        if kind not in _CLUSTER_WIDE:
            name = f"{meta.text('namespace') or 'default'}/{name}"
        if (kind, name) in seen and meta.has("name"):
            raise (place / "metadata" / "name").error(
                f"duplicate {kind} {name!r}: first at {seen[kind, name].position()}"
            )
        seen[kind, name] = place
        if kind == "Node":
            nodes.append(read_node(value, place))
        elif kind == "Pod":
            spec = Reader(value, place).at("spec")
            pods.append(volumes.placed(read_pod(value, place, classes), spec))
        elif kind == "PodDisruptionBudget":
            budgets.append(read_budget(value, place))
        elif kind in _WORKLOADS:
            workload, spec = read_workload(kind, value, place, classes), Reader(value, place)
            spec = spec.at("spec")
            pod_spec, templates = spec.at("template").at("spec"), spec.items("volumeClaimTemplates")
            placed = volumes.placed(workload.template, pod_spec, templates)
            workloads.append(replace(workload, template=placed))
        elif kind == "PodGroup":
            groups.append(read_group(value, place))
        elif kind == "Service":
            services.append(read_service(value, place))
        elif kind == "Namespace":
            check_fields(value, "Namespace", place)
            namespaces[name] = meta.labels("labels")
    return Objects(
        tuple(nodes),
        tuple(pods),
        tuple(own),
        tuple(budgets),
        tuple(workloads),
        tuple(services),
        namespaces,
        tuple(groups),
        volumes,
    )


_DEVICES = (
    "devices that are claimed (dynamic resource allocation) are not simulated; let nodes offer the "
    "devices as an extended resource, such as example.com/gpu in allocatable, which containers "
    "request"
)
# Kinds of Kubernetes that decide where or whether pods run, with what to write in their place.
_NOT_SIMULATED = {
    "ResourceQuota": (
        "quotas refuse pods when they are created, which is not simulated; the scheduler 'drf' has "
        "quotas of its own (docs/cluster.md), else leave it out"
    ),
    "LimitRange": (
        "its defaults and limits are not simulated; write requests and limits into the containers, "
        "and leave it out"
    ),
    "DaemonSet": "write its pods, one bound to each node, and leave it out",
    "CronJob": "write its jobs with their times of submission, and leave it out",
    "HorizontalPodAutoscaler": "nothing measures the load of pods; set replicas, and leave it out",
    "CSINode": "limits of volumes on nodes are not simulated; leave it out",
    "CSIStorageCapacity": "capacities of volumes are not simulated; leave it out",
    **dict.fromkeys(
        ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"), _DEVICES
    ),
}


def kind_of(value: Any, place: Place) -> str:
    """Return the kind of a manifest, guessed from its fields where ``kind`` is absent.

    Raises:
        InvalidManifest: for a kind that hagane does not simulate.
    """
    top = Reader(value, place)
    kind = top.text("kind")
    if not kind:
        if top.at("spec").has("containers"):
            return "Pod"
        if top.has("status"):
            return "Node"
        raise (place / "kind").error("required value is missing")
    if kind not in SCHEMA or "metadata" not in SCHEMA[kind]:
        if kind in _NOT_SIMULATED:
            raise (place / "kind").error(f"unsupported kind '{kind}': {_NOT_SIMULATED[kind]}")
        raise (place / "kind").error(
            f"unsupported kind {kind!r}{nearest(kind, SCHEMA)}: expected Node, Pod, PriorityClass, "
            "PodDisruptionBudget, PodGroup, Job, Deployment, ReplicaSet, StatefulSet, Service, "
            "Namespace, PersistentVolume, PersistentVolumeClaim or StorageClass"
        )
    return kind


def read_node(value: Any, place: Place) -> Node:
    """Return the node that a manifest describes; raises InvalidManifest."""
    check_fields(value, "Node", place)
    top = Reader(value, place)
    meta, spec, status = top.at("metadata"), top.at("spec"), top.at("status")
    allocatable = status.amounts("allocatable") or status.amounts("capacity")
    taints = []
    for taint in spec.items("taints"):
        if not taint.has("effect"):
            raise (taint.place / "effect").error("required value is missing")
        effect = taint.text("effect", choices=_EFFECTS)
        taints.append(Taint(taint.required("key"), taint.text("value"), effect))
    images: dict[str, int] = {}
    for image in status.items("images"):
        for name in image.texts("names"):
            images[name] = image.integer("sizeBytes", low=0)
    devices = allocatable.get(GPU_COUNT, allocatable.get(GPU_MILLI, 0) // 1000)
    return Node(
        name=meta.required("name"),
        labels=meta.labels("labels"),
        annotations={str(k): str(v) for k, v in meta.at("annotations").value.items()},
        taints=tuple(taints),
        unschedulable=spec.flag("unschedulable"),
        allocatable=allocatable,
        images=images,
        devices=devices if GPU_MILLI in allocatable else 0,
        raw=value,
    )


def read_priority_class(value: Any, place: Place) -> PriorityClass:
    """Return a priority class; raises InvalidManifest."""
    check_fields(value, "PriorityClass", place)
    top = Reader(value, place)
    return PriorityClass(
        top.at("metadata").required("name"),
        top.integer("value"),
        top.flag("globalDefault"),
        top.text(
            "preemptionPolicy",
            "PreemptLowerPriority",
            choices=("PreemptLowerPriority", "Never"),
        ),
    )


def read_budget(value: Any, place: Place) -> DisruptionBudget:
    """Return a disruption budget; raises InvalidManifest."""
    check_fields(value, "PodDisruptionBudget", place)
    top = Reader(value, place)
    meta, spec, status = top.at("metadata"), top.at("spec"), top.at("status")
    limits: dict[str, str | None] = {"minAvailable": None, "maxUnavailable": None}
    for name in limits:
        if spec.has(name):
            limits[name] = text = str(spec.value[name])
            if not text.removesuffix("%").isdigit():
                raise (spec.place / name).error(
                    f"expected a count or a percentage, got {spec.value[name]!r}"
                )
    if all(v is not None for v in limits.values()):
        raise spec.place.error("minAvailable and maxUnavailable exclude each other")
    return DisruptionBudget(
        meta.required("name"),
        meta.text("namespace") or "default",
        read_selector(spec.at("selector")) if spec.has("selector") else None,
        status.integer("disruptionsAllowed") if status.has("disruptionsAllowed") else None,
        tuple(status.at("disruptedPods").value),
        limits["minAvailable"],
        limits["maxUnavailable"],
    )


def read_group(value: Any, place: Place) -> PodGroup:
    """Return a group of coscheduling (scheduling.x-k8s.io) or Volcano; raises InvalidManifest."""
    check_fields(value, "PodGroup", place)
    top = Reader(value, place)
    meta, spec = top.at("metadata"), top.at("spec")
    if spec.at("minTaskMember").value:
        raise (spec.place / "minTaskMember").error(
            "sizes of single tasks are not simulated: give each task a group of its own"
        )
    return PodGroup(
        meta.required("name"),
        meta.text("namespace") or "default",
        spec.integer("minMember", 1, low=1),
    )


def read_workload(
    kind: str, value: Any, place: Place, classes: dict[str, PriorityClass] | None = None
) -> Workload:
    """Return a job or a set of replicas; raises InvalidManifest."""
    check_fields(value, kind, place)
    top = Reader(value, place)
    meta, spec = top.at("metadata"), top.at("spec")
    name = meta.required("name")
    template = dict(spec.at("template").value)
    inner = dict(template.get("metadata") or {})
    namespace = meta.text("namespace") or "default"
    job = kind == "Job"
    if job:
        named = dict.fromkeys(("batch.kubernetes.io/job-name", "job-name"), name)
        inner["labels"] = {**(inner.get("labels") or {}), **named}
    owner = {
        "apiVersion": "batch/v1" if job else "apps/v1",
        "kind": kind,
        "name": name,
        "uid": meta.text("uid") or f"{kind}/{namespace}/{name}",
        "controller": True,
    }
    inner.update(name=name, namespace=namespace, ownerReferences=[owner])
    pod: Pod = read_pod(
        {"metadata": inner, "spec": template.get("spec")}, spec.place / "template", classes
    )
    return Workload(
        kind,
        name,
        namespace,
        pod,
        spec.integer("parallelism" if job else "replicas", 1, low=0),
        spec.integer("completions", spec.integer("parallelism", 1), low=0) if job else None,
        read_selector(spec.at("selector")) if spec.has("selector") else None,
        spec.integer("backoffLimit", 6, low=0),
        job and spec.flag("suspend"),
    )


def read_service(value: Any, place: Place) -> Service:
    """Return a service; raises InvalidManifest."""
    check_fields(value, "Service", place)
    top = Reader(value, place)
    labels = top.at("spec").labels("selector")
    inner = Reader({"matchLabels": labels}, place)
    return Service(
        top.at("metadata").required("name"),
        top.at("metadata").text("namespace") or "default",
        read_selector(inner) if labels else None,
    )


def _flatten(documents: Iterable[Document]) -> Iterable[tuple[Any, Place]]:
    for document in documents:
        if isinstance(document.value, list):
            raise document.place.error("expected an object, got a list")
        reader = Reader(document.value, document.place)
        if reader.text("kind") in _LISTS:
            for item in reader.items("items"):
                yield item.value, item.place
        else:
            yield document.value, document.place
