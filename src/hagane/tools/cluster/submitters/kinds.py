"""Submitters from a configuration: ``kind`` and its parameters."""

from __future__ import annotations

import importlib
import itertools
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from hagane.tools.cluster.kube.configuration import seconds
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.model.read_pod import read_pod
from hagane.tools.cluster.model.reader import Reader
from hagane.tools.cluster.model.schema import nearest
from hagane.tools.cluster.sim.ports import Submitter
from hagane.tools.cluster.submitters import arrivals, jobs
from hagane.tools.cluster.submitters.closed import Backlog, Users
from hagane.tools.cluster.submitters.replay import Replay
from hagane.tools.cluster.trace import openb
from hagane.tools.cluster.trace.jobs import read_jobs

_SHARED = "kind name seed job count until start"
FIELDS = {
    "uniform": "low high",
    "binomial": "trials probability every",
    "poisson": "rate",
    "diurnal": "rate amplitude period peak",
    "bursty": "rates stays",
    "users": "users think",
    "backlog": "target total",
    "replay": "pods format",
    "pods": "objects",
    "rpc": "url timeout",
    "python": "class arguments",
}
_JOB = "kind namespace users resource template duration"


def read_submitter(reader: Reader, index: int, seed: int, folder: Path) -> Submitter:
    """Return the submitter that a configuration describes.

    Args:
        reader: the entry.
        index: its place in the list; part of its seed.
        seed: of the whole run.
        folder: where relative paths start.

    Raises:
        InvalidManifest: at the field that is unknown or wrong.
    """
    kind = reader.text("kind", choices=tuple(FIELDS))
    known = [*_SHARED.split(), *FIELDS[kind].split()]
    for field in reader.value:
        if field not in known:
            raise (reader.place / str(field)).error(
                f"unknown field {field!r} of submitter kind {kind!r}{nearest(str(field), known)}"
            )
    name = reader.text("name") or f"{kind}-{index}"
    # Each submitter has its own seed, so that adding one leaves the others as they were.
    chance = random.Random(f"{reader.integer('seed', seed)}/{index}")
    if kind == "backlog":
        return Backlog(
            reader.integer("target", 8, low=1), chance, reader.integer("total", 1024, low=1)
        )
    if kind == "rpc":
        from hagane.tools.cluster.link.rpc import RemoteSubmitter

        return RemoteSubmitter(reader.required("url"), seconds(reader, "timeout", 5.0), name)
    if kind == "python":
        return _python(reader)
    if kind == "replay":
        return Replay(_trace(reader, folder), name)
    if kind == "pods":
        return Replay(_files(reader, folder), name)
    make = _maker(reader.at("job"), chance)
    count = reader.integer("count", low=0) if reader.has("count") else None
    if kind == "users":
        return Users(
            reader.integer("users", 1, low=1),
            seconds(reader, "think", 60.0),
            make,
            chance,
            count,
            name,
        )
    times: Iterable[float] = _times(kind, reader, chance)
    start = seconds(reader, "start", 0.0)
    if reader.has("until"):
        until = seconds(reader, "until", 0.0)
        times = itertools.takewhile(lambda t: t + start < until, times)
    if count is not None:
        times = itertools.islice(times, count)
    elif not reader.has("until"):
        raise reader.place.error("an endless submitter: give count or until")
    return Replay(((start + t, make(f"{name}-{i}")) for i, t in enumerate(times)), name)


