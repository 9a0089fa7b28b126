"""A scheduler's configuration: which plugins, with which weights and arguments.

Source: ``KubeSchedulerConfiguration`` of ``kubescheduler.config.k8s.io`` v1, v1beta3, v1beta2.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
from hagane.tools.cluster.kube.spread import Defaults, SpreadFilter, SpreadScore
from hagane.tools.cluster.model.objects import NO_NODE_AFFINITY, NodeAffinity

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
# The oldest Kubernetes that is imitated.
OLDEST = (1, 20)
# Before 1.23 everything weighed one, but for spreading; with configurations v1beta2 still.
OLD_WEIGHTS = {**dict.fromkeys(WEIGHTS, 1), "PodTopologySpread": 2}


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
class Args:
    """Arguments of all plugins."""

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
    args = Args(strategy=strategy or Strategy())
    weights = WEIGHTS if version >= (1, 23) else OLD_WEIGHTS
    return build_profile(args, FILTERS, weights, version)


def build_profile(
    args: Args,
    filters: tuple[str, ...],
    weights: dict[str, int],
    version: tuple[int, int],
    managed: tuple[str, ...] = (),
) -> Profile:
    """Return a profile of named filters and weighted scores.

    Args:
        args: the plugins' arguments.
        filters: names, in the order in which they run.
        weights: scores by name.
        version: which Kubernetes to be.
        managed: resources that an extender answers for.
    """
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
        InvalidManifest: if it is not one, or older than the oldest that is imitated.
    """
    from hagane.tools.cluster.errors import InvalidManifest

    parts = text.removeprefix("v").split(".")
    if len(parts) < 2 or not all(p.isdigit() for p in parts[:2]) or parts[0] != "1":
        raise InvalidManifest(f"Kubernetes version {text!r}: expected one like 1.34")
    if int(parts[1]) < OLDEST[1]:
        raise InvalidManifest(f"Kubernetes version {text!r}: expected 1.{OLDEST[1]} or later")
    return int(parts[0]), int(parts[1])
