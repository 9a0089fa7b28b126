"""Short ways to run a simulation in tests."""

from __future__ import annotations

from typing import Any

from hagane.events import EventLog
from hagane.tools.cluster.model.objects import Node, Phase, Pod
from hagane.tools.cluster.sim.options import Options
from hagane.tools.cluster.sim.ports import Scheduler, Submitter
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay


def job(name: str, cpu: int = 1, seconds: float | None = 10.0, **rest: Any) -> Pod:
    return Pod(
        name,
        requests={"cpu": cpu * 1000},
        scored=(cpu * 1000, 0),
        phases=None if seconds is None else (Phase(seconds),),
        grace=rest.pop("grace", 0),
        **rest,
    )


def machines(*cpus: int) -> Cluster:
    return Cluster(
        [
            Node(f"n{i}", allocatable={"cpu": c * 1000, "memory": 1 << 30})
            for i, c in enumerate(cpus)
        ]
    )


def simulate(
    cluster: Cluster,
    scheduler: Scheduler,
    *arrivals: tuple[float, Pod],
    submitters: tuple[Submitter, ...] = (),
    **options: Any,
) -> tuple[Simulation, list[Any]]:
    log = EventLog()
    sources = (*((Replay(arrivals),) if arrivals else ()), *submitters)
    sim = Simulation(cluster, scheduler, sources, Options(**options), log)
    sim.run()
    return sim, [
        (e["time"], e["kind"], e.get("pod", "")[8:], e.get("node", ""))
        for e in log
        if e["kind"] not in ("submit", "terminate")
    ]


def bound(log: list[Any]) -> list[tuple[float, str]]:
    return [(t, p) for t, k, p, _ in log if k == "bind"]
