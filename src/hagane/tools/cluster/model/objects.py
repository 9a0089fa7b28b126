"""The objects of a cluster, as far as scheduling and simulation read them.

Everything is immutable; a pod that is bound or deleted becomes another value by
``dataclasses.replace``. Amounts are integers: CPU in thousandths of a core, memory and storage in
bytes, everything else in units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from hagane.tools.cluster.model.selectors import NodeTerm, Selector, Taint, Toleration

if TYPE_CHECKING:
    from hagane.tools.cluster.model.read_volumes import Volumes

Amounts = Mapping[str, int]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Port:
    """A port that a container claims on its node."""

    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"

    def conflicts(self, other: Port) -> bool:
        """Return whether both cannot be open on one node."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return "0.0.0.0" in (self.address, other.address) or self.address == other.address


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod."""

    name: str
    image: str = ""
    requests: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)
    ports: tuple[Port, ...] = ()
    restart_policy: str | None = None


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """Which nodes a pod requires and which it prefers; ``required`` None requires nothing."""

    required: tuple[NodeTerm, ...] | None = None
    preferred: tuple[tuple[int, NodeTerm], ...] = ()


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Near (or far from) which pods a pod wants to be, and in which sense of near.

    Attributes:
        selector: None matches no pod.
        namespaces: where to look; with ``namespace_selector`` None as well, the pod's own.
    """

    topology_key: str
    selector: Selector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: Selector | None = None


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """Required and preferred terms of a pod's affinity or anti-affinity."""

    required: tuple[PodTerm, ...] = ()
    preferred: tuple[tuple[int, PodTerm], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.required or self.preferred)


@dataclass(frozen=True, slots=True)
class Spread:
    """A topology spread constraint."""

    max_skew: int
    topology_key: str
    when: str = "DoNotSchedule"
    selector: Selector | None = None
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a pod's life with one use of resources."""

    seconds: float
    usage: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GpuShare:
    """A claim on GPU devices: ``count`` of them, ``milli`` thousandths of each."""

    count: int
    milli: int = 1000


NO_AFFINITY = PodAffinity()
NO_NODE_AFFINITY = NodeAffinity()


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. ``requests`` counts for the scheduler, containers and overhead included.

    Attributes:
        scored: CPU and memory as scores count them: containers without a request count 100m and
            200Mi.
        priority: the resolved priority.
        phases: the work of the pod once it runs; None runs for ever.
        raw: the object as it was read, for the Kubernetes API; None for pods that
            a program made.
    """

    name: str
    namespace: str = "default"
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    requests: Amounts = field(default_factory=dict)
    scored: tuple[int, int] = (0, 0)
    limits: Amounts = field(default_factory=dict)
    ports: tuple[Port, ...] = ()
    node_name: str = ""
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: NodeAffinity = NO_NODE_AFFINITY
    affinity: PodAffinity = NO_AFFINITY
    anti_affinity: PodAffinity = NO_AFFINITY
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[Spread, ...] = ()
    priority: int = 0
    priority_class: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    grace: int = 30
    restart_policy: str = "Always"
    scheduler_name: str = "default-scheduler"
    gates: tuple[str, ...] = ()
    created: float | None = None
    started: float | None = None
    deleting: bool = False
    phase: str = "Pending"
    nominated: str = ""
    phases: tuple[Phase, ...] | None = None
    gpu: GpuShare | None = None
    group: str = ""
    min_member: int = 0
    user: str = ""
    checkpoint: float = 0.0
    raw: Mapping[str, Any] | None = None

    def with_changes(self, **changes: Any) -> Pod:
        """Return the pod with some fields replaced; several times as fast as ``replace``."""
        values = list(_POD_VALUES(self))
        for name, value in changes.items():
            values[_POD_PLACES[name]] = value
        return Pod(*values)

    @property
    def key(self) -> str:
        """The name that is unique in a cluster."""
        return f"{self.namespace}/{self.name}"

    @property
    def duration(self) -> float | None:
        """Seconds of work, or None for a pod that never ends by itself."""
        return None if self.phases is None else sum(p.seconds for p in self.phases)


_POD_NAMES = tuple(f.name for f in fields(Pod))
_POD_PLACES = {name: place for place, name in enumerate(_POD_NAMES)}
_POD_VALUES = attrgetter(*_POD_NAMES)


@dataclass(frozen=True, slots=True)
class Node:
    """A node. ``images`` maps every name of an image on it to the size in bytes."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Amounts = field(default_factory=dict)
    images: Mapping[str, int] = field(default_factory=dict)
    devices: int = 0
    declared_features: tuple[str, ...] = ()
    raw: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A named priority."""

    name: str
    value: int
    default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many of the selected pods may be missing at one time.

    Attributes:
        allowed: disruptions that the status allows; None computes them from the pods present.
    """

    name: str
    namespace: str = "default"
    selector: Selector | None = None
    allowed: int | None = None
    disrupted: tuple[str, ...] = ()
    min_available: str | None = None
    max_unavailable: str | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """A Job, Deployment, ReplicaSet or StatefulSet: pods made from one template.

    Attributes:
        completions: pods that must succeed (Job), or None for replicas that are kept up.
        suspended: a job that has no pods until it is let go on.
    """

    kind: str
    name: str
    namespace: str
    template: Pod
    replicas: int = 1
    completions: int | None = None
    selector: Selector | None = None
    backoff_limit: int = 6
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """A service, for the default spreading of the pods behind it."""

    name: str
    namespace: str = "default"
    selector: Selector | None = None


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Pods that start together.

    Attributes:
        min_member: How many of them at least.
    """

    name: str
    namespace: str = "default"
    min_member: int = 1

    @property
    def key(self) -> str:
        """The name that is unique in a cluster."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects of a set of manifests, in the order of the files."""

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    budgets: tuple[DisruptionBudget, ...] = ()
    workloads: tuple[Workload, ...] = ()
    services: tuple[Service, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    groups: tuple[PodGroup, ...] = ()
    volumes: Volumes | None = None
