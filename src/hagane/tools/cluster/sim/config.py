"""Configuration files: those of k8s-cluster-simulator, and hagane's additions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.kube.configuration import seconds
from hagane.tools.cluster.model.documents import Document, read_documents
from hagane.tools.cluster.model.objects import Objects
from hagane.tools.cluster.model.read_objects import collect, load_objects, read_node
from hagane.tools.cluster.model.reader import Reader, parse_time
from hagane.tools.cluster.model.schema import nearest
from hagane.tools.cluster.report.original import FORMATTERS
from hagane.tools.cluster.sim.faults import KINDS, FaultModel, NodeEvent
from hagane.tools.cluster.sim.options import Options
from hagane.tools.cluster.sim.ports import Scheduler, Submitter

_ORIGINAL = ("logLevel", "tick", "startClock", "metricsTick", "metricsLogger", "cluster")
_ADDED = (
    "objects",
    "trace",
    "seed",
    "until",
    "scheduler",
    "submitters",
    "faults",
    "events",
    "output",
    "resubmit",
    "overcommit",
)
_LEVELS = ("panic", "fatal", "error", "warn", "warning", "info", "debug", "trace", "")
DEFAULT_TICK = 10


@dataclass(slots=True)
class Config:
    """A configuration, read and checked.

    Attributes:
        loggers: (destination, formatter) of the original's metrics.
        formats: of tables in ``directory``: csv, parquet, gnuplot.
    """

    path: Path
    objects: Objects
    options: Options
    scheduler: Callable[[int], Scheduler]
    submitters: Callable[[int], list[Submitter]]
    seed: int = 0
    faults: FaultModel | None = None
    events: tuple[NodeEvent, ...] = ()
    loggers: tuple[tuple[str, str], ...] = ()
    directory: Path | None = None
    formats: tuple[str, ...] = ()
    html: bool = False
    log: bool = False


def load_config(path: Path) -> Config:
    """Return the configuration in a file.

    Raises:
        InvalidManifest: at the first field that is unknown or wrong, with file and line.
    """
    if not path.exists() and path.with_suffix(".yaml").exists():
        # The original is given its configuration without the ending.
        path = path.with_suffix(".yaml")
    documents = read_documents(path)
    if not documents:
        raise InvalidManifest(f"{path}: the configuration is empty")
    top = Reader(documents[0].value, documents[0].place)
    _known(top, (*_ORIGINAL, *_ADDED))
    folder = path.parent
    seed = top.integer("seed", 0)
    level = top.text("logLevel")
    if level.lower() not in _LEVELS:
        raise (top.place / "logLevel").error(f"log level {level!r} is not supported")
    output = top.at("output")
    _known(output, ("directory", "formats", "html", "log", "every"))
    formats = output.texts("formats") or ("csv",)
    for index, name in enumerate(formats):
        if name not in ("csv", "parquet", "gnuplot"):
            raise (output.place / "formats" / index).error(
                f"unsupported value {name!r}: expected one of csv, parquet, gnuplot"
            )
    return Config(
        path=path,
        objects=_objects(top, documents[1:], folder),
        options=_options(top),
        scheduler=lambda seed: _scheduler(top, folder, seed),
        submitters=lambda seed: _submitters(top, folder, seed),
        seed=seed,
        faults=_faults(top.at("faults"), seed) if top.has("faults") else None,
        events=tuple(_event(e) for e in top.items("events")),
        loggers=_loggers(top),
        directory=folder / output.text("directory") if output.has("directory") else None,
        formats=tuple(formats),
        html=output.flag("html", True),
        log=output.flag("log", True),
    )


def _known(reader: Reader, names: tuple[str, ...]) -> None:
    for name in reader.value:
        if name not in names:
            raise (reader.place / str(name)).error(
                f"unknown field {name!r}{nearest(str(name), names)}"
            )


def _options(top: Reader) -> Options:
    start, zone = 0.0, 0
    if top.has("startClock"):
        text = top.text("startClock")
        try:
            start = parse_time(text)
            offset = datetime.fromisoformat(text).utcoffset()
            zone = int(offset.total_seconds()) if offset is not None else 0
        except ValueError:
            raise (top.place / "startClock").error(
                f"expected an RFC 3339 time like 2019-01-01T00:00:00+09:00, got {text!r}"
            ) from None
    # A file without anything of hagane's runs in the original's loop.
    original = not any(top.has(name) for name in _ADDED)
    tick: float | None = None
    if top.has("tick") or original:
        tick = float(top.integer("tick", DEFAULT_TICK, low=1))
    every: float | None = None
    if top.has("metricsTick"):
        every = float(top.integer("metricsTick", low=1))
    elif top.at("output").has("every"):
        every = seconds(top.at("output"), "every", 60.0)
    elif top.has("metricsLogger") or top.has("output"):
        every = tick or 60.0
    return Options(
        tick=tick,
        start=start,
        zone=zone,
        until=seconds(top, "until", 0.0) if top.has("until") else None,
        metrics_every=every,
        resubmit=top.flag("resubmit", not original),
        overcommit=top.text("overcommit", "fail" if original else "fault", ("fault", "fail")),
    )


def _objects(top: Reader, documents: list[Document], folder: Path) -> Objects:
    nodes = []
    seen: set[str] = set()
    for item in top.items("cluster"):
        node = read_node({"kind": "Node", **item.value}, item.place)
        if node.name in seen:
            raise (item.place / "metadata" / "name").error(f"duplicate node {node.name!r}")
        seen.add(node.name)
        nodes.append(node)
    files = load_objects(*(folder / name for name in top.texts("objects")))
    more = collect(documents, files)
    if top.at("trace").has("nodes"):
        from hagane.tools.cluster.trace.openb import read_nodes

        nodes += read_nodes(folder / top.at("trace").required("nodes"))
    merged = replace(
        files,
        nodes=(*nodes, *files.nodes, *more.nodes),
        pods=(*files.pods, *more.pods),
        workloads=(*files.workloads, *more.workloads),
        budgets=(*files.budgets, *more.budgets),
        services=(*files.services, *more.services),
        priority_classes=(*files.priority_classes, *more.priority_classes),
        namespaces={**files.namespaces, **more.namespaces},
        groups=(*files.groups, *more.groups),
        volumes=more.volumes,
    )
    names = [n.name for n in merged.nodes]
    if len(names) != len(set(names)):
        twice = next(n for n in names if names.count(n) > 1)
        raise (top.place / "objects").error(f"duplicate node {twice!r}")
    added = any(event.text("action") == "add" for event in top.items("events"))
    if not names and not added:
        raise (top.place / "cluster").error(
            "expected at least one node, got none: list nodes here, or name files with some under "
            "'objects' or a trace under 'trace'"
        )
    return merged


def _loggers(top: Reader) -> tuple[tuple[str, str], ...]:
    out = []
    for item in top.items("metricsLogger"):
        _known(item, ("dest", "formatter"))
        out.append((item.required("dest"), item.text("formatter", choices=tuple(FORMATTERS))))
    return tuple(out)


def _scheduler(top: Reader, folder: Path, seed: int) -> Scheduler:
    from hagane.tools.cluster.schedulers.kinds import read_scheduler

    return read_scheduler(top.at("scheduler"), seed, folder)


def _submitters(top: Reader, folder: Path, seed: int) -> list[Submitter]:
    from hagane.tools.cluster.sim.controllers import Controller
    from hagane.tools.cluster.submitters.kinds import read_submitter
    from hagane.tools.cluster.submitters.replay import Replay

    made = [
        read_submitter(item, index, seed, folder)
        for index, item in enumerate(top.items("submitters"))
    ]
    trace = top.at("trace")
    _known(trace, ("nodes", "pods", "format"))
    if trace.has("pods"):
        item = Reader({"kind": "replay", "name": "trace"} | _pods_of(trace), trace.place)
        made.append(read_submitter(item, len(made), seed, folder))
    objects = _objects(top, [], folder)
    waiting = [(0.0, pod) for pod in objects.pods if not pod.node_name]
    if waiting:
        made.append(Replay(waiting, "objects"))
    made += [Controller(w) for w in objects.workloads]
    if not made and not any(top.has(name) for name in ("submitters", "objects")):
        # The original's submitters are compiled in; its example keeps eight pods pending.
        item = Reader({"kind": "backlog"}, top.place / "submitters" / 0)
        made.append(read_submitter(item, 0, seed, folder))
    return made


def _pods_of(trace: Reader) -> dict[str, str]:
    return {"pods": trace.required("pods"), "format": trace.text("format") or "openb"}


def _faults(reader: Reader, seed: int) -> FaultModel:
    _known(reader, ("mtbf", "mttr", "crash", "seed"))
    return FaultModel(
        seconds(reader, "mtbf", 0.0),
        seconds(reader, "mttr", 3600.0),
        seconds(reader, "crash", 0.0),
        reader.integer("seed", seed),
    )


def _event(reader: Reader) -> NodeEvent:
    _known(reader, ("at", "action", "node", "manifest"))
    kind = reader.text("action", choices=KINDS)
    node = None
    if kind == "add":
        inner = reader.at("manifest")
        node = read_node({"kind": "Node", **inner.value}, inner.place)
    name = node.name if node is not None else reader.required("node")
    return NodeEvent(seconds(reader, "at", 0.0), kind, name, node)


def destination(dest: str, quiet: bool = False) -> tuple[Any, bool]:
    """Return the stream of a metrics destination, and whether it must be closed.

    Where standard output is to stay clean (``quiet``), such output goes to standard error.

    Raises:
        InvalidManifest: if the file cannot be written.
    """
    if dest.lower() == "stdout" or dest == "/dev/stdout":
        return (sys.stderr if quiet else sys.stdout), False
    if dest.lower() == "stderr" or dest == "/dev/stderr":
        return sys.stderr, False
    try:
        return open(dest, "w", encoding="utf-8", newline="\n"), True
    except OSError as error:
        raise InvalidManifest(f"metricsLogger: {dest}: cannot be written: {error}") from None
