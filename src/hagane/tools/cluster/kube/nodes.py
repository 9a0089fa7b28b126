"""Filters and scores that look at a node alone: its name, marks, labels, ports and images.

Source: ``plugins/nodename``, ``nodeunschedulable``, ``nodeports``, ``nodeaffinity``,
``tainttoleration`` and ``imagelocality``.
"""

from __future__ import annotations

import numpy as np

from hagane.tools.cluster.kube.framework import (
    MAX_SCORE,
    Cycle,
    Filter,
    Score,
    default_normalise,
    static_mask,
    static_scores,
)
from hagane.tools.cluster.model.objects import NO_NODE_AFFINITY, Node, NodeAffinity, Pod
from hagane.tools.cluster.model.selectors import Taint, untolerated
from hagane.tools.cluster.state import Ints, Mask, Rows

_HARD = ("NoSchedule", "NoExecute")
_CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class NodeNameFilter(Filter):
    """A pod that names its node goes nowhere else."""

    name = "NodeName"

    def skip(self, cycle: Cycle) -> bool:
        """Return whether the pod names no node."""
        return not cycle.pod.node_name

    def mask(self, cycle: Cycle, rows: Rows) -> Mask:
        """Return which row is the named node."""
        wanted = cycle.cluster.rows.get(cycle.pod.node_name, -1)
        ok: Mask = np.arange(cycle.cluster.alive.shape[0])[rows] == wanted
        return ok

    def reason(self, cycle: Cycle, row: int) -> str:
        """Return kube-scheduler's words."""
        return "node(s) didn't match the requested node name"


class UnschedulableFilter(Filter):
    """A cordoned node takes only pods that tolerate the cordon."""

    name = "NodeUnschedulable"

    def skip(self, cycle: Cycle) -> bool:
        """Return whether nothing is cordoned, or the pod does not mind."""
        return not cycle.cluster.closed or any(t.tolerates(_CORDON) for t in cycle.pod.tolerations)

    def mask(self, cycle: Cycle, rows: Rows) -> Mask:
        """Return which rows are open."""
        return static_mask(cycle.cluster, self.name, lambda n: not n.unschedulable)[rows]

    def reason(self, cycle: Cycle, row: int) -> str:
        """Return kube-scheduler's words."""
        return "node(s) were unschedulable"


class PortsFilter(Filter):
    """The host ports a pod wants must be free."""

    name = "NodePorts"
    resolvable = True

    def skip(self, cycle: Cycle) -> bool:
        """Return whether the pod wants none, or nobody holds any."""
        return not cycle.pod.ports or not cycle.cluster.with_ports

    def mask(self, cycle: Cycle, rows: Rows) -> Mask:
        """Return which rows have the ports free."""
        wanted = cycle.pod.ports
        ok = np.ones(cycle.cluster.alive.shape[0], dtype=bool)
        for record in cycle.cluster.nodes():
            taken = (p for pod in record.pods.values() for p in pod.ports)
            ok[record.row] = not any(w.conflicts(p) for p in taken for w in wanted)
        return ok[rows]

    def reason(self, cycle: Cycle, row: int) -> str:
        """Return kube-scheduler's words."""
        return "node(s) didn't have free ports for the requested pod ports"


def required_match(pod: Pod, node: Node) -> bool:
    """Return whether a node meets a pod's node selector and required node affinity."""
    if any(node.labels.get(key) != value for key, value in pod.node_selector):
        return False
    terms = pod.node_affinity.required
    return terms is None or any(t.matches(node.name, node.labels) for t in terms)


class NodeAffinityFilter(Filter):
    """A node must meet the pod's node selector and required node affinity.

    Args:
        added: affinity that the profile adds to every pod.
    """

    name = "NodeAffinity"

    def __init__(self, added: NodeAffinity = NO_NODE_AFFINITY):
        self.added = added

    def skip(self, cycle: Cycle) -> bool:
        """Return whether nothing is required."""
        pod = cycle.pod
        return (
            not pod.node_selector
            and pod.node_affinity.required is None
            and self.added.required is None
        )

    def mask(self, cycle: Cycle, rows: Rows) -> Mask:
        """Return which rows match."""
        pod = cycle.pod
        key = (self.name, pod.node_selector, pod.node_affinity.required)
        return static_mask(cycle.cluster, key, lambda n: required_match(pod, n) and self._added(n))[
            rows
        ]

    def reason(self, cycle: Cycle, row: int) -> str:
        """Return kube-scheduler's words."""
        if not self._added(cycle.cluster.records[row].node):
            return "node(s) didn't match scheduler-enforced node affinity"
        return "node(s) didn't match Pod's node affinity/selector"

    def _added(self, node: Node) -> bool:
        terms = self.added.required
        return terms is None or any(t.matches(node.name, node.labels) for t in terms)


