"""Room that a pod makes by preempting others: kept for it, given up, not sought for ever."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from hagane.events import EventLog
from hagane.tools.cluster.errors import SchedulerFault
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.objects import Phase
from hagane.tools.cluster.sim.options import Options
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay
from tests.cluster.manifests import node, objects, pod

HAS = {"cpu": "4", "memory": "8Gi", "pods": 10}
V = {"matchLabels": {"app": "v"}}
ALONE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": V, "topologyKey": "zone"}
        ]
    }
}
EVEN = [
    {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": V,
    }
]


def needs(name: str, cpu: int, **rest: Any) -> dict[str, Any]:
    return pod(name, {"cpu": cpu, "memory": "1Gi"}, labels={"app": "v"}, **rest)


def events(
    nodes: list[dict[str, Any]],
    *arrivals: tuple[float, float | None, dict[str, Any]],
    **options: Any,
) -> list[tuple[float, str, str]]:
    """Run pods that come at a time and take some seconds; return what happens to them."""
    found = objects(*nodes, *[each for _, _, each in arrivals])
    named = {each.name: each for each in found.pods}
    pods = [
        (
            at,
            dataclasses.replace(
                named[each["metadata"]["name"]],
                phases=None if seconds is None else (Phase(seconds),),
                grace=0,
            ),
        )
        for at, seconds, each in arrivals
    ]
    log = EventLog()
    Simulation(
        Cluster(list(found.nodes)), KubeScheduler(), [Replay(pods)], Options(**options), log
    ).run()
    return [(e["time"], e["kind"], e["pod"][8:]) for e in log if "pod" in e]


def test_promised_room_is_kept_from_a_pod_that_the_promised_one_does_not_bear() -> None:
    found = events(
        [node("n", {"zone": "a"}, has=HAS)],
        (0, None, needs("low", 1)),
        (1, 5, needs("high", 1, priority=100, affinity=ALONE)),
    )
    assert [(kind, name) for _, kind, name in found if kind in ("evict", "bind", "finish")] == [
        ("bind", "low"), ("evict", "low"), ("bind", "high"), ("finish", "high"), ("bind", "low"),
    ]  # fmt: skip


def test_preemption_that_never_ends_is_told() -> None:
    nodes = [node("n", {"zone": "a"}, has=HAS), node("m", {"zone": "b"}, has={**HAS, "cpu": "1"})]
    arrivals = (
        (0, None, needs("low", 2)),
        (1, 5, needs("high", 2, priority=1, topologySpreadConstraints=EVEN)),
    )
    with pytest.raises(SchedulerFault, match="pod 'default/high' preempted pod 'default/low' on "
                       "node 'n' 1000 times, and could not take the room"):  # fmt: skip
        events(nodes, *arrivals)
    assert ("bind", "high") not in [event[1:] for event in events(nodes, *arrivals, until=50.0)]


def test_room_that_the_pod_cannot_take_any_more_goes_to_others() -> None:
    nodes = [node("n", {"zone": "a"}, has={**HAS, "cpu": "2"}),
             node("m", {"zone": "a", "name": "m"}, has={**HAS, "cpu": "1"}),
             node("k", {"zone": "b"}, has={**HAS, "cpu": "1"})]  # fmt: skip
    found = events(
        nodes,
        (0, 50, needs("low", 2)),
        (1, 5, needs("high", 2, priority=1, topologySpreadConstraints=EVEN)),
        (1.5, None, needs("top", 1, priority=2, nodeSelector={"name": "m"})),
    )
    assert [event[1:] for event in found if event[1] in ("evict", "bind", "finish")] == [
        ("bind", "low"), ("evict", "low"), ("bind", "top"), ("bind", "low"), ("finish", "low"),
    ]  # fmt: skip


def test_a_resource_that_no_node_has_leaves_a_pod_waiting() -> None:
    picky = pod("gpu", {"cpu": "1", "nvidia.com/gpu": 1}, nodeSelector={"zone": "b"})
    nodes = [node("n", {"zone": "a"}, has=HAS)]
    found = events(nodes, (0, None, picky), (1, 5, needs("other", 1)))
    assert found[-2:] == [(6.0, "finish", "other"), (600.0, "pending", "gpu")]
