"""``KubeSchedulerConfiguration`` files.

Source: ``kubescheduler.config.k8s.io`` v1, v1beta3, v1beta2.
"""

from __future__ import annotations

import re
from pathlib import Path

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.kube.allocation import DEFAULT_RESOURCES, Strategy, Weighted
from hagane.tools.cluster.kube.framework import DEFAULT_VERSION
from hagane.tools.cluster.kube.profile import (
    FILTERS,
    OLD_WEIGHTS,
    WEIGHTS,
    Args,
    ExtenderConfig,
    Profile,
    build_profile,
)
from hagane.tools.cluster.kube.spread import SYSTEM_DEFAULTS, Defaults
from hagane.tools.cluster.model.documents import Document, read_documents
from hagane.tools.cluster.model.read_pod import read_node_affinity, read_spread
from hagane.tools.cluster.model.reader import Reader
from hagane.tools.cluster.model.schema import nearest

# Part of every kube-scheduler, without effect on this simulation.
_INERT = [
    "PrioritySort",
    "SchedulingGates",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "EBSLimits",
    "GCEPDLimits",
    "AzureDiskLimits",
    "VolumeBinding",
    "VolumeZone",
    "DefaultBinder",
    "DynamicResources",
    "DefaultPreemption",
    "NodeDeclaredFeatures",
    "GangScheduling",
    "DeferredPodScheduling",
]
_POINTS = [
    "multiPoint",
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
]
_ARGS = {
    "NodeResourcesFit": (
        "apiVersion kind ignoredResources ignoredResourceGroups scoringStrategy resources"
    ),
    "NodeResourcesBalancedAllocation": "apiVersion kind resources",
    "InterPodAffinity": (
        "apiVersion kind hardPodAffinityWeight ignorePreferredTermsOfExistingPods"
    ),
    "NodeAffinity": "apiVersion kind addedAffinity",
    "PodTopologySpread": "apiVersion kind defaultConstraints defaultingType",
    "DefaultPreemption": ("apiVersion kind minCandidateNodesPercentage minCandidateNodesAbsolute"),
    "VolumeBinding": "apiVersion kind bindTimeoutSeconds shape",
    "DynamicResources": "apiVersion kind filterTimeout bindingTimeout",
}
_TOP = [
    "apiVersion",
    "kind",
    "parallelism",
    "leaderElection",
    "clientConnection",
    "healthzBindAddress",
    "metricsBindAddress",
    "enableProfiling",
    "enableContentionProfiling",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "profiles",
    "extenders",
    "delayCacheUntilActive",
    "featureGates",
]
_EXTENDER = [
    "urlPrefix",
    "filterVerb",
    "preemptVerb",
    "prioritizeVerb",
    "weight",
    "bindVerb",
    "enableHTTPS",
    "tlsConfig",
    "httpTimeout",
    "nodeCacheCapable",
    "managedResources",
    "ignorable",
]
MAX_WEIGHT = 100
# Versions of the configuration whose scores weigh one each, and those with today's weights.
_OLD_API = ("kubescheduler.config.k8s.io/v1beta1", "kubescheduler.config.k8s.io/v1beta2")
_NEW_API = ("kubescheduler.config.k8s.io/v1beta3", "kubescheduler.config.k8s.io/v1")


def load_profile(
    path: Path | str, version: tuple[int, int] = DEFAULT_VERSION, scheduler: str | None = None
) -> Profile:
    """Return the profile that a ``KubeSchedulerConfiguration`` file describes.

    Args:
        path: the file.
        version: which Kubernetes to be.
        scheduler: the profile's scheduler name; the first profile if None.

    Raises:
        InvalidManifest: at the first field that is unknown or wrong.
    """
    documents = read_documents(path)
    if len(documents) != 1:
        raise InvalidManifest(f"{path}: expected one document, got {len(documents)}")
    return read_profile(documents[0], version, scheduler)