class NodeAffinityScore(Score):
    """The weights of the preferred terms that a node meets."""

    name = "NodeAffinity"

    def __init__(self, added: NodeAffinity = NO_NODE_AFFINITY):
        self.added = added

    def raw(self, cycle: Cycle, rows: Ints) -> Ints | None:
        """Return sums of weights; None if nothing is preferred."""
        terms = (*self.added.preferred, *cycle.pod.node_affinity.preferred)
        if not terms:
            return None

        def score(node: Node) -> int:
            return sum(w for w, t in terms if t.matches(node.name, node.labels))

        return static_scores(cycle.cluster, (self.name, "score", terms), score)[rows]

    def normalise(self, cycle: Cycle, raw: Ints) -> Ints:
        """Scale the largest to 100."""
        return default_normalise(raw)


class TaintFilter(Filter):
    """A pod must tolerate the taints of a node that forbid scheduling."""

    name = "TaintToleration"

    def skip(self, cycle: Cycle) -> bool:
        """Return whether no node is tainted."""
        return not cycle.cluster.tainted

    def mask(self, cycle: Cycle, rows: Rows) -> Mask:
        """Return which rows are tolerated."""
        tolerations = cycle.pod.tolerations
        return static_mask(
            cycle.cluster,
            (self.name, tolerations),
            lambda n: untolerated(n.taints, tolerations, _HARD) is None,
        )[rows]

    def reason(self, cycle: Cycle, row: int) -> str:
        """Return the first taint that is not tolerated, in the words of the version."""
        taints = cycle.cluster.records[row].node.taints
        taint = untolerated(taints, cycle.pod.tolerations, _HARD)
        assert taint is not None
        # 1.23.4 has the first words and 1.26.1 the second; the change is taken to be of 1.24.
        if cycle.version < (1, 24):
            return f"node(s) had taint {{{taint.key}: {taint.value}}}, that the pod didn't tolerate"
        if cycle.version < (1, 35):
            return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
        return "node(s) had untolerated taint(s)"


class TaintScore(Score):
    """Fewer untolerated taints of effect PreferNoSchedule are better."""

    name = "TaintToleration"

    def constant(self, cycle: Cycle) -> int | None:
        """Return 100 where no node has a taint."""
        return None if cycle.cluster.tainted else MAX_SCORE

    def raw(self, cycle: Cycle, rows: Ints) -> Ints | None:
        """Return how many such taints each row has."""
        if not cycle.cluster.tainted:
            return np.zeros(len(rows), dtype=np.int64)
        soft = ("", "PreferNoSchedule")
        tolerations = tuple(t for t in cycle.pod.tolerations if t.effect in soft)

        def score(node: Node) -> int:
            return sum(
                untolerated((taint,), tolerations, ("PreferNoSchedule",)) is not None
                for taint in node.taints
            )

        return static_scores(cycle.cluster, (self.name, "score", tolerations), score)[rows]

    def normalise(self, cycle: Cycle, raw: Ints) -> Ints:
        """Scale so that no such taint is 100 and the most is 0."""
        return default_normalise(raw, reverse=True)


_MB = 1024 * 1024
_SMALLEST = 23 * _MB
_LARGEST = 1000 * _MB


def normalised_image(name: str) -> str:
    """Return an image's name with its tag: ``latest`` where none is given."""
    return name if name.rfind(":") > name.rfind("/") else name + ":latest"


class ImageScore(Score):
    """Nodes that already have the pod's images, by size and by how far the images have spread."""

    name = "ImageLocality"

    def constant(self, cycle: Cycle) -> int | None:
        """Return 0 where no node reports images."""
        return None if cycle.cluster.image_nodes else 0

    def raw(self, cycle: Cycle, rows: Ints) -> Ints | None:
        """Return scores from 0 to 100 between 23 MiB and 1000 MiB a container."""
        cluster, pod = cycle.cluster, cycle.pod
        if not cluster.image_nodes:
            return np.zeros(len(rows), dtype=np.int64)
        containers = list(pod.containers)
        if cycle.version >= (1, 30):
            containers += pod.init_containers
        names = [normalised_image(c.image) for c in containers]
        largest = _LARGEST * len(containers)
        total = cluster.node_count
        out = np.zeros(len(rows), dtype=np.int64)
        if largest <= _SMALLEST:
            return out
        for index, row in enumerate(rows.tolist()):
            images = cluster.records[row].node.images
            size = sum(
                int(images[n] * (cluster.image_nodes[n] / total)) for n in names if n in images
            )
            size = min(max(size, _SMALLEST), largest)
            out[index] = MAX_SCORE * (size - _SMALLEST) // (largest - _SMALLEST)
        return out
