"""Schedulers from a configuration: ``kind`` and its parameters."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.kube.allocation import Strategy
from hagane.tools.cluster.kube.configuration import load_profile, seconds
from hagane.tools.cluster.kube.profile import Profile, default_profile, parse_version
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.read_pod import read_selector
from hagane.tools.cluster.model.reader import Reader
from hagane.tools.cluster.model.schema import nearest
from hagane.tools.cluster.schedulers.backfill import Backfill
from hagane.tools.cluster.schedulers.fair import Drf, Quota, Throttle, Throttled
from hagane.tools.cluster.schedulers.fgd import Fgd
from hagane.tools.cluster.schedulers.gang import Gang
from hagane.tools.cluster.schedulers.greedy import BestFit, Fifo, Greedy, ShortestRemaining
from hagane.tools.cluster.sim.ports import Scheduler

_SHARED = "kind profile schedulerName kubeVersion seed strategy timeout"
FIELDS = {
    "kube-scheduler": "preemption",
    "fifo": "",
    "greedy": "",
    "best-fit": "",
    "shortest-remaining": "",
    "fgd": "",
    "gang": "",
    "drf": "quotas",
    "throttle": "throttles",
    "backfill": "",
    "onnx": "model",
    "python": "class arguments",
}
_PLAIN: dict[str, type[Greedy]] = {
    "fifo": Fifo,
    "greedy": Greedy,
    "best-fit": BestFit,
    "shortest-remaining": ShortestRemaining,
    "gang": Gang,
    "backfill": Backfill,
}


def read_scheduler(reader: Reader, seed: int, folder: Path) -> Scheduler:
    """Return the scheduler that a configuration describes; kube-scheduler if it says nothing.

    Raises:
        InvalidManifest: at the field that is unknown or wrong.
    """
    kind = reader.text("kind", "kube-scheduler", tuple(FIELDS))
    known = [*_SHARED.split(), *FIELDS[kind].split()]
    for field in reader.value:
        if field not in known:
            raise (reader.place / str(field)).error(
                f"unknown field {field!r} of scheduler kind {kind!r}{nearest(str(field), known)}"
            )
    seed = reader.integer("seed", seed)
    profile = read_profile_of(reader, folder)
    if kind == "kube-scheduler":
        profile = replace(profile, preemption=reader.flag("preemption", profile.preemption))
        return _with_extenders(profile, seed)
    if kind == "fgd":
        return Fgd(None, profile, seed)
    if kind == "drf":
        quotas = {}
        for item in reader.items("quotas"):
            quotas[item.required("user")] = Quota(
                item.amounts("amounts"), item.flag("borrow", True), item.number("weight", 1.0)
            )
        return Drf(quotas, profile, seed)
    if kind == "throttle":
        throttles = tuple(
            Throttle(
                item.required("name"),
                read_selector(item.at("selector")),
                item.amounts("amounts"),
                item.integer("pods", low=0) if item.has("pods") else None,
            )
            for item in reader.items("throttles")
        )
        return Throttled(throttles, profile, seed)
    if kind == "onnx":
        from hagane.tools.cluster.schedulers.learned import Learned

        return Learned(folder / reader.required("model"), profile, seed)
    if kind == "python":
        return _python(reader)
    return _PLAIN[kind](profile, seed)


def read_profile_of(reader: Reader, folder: Path) -> Profile:
    """Return the profile that a scheduler's entry names or describes."""
    version = parse_version(reader.text("kubeVersion") or "1.34")
    if reader.has("profile"):
        name = reader.text("schedulerName") or None
        return load_profile(folder / reader.text("profile"), version, name)
    strategy = reader.text("strategy", "LeastAllocated", ("LeastAllocated", "MostAllocated"))
    return default_profile(version, Strategy(strategy))


def _with_extenders(profile: Profile, seed: int) -> KubeScheduler:
    if not profile.extenders:
        return KubeScheduler(profile, seed)
    from hagane.tools.cluster.link.extender import extended_scheduler

    return extended_scheduler(profile, seed)


def _python(reader: Reader) -> Scheduler:
    from hagane.tools.cluster.schedulers.guard import Guarded

    module, _, name = reader.required("class").partition(":")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise (reader.place / "class").error(f"expected module:Class: {error}") from None
    made = kind(**reader.at("arguments").value)
    if not isinstance(made, Scheduler):
        raise (reader.place / "class").error(
            f"{name} is no hagane.tools.cluster.sim.ports.Scheduler"
        )
    return Guarded(made, seconds(reader, "timeout", 60.0))


def profile_at(path: Path | None, kube_version: str) -> Profile:
    """Return the profile in a file, or the default one."""
    version = parse_version(kube_version)
    return load_profile(path, version) if path is not None else default_profile(version)


def served_scheduler(name: str, profile: Profile) -> Greedy | None:
    """Return the scheduler that an extender serves; None for the profile's own scores.

    Raises:
        InvalidManifest: if there is no such scheduler.
    """
    if name == "profile":
        return None
    if name == "fgd":
        return Fgd(None, profile)
    if name in _PLAIN:
        return _PLAIN[name](profile)
    module, _, kind = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), kind)(profile)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidManifest(
            f"--scheduler {name!r}: expected profile, fgd, {', '.join(_PLAIN)} or module:Class: "
            f"{error}"
        ) from None
    if not isinstance(found, Greedy):
        raise InvalidManifest(f"--scheduler {name!r}: {kind} is no Greedy scheduler")
    return found
