"""NodeResourcesFit as a filter: a pod's requests must be free.

Source: ``plugins/noderesources/fit.go``.
"""

from __future__ import annotations

from collections.abc import Iterable

from hagane.tools.cluster.kube.framework import Cycle, Filter
from hagane.tools.cluster.state import PODS, Mask, Rows

_CORE = ("cpu", "memory", "ephemeral-storage")


def is_extended(resource: str) -> bool:
    """Return whether a resource is an extended one: a domain that is not Kubernetes' own."""
    return "/" in resource and "kubernetes.io/" not in resource


class FitFilter(Filter):
    """A node must have the requested resources free, and room for one more pod."""

    name = "NodeResourcesFit"
    resolvable = True

    def __init__(self, ignored: Iterable[str] = (), ignored_groups: Iterable[str] = ()):
        self.ignored = frozenset(ignored)
        self.groups = frozenset(ignored_groups)

    def mask(self, cycle: Cycle, rows: Rows) -> Mask:
        """Return which rows have enough of everything."""
        cluster = cycle.cluster
        ok: Mask = cluster.counts[rows] < cluster.allocatable[PODS, rows]
        for name, value in cycle.pod.requests.items():
            if value <= 0 or ((self.groups or self.ignored) and self._ignores(name)):
                continue
            index = cluster.resources.get(name)
            if index is None:
                index = cluster.resource(name)
            free = cluster.allocatable[index, rows] - cluster.requested[index, rows]
            ok &= free >= value
        return ok

    def reason(self, cycle: Cycle, row: int) -> str:
        """Return every shortage, joined by commas."""
        return ", ".join(self.shortages(cycle, row))

    def shortages(self, cycle: Cycle, row: int) -> list[str]:
        """Return the resources that a node lacks, in kube-scheduler's order and words."""
        cluster, requests = cycle.cluster, cycle.pod.requests
        out = []
        if cluster.counts[row] >= cluster.allocatable[PODS, row]:
            out.append("Too many pods")
        names = [n for n in _CORE if n in requests]
        names += [n for n in requests if n not in _CORE]
        for name in names:
            index = cluster.resource(name)
            free = cluster.allocatable[index, row] - cluster.requested[index, row]
            if 0 < requests[name] > free and not self._ignores(name):
                out.append(f"Insufficient {name}")
        return out

    def may_resolve(self, cycle: Cycle, row: int) -> bool:
        """Return whether the empty node would be large enough."""
        cluster = cycle.cluster
        offered = {n: cluster.allocatable[i, row] for n, i in cluster.resources.items()}
        return all(
            self._ignores(name) or value <= offered.get(name, 0)
            for name, value in cycle.pod.requests.items()
        )

    def _ignores(self, name: str) -> bool:
        return is_extended(name) and (name in self.ignored or name.partition("/")[0] in self.groups)


class GpuShareFilter(Filter):
    """The devices of a node must have the thousandths that a pod claims of them.

    Whole GPUs need devices that are entirely free, a share one device with enough left. This is
    the rule of the openb trace (``alibabacloud.com/gpu-milli``); it lets every pod through that
    claims no share.
    """

    name = "GpuShare"
    resolvable = True

    def skip(self, cycle: Cycle) -> bool:
        """Return whether the pod claims no devices."""
        return cycle.pod.gpu is None

    def mask(self, cycle: Cycle, rows: Rows) -> Mask:
        """Return which rows have the devices."""
        gpu = cycle.pod.gpu
        assert gpu is not None
        fitting = (cycle.cluster.gpu_free[rows] >= gpu.milli).sum(axis=1)
        ok: Mask = fitting >= gpu.count
        return ok

    def reason(self, cycle: Cycle, row: int) -> str:
        """Return the resources in short supply."""
        gpu = cycle.pod.gpu
        assert gpu is not None
        return f"Insufficient GPU devices with {gpu.milli} thousandths free"
