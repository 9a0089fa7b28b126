"""Nodes that fail, drain, come and go; pods that crash."""

from __future__ import annotations

import random

import pytest

from hagane.events import EventLog
from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.objects import Node
from hagane.tools.cluster.sim.faults import FaultModel, Faults, NodeEvent
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.submitters.replay import Replay
from tests.cluster.running import job, machines


def test_a_failing_node_loses_its_pods_and_comes_back() -> None:
    log = EventLog()
    sim = Simulation(machines(1), KubeScheduler(), [Replay([(0, job("a", seconds=20))])], log=log)
    Faults(sim, events=[NodeEvent(5, "fail", "n0"), NodeEvent(30, "repair", "n0")])
    sim.run()
    assert [(e["time"], e["kind"]) for e in log if e["kind"] not in ("submit", "terminate")] == [
        (0, "bind"),
        (5, "fail"),
        (5, "lose"),
        (30, "repair"),
        (30, "bind"),
        (50, "finish"),
    ]
    assert sim.books.counts["node_failures"] == 1


def test_cordon_drain_add_and_remove() -> None:
    log = EventLog()
    sim = Simulation(
        machines(1),
        KubeScheduler(),
        [Replay([(0, job("a", seconds=20, grace=2)), (7, job("b"))])],
        log=log,
    )
    extra = Node("new", allocatable={"cpu": 1000, "memory": 1 << 30})
    Faults(
        sim,
        events=[
            NodeEvent(5, "drain", "n0"),
            NodeEvent(10, "add", "new", extra),
            NodeEvent(15, "remove", "new"),
            NodeEvent(20, "uncordon", "n0"),
        ],
    )
    sim.run()
    events = [(e["time"], e["kind"], e.get("pod", e.get("node"))) for e in log]
    assert (5, "drain", "n0") in events
    assert (7, "remove", "default/a") in events
    assert (10, "bind", "default/a") in events or (10, "bind", "default/b") in events
    assert (15, "remove", "new") in events
    assert sum(k == "finish" for _, k, _ in events) == 2


def test_an_event_about_an_unknown_node_is_named() -> None:
    sim = Simulation(machines(1), KubeScheduler(), [Replay([(0, job("a"))])])
    Faults(sim, events=[NodeEvent(5, "cordon", "n7")])
    with pytest.raises(InvalidManifest, match="event 'cordon' at 5 s: there is no node 'n7'"):
        sim.run()


def test_crashes_follow_the_restart_policy() -> None:
    def run(policy: str) -> Simulation:
        sim = Simulation(
            machines(1),
            KubeScheduler(),
            [Replay([(0, job("a", seconds=100, restart_policy=policy))])],
        )
        Faults(sim, FaultModel(crash=60, seed=3))
        sim.run()
        return sim

    assert run("Never").books.counts["failed"] == 1
    often = run("Always")
    assert often.books.counts["succeeded"] == 1
    assert often.books.counts["restarts"] > 0
    assert often.books.lost_seconds > 0


def test_random_failures_repeat_with_the_seed() -> None:
    def run(seed: int) -> str:
        log = EventLog()
        sim = Simulation(
            machines(4, 4),
            KubeScheduler(),
            [Replay([(i, job(f"p{i}", seconds=50)) for i in range(40)])],
            log=log,
        )
        Faults(sim, FaultModel(mtbf=100, mttr=20, seed=seed))
        sim.run()
        return log.digest()

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_an_evicted_pod_comes_back_although_its_node_fails_meanwhile() -> None:
    pods = [(0, job("a", seconds=20, grace=5))]
    sim = Simulation(machines(1), KubeScheduler(), [Replay(pods)])
    events = [NodeEvent(3, "drain", "n0"), NodeEvent(5, "fail", "n0"), NodeEvent(9, "repair", "n0")]
    Faults(sim, events=[*events, NodeEvent(10, "uncordon", "n0")])
    sim.run()
    assert (sim.books.counts["succeeded"], sim.books.counts["deleted"]) == (1, 0)


def test_pods_that_back_off_one_after_the_other_all_get_their_turn() -> None:
    for seed in range(40):
        draw = random.Random(seed)
        pods = [
            (
                float(draw.randint(0, 60)),
                job(f"p{i}", cpu=draw.randint(1, 3), seconds=float(draw.randint(1, 50))),
            )
            for i in range(50)
        ]
        pods.sort(key=lambda arrival: arrival[0])
        sim = Simulation(machines(2), KubeScheduler(), [Replay(pods)])
        sim.run()
        # Those of three processors fit nowhere; all others have run.
        assert {pending.pod.requests["cpu"] for pending in sim.queue.entries()} <= {3000}, seed