def _times(kind: str, reader: Reader, chance: random.Random) -> Iterator[float]:
    if kind == "uniform":
        low = seconds(reader, "low", 0.0)
        high = seconds(reader, "high", 2.0)
        if not low <= high or high <= 0:
            raise (reader.place / "high").error(f"expected at least low ({low:g}) and above 0")
        return arrivals.uniform(chance, low, high)
    if kind == "binomial":
        share = reader.number("probability", 0.5, low=0)
        if not 0 < share <= 1:
            raise (reader.place / "probability").error(
                f"expected above 0 and at most 1, got {share}"
            )
        return arrivals.binomial(
            chance, reader.integer("trials", 10, low=1), share, _positive(reader, "every", 60.0)
        )
    if kind == "poisson":
        return arrivals.poisson(chance, _positive(reader, "rate", 1.0))
    if kind == "diurnal":
        amplitude = reader.number("amplitude", 0.8, low=0)
        if amplitude > 1:
            raise (reader.place / "amplitude").error(f"expected at most 1, got {amplitude}")
        return arrivals.diurnal(
            chance,
            _positive(reader, "rate", 1.0),
            amplitude,
            _positive(reader, "period", 86400.0),
            reader.number("peak", 50400.0),
        )
    rates, stays = reader.list("rates") or [0.1, 2.0], reader.list("stays") or [600, 60]
    if len(rates) != len(stays) or not all(s > 0 for s in stays) or not any(r > 0 for r in rates):
        raise (reader.place / "stays").error(
            "expected one positive stay for each rate, and a rate above 0"
        )
    return arrivals.bursty(chance, [float(r) for r in rates], [float(s) for s in stays])


def _positive(reader: Reader, name: str, default: float) -> float:
    value = seconds(reader, name, default)
    if value <= 0:
        raise (reader.place / name).error(f"expected above 0, got {value:g}")
    return value


def _maker(reader: Reader, chance: random.Random) -> jobs.Maker:
    for field in reader.value:
        if field not in _JOB.split():
            raise (reader.place / str(field)).error(
                f"unknown field {field!r} of a job{nearest(str(field), _JOB.split())}"
            )
    kind = reader.text("kind", "template" if reader.has("template") else "openb")
    namespace = reader.text("namespace") or "default"
    users = reader.integer("users", 1, low=1)
    if kind == "openb":
        return jobs.openb_jobs(chance, namespace, users)
    if kind == "philly":
        return jobs.philly_jobs(
            chance, namespace, users, reader.text("resource") or "nvidia.com/gpu"
        )
    if kind != "template":
        raise (reader.place / "kind").error(
            f"unsupported value {kind!r}: expected one of openb, philly, template"
        )
    value = dict(reader.at("template").value)
    value["metadata"] = {"name": "template", **(value.get("metadata") or {})}
    for volume in reader.at("template").at("spec").items("volumes"):
        for source in ("persistentVolumeClaim", "ephemeral"):
            if volume.has(source):
                raise (volume.place / source).error(
                    "volumes that submitted pods claim are not simulated: list the pods, or a Job, "
                    "with their claims under 'objects'"
                )
    template = read_pod(value, reader.place / "template")
    if not reader.has("duration"):
        return jobs.copies(template)
    model = reader.at("duration")
    law = model.text("law", "lognormal", ("lognormal", "exponential", "uniform", "constant"))
    a, b = model.number("a", 1.0), model.number("b", 1.0)
    laws = {
        "lognormal": lambda: chance.lognormvariate(a, b),
        "exponential": lambda: chance.expovariate(1 / a),
        "uniform": lambda: chance.uniform(a, b),
        "constant": lambda: a,
    }
    return jobs.copies(template, laws[law])


def _trace(reader: Reader, folder: Path) -> list[tuple[float, Pod]]:
    path = folder / reader.required("pods")
    form = reader.text("format", "openb", ("openb", "jobs"))
    found = openb.read_pods(path) if form == "openb" else read_jobs(path)
    return sorted(found, key=lambda item: item[0])


def _files(reader: Reader, folder: Path) -> list[tuple[float, Pod]]:
    from hagane.tools.cluster.model.read_objects import load_objects

    pods = load_objects(*(folder / p for p in reader.texts("objects"))).pods
    return [(0.0, pod) for pod in pods if not pod.node_name]


def _python(reader: Reader) -> Submitter:
    module, _, name = reader.required("class").partition(":")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise (reader.place / "class").error(f"expected module:Class: {error}") from None
    made = kind(**reader.at("arguments").value)
    if not isinstance(made, Submitter):
        raise (reader.place / "class").error(
            f"{name} is no hagane.tools.cluster.sim.ports.Submitter"
        )
    return made
