"""Pods from manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hagane.tools.cluster.model.documents import Place
from hagane.tools.cluster.model.objects import (
    GpuShare,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodTerm,
    PriorityClass,
    Spread,
)
from hagane.tools.cluster.model.read_containers import read_containers
from hagane.tools.cluster.model.reader import Reader
from hagane.tools.cluster.model.requests import pod_requests, scored_requests
from hagane.tools.cluster.model.schema import check_fields
from hagane.tools.cluster.model.selectors import NodeTerm, Requirement, Selector, Toleration
from hagane.tools.cluster.model.simspec import read_phases

GPU_COUNT = "alibabacloud.com/gpu-count"
GPU_MILLI = "alibabacloud.com/gpu-milli"
# The group of a pod, as a label or annotation: of coscheduling, of its first versions, of Volcano
# and of Kueue.
GROUP_NAMES = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "kueue.x-k8s.io/pod-group-name",
)
# How many pods of it start together, where the pod says so.
MIN_MEMBER = (
    "scheduling.x-k8s.io/min-member",
    "pod-group.scheduling.sigs.k8s.io/min-available",
    "kueue.x-k8s.io/pod-group-total-count",
)
USER_LABEL = "hagane.dev/user"
CHECKPOINT = "hagane.dev/checkpoint-seconds"

BUILT_IN_CLASSES = {
    "system-node-critical": PriorityClass("system-node-critical", 2_000_001_000),
    "system-cluster-critical": PriorityClass("system-cluster-critical", 2_000_000_000),
}
# The value of a label: Kubernetes 1.34, apimachinery/pkg/util/validation, IsValidLabelValue.
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def read_pod(value: Any, place: Place, classes: Mapping[str, PriorityClass] | None = None) -> Pod:
    """Return the pod that a manifest describes.

    Args:
        value: the manifest.
        place: where it stands, for errors.
        classes: priority classes by name; None leaves unknown names unresolved at priority 0.

    Raises:
        InvalidManifest: at the field that is unknown, malformed or missing.
    """
    check_fields(value, "Pod", place)
    top = Reader(value, place)
    meta, spec, status = top.at("metadata"), top.at("spec"), top.at("status")
    if spec.value.get("resourceClaims"):
        raise (spec.place / "resourceClaims").error(
            "dynamic resource allocation is not simulated: request devices as extended resources, "
            "such as nvidia.com/gpu, in resources.limits"
        )
    labels = meta.labels("labels")
    annotations = {str(k): str(v) for k, v in meta.at("annotations").value.items()}
    namespace = meta.text("namespace") or "default"
    read = read_containers(spec, status)
    containers, init, overhead, pod_level = read.running, read.init, read.overhead, read.pod_level
    requests = pod_requests(containers, init, overhead, pod_level)
    priority, name, policy = _priority(spec, classes)
    affinity = spec.at("affinity")
    owners = [o for o in meta.items("ownerReferences") if o.flag("controller")]
    owners = owners or list(meta.items("ownerReferences"))
    return Pod(
        name=meta.required("name") if not meta.has("generateName") else meta.text("name"),
        namespace=namespace,
        uid=meta.text("uid"),
        labels=labels,
        annotations=annotations,
        owner=owners[0].text("uid") or owners[0].text("name") if owners else "",
        containers=containers,
        init_containers=init,
        requests=requests,
        scored=scored_requests(containers, init, overhead, pod_level),
        limits=read.limits,
        ports=read.ports,
        node_name=spec.text("nodeName"),
        node_selector=tuple(sorted(spec.labels("nodeSelector").items())),
        node_affinity=_node_affinity(affinity.at("nodeAffinity")),
        affinity=_pod_affinity(affinity.at("podAffinity"), labels),
        anti_affinity=_pod_affinity(affinity.at("podAntiAffinity"), labels),
        tolerations=tuple(_toleration(t) for t in spec.items("tolerations")),
        spread=tuple(_spread(s, labels) for s in spec.items("topologySpreadConstraints")),
        priority=priority,
        priority_class=name,
        preemption_policy=policy,
        grace=spec.integer("terminationGracePeriodSeconds", 30, low=0),
        restart_policy=spec.text(
            "restartPolicy", "Always", choices=("Always", "OnFailure", "Never")
        ),
        scheduler_name=spec.text("schedulerName") or "default-scheduler",
        gates=tuple(g.required("name") for g in spec.items("schedulingGates")),
        created=meta.time("creationTimestamp"),
        started=status.time("startTime"),
        deleting=meta.has("deletionTimestamp"),
        phase=status.text("phase") or "Pending",
        nominated=status.text("nominatedNodeName"),
        phases=read_phases(annotations, place / "metadata" / "annotations"),
        gpu=_gpu(requests, annotations),
        group=_group(labels, annotations),
        min_member=_whole(annotations, labels, MIN_MEMBER, place),
        user=labels.get(USER_LABEL, ""),
        checkpoint=_seconds(annotations, place),
        raw=value,
    )


def read_selector(reader: Reader) -> Selector:
    """Return a label selector."""
    parts = [Requirement(k, "In", (v,)) for k, v in sorted(reader.labels("matchLabels").items())]
    parts += [
        _label_requirement(r, ("In", "NotIn", "Exists", "DoesNotExist"))
        for r in reader.items("matchExpressions")
    ]
    return Selector(tuple(parts))


def _requirement(reader: Reader, operators: tuple[str, ...]) -> Requirement:
    operator = reader.text("operator", choices=operators)
    values = reader.texts("values")
    if operator in ("In", "NotIn") and not values:
        raise (reader.place / "values").error(f"operator {operator} needs at least one value")
    if operator in ("Exists", "DoesNotExist") and values:
        raise (reader.place / "values").error(f"operator {operator} takes no values")
    if operator in ("Gt", "Lt") and (len(values) != 1 or not values[0].lstrip("-").isdigit()):
        raise (reader.place / "values").error(f"operator {operator} takes one integer")
    return Requirement(reader.required("key"), operator, values)


def _label_requirement(reader: Reader, operators: tuple[str, ...]) -> Requirement:
    """Return a condition on labels, whose values are such as a label may have.

    Kubernetes refuses others; schedulers before that refusal let them match nothing, ``NotIn``
    included.
    """
    requirement = _requirement(reader, operators)
    for number, value in enumerate(requirement.values):
        if requirement.operator in ("In", "NotIn") and not _LABEL_VALUE.fullmatch(value):
            raise (reader.place / "values" / number).error(
                f"expected a label's value (at most 63 letters, digits, '-', '_' and '.', with a "
                f"letter or digit at both ends), got {value!r}"
            )
    return requirement


def _priority(spec: Reader, classes: Mapping[str, PriorityClass] | None) -> tuple[int, str, str]:
    name = spec.text("priorityClassName")
    known = {**BUILT_IN_CLASSES, **(classes or {})}
    found = known.get(name) if name else next((c for c in known.values() if c.default), None)
    if name and found is None and classes is not None and not spec.has("priority"):
        raise (spec.place / "priorityClassName").error(
            f"no PriorityClass named {name!r}: known are {', '.join(sorted(known))}"
        )
    value = spec.integer("priority", found.value if found else 0)
    policy = spec.text(
        "preemptionPolicy",
        found.preemption_policy if found else "PreemptLowerPriority",
        choices=("PreemptLowerPriority", "Never"),
    )
    return value, name, policy


def _node_term(reader: Reader) -> NodeTerm:
    operators = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    return NodeTerm(
        tuple(_label_requirement(r, operators) for r in reader.items("matchExpressions")),
        tuple(_requirement(r, ("In", "NotIn")) for r in reader.items("matchFields")),
    )


def read_node_terms(reader: Reader) -> tuple[NodeTerm, ...]:
    """Return the alternatives of a node selector."""
    return tuple(_node_term(t) for t in reader.items("nodeSelectorTerms"))


def _node_affinity(reader: Reader) -> NodeAffinity:
    required = None
    if reader.has(_REQUIRED):
        required = read_node_terms(reader.at(_REQUIRED))
    preferred = tuple(
        (p.integer("weight", low=1, high=100), _node_term(p.at("preference")))
        for p in reader.items(_PREFERRED)
    )
    return NodeAffinity(required, preferred)


read_node_affinity = _node_affinity


def _pod_term(reader: Reader, labels: Mapping[str, str]) -> PodTerm:
    selector = read_selector(reader.at("labelSelector")) if reader.has("labelSelector") else None
    if selector is not None:
        extra = [
            Requirement(key, operator, (labels[key],))
            for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in reader.texts(field)
            if key in labels
        ]
        selector = Selector((*selector.requirements, *extra))
    inner = reader.at("namespaceSelector")
    return PodTerm(
        reader.required("topologyKey"),
        selector,
        reader.texts("namespaces"),
        read_selector(inner) if reader.has("namespaceSelector") else None,
    )


def _pod_affinity(reader: Reader, labels: Mapping[str, str]) -> PodAffinity:
    return PodAffinity(
        tuple(_pod_term(t, labels) for t in reader.items(_REQUIRED)),
        tuple(
            (p.integer("weight", low=1, high=100), _pod_term(p.at("podAffinityTerm"), labels))
            for p in reader.items(_PREFERRED)
        ),
    )


def _toleration(reader: Reader) -> Toleration:
    operator = reader.text("operator", "Equal", ("Equal", "Exists", "Lt", "Gt", "")) or "Equal"
    effect = reader.text("effect", "", ("", "NoSchedule", "PreferNoSchedule", "NoExecute"))
    if operator == "Exists" and reader.text("value"):
        raise (reader.place / "value").error("operator Exists takes no value")
    if not reader.text("key") and operator != "Exists":
        raise (reader.place / "operator").error("an empty key needs the operator Exists")
    seconds = reader.integer("tolerationSeconds") if reader.has("tolerationSeconds") else None
    return Toleration(reader.text("key"), operator, reader.text("value"), effect, seconds)


def _spread(reader: Reader, labels: Mapping[str, str]) -> Spread:
    selector = read_selector(reader.at("labelSelector")) if reader.has("labelSelector") else None
    if selector is not None:
        extra = [
            Requirement(key, "In", (labels[key],))
            for key in reader.texts("matchLabelKeys")
            if key in labels
        ]
        selector = Selector((*selector.requirements, *extra))
    if not reader.has("maxSkew"):
        raise (reader.place / "maxSkew").error("required value is missing")
    policies = ("Honor", "Ignore")
    return Spread(
        reader.integer("maxSkew", low=1),
        reader.required("topologyKey"),
        reader.text("whenUnsatisfiable", choices=("DoNotSchedule", "ScheduleAnyway")),
        selector,
        reader.integer("minDomains", 1, low=1),
        reader.text("nodeAffinityPolicy", "Honor", policies) == "Honor",
        reader.text("nodeTaintsPolicy", "Ignore", policies) == "Honor",
    )


read_spread = _spread


def _gpu(requests: Mapping[str, int], annotations: Mapping[str, str]) -> GpuShare | None:
    milli = requests.get(GPU_MILLI)
    if milli is None:
        return None
    try:
        count = int(annotations.get(GPU_COUNT, "1"))
    except ValueError:
        count = 1
    return GpuShare(count, milli // count) if count > 0 else None


def _group(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    texts = (labels.get(name, annotations.get(name)) for name in GROUP_NAMES)
    return next((text for text in texts if text), "")


def _whole(
    annotations: Mapping[str, str],
    labels: Mapping[str, str],
    names: tuple[str, ...],
    place: Place,
) -> int:
    for name in names:
        text = labels.get(name, annotations.get(name))
        if text is not None:
            if not text.isdigit() or int(text) < 1:
                raise (place / "metadata").error(f"{name}: expected a count, got {text!r}")
            return int(text)
    return 0


def _seconds(annotations: Mapping[str, str], place: Place) -> float:
    text = annotations.get(CHECKPOINT)
    if text is None:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise (place / "metadata" / "annotations").error(
            f"{CHECKPOINT}: expected a positive number of seconds, got {text!r}"
        )
    return value
