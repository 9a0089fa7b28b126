"""Simulations from files: a configuration, or a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hagane.events import EventLog
from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.kube.configuration import load_profile
from hagane.tools.cluster.kube.profile import default_profile, parse_version
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.report.original import FORMATTERS
from hagane.tools.cluster.report.series import (
    PODS,
    SERIES,
    USERS,
    TableWriter,
    pod_row,
    sample,
    unfinished_rows,
    user_rows,
)
from hagane.tools.cluster.sim.config import Config, destination, load_config
from hagane.tools.cluster.sim.faults import Faults
from hagane.tools.cluster.sim.options import Options
from hagane.tools.cluster.sim.ports import Metrics, Scheduler
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay
from hagane.tools.cluster.trace import openb
from hagane.tools.cluster.trace.jobs import read_jobs


@dataclass(slots=True)
class Prepared:
    """A simulation with the resources to close after it.

    Attributes:
        until: when it ends at the latest, in simulated seconds, for a progress bar.
    """

    simulation: Simulation
    close: list[Callable[[], None]] = field(default_factory=list)
    until: float | None = None

    def run(
        self,
        progress: Callable[[float], None] | None = None,
        more: Callable[[], bool] | None = None,
    ) -> dict[str, object]:
        """Run to the end as the simulation does, close all outputs, and return the summary."""
        try:
            return self.simulation.run(progress, more)
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
    if format not in ("openb", "jobs"):
        raise InvalidManifest(f"unknown trace format {format!r}: expected openb or jobs")
    version = parse_version(kube_version)
    chosen = load_profile(profile, version) if profile else default_profile(version)
    cluster = Cluster(openb.read_nodes(nodes))
    read = openb.read_pods if format == "openb" else read_jobs
    arrivals = sorted(read(pods), key=lambda a: a[0])
    for path, kind, found in ((nodes, "node", cluster.node_count), (pods, "pod", len(arrivals))):
        if not found:
            raise InvalidManifest(
                f"{path}: expected a line for every {kind} after the header, got none"
            )
    events = EventLog(log, keep=False)
    simulation = Simulation(
        cluster,
        scheduler or KubeScheduler(chosen, seed),
        [Replay(arrivals, format)],
        Options(),
        events,
    )
    return Prepared(simulation, [events.close], arrivals[-1][0] if arrivals else None)


def configured(
    config: Path, seed: int | None = None, log: Path | None = None, quiet: bool = False
) -> Prepared:
    """Return the simulation that a configuration file describes; raises InvalidManifest."""
    return prepare(load_config(config), seed, log, quiet=quiet)


def prepare(
    config: Config,
    seed: int | None = None,
    log: Path | None = None,
    outputs: bool = True,
    quiet: bool = False,
) -> Prepared:
    """Return the simulation of a configuration.

    Args:
        config: the configuration.
        seed: instead of the configuration's.
        log: where events go, instead of the output folder.
        outputs: write the outputs of the configuration.
        quiet: keep standard output clean.
    """
    seed = config.seed if seed is None else seed
    directory = config.directory if outputs else None
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        if log is None and config.log:
            log = directory / "events.jsonl"
    events = EventLog(log, keep=False)
    close: list[Callable[[], None]] = [events.close]
    try:
        writers: list[Callable[[float, Metrics], None]] = []
        if outputs:
            for dest, name in config.loggers:
                stream, owned = destination(dest, quiet)
                writers.append(
                    lambda _, m, out=stream, form=FORMATTERS[name]: out.write(form(m) + "\n")  # type: ignore[misc]
                )
                if owned:
                    close.append(stream.close)
        cluster = Cluster.of(config.objects)
        simulation = Simulation(
            cluster,
            config.scheduler(seed),
            config.submitters(seed),
            config.options,
            events,
            writers,
        )
        Faults(simulation, config.faults, config.events)
        if directory is not None:
            _tables(simulation, directory, config, close)
        return Prepared(simulation, close, config.options.until)
    except BaseException:
        # Open files would be left open by an error in the rest.
        for opened in close:
            opened()
        raise


def _tables(
    sim: Simulation, directory: Path, config: Config, close: list[Callable[[], None]]
) -> None:
    """Write metrics over time, and pods, while the simulation runs; a page after it."""
    series = TableWriter(directory / "metrics", SERIES, config.formats)
    pods = TableWriter(directory / "pods", PODS, config.formats)

    def unfinished() -> None:
        for row in unfinished_rows(sim):
            pods.write(row)

    close += [series.close, unfinished, pods.close]

    def users() -> None:
        table = TableWriter(directory / "users", USERS, config.formats)
        for row in user_rows(sim):
            table.write(row)
        table.close()

    close.append(users)

    def at_interval(clock: float, metrics: Metrics) -> None:
        series.write(sample(sim, sim.workload()))

    def when_done(pod: Pod, outcome: str, times: Mapping[str, float]) -> None:
        pods.write(pod_row(pod, outcome, times, sim.reasons.get(pod.key, "")))

    sim.on_metrics = [*sim.on_metrics, at_interval]
    sim.on_done.append(when_done)
    if config.html:
        from hagane.tools.cluster.report.page import Recorder

        recorder = Recorder(sim)
        close.append(lambda: recorder.write(directory / "report.html"))
