"""Simulations from files: a configuration, or a trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hagane.events import EventLog
from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.kube.configuration import load_profile
from hagane.tools.cluster.kube.profile import default_profile, parse_version
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.sim.config import read_config
from hagane.tools.cluster.sim.ports import Scheduler
from hagane.tools.cluster.sim.simulation import Options, Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay
from hagane.tools.cluster.trace import openb


@dataclass(slots=True)
class Prepared:
    """A simulation with what must be closed after it."""

    simulation: Simulation
    close: list[Callable[[], None]] = field(default_factory=list)

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, object]:
        """Run to the end, close all outputs, and return the summary."""
        try:
            return self.simulation.run(progress)
        finally:
            for close in self.close:
                close()


def traced(
    nodes: Path,
    pods: Path,
    format: str = "openb",
    profile: Path | None = None,
    kube_version: str = "1.34",
    seed: int = 0,
    log: Path | None = None,
    scheduler: Scheduler | None = None,
) -> Prepared:
    """Return the simulation of a trace as it is.

    Raises:
        InvalidManifest: if a file is wrong or the format unknown.
    """
    if format != "openb":
        raise InvalidManifest(f"unknown trace format {format!r}: expected openb")
    version = parse_version(kube_version)
    chosen = load_profile(profile, version) if profile else default_profile(version)
    cluster = Cluster(openb.read_nodes(nodes))
    arrivals = sorted(openb.read_pods(pods), key=lambda a: a[0])
    events = EventLog(log, keep=False)
    simulation = Simulation(
        cluster,
        scheduler or KubeScheduler(chosen, seed),
        [Replay(arrivals, "openb")],
        Options(),
        events,
    )
    return Prepared(simulation, [events.close])


def configured(config: Path, seed: int | None = None, log: Path | None = None) -> Prepared:
    """Return the simulation that a configuration describes; raises InvalidManifest."""
    return Prepared(read_config(config, seed, log))
