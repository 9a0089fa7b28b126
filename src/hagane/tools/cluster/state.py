"""The state of a cluster in columns.

A node is a row. Values that scheduling reads for every pod (allocatable, requested, free devices)
lies in NumPy columns, so that a filter or a score over thousands of nodes is a few vector
operations; values that few pods need (labels, ports, images, pods by name) hangs on the node's
record. Rows stay in zone-interleaved order, the order in which kube-scheduler walks nodes, and a
removed node leaves a dead row behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.model.objects import (
    ZONE,
    DisruptionBudget,
    Node,
    Objects,
    Pod,
    PodGroup,
    Service,
    Workload,
)

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Rows = slice | Ints

CPU, MEMORY, STORAGE, PODS = range(4)
_CORE = ("cpu", "memory", "ephemeral-storage", "pods")
DEFAULT_PODS = 110
_REGION = "topology.kubernetes.io/region"


class NodeRecord:
    """A node with the pods on it."""

    __slots__ = ("devices", "node", "pods", "row")

    def __init__(self, node: Node, row: int):
        self.node = node
        self.row = row
        self.pods: dict[str, Pod] = {}
        self.devices: dict[str, tuple[int, ...]] = {}


class Cluster:
    """Nodes, the pods bound to them, and the columns that schedulers read.

    Attributes:
        records: one per row, dead rows included.
        alive: which rows hold a node.
        allocatable: (resources, rows), of nodes.
        requested: (resources, rows), of bound pods.
        scored: (2, rows), CPU and memory requested as scores count them.
        counts: (rows,), bound pods.
        gpu_free: (rows, devices), thousandths of each device that are free; -1 where there is no
            such device.
        stamps: (rows,), grows whenever a pod comes or goes.
        version: grows whenever nodes come, go or change, for caches of static properties.
    """

    def __init__(self, nodes: Sequence[Node] = (), capacity: int = 0):
        ordered = interleave_zones(nodes)
        size = max(len(ordered), capacity, 1)
        self.resources: dict[str, int] = {name: i for i, name in enumerate(_CORE)}
        devices = max((n.devices for n in ordered), default=0)
        self.records: list[NodeRecord] = []
        self.rows: dict[str, int] = {}
        self.alive: Mask = np.zeros(size, dtype=bool)
        self.allocatable: Ints = np.zeros((len(_CORE), size), dtype=np.int64)
        self.requested: Ints = np.zeros((len(_CORE), size), dtype=np.int64)
        self.scored: Ints = np.zeros((2, size), dtype=np.int64)
        self.counts: Ints = np.zeros(size, dtype=np.int64)
        self.gpu_free: Ints = np.full((size, devices), -1, dtype=np.int64)
        self.stamps: Ints = np.zeros(size, dtype=np.int64)
        self.version = 0
        self.where: dict[str, int] = {}
        self.priorities: dict[int, int] = {}
        self.with_affinity: dict[str, int] = {}
        self.with_ports = 0
        self.tainted = False
        self.closed = False
        self.image_nodes: dict[str, int] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.budgets: tuple[DisruptionBudget, ...] = ()
        self.services: tuple[Service, ...] = ()
        self.groups: dict[str, PodGroup] = {}
        self.workloads: tuple[Workload, ...] = ()
        self.caches: dict[object, object] = {}
        self._former: dict[str, int] = {}
        self._building = True
        for node in ordered:
            self.add_node(node)
        self._building = False
        self._changed()

    @classmethod
    def of(cls, objects: Objects) -> Cluster:
        """Return the cluster that manifests describe; pods with a node name are bound to it.

        Raises:
            InvalidManifest: if a pod is bound to a node that does not exist.
        """
        cluster = cls(objects.nodes)
        cluster.namespaces = dict(objects.namespaces)
        cluster.budgets = objects.budgets
        cluster.services = objects.services
        cluster.groups = {group.key: group for group in objects.groups}
        cluster.workloads = objects.workloads
        for pod in objects.pods:
            if not pod.node_name or pod.phase in ("Succeeded", "Failed"):
                continue
            if pod.node_name not in cluster.rows:
                raise InvalidManifest(
                    f"pod {pod.key!r} is bound to node {pod.node_name!r}, which does not exist"
                )
            cluster.bind(pod, cluster.rows[pod.node_name])
        return cluster

    # Nodes

    @property
    def size(self) -> int:
        """Rows in use, dead ones included."""
        return len(self.records)

    @property
    def node_count(self) -> int:
        """Nodes that are there."""
        return len(self.rows)

    def nodes(self) -> Iterator[NodeRecord]:
        """Yield the records of the nodes that are there, in row order."""
        for record in self.records:
            if self.alive[record.row]:
                yield record

    def record(self, name: str) -> NodeRecord:
        """Return the record of a node.

        Raises:
            KeyError: if there is no such node.
        """
        return self.records[self.rows[name]]

    def add_node(self, node: Node) -> int:
        """Add a node and return its row.

        Raises:
            InvalidManifest: if the name is taken.
        """
        if node.name in self.rows:
            raise InvalidManifest(f"duplicate node {node.name!r}")
        row = self._former.pop(node.name, len(self.records))
        if row >= self.alive.shape[0]:
            self._grow(max(16, row))
        if row == len(self.records):
            self.records.append(NodeRecord(node, row))
        self.records[row].node = node
        self.rows[node.name] = row
        self.alive[row] = True
        self._describe(row)
        return row

    def remove_node(self, name: str) -> list[Pod]:
        """Take a node away and return the pods that were bound to it."""
        row = self.rows[name]
        record = self.records[row]
        lost = list(record.pods.values())
        for pod in lost:
            self.unbind(pod.key)
        # A node that comes back gets its old row.
        self._former[name] = self.rows.pop(name)
        self.alive[row] = False
        self.allocatable[:, row] = 0
        self.gpu_free[row] = -1
        self._changed()
        return lost

    def update_node(self, node: Node) -> None:
        """Replace the description of a node; its pods stay."""
        row = self.rows[node.name]
        self.records[row].node = node
        self._describe(row)

    def cordon(self, name: str, closed: bool = True) -> None:
        """Set whether new pods are kept off a node."""
        self.update_node(replace(self.record(name).node, unschedulable=closed))

    # Pods

    def bind(self, pod: Pod, row: int, devices: tuple[int, ...] | None = None) -> None:
        """Put a pod on a node, whether it fits or not; devices as given or the tightest fit."""
        record = self.records[row]
        record.pods[pod.key] = pod
        self.where[pod.key] = row
        self._count(pod, row, 1)
        if pod.gpu is not None:
            taken = devices if devices is not None else self.pick_devices(pod, row)
            record.devices[pod.key] = taken
            for device in taken:
                self.gpu_free[row, device] -= pod.gpu.milli

    def unbind(self, key: str) -> Pod:
        """Take a pod off its node and return it."""
        row = self.where.pop(key)
        record = self.records[row]
        pod = record.pods.pop(key)
        self._count(pod, row, -1)
        if pod.gpu is not None:
            for device in record.devices.pop(key):
                self.gpu_free[row, device] += pod.gpu.milli
        return pod

    def replace_pod(self, pod: Pod) -> None:
        """Put a pod in the place of the one of its name, on its node and with its devices."""
        row = self.where[pod.key]
        record = self.records[row]
        devices = record.devices.get(pod.key)
        order = list(record.pods)
        self.unbind(pod.key)
        self.bind(pod, row, devices)
        record.pods = {key: record.pods[key] for key in order}

    def pick_devices(self, pod: Pod, row: int) -> tuple[int, ...]:
        """Return the devices a pod would take on a node.

        A share goes where the least stays free; whole devices are taken in order. Returns fewer
        than asked when they are not there.
        """
        if pod.gpu is None:
            return ()
        free = self.gpu_free[row].tolist()
        fits = [d for d, f in enumerate(free) if f >= pod.gpu.milli]
        if pod.gpu.milli < 1000:
            fits.sort(key=lambda d: (free[d], d))
        return tuple(fits[: pod.gpu.count])

    def resource(self, name: str) -> int:
        """Return the index of a resource's column, adding an empty one if need be."""
        index = self.resources.get(name)
        if index is None:
            index = self.resources[name] = len(self.resources)
            empty = np.zeros((1, self.alive.shape[0]), dtype=np.int64)
            self.allocatable = np.concatenate([self.allocatable, empty])
            self.requested = np.concatenate([self.requested, empty])
        return index

    def lowest_priority(self) -> int | None:
        """Return the lowest priority among bound pods, or None if there are none."""
        return min(self.priorities, default=None)

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a namespace; every one carries its own name."""
        return {"kubernetes.io/metadata.name": name, **self.namespaces.get(name, {})}

    def _count(self, pod: Pod, row: int, sign: int) -> None:
        requested = self.requested
        for name, value in pod.requests.items():
            index = self.resources.get(name)
            if index is None:
                index = self.resource(name)
                requested = self.requested
            requested[index, row] += sign * value
        cpu, memory = pod.scored
        self.scored[0, row] += sign * cpu
        self.scored[1, row] += sign * memory
        self.counts[row] += sign
        self.stamps[row] += 1
        held = self.priorities.get(pod.priority, 0) + sign
        if held:
            self.priorities[pod.priority] = held
        else:
            del self.priorities[pod.priority]
        if pod.affinity or pod.anti_affinity:
            if sign > 0:
                self.with_affinity[pod.key] = row
            else:
                del self.with_affinity[pod.key]
        if pod.ports:
            self.with_ports += sign

    def _describe(self, row: int) -> None:
        node = self.records[row].node
        self.allocatable[:, row] = 0
        for name, value in node.allocatable.items():
            column = self.resource(name)
            self.allocatable[column, row] = value
        if "pods" not in node.allocatable:
            self.allocatable[PODS, row] = DEFAULT_PODS
        if node.devices > self.gpu_free.shape[1]:
            wider = np.full((self.alive.shape[0], node.devices), -1, dtype=np.int64)
            wider[:, : self.gpu_free.shape[1]] = self.gpu_free
            self.gpu_free = wider
        for device in range(node.devices):
            if self.gpu_free[row, device] < 0:
                self.gpu_free[row, device] = 1000
        self._changed()

    def _changed(self) -> None:
        if self._building:
            return
        self.version += 1
        self.caches.clear()
        live = [r.node for r in self.records if self.alive[r.row]]
        self.tainted = any(n.taints for n in live)
        self.closed = any(n.unschedulable for n in live)
        self.image_nodes = {}
        for node in live:
            for name in node.images:
                self.image_nodes[name] = self.image_nodes.get(name, 0) + 1

    def _grow(self, more: int) -> None:
        rows = self.alive.shape[0] + more

        def wider(old: Ints, fill: int = 0) -> Ints:
            new = np.full((*old.shape[:-1], rows), fill, dtype=np.int64)
            new[..., : old.shape[-1]] = old
            return new

        alive = np.zeros(rows, dtype=bool)
        alive[: self.alive.shape[0]] = self.alive
        self.alive = alive
        self.allocatable, self.requested = wider(self.allocatable), wider(self.requested)
        self.scored, self.counts = wider(self.scored), wider(self.counts)
        self.stamps = wider(self.stamps)
        gpu = np.full((rows, self.gpu_free.shape[1]), -1, dtype=np.int64)
        gpu[: self.gpu_free.shape[0]] = self.gpu_free
        self.gpu_free = gpu


def interleave_zones(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes one zone after another in turn, as kube-scheduler's node tree walks them."""
    zones: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        zone = (node.labels.get(_REGION, ""), node.labels.get(ZONE, ""))
        zones.setdefault(zone, []).append(node)
    queues = list(zones.values())
    out = []
    for turn in range(max((len(q) for q in queues), default=0)):
        out += [q[turn] for q in queues if turn < len(q)]
    return out
