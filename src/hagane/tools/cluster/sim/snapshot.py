"""The cluster's metrics at one instant, in the structure of k8s-cluster-simulator.

Keys: ``Clock``, ``Nodes`` (by name), ``Pods`` (by ``namespace/name``) and ``Queue``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from hagane.tools.cluster.model.quantity import format_amount

if TYPE_CHECKING:
    from hagane.tools.cluster.sim.simulation import Simulation


class LazyMetrics(Mapping[str, Any]):
    """Metrics that are computed when a submitter looks at them, key by key."""

    def __init__(self, sim: Simulation):
        self._sim = sim
        self._made: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._made:
            self._made[key] = _PARTS[key](self._sim)
        return self._made[key]

    def __iter__(self) -> Any:
        return iter(_PARTS)

    def __len__(self) -> int:
        return len(_PARTS)


def metrics_line(sim: Simulation) -> Any:
    """Return the metrics now, each part computed once it is read."""
    return LazyMetrics(sim)


def rfc3339(seconds: float, offset: int = 0) -> str:
    """Return an instant as Go prints it, in a zone ``offset`` seconds east of Greenwich."""
    zone = timezone(timedelta(seconds=offset))
    moment = datetime.fromtimestamp(int(seconds // 1), zone)
    text = moment.isoformat()
    return text.replace("+00:00", "Z") if offset == 0 else text


def _amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: format_amount(name, value) for name, value in sorted(amounts.items())}


def _clock(sim: Simulation) -> str:
    return rfc3339(sim.options.start + sim.clock, sim.options.zone)


def _nodes(sim: Simulation) -> dict[str, dict[str, Any]]:
    out = {}
    now = sim.clock
    for record in sim.cluster.nodes():
        requested: dict[str, int] = {}
        used: dict[str, int] = {}
        ending = 0
        for key, pod in record.pods.items():
            ending += pod.deleting
            for name, value in pod.requests.items():
                requested[name] = requested.get(name, 0) + value
            running = sim.life.running.get(key)
            for name, value in (running.usage(now) if running else {}).items():
                used[name] = used.get(name, 0) + value
        out[record.node.name] = {
            "Allocatable": _amounts(record.node.allocatable),
            "RunningPodsNum": len(record.pods) - ending,
            "TerminatingPodsNum": ending,
            "FailedPodsNum": sim.failed_on.get(record.node.name, 0),
            "TotalResourceRequest": _amounts(requested),
            "TotalResourceUsage": _amounts(used),
        }
    return dict(sorted(out.items()))


def _pods(sim: Simulation) -> dict[str, dict[str, Any]]:
    now = sim.clock
    out = {}
    for key, running in sim.life.running.items():
        pod = running.pod
        out[key] = {
            "ResourceRequest": _amounts(pod.requests),
            "ResourceLimit": _amounts(pod.limits),
            "ResourceUsage": _amounts(running.usage(now)),
            "BoundAt": rfc3339(sim.options.start + running.bound, sim.options.zone),
            "Node": sim.node_name(running.row),
            "ExecutedSeconds": int(running.executed(now)),
            "Priority": pod.priority,
            "Status": "Deleted" if pod.deleting else "Ok",
        }
    return dict(sorted(out.items()))


def _queue(sim: Simulation) -> dict[str, int]:
    return {"PendingPodsNum": len(sim.queue)}


_PARTS = {"Clock": _clock, "Nodes": _nodes, "Pods": _pods, "Queue": _queue}
