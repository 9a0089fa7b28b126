"""A scheduler's configuration: which plugins, with which weights and arguments.

Source: ``KubeSchedulerConfiguration`` of ``kubescheduler.config.k8s.io`` v1, v1beta3, v1beta2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hagane.tools.cluster.kube.allocation import (
    DEFAULT_RESOURCES,
    BalancedScore,
    FitScore,
    Strategy,
    Weighted,
)
from hagane.tools.cluster.kube.fit import FitFilter, GpuShareFilter
from hagane.tools.cluster.kube.framework import DEFAULT_VERSION, Filter, Score
from hagane.tools.cluster.kube.interpod import InterPodFilter, InterPodScore
from hagane.tools.cluster.kube.nodes import (
    ImageScore,
    NodeAffinityFilter,
    NodeAffinityScore,
    NodeNameFilter,
    PortsFilter,
    TaintFilter,
    TaintScore,
    UnschedulableFilter,
)
from hagane.tools.cluster.kube.spread import SYSTEM_DEFAULTS, Defaults, SpreadFilter, SpreadScore
from hagane.tools.cluster.model.documents import Document, read_documents
from hagane.tools.cluster.model.objects import NO_NODE_AFFINITY, NodeAffinity
from hagane.tools.cluster.model.read_pod import read_node_affinity, read_spread
from hagane.tools.cluster.model.reader import Reader
from hagane.tools.cluster.model.schema import nearest

# In the order in which kube-scheduler runs them.
FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
)
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
# Before 1.23 everything weighed one, but for spreading.
OLD_WEIGHTS = {**dict.fromkeys(WEIGHTS, 1), "PodTopologySpread": 2}
# Part of every kube-scheduler, without effect on what is simulated here.
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


@dataclass(frozen=True, slots=True)
class ExtenderConfig:
    """How to reach a scheduler extender; an empty verb is not called.

    Attributes:
        timeout: seconds that an answer may take.
        resources: extended resources it manages; with none, it sees every pod.
        ignored_by_scheduler: managed resources that NodeResourcesFit leaves to it.
    """

    url: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    timeout: float = 5.0
    names_only: bool = False
    resources: tuple[str, ...] = ()
    ignored_by_scheduler: tuple[str, ...] = ()
    ignorable: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    """One scheduler: plugins in order, weights, and the numbers around them."""

    filters: tuple[Filter, ...]
    scores: tuple[tuple[Score, int], ...]
    version: tuple[int, int] = DEFAULT_VERSION
    name: str = "default-scheduler"
    preemption: bool = True
    percentage: int = 0
    candidates_percentage: int = 10
    candidates_absolute: int = 100
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    extenders: tuple[ExtenderConfig, ...] = ()


@dataclass(slots=True)
class _Args:
    strategy: Strategy = field(default_factory=Strategy)
    ignored: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    balanced: tuple[Weighted, ...] = DEFAULT_RESOURCES
    hard_weight: int = 1
    ignore_existing: bool = False
    added: NodeAffinity = NO_NODE_AFFINITY
    defaults: Defaults = field(default_factory=Defaults)
    percentage: int = 10
    absolute: int = 100


def default_profile(
    version: tuple[int, int] = DEFAULT_VERSION, strategy: Strategy | None = None
) -> Profile:
    """Return kube-scheduler's default profile in a version."""
    args = _Args(strategy=strategy or Strategy())
    weights = WEIGHTS if version >= (1, 23) else OLD_WEIGHTS
    return _profile(args, FILTERS, weights, version)


def _profile(
    args: _Args,
    filters: tuple[str, ...],
    weights: dict[str, int],
    version: tuple[int, int],
    managed: tuple[str, ...] = (),
) -> Profile:
    made: dict[str, Filter] = {
        f.name: f
        for f in (
            UnschedulableFilter(),
            NodeNameFilter(),
            TaintFilter(),
            NodeAffinityFilter(args.added),
            PortsFilter(),
            FitFilter((*args.ignored, *managed), args.groups),
            SpreadFilter(args.defaults),
            InterPodFilter(),
        )
    }
    scorers: dict[str, Score] = {
        s.name: s
        for s in (
            TaintScore(),
            NodeAffinityScore(args.added),
            SpreadScore(args.defaults),
            InterPodScore(args.hard_weight, args.ignore_existing),
            FitScore(args.strategy),
            BalancedScore(args.balanced),
            ImageScore(),
        )
    }
    return Profile(
        filters=(*(made[name] for name in filters), GpuShareFilter()),
        scores=tuple((scorers[name], weight) for name, weight in weights.items()),
        version=version,
        candidates_percentage=args.percentage,
        candidates_absolute=args.absolute,
    )


def parse_version(text: str) -> tuple[int, int]:
    """Return (major, minor) of a Kubernetes version such as ``1.34`` or ``v1.34.2``.

    Raises:
        InvalidManifest: if it is not one.
    """
    from hagane.tools.cluster.errors import InvalidManifest

    parts = text.removeprefix("v").split(".")
    if len(parts) < 2 or not all(p.isdigit() for p in parts[:2]) or parts[0] != "1":
        raise InvalidManifest(f"Kubernetes version {text!r}: expected one like 1.34")
    return int(parts[0]), int(parts[1])


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
        from hagane.tools.cluster.errors import InvalidManifest

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
    filters, weights, preemption = _plugins(chosen.at("plugins"), version)
    managed = tuple(r for e in extenders for r in e.ignored_by_scheduler)
    made = _profile(args, filters, weights, version, managed)
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


def _plugins(
    reader: Reader, version: tuple[int, int]
) -> tuple[tuple[str, ...], dict[str, int], bool]:
    """Return the filters, the weights of scores, and whether preemption is on."""
    _known(reader, _POINTS)
    usual = WEIGHTS if version >= (1, 23) else OLD_WEIGHTS
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


def _args(profile: Reader) -> _Args:
    out = _Args()
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
    import re

    value = reader.value.get(name)
    if value is None:
        return default
    if isinstance(value, int | float) and not isinstance(value, bool):
        return reader.number(name, low=0)
    text = reader.text(name)
    units = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    parts = re.findall(r"(\d+\.?\d*)(ns|us|µs|ms|s|m|h)", text)
    if not parts or "".join(a + b for a, b in parts) != text:
        raise (reader.place / name).error(f"expected a duration like 5s or 100ms, got {text!r}")
    return sum(float(a) * units[b] for a, b in parts)
