"""Pods leave nodes with taints of effect NoExecute that they do not tolerate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hagane.events import EventLog
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.selectors import Taint, Toleration
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.sim.tainting import stay
from hagane.tools.cluster.submitters.replay import Replay
from tests.cluster.running import job, machines

GONE = Taint("gone", "", "NoExecute")


def run(tolerations: tuple[Toleration, ...], *taints: tuple[float, tuple[Taint, ...]]) -> list[Any]:
    """Return what happens to one pod of 20 s while the taints of n0, the larger node, change."""
    pod = replace(job("a", seconds=20), tolerations=tolerations)
    log = EventLog()
    sim = Simulation(machines(8, 1), KubeScheduler(), [Replay([(0, pod)])], log=log)

    def taint(wanted: tuple[Taint, ...]) -> None:
        sim.cluster.update_node(replace(sim.cluster.record("n0").node, taints=wanted))
        sim.nodes_changed({sim.cluster.rows["n0"]})

    for at, wanted in taints:
        sim.at(at, lambda wanted=wanted: taint(wanted))
    sim.run()
    kinds = ("bind", "evict", "finish")
    return [(e["time"], e["kind"], e["node"]) for e in log if e["kind"] in kinds]


def test_a_pod_that_does_not_tolerate_a_taint_leaves_at_once() -> None:
    assert run((), (5, (GONE,))) == [
        (0, "bind", "n0"),
        (5, "evict", "n0"),
        (5, "bind", "n1"),
        (25, "finish", "n1"),
    ]


def test_a_pod_leaves_after_the_seconds_of_its_toleration() -> None:
    patient = Toleration("gone", "Exists", "", "NoExecute", 7)
    assert (12, "evict", "n0") in run((patient,), (5, (GONE,)), (13, ()))
    # Another change of the node does not begin the time anew.
    assert (12, "evict", "n0") in run(
        (patient,), (5, (GONE,)), (9, (GONE, Taint("soft"))), (13, ())
    )


def test_a_pod_stays_that_tolerates_a_taint_for_ever_or_whose_taint_goes() -> None:
    stays = [(0, "bind", "n0"), (20, "finish", "n0")]
    assert run((Toleration("gone", "Exists"),), (5, (GONE,))) == stays
    patient = Toleration("gone", "Exists", "", "NoExecute", 7)
    assert run((patient,), (5, (GONE,)), (8, ())) == stays
    assert run((), (5, (Taint("gone", "", "NoSchedule"),))) == stays


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ((), 0.0),
        ((Toleration("gone", "Exists", seconds=-3),), 0.0),
        ((Toleration("gone", "Exists", seconds=9), Toleration("gone", "Exists", seconds=3)), 9.0),
        ((Toleration("gone", "Exists"), Toleration("gone", "Exists", seconds=3)), float("inf")),
    ],
)
def test_the_first_toleration_of_a_taint_counts(
    tolerations: tuple[Toleration, ...], seconds: float
) -> None:
    assert stay((GONE, Taint("soft")), tolerations) == seconds


def test_a_pod_on_a_node_that_is_tainted_from_the_start_leaves() -> None:
    cluster = machines(1)
    cluster.update_node(replace(cluster.record("n0").node, taints=(GONE,)))
    cluster.bind(job("a", seconds=20), 0)
    log = EventLog()
    sim = Simulation(cluster, KubeScheduler(), log=log)
    sim.run()
    assert [(e["time"], e["kind"]) for e in log if "pod" in e][:2] == [(1, "evict"), (1, "remove")]
    assert len(sim.queue) == 1


def test_a_toleration_of_no_seconds_does_not_stop_time() -> None:
    brief = Toleration("gone", "Exists", "", "NoExecute", 0)
    cluster = machines(1)
    cluster.update_node(replace(cluster.record("n0").node, taints=(GONE,)))
    pod = replace(job("a", seconds=20), tolerations=(brief,))
    sim = Simulation(cluster, KubeScheduler(), [Replay([(0, pod)])])
    sim.begin()
    for _ in range(30):
        sim.step()
    assert sim.clock > 3