def read_profile(
    document: Document, version: tuple[int, int] = DEFAULT_VERSION, scheduler: str | None = None
) -> Profile:
    """Return the profile in a document; raises as :func:`load_profile`."""
    top = Reader(document.value, document.place)
    _known(top, _TOP)
    kind = top.text("kind")
    if kind != "KubeSchedulerConfiguration":
        raise (top.place / "kind").error(f"expected KubeSchedulerConfiguration, got {kind!r}")
    old = top.text("apiVersion", _NEW_API[-1], (*_OLD_API, *_NEW_API)) in _OLD_API
    extenders = tuple(_extender(e) for e in top.items("extenders"))
    profiles = list(top.items("profiles")) or [Reader({}, top.place / "profiles" / 0)]
    names = [p.text("schedulerName") or "default-scheduler" for p in profiles]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise (profiles[index].place / "schedulerName").error(f"duplicate profile {name!r}")
    if scheduler is not None and scheduler not in names:
        raise (top.place / "profiles").error(
            f"no profile for scheduler {scheduler!r}: there are {', '.join(names)}"
        )
    chosen = profiles[names.index(scheduler) if scheduler is not None else 0]
    _known(chosen, ["schedulerName", "plugins", "pluginConfig", "percentageOfNodesToScore"])
    args = _args(chosen)
    filters, weights, preemption = _plugins(
        chosen.at("plugins"), OLD_WEIGHTS if old or version < (1, 23) else WEIGHTS
    )
    managed = tuple(r for e in extenders for r in e.ignored_by_scheduler)
    made = build_profile(args, filters, weights, version, managed)
    share = chosen if chosen.has("percentageOfNodesToScore") else top
    initial = top.integer("podInitialBackoffSeconds", 1, low=1)
    longest = top.integer("podMaxBackoffSeconds", 10)
    if longest < initial:
        raise (top.place / "podMaxBackoffSeconds").error(
            f"{longest} is out of range: expected at least podInitialBackoffSeconds, {initial}"
        )
    return Profile(
        filters=made.filters,
        scores=made.scores,
        version=version,
        name=names[profiles.index(chosen)],
        preemption=preemption,
        percentage=share.integer("percentageOfNodesToScore", 0, low=0, high=100),
        candidates_percentage=args.percentage,
        candidates_absolute=args.absolute,
        initial_backoff=float(initial),
        max_backoff=float(longest),
        extenders=extenders,
    )


def _known(reader: Reader, names: list[str]) -> None:
    for name in reader.value:
        if name not in names:
            raise (reader.place / str(name)).error(
                f"unknown field {name!r}{nearest(str(name), names)}"
            )


def _plugins(reader: Reader, usual: dict[str, int]) -> tuple[tuple[str, ...], dict[str, int], bool]:
    """Return the filters, the weights of scores, and whether preemption is on."""
    _known(reader, _POINTS)
    filters = list(FILTERS)
    weights = dict(usual)
    post = ["DefaultPreemption"]
    for point in ("multiPoint", "filter", "score", "postFilter"):
        part = reader.at(point)
        _known(part, ["enabled", "disabled"])
        for item in part.items("disabled"):
            name = item.required("name")
            _plugin_known(item, name, allow_star=True)
            for group, names in (("filter", filters), ("score", weights), ("postFilter", post)):
                if point not in ("multiPoint", group):
                    continue
                if name == "*":
                    names.clear()
                elif name in names:
                    names.pop(name) if isinstance(names, dict) else names.remove(name)
        for item in part.items("enabled"):
            name = item.required("name")
            _plugin_known(item, name)
            weight = item.integer("weight", 0, low=0)
            if point in ("multiPoint", "filter") and name in FILTERS and name not in filters:
                filters.append(name)
            if point in ("multiPoint", "score") and name in usual:
                weights.setdefault(name, 1 if point == "score" else usual[name])
                if weight:
                    weights[name] = weight
                elif point == "score":
                    weights[name] = weights[name] or 1
            if point in ("multiPoint", "postFilter") and name == "DefaultPreemption" and not post:
                post.append(name)
    return tuple(filters), weights, bool(post)


def _plugin_known(item: Reader, name: str, allow_star: bool = False) -> None:
    _known(item, ["name", "weight"])
    known = [*WEIGHTS, *FILTERS, *_INERT]
    if name not in known and not (allow_star and name == "*"):
        raise (item.place / "name").error(f"unknown plugin {name!r}{nearest(name, known)}")


