"""Placement where a scheduler leaves nodes out."""

from __future__ import annotations

from hagane.tools.cluster.model import Pod
from hagane.tools.cluster.schedulers.backfill import Backfill

from .manifests import node, objects, pod
from .running import Cluster, simulate

_BESIDE = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
        ]
    }
}


def lasting(name: str, cpu: str, seconds: int, **rest: object) -> dict[str, object]:
    labels = rest.pop("labels", {})
    notes = {"hagane.dev/duration-seconds": str(seconds)}
    return pod(name, {"cpu": cpu}, labels=labels, annotations=notes, **rest)


def test_backfill_sees_the_pods_on_the_node_that_it_keeps_free() -> None:
    nodes = [
        node("near", {"zone": "a"}, has={"cpu": "4", "pods": "9"}),
        node("far", {"zone": "b"}, has={"cpu": "2", "pods": "9"}),
    ]
    pods = [
        lasting("first", "3", 100, labels={"app": "web"}, nodeSelector={"zone": "a"}),
        lasting("waits", "4", 10),
        # Its mates are on the node that 'waits' is to have.
        lasting("mate", "1", 500, labels={"app": "web"}, affinity=_BESIDE),
        lasting("other", "1", 500),
    ]
    known = objects(*nodes, *pods)
    empty = Cluster.of(objects(*nodes))
    arrivals: list[tuple[float, Pod]] = [(float(at), p) for at, p in enumerate(known.pods)]
    _, log = simulate(empty, Backfill(seed=0), *arrivals)
    starts = {name: (time, where) for time, kind, name, where in log if kind == "bind"}
    assert starts["first"] == (0, "near")
    assert starts["waits"] == (100, "near")
    assert starts["other"] == (3, "far")
    assert starts["mate"][0] >= 100
