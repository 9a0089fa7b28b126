"""The resources that the API server knows, and how it describes itself to clients.

Group, version, kind and short names follow the Kubernetes API reference (1.34).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Clients of some languages read all of it; nothing here was built with Go.
VERSION = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.0",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
_ALL = ("create", "delete", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of objects.

    Attributes:
        plural: Its name in paths.
        group: Its group, "" for the core.
        version: The version of the group.
        kind: Its kind; that of lists has "List" behind it.
        namespaced: Whether its objects lie in namespaces.
        short: Short names, for kubectl.
        verbs: The requests that are taken.
        subresources: Names under its objects.
    """

    plural: str
    group: str
    version: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    verbs: tuple[str, ...] = _ALL
    subresources: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Under which name its objects are stored."""
        return "events.events.k8s.io" if self.group == "events.k8s.io" else self.plural

    @property
    def taken(self) -> tuple[str, ...]:
        """The requests that are taken, that for all objects of a namespace included."""
        # As Kubernetes has it, services and namespaces are deleted one by one.
        if "delete" not in self.verbs or self.plural in ("services", "namespaces"):
            return self.verbs
        return tuple(sorted((*self.verbs, "deletecollection")))

    @property
    def group_version(self) -> str:
        """Return ``group/version``, as in ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version


_SEEN = ("get", "list", "watch")
_SCALED = ("scale", "status")
# What would refuse or make pods, and is refused itself; clients may ask for the empty lists.
NOT_SIMULATED = {
    plural: f"{plural} cannot be made here, as they are not simulated: {why}"
    for plural, why in (
        ("daemonsets", "their pods are not made; make a pod for each node, with spec.nodeName"),
        ("limitranges", "they would hold nobody back; leave them out"),
        ("resourcequotas", "they would hold nobody back; leave them out"),
    )
}
# What `kubectl get all` lists.
_ALL_OF_KUBECTL = (
    "pods", "services", "replicationcontrollers", "replicasets", "statefulsets", "deployments",
    "jobs",
)  # fmt: skip
RESOURCES = (
    Resource(
        "pods",
        "",
        "v1",
        "Pod",
        short=("po",),
        subresources=("binding", "eviction", "status"),
    ),
    Resource("nodes", "", "v1", "Node", False, ("no",), subresources=("status",)),
    Resource("namespaces", "", "v1", "Namespace", False, ("ns",)),
    Resource("events", "", "v1", "Event", short=("ev",)),
    Resource("services", "", "v1", "Service", short=("svc",)),
    Resource(
        "replicationcontrollers",
        "",
        "v1",
        "ReplicationController",
        short=("rc",),
        subresources=_SCALED,
    ),
    Resource("persistentvolumes", "", "v1", "PersistentVolume", False, ("pv",)),
    Resource("persistentvolumeclaims", "", "v1", "PersistentVolumeClaim", short=("pvc",)),
    Resource("configmaps", "", "v1", "ConfigMap", short=("cm",)),
    Resource("secrets", "", "v1", "Secret"),
    Resource("serviceaccounts", "", "v1", "ServiceAccount", short=("sa",)),
    Resource("limitranges", "", "v1", "LimitRange", short=("limits",), verbs=_SEEN),
    Resource("resourcequotas", "", "v1", "ResourceQuota", short=("quota",), verbs=_SEEN),
    Resource("replicasets", "apps", "v1", "ReplicaSet", short=("rs",), subresources=_SCALED),
    Resource("statefulsets", "apps", "v1", "StatefulSet", short=("sts",), subresources=_SCALED),
    Resource("deployments", "apps", "v1", "Deployment", short=("deploy",), subresources=_SCALED),
    Resource("daemonsets", "apps", "v1", "DaemonSet", short=("ds",), verbs=_SEEN),
    Resource("jobs", "batch", "v1", "Job", subresources=("status",)),
    Resource(
        "poddisruptionbudgets",
        "policy",
        "v1",
        "PodDisruptionBudget",
        short=("pdb",),
        subresources=("status",),
    ),
    Resource("priorityclasses", "scheduling.k8s.io", "v1", "PriorityClass", False, ("pc",)),
    Resource("storageclasses", "storage.k8s.io", "v1", "StorageClass", False, ("sc",)),
    Resource("csinodes", "storage.k8s.io", "v1", "CSINode", False),
    Resource("csidrivers", "storage.k8s.io", "v1", "CSIDriver", False),
    Resource("csistoragecapacities", "storage.k8s.io", "v1", "CSIStorageCapacity"),
    Resource("volumeattachments", "storage.k8s.io", "v1", "VolumeAttachment", False),
    Resource("leases", "coordination.k8s.io", "v1", "Lease"),
    Resource("events", "events.k8s.io", "v1", "Event", short=("ev",)),
    Resource("resourceclaims", "resource.k8s.io", "v1", "ResourceClaim"),
    Resource("resourceslices", "resource.k8s.io", "v1", "ResourceSlice", False),
    Resource("deviceclasses", "resource.k8s.io", "v1", "DeviceClass", False),
)
_BY_PATH = {(r.group, r.version, r.plural): r for r in RESOURCES}
_BY_NAME = {r.name: r for r in RESOURCES}


def find(group: str, version: str, plural: str) -> Resource | None:
    """Return the resource of a path, or None."""
    return _BY_PATH.get((group, version, plural))


def named(name: str) -> Resource | None:
    """Return the resource whose objects are stored under a name, or None."""
    return _BY_NAME.get(name)


def core_versions(url: str) -> dict[str, Any]:
    """Return the answer to ``/api``."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": url}],
    }


def groups() -> dict[str, Any]:
    """Return the answer to ``/apis``."""
    found = dict.fromkeys((r.group, r.version) for r in RESOURCES if r.group)
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, version) for name, version in found],
    }


def group(name: str) -> dict[str, Any] | None:
    """Return the answer to ``/apis/GROUP``, or None."""
    versions = [r.version for r in RESOURCES if r.group == name]
    if not name or not versions:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions[0])}


def resource_list(name: str, version: str) -> dict[str, Any] | None:
    """Return the answer to ``/api/v1`` or ``/apis/GROUP/VERSION``, or None."""
    inside = [r for r in RESOURCES if (r.group, r.version) == (name, version)]
    if not inside:
        return None
    listed: list[dict[str, Any]] = []
    for item in inside:
        listed.append(
            {
                "name": item.plural,
                "singularName": item.kind.lower(),
                "namespaced": item.namespaced,
                "kind": item.kind,
                "verbs": list(item.taken),
                "shortNames": list(item.short),
                "categories": ["all"] if item.plural in _ALL_OF_KUBECTL else [],
            }
        )
        for sub in item.subresources:
            verbs = ["get", "patch", "update"] if sub in _SCALED else ["create"]
            kinds = {"binding": "Binding", "eviction": "Eviction", "scale": "Scale"}
            listed.append(
                {
                    "name": f"{item.plural}/{sub}",
                    "singularName": "",
                    "namespaced": item.namespaced,
                    "kind": kinds.get(sub, item.kind),
                    "verbs": verbs,
                    **({"group": "autoscaling", "version": "v1"} if sub == "scale" else {}),
                }
            )
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": inside[0].group_version,
        "resources": listed,
    }


def _group(name: str, version: str) -> dict[str, Any]:
    served = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [served], "preferredVersion": served}
