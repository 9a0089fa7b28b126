"""Dominant shares: what users hold, over time."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import yaml

from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.objects import Node, Pod
from hagane.tools.cluster.sim.config import load_config
from hagane.tools.cluster.sim.faults import Faults, NodeEvent
from hagane.tools.cluster.sim.setup import prepare
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay
from tests.cluster.running import job

GIB = 1 << 30


def owned(name: str, user: str, seconds: float, cpu: int, memory: int) -> Pod:
    made = job(name, cpu, seconds, user=user)
    return made.with_changes(requests={"cpu": cpu * 1000, "memory": memory * GIB})


def two_users() -> Simulation:
    """The example of the paper: 9 CPUs and 18 GiB; A's tasks take (1, 4), B's take (3, 1)."""
    has = {"cpu": 9000, "memory": 18 * GIB, "pods": 110}
    arrivals = [(0.0, owned(f"a{i}", "A", 10.0, 1, 4)) for i in range(3)]
    arrivals += [(0.0, owned(f"b{i}", "B", 20.0, 3, 1)) for i in range(2)]
    return Simulation(Cluster([Node("n", allocatable=has)]), KubeScheduler(), [Replay(arrivals)])


def test_the_dominant_share_is_the_largest_of_the_resources() -> None:
    sim = two_users()
    sim.begin()
    sim.step()
    # Figure 4.1 of the paper: A holds 12 of 18 GiB, B 6 of 9 CPUs, both two thirds.
    shares = {name: user.share for name, user in sim.books.users.items()}
    assert shares == pytest.approx({"A": 2 / 3, "B": 2 / 3})


def test_shares_are_averaged_over_time() -> None:
    sim = two_users()
    summary = sim.run()
    means = sim.books.dominant_shares(sim.clock)
    # A's tasks hold two thirds for 10 of 20 s, B's all the time.
    assert means == pytest.approx({"A": 1 / 3, "B": 2 / 3})
    assert summary["dominant_share"] == pytest.approx(
        {"mean": 0.5, "max": 2 / 3, "jain": (1.0) ** 2 / (2 * (1 / 9 + 4 / 9))}
    )


def test_a_share_grows_when_the_cluster_shrinks() -> None:
    nodes = [Node(n, allocatable={"cpu": 4000, "memory": GIB, "pods": 9}) for n in ("a", "b")]
    pod = job("p", 4, 20.0, user="A", node_selector=())
    sim = Simulation(Cluster(nodes), KubeScheduler(), [Replay([(0.0, pod)])])
    Faults(sim, events=[NodeEvent(10.0, "remove", "b")])
    sim.run()
    # Half of two nodes for ten seconds, then all of one, or the other way round if it sat on b.
    assert sim.books.users["A"].peak == 1.0
    assert 0.5 < sim.books.dominant_shares(sim.clock)["A"] <= 1.0


def test_every_user_gets_a_row(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        yaml.safe_dump(
            {
                "cluster": [
                    {
                        "metadata": {"name": "n"},
                        "status": {
                            "allocatable": {"cpu": 96, "memory": "768Gi", "nvidia.com/gpu": 8}
                        },
                    }
                ],
                "submitters": [
                    {
                        "kind": "poisson",
                        "rate": 0.1,
                        "count": 30,
                        "job": {"kind": "philly", "users": 3},
                    }
                ],
                "until": 20000,
                "output": {"directory": "out", "formats": ["csv"], "every": 100},
            }
        )
    )
    summary = prepare(load_config(tmp_path / "config.yaml")).run()
    with open(tmp_path / "out" / "users.csv") as file:
        rows = list(csv.DictReader(file))
    shares = [float(row["dominant_share"]) for row in rows]
    assert max(shares) == pytest.approx(summary["dominant_share"]["max"])
    assert all(0 < float(row["largest_share"]) <= 1 for row in rows)
    with open(tmp_path / "out" / "metrics.csv") as file:
        series = [float(row["dominant_share"]) for row in csv.DictReader(file)]
    assert max(series) <= max(float(row["largest_share"]) for row in rows)


def test_a_user_whose_pods_took_no_time_has_no_rate() -> None:
    """A pod that ran without a known duration may be reported to have succeeded."""
    sim = Simulation(Cluster([Node("n", allocatable={"cpu": 4000, "pods": 9})]), KubeScheduler())
    sim.submit(job("p", seconds=None))
    sim.begin()
    sim.step()
    sim.life.end(sim.life.running["default/p"], "succeeded")
    assert sim.books.summary(5.0)["finish_time_fairness"] == 1.0