def _args(profile: Reader) -> Args:
    out = Args()
    seen = set()
    for item in profile.items("pluginConfig"):
        _known(item, ["name", "args"])
        name = item.required("name")
        if name in seen:
            raise (item.place / "name").error(f"repeated config for plugin {name!r}")
        seen.add(name)
        if name not in _ARGS:
            raise (item.place / "name").error(
                f"unknown plugin {name!r}{nearest(name, _ARGS)}: it takes no arguments"
            )
        args = item.at("args")
        _known(args, _ARGS[name].split())
        if name == "NodeResourcesFit":
            out.ignored = args.texts("ignoredResources")
            out.groups = args.texts("ignoredResourceGroups")
            out.strategy = _strategy(args.at("scoringStrategy"))
        elif name == "NodeResourcesBalancedAllocation":
            out.balanced = _resources(args, balanced=True) or DEFAULT_RESOURCES
        elif name == "InterPodAffinity":
            out.hard_weight = args.integer("hardPodAffinityWeight", 1, low=0, high=100)
            out.ignore_existing = args.flag("ignorePreferredTermsOfExistingPods")
        elif name == "NodeAffinity":
            out.added = read_node_affinity(args.at("addedAffinity"))
        elif name == "PodTopologySpread":
            own = tuple(read_spread(s, {}) for s in args.items("defaultConstraints"))
            kind = args.text("defaultingType", "System", ("System", "List"))
            if kind == "System" and own:
                raise (args.place / "defaultConstraints").error(
                    "must be empty when defaultingType is System"
                )
            system = kind == "System"
            out.defaults = Defaults(SYSTEM_DEFAULTS if system else own, system)
        elif name == "DefaultPreemption":
            out.percentage = args.integer("minCandidateNodesPercentage", 10, low=0, high=100)
            out.absolute = args.integer("minCandidateNodesAbsolute", 100, low=0)
    return out


def _strategy(reader: Reader) -> Strategy:
    _known(reader, ["type", "resources", "requestedToCapacityRatio"])
    kind = reader.text(
        "type",
        "LeastAllocated",
        ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"),
    )
    resources = _resources(reader) or DEFAULT_RESOURCES
    shape = []
    if kind == "RequestedToCapacityRatio":
        points = reader.at("requestedToCapacityRatio")
        _known(points, ["shape"])
        for point in points.items("shape"):
            _known(point, ["utilization", "score"])
            shape.append(
                (
                    point.integer("utilization", low=0, high=100),
                    point.integer("score", low=0, high=10),
                )
            )
            if len(shape) > 1 and shape[-1][0] <= shape[-2][0]:
                raise (point.place / "utilization").error(
                    f"utilization values must be sorted: {shape[-1][0]} follows {shape[-2][0]}"
                )
        if not shape:
            raise (points.place / "shape").error("at least one point must be specified")
    return Strategy(kind, resources, tuple(shape))


def _resources(reader: Reader, balanced: bool = False) -> tuple[Weighted, ...]:
    out = []
    for item in reader.items("resources"):
        _known(item, ["name", "weight"])
        weight = item.integer("weight", 1)
        if weight == 0 and not item.has("weight"):
            weight = 1
        if not 1 <= weight <= MAX_WEIGHT or (balanced and weight != 1):
            limits = "expected 1" if balanced else "not in valid range [1-100]"
            raise (item.place / "weight").error(
                f"resource weight of {item.text('name')} is {weight}: {limits}"
            )
        out.append(Weighted(item.required("name"), weight))
    return tuple(out)


def _extender(reader: Reader) -> ExtenderConfig:
    _known(reader, _EXTENDER)
    managed = list(reader.items("managedResources"))
    for item in managed:
        _known(item, ["name", "ignoredByScheduler"])
    weight = reader.integer("weight", 1)
    if reader.text("prioritizeVerb") and weight <= 0:
        raise (reader.place / "weight").error("must have a positive weight applied to it")
    return ExtenderConfig(
        url=reader.required("urlPrefix"),
        filter_verb=reader.text("filterVerb"),
        prioritize_verb=reader.text("prioritizeVerb"),
        preempt_verb=reader.text("preemptVerb"),
        bind_verb=reader.text("bindVerb"),
        weight=weight,
        timeout=seconds(reader, "httpTimeout", 5.0),
        names_only=reader.flag("nodeCacheCapable"),
        resources=tuple(m.required("name") for m in managed),
        ignored_by_scheduler=tuple(
            m.required("name") for m in managed if m.flag("ignoredByScheduler")
        ),
        ignorable=reader.flag("ignorable"),
    )


def seconds(reader: Reader, name: str, default: float) -> float:
    """Return a duration as Go writes it (``1m30s``, ``100ms``) or a number of seconds."""
    value = reader.value.get(name)
    if value is None:
        return default
    if isinstance(value, int | float) and not isinstance(value, bool):
        return reader.number(name, low=0)
    text = reader.text(name)
    units = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    parts = re.findall(r"(\d+\.?\d*)(ns|us|µs|ms|s|m|h)", text)
    if not parts or "".join(a + b for a, b in parts) != text:
        raise (reader.place / name).error(
            f"expected seconds or a duration like 5s, 100ms or 1h30m, got {text!r}"
        )
    return sum(float(a) * units[b] for a, b in parts)
