"""The numbers of Kubernetes' own unit tests of the score plugins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hagane.tools.cluster.kube.allocation import (
    BalancedScore,
    FitScore,
    Strategy,
    Weighted,
    broken_linear,
)
from hagane.tools.cluster.kube.framework import Cycle, Score
from hagane.tools.cluster.kube.interpod import InterPodScore
from hagane.tools.cluster.kube.nodes import ImageScore, NodeAffinityScore, TaintScore
from hagane.tools.cluster.kube.spread import SpreadScore
from hagane.tools.cluster.model import parse_objects
from hagane.tools.cluster.state import Cluster
from tests.cluster.manifests import node, objects, one, pod

FOO = "example.com/foo"
NOTHING = pod("p")
TWO = ({"cpu": "1000", "memory": "2000"}, {"cpu": "2000", "memory": "3000"})


def scored(
    plugin: Score,
    wanted: dict[str, Any],
    nodes: list[dict[str, Any]],
    pods: list[dict[str, Any]] | None = None,
    candidates: list[str] | None = None,
    version: tuple[int, int] = (1, 34),
    others: tuple[dict[str, Any], ...] = (),
) -> list[int] | None:
    """Normalised scores of the candidates, in order; None where the plugin skips the pod."""
    for index, other in enumerate(pods or ()):
        other["metadata"]["name"] = f"existing-{index}"
    known = objects(*nodes, *(pods or ()), *others)
    cluster = Cluster.of(known)
    names = candidates or [n["metadata"]["name"] for n in nodes]
    rows = np.array([cluster.rows[name] for name in names], dtype=np.int64)
    cycle = Cycle(one(wanted), cluster, version)
    raw = plugin.raw(cycle, rows)
    return None if raw is None else plugin.normalise(cycle, raw).tolist()


def sized(*sizes: tuple[object, object] | dict[str, object]) -> list[dict[str, Any]]:
    out = []
    for index, size in enumerate(sizes):
        has = size if isinstance(size, dict) else {"cpu": str(size[0]), "memory": str(size[1])}
        out.append(node(f"node{index + 1}", has=has))
    return out


def on(name: str, *requests: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return pod("x", *requests, nodeName=name, **rest)


A, B = {"cpu": "3000", "memory": "0"}, {"cpu": "3000", "memory": "5000"}
EQUAL = (4000, 10000), (4000, 10000)
LARGER = (4000, 10000), (6000, 10000)
TENS = (10000, 20000), (10000, 20000)
LOADED = [on("node1", A), on("node1", A), on("node2", A), on("node2", B)]
HALF = [on("node1", A), on("node2", B)]
FOO_ON_SECOND = {"cpu": "6000", "memory": "10000"}, {"cpu": "6000", "memory": "10000", FOO: "4"}
FOO_4_10 = (
    {"cpu": "6000", "memory": "10000", FOO: "4"},
    {"cpu": "6000", "memory": "10000", FOO: "10"},
)
WITH_FOO = (Weighted("cpu"), Weighted("memory"), Weighted(FOO))
MEMORY_TWICE = (Weighted("memory", 2), Weighted("cpu", 1))
PLAIN = (Weighted("cpu"), Weighted("memory"))
HALVES = {"cpu": "3000", "memory": "5000", FOO: "2"}

LEAST = [
    ("nothing scheduled, nothing requested", NOTHING, EQUAL, [], PLAIN, [100, 100]),
    ("differently sized nodes", pod("p", *TWO), LARGER, [], PLAIN, [37, 50]),
    (
        "no resources requested, pods scheduled",
        NOTHING,
        EQUAL,
        [on("node1"), on("node1"), on("node2"), on("node2")],
        PLAIN,
        [100, 100],
    ),
    ("pods scheduled with resources", NOTHING, TENS, LOADED, PLAIN, [70, 57]),
    ("requested, pods scheduled with resources", pod("p", *TWO), TENS, HALF, PLAIN, [57, 45]),
    (
        "requested, pods scheduled, differently sized",
        pod("p", *TWO),
        ((10000, 20000), (10000, 50000)),
        HALF,
        PLAIN,
        [57, 60],
    ),
    ("requests exceed capacity", pod("p", A), EQUAL, HALF, PLAIN, [50, 25]),
    ("zero node resources", NOTHING, ({}, {}), HALF, PLAIN, [0, 0]),
    ("weights on cpu and memory", pod("p", *TWO), LARGER, [], MEMORY_TWICE, [41, 50]),
    ("extended resource not requested", pod("p", *TWO), FOO_ON_SECOND, [], WITH_FOO, [50, 50]),
    ("extended resource requested", pod("p", HALVES), FOO_4_10, [], WITH_FOO, [50, 60]),
]
MOST = [
    ("nothing scheduled, nothing requested", NOTHING, EQUAL, [], PLAIN, [0, 0]),
    ("differently sized nodes", pod("p", *TWO), LARGER, [], PLAIN, [62, 50]),
    ("pods scheduled with resources", NOTHING, TENS, LOADED, PLAIN, [30, 42]),
    ("requested, pods scheduled with resources", pod("p", *TWO), TENS, HALF, PLAIN, [42, 55]),
    (
        "requests equal capacity",
        pod("p", {"cpu": "2000", "memory": "4000"}, {"cpu": "3000", "memory": "5000"}),
        ((5000, 10000), (10000, 9000)),
        [],
        PLAIN,
        [95, 75],
    ),
    ("weights on cpu and memory", pod("p", *TWO), LARGER, [], MEMORY_TWICE, [58, 50]),
    (
        "silent containers count 100m and 200Mi",
        pod("p", {}),
        (("250m", "1000Mi"), ("250m", "1000Mi")),
        [on("node1", {}), on("node1", {})],
        PLAIN,
        [80, 30],
    ),
    ("extended resource not requested", pod("p", *TWO), FOO_ON_SECOND, [], WITH_FOO, [50, 50]),
    ("extended resource requested", pod("p", HALVES), FOO_4_10, [], WITH_FOO, [50, 40]),
    (
        "a node without the resource",
        pod("p", {"cpu": "3000", "memory": "4000"}),
        FOO_ON_SECOND,
        [],
        (Weighted(FOO, 2), *PLAIN),
        [45, 45],
    ),
]
FULL_TO_EMPTY = ((0, 10), (100, 0))
RATIO = [
    ("nothing requested", NOTHING, EQUAL, [on("node1"), on("node1")], PLAIN, [100, 100]),
    ("differently sized nodes", pod("p", *TWO), LARGER, [], PLAIN, [38, 50]),
    (
        "pods scheduled with resources",
        NOTHING,
        LARGER,
        [on("node1", B), on("node2", B)],
        PLAIN,
        [38, 50],
    ),
]
Case = tuple[str, dict[str, Any], Any, list[dict[str, Any]], tuple[Weighted, ...], list[int]]


def ids(cases: list[Any]) -> list[str]:
    return [case[0] for case in cases]


@pytest.mark.parametrize("case", LEAST, ids=ids(LEAST))
def test_least_allocated(case: Case) -> None:
    _, wanted, sizes, pods, resources, expected = case
    strategy = Strategy("LeastAllocated", resources)
    assert scored(FitScore(strategy), wanted, sized(*sizes), pods) == expected


@pytest.mark.parametrize("case", MOST, ids=ids(MOST))
def test_most_allocated(case: Case) -> None:
    _, wanted, sizes, pods, resources, expected = case
    strategy = Strategy("MostAllocated", resources)
    assert scored(FitScore(strategy), wanted, sized(*sizes), pods) == expected


@pytest.mark.parametrize("case", RATIO, ids=ids(RATIO))
def test_requested_to_capacity_ratio(case: Case) -> None:
    _, wanted, sizes, pods, resources, expected = case
    strategy = Strategy("RequestedToCapacityRatio", resources, FULL_TO_EMPTY)
    assert scored(FitScore(strategy), wanted, sized(*sizes), pods) == expected


@pytest.mark.parametrize(
    ("requested", "bound", "expected"),
    [
        ({}, [], [0, 0]),
        ({"intel.com/foo": "2"}, [], [2, 5]),
        ({"intel.com/foo": "2"}, [on("node2", {"intel.com/foo": "2"})], [2, 10]),
        ({"intel.com/foo": "4"}, [], [5, 10]),
    ],
)
def test_bin_packing_of_one_extended_resource(
    requested: dict[str, str], bound: list[dict[str, Any]], expected: list[int]
) -> None:
    strategy = Strategy(
        "RequestedToCapacityRatio", (Weighted("intel.com/foo"),), ((0, 0), (100, 1))
    )
    nodes = sized({"cpu": "4", "intel.com/foo": 8}, {"cpu": "4", "intel.com/foo": 4})
    wanted = pod("p", requested) if requested else NOTHING
    assert scored(FitScore(strategy), wanted, nodes, bound) == expected


@pytest.mark.parametrize(
    ("requested", "bound", "expected"),
    [
        ({}, [], [0, 0]),
        ({"intel.com/foo": "2", "intel.com/bar": "2"}, [], [4, 3]),
    ],
)
def test_bin_packing_of_two_extended_resources(
    requested: dict[str, str], bound: list[dict[str, Any]], expected: list[int]
) -> None:
    strategy = Strategy(
        "RequestedToCapacityRatio",
        (Weighted("intel.com/foo", 3), Weighted("intel.com/bar", 5)),
        ((0, 0), (100, 1)),
    )
    nodes = sized(
        {"cpu": "4", "intel.com/foo": 8, "intel.com/bar": 4},
        {"cpu": "4", "intel.com/foo": 4, "intel.com/bar": 8},
    )
    wanted = pod("p", requested) if requested else NOTHING
    assert scored(FitScore(strategy), wanted, nodes, bound) == expected


RISING = ((10, 1), (90, 9))
PEAK = ((0, 2), (40, 10), (100, 0))
FLAT = ((0, 2), (40, 2), (100, 2))


@pytest.mark.parametrize(
    ("shape", "at", "expected"),
    [
        *(
            (RISING, p, e)
            for p, e in [
                (-10, 1),
                (0, 1),
                (9, 1),
                (10, 1),
                (15, 1),
                (19, 1),
                (20, 2),
                (89, 8),
                (90, 9),
                (99, 9),
                (100, 9),
                (110, 9),
            ]
        ),
        *(
            (PEAK, p, e)
            for p, e in [(-10, 2), (0, 2), (20, 6), (30, 8), (40, 10), (70, 5), (100, 0), (110, 0)]
        ),
        *((FLAT, p, 2) for p in (-10, 0, 20, 30, 40, 70, 100, 110)),
    ],
)
def test_the_line_through_points(
    shape: tuple[tuple[int, int], ...], at: int, expected: int
) -> None:
    assert broken_linear(shape, at) == expected


CPU_AND_MEMORY = ({"cpu": "1000m", "memory": "2000"}, {"cpu": "2000m", "memory": "3000"})
CPU_ONLY = ({"cpu": "1000m", "memory": "0"}, {"cpu": "2000m", "memory": "0"})
WITH_GPU = (
    {"cpu": "1000m", "memory": "2000"},
    {"cpu": "2000m", "memory": "3000", "nvidia.com/gpu": "3"},
)
GPU = (*PLAIN, Weighted("nvidia.com/gpu"))
GPU_NODE = {"cpu": "3500m", "memory": "40000", "nvidia.com/gpu": "8"}
BALANCED = [
    (
        "differently sized",
        pod("p", *CPU_AND_MEMORY),
        (("4", 10000), ("6", 10000)),
        [],
        PLAIN,
        [87, 100],
    ),
    (
        "pods scheduled",
        pod("p", *CPU_AND_MEMORY),
        (("10", 20000), ("10", 20000)),
        [on("node1", *CPU_ONLY), on("node2", *CPU_AND_MEMORY)],
        PLAIN,
        [82, 95],
    ),
    (
        "pods scheduled, differently sized",
        pod("p", *CPU_AND_MEMORY),
        (("10", 20000), ("10", 50000)),
        [on("node1", *CPU_ONLY), on("node2", *CPU_AND_MEMORY)],
        PLAIN,
        [82, 80],
    ),
    (
        "at node capacity",
        pod("p", *CPU_ONLY),
        (("6", 10000), ("6", 10000)),
        [on("node1", *CPU_ONLY), on("node2", *CPU_AND_MEMORY)],
        PLAIN,
        [50, 75],
    ),
    (
        "a GPU counts",
        pod("p", {"memory": "0", "nvidia.com/gpu": "1"}),
        (GPU_NODE, GPU_NODE),
        [on("node2", *CPU_AND_MEMORY), on("node1", *WITH_GPU)],
        GPU,
        [70, 65],
    ),
    (
        "a GPU that is not there",
        pod("p", *CPU_AND_MEMORY),
        (GPU_NODE, {"cpu": "3500m", "memory": "40000"}),
        [],
        GPU,
        [63, 63],
    ),
]


@pytest.mark.parametrize("case", BALANCED, ids=ids(BALANCED))
def test_balanced_allocation(case: Case) -> None:
    _, wanted, sizes, pods, resources, expected = case
    assert scored(BalancedScore(resources), wanted, sized(*sizes), pods) == expected


def test_balanced_allocation_skips_a_pod_without_requests() -> None:
    assert scored(BalancedScore(), NOTHING, sized(*EQUAL)) is None


def test_balanced_allocation_by_version() -> None:
    nodes = sized(("4", 10000), ("6", 10000))
    wanted = pod("p", *CPU_AND_MEMORY)
    # Up to 1.21: 100 (1 - |0.75 - 0.5|); from 1.36: 50 + (50 + 87 - 100) / 2.
    assert scored(BalancedScore(), wanted, nodes, version=(1, 21)) == [75, 100]
    assert scored(BalancedScore(), wanted, nodes, version=(1, 22)) == [87, 100]
    assert scored(BalancedScore(), wanted, nodes, version=(1, 36)) == [68, 75]


def taint(key: str, value: str, effect: str = "PreferNoSchedule") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def tolerating(
    *pairs: tuple[str, str], effect: str = "PreferNoSchedule", operator: str = "Equal"
) -> dict[str, Any]:
    return pod(
        "p",
        tolerations=[
            {"key": k, "operator": operator, "value": v, "effect": effect} for k, v in pairs
        ],
    )


ARM, SSD = ("cpu-type", "arm64"), ("disk-type", "ssd")
TAINTS = [
    (
        "tolerated beats intolerable",
        tolerating(("foo", "bar")),
        [[taint("foo", "bar")], [taint("foo", "blah")]],
        [100, 0],
    ),
    (
        "tolerable taints don't count",
        tolerating(ARM, SSD),
        [[], [taint(*ARM)], [taint(*ARM), taint(*SSD)]],
        [100, 100, 100],
    ),
    (
        "more intolerable taints score lower",
        tolerating(("foo", "bar")),
        [[], [taint(*ARM)], [taint(*ARM), taint(*SSD)]],
        [100, 50, 0],
    ),
    (
        "only PreferNoSchedule counts",
        tolerating(ARM, SSD, effect="NoSchedule"),
        [[], [taint(*ARM, "NoSchedule")], [taint(*ARM), taint(*SSD)]],
        [100, 100, 0],
    ),
    ("no taints and no tolerations", NOTHING, [[], [taint(*ARM)]], [100, 0]),
    (
        "Gt",
        tolerating(("sla", "950"), operator="Gt"),
        [[taint("sla", "800")], [taint("sla", "999")]],
        [0, 100],
    ),
    (
        "Lt",
        tolerating(("sla", "800"), operator="Lt"),
        [[taint("sla", "950")], [taint("sla", "700")]],
        [0, 100],
    ),
    (
        "Gt of no number",
        tolerating(("sla", "950"), operator="Gt"),
        [[], [taint("sla", "high")]],
        [100, 0],
    ),
]


@pytest.mark.parametrize("case", TAINTS, ids=ids(TAINTS))
def test_taint_toleration(case: Any) -> None:
    _, wanted, taints, expected = case
    nodes = [node(f"n{i}", taints=t) for i, t in enumerate(taints)]
    assert scored(TaintScore(), wanted, nodes) == expected


def expression(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def preferring(*terms: tuple[int, list[dict[str, Any]]]) -> dict[str, Any]:
    preferred = [
        {"weight": w, "preference": {"matchExpressions": expressions}} for w, expressions in terms
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


ONE_TERM = preferring((2, [expression("foo", "bar")]))
THREE_TERMS = preferring(
    (2, [expression("foo", "bar")]),
    (4, [expression("key", "value")]),
    (5, [expression("foo", "bar"), expression("key", "value"), expression("az", "az1")]),
)
L1, L2, L3 = {"foo": "bar"}, {"key": "value"}, {"az": "az1"}
L4, L5 = {"abc": "az11", "def": "az22"}, {"foo": "bar", "key": "value", "az": "az1"}
AFFINITY = [
    ("no affinity", None, [L1, L2, L3], None),
    ("no node matches", ONE_TERM, [L4, L2, L3], [0, 0, 0]),
    ("only the first matches", ONE_TERM, [L1, L2, L3], [100, 0, 0]),
    ("all match with different weights", THREE_TERMS, [L1, L5, L2], [18, 100, 36]),
]


@pytest.mark.parametrize("case", AFFINITY, ids=ids(AFFINITY))
def test_node_affinity(case: Any) -> None:
    _, affinity, labels, expected = case
    nodes = [node(f"n{i}", label) for i, label in enumerate(labels)]
    wanted = pod("p", affinity=affinity) if affinity else NOTHING
    assert scored(NodeAffinityScore(), wanted, nodes) == expected


def added(weight: int, key: str, value: str) -> Any:
    wanted = pod("p", affinity=preferring((weight, [expression(key, value)])))
    return one(wanted).node_affinity


def test_node_affinity_added_by_the_profile() -> None:
    nodes = [node("a", L1), node("b", L2), node("c", L5)]
    assert scored(NodeAffinityScore(added(2, "foo", "bar")), NOTHING, nodes[:2]) == [100, 0]
    wanted = pod("p", affinity=ONE_TERM)
    assert scored(NodeAffinityScore(added(3, "key", "value")), wanted, nodes) == [40, 60, 100]


def image(name: str, mib: int) -> dict[str, Any]:
    return {"names": [f"gcr.io/{name}:latest", f"gcr.io/{name}:v1"], "sizeBytes": mib << 20}


FIRST = [image("40", 40), image("300", 300), image("2000", 2000)]
SECOND = [image("250", 250), image("10", 10)]
IMAGES = [
    # One limit for all containers, as up to 1.19.
    ("two images on two nodes", ["40", "250"], [FIRST, SECOND], (1, 19), [0, 10]),
    ("two images on one node", ["40", "300"], [FIRST, SECOND], (1, 19), [15, 0]),
    ("beyond the limit", ["2000", "10"], [FIRST, SECOND], (1, 19), [100, 0]),
    ("and a node without images", ["2000", "10"], [FIRST, SECOND, []], (1, 19), [65, 0, 0]),
    # 1000 MiB a container: (125 - 23) / (2000 - 23), (170 - 23) / 1977, 977 / 1977.
    ("two images on two nodes, 1.34", ["40", "250"], [FIRST, SECOND], (1, 34), [0, 5]),
    ("two images on one node, 1.34", ["40", "300"], [FIRST, SECOND], (1, 34), [7, 0]),
    ("beyond the limit, 1.34", ["2000", "10"], [FIRST, SECOND], (1, 34), [49, 0]),
]


@pytest.mark.parametrize("case", IMAGES, ids=ids(IMAGES))
def test_image_locality(case: Any) -> None:
    _, names, images, version, expected = case
    containers = [{"name": n, "image": f"gcr.io/{n}"} for n in names]
    nodes = [node(f"n{i}", images=held) for i, held in enumerate(images)]
    wanted = pod("p", containers=containers)
    assert scored(ImageScore(), wanted, nodes, version=version) == expected


HOST, ZONE = "kubernetes.io/hostname", "zone"
FOO_EXISTS = {"matchExpressions": [{"key": "foo", "operator": "Exists"}]}


def spreading(*constraints: tuple[int, str], selector: Any = FOO_EXISTS) -> dict[str, Any]:
    return pod(
        "p",
        labels={"foo": ""},
        topologySpreadConstraints=[
            {
                "maxSkew": skew,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                **({"labelSelector": selector} if selector else {}),
            }
            for skew, key in constraints
        ],
    )


def hosts(*names: str, **zones: str) -> list[dict[str, Any]]:
    return [node(n, {HOST: n, **({ZONE: zones[n]} if n in zones else {})}) for n in names]


def holding(**counts: int) -> list[dict[str, Any]]:
    return [on(name, labels={"foo": ""}) for name, count in counts.items() for _ in range(count)]


ZONES = {"a": "zone1", "b": "zone1", "x": "zone2", "y": "zone2"}
SPREAD = [
    ("no existing pods", spreading((1, HOST)), hosts("a", "b"), {}, None, [100, 100]),
    ("one candidate", spreading((1, HOST)), hosts("a", "b"), {"a": 2, "b": 1}, ["a"], [100]),
    ("equal counts", spreading((1, HOST)), hosts("a", "b"), {"a": 1, "b": 1}, None, [100, 100]),
    (
        "2/1/0/3",
        spreading((1, HOST)),
        hosts("a", "b", "c", "d"),
        {"a": 2, "b": 1, "d": 3},
        None,
        [20, 60, 100, 0],
    ),
    (
        "null selector",
        spreading((1, HOST), selector=None),
        hosts("a", "b", "c", "d"),
        {"a": 2, "b": 1, "d": 3},
        None,
        [100, 100, 100, 100],
    ),
    (
        "maxSkew 2",
        spreading((2, HOST)),
        hosts("a", "b", "c", "d"),
        {"a": 2, "b": 1, "d": 3},
        None,
        [33, 66, 100, 16],
    ),
    (
        "maxSkew 3",
        spreading((3, HOST)),
        hosts("a", "b", "c", "d"),
        {"a": 4, "b": 3, "c": 2, "d": 1},
        None,
        [44, 66, 77, 100],
    ),
    (
        "three of four",
        spreading((1, HOST)),
        hosts("a", "b", "x", "y"),
        {"a": 4, "b": 2, "x": 1, "y": 3},
        ["a", "b", "x"],
        [33, 83, 100],
    ),
    (
        "one lacks the label",
        spreading((1, HOST)),
        [*hosts("a"), node("b", {"n": "b"}), *hosts("x", "y")],
        {"a": 4, "b": 2, "x": 1, "y": 3},
        ["a", "b", "x"],
        [16, 0, 100],
    ),
    (
        "on zone",
        spreading((1, ZONE)),
        hosts("a", "b", "x", "y", **ZONES),
        {"a": 4, "b": 2, "x": 1, "y": 3},
        ["a", "b", "x"],
        [75, 75, 100],
    ),
    (
        "on zone and node",
        spreading((1, ZONE), (1, HOST)),
        hosts("a", "b", "x", "y", **ZONES),
        {"a": 2, "b": 1, "x": 2, "y": 4},
        ["a", "x"],
        [100, 63],
    ),
]


@pytest.mark.parametrize("case", SPREAD, ids=ids(SPREAD))
def test_pod_topology_spread(case: Any) -> None:
    _, wanted, nodes, counts, candidates, expected = case
    assert scored(SpreadScore(), wanted, nodes, holding(**counts), candidates) == expected


def test_pod_topology_spread_by_default_for_the_pods_of_a_service() -> None:
    service = {"kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": {"foo": ""}}}
    wanted = pod("p", labels={"foo": ""})
    pods = holding(a=4, b=3, c=2, d=1)
    nodes = hosts("a", "b", "c", "d")
    assert scored(SpreadScore(), wanted, nodes, pods, others=(service,)) == [44, 66, 77, 100]
    assert scored(SpreadScore(), wanted, nodes, pods) is None


S1, S2 = {"security": "S1"}, {"security": "S2"}
CHINA, INDIA, AZ1 = {"region": "China"}, {"region": "India"}, {"az": "az1"}
BOTH = {"region": "China", "az": "az1"}


def near(kind: str, weight: int, labels: dict[str, str], key: str) -> dict[str, Any]:
    term = {
        "labelSelector": {"matchExpressions": [expression(k, v) for k, v in labels.items()]},
        "topologyKey": key,
    }
    preferred = [{"weight": weight, "podAffinityTerm": term}]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


STAY_S1 = near("podAffinity", 5, S1, "region")
STAY_S2 = near("podAffinity", 6, S2, "region")
AWAY_S1 = near("podAntiAffinity", 5, S1, "az")
AWAY_S2 = near("podAntiAffinity", 5, S2, "az")
INTERPOD = [
    ("nobody has affinity", pod("p", labels=S1), [CHINA, INDIA, AZ1], [], None),
    (
        "topology and pods match",
        pod("p", labels=S1, affinity=STAY_S1),
        [CHINA, INDIA, AZ1],
        [(0, S1, None), (1, S2, None), (2, S1, None)],
        [100, 0, 0],
    ),
    (
        "the same region scores the same",
        pod("p", affinity=STAY_S1),
        [CHINA, BOTH, INDIA],
        [(0, S1, None)],
        [100, 100, 0],
    ),
    (
        "the region with more matches",
        pod("p", labels=S1, affinity=STAY_S2),
        [CHINA, INDIA, CHINA, CHINA, INDIA],
        [(0, S2, None), (0, S2, None), (1, S2, None), (2, S2, None), (3, S2, None), (4, S2, None)],
        [100, 0, 100, 100, 0],
    ),
    (
        "symmetry of preferred affinity",
        pod("p", labels=S2),
        [CHINA, INDIA, AZ1],
        [(0, S1, STAY_S1), (1, S2, STAY_S2)],
        [0, 100, 0],
    ),
    (
        "anti-affinity to one node's pods",
        pod("p", labels=S1, affinity=AWAY_S1),
        [AZ1, CHINA],
        [(0, S1, None), (1, S2, None)],
        [0, 100],
    ),
    (
        "anti-affinity, label missing",
        pod("p", labels=S1, affinity=AWAY_S1),
        [AZ1, CHINA],
        [(0, S1, None), (1, S1, None)],
        [0, 100],
    ),
    (
        "anti-affinity, more matches",
        pod("p", labels=S1, affinity=AWAY_S1),
        [AZ1, INDIA],
        [(0, S1, None), (0, S1, None), (1, S2, None)],
        [0, 100],
    ),
]


@pytest.mark.parametrize("case", INTERPOD, ids=ids(INTERPOD))
def test_inter_pod_affinity(case: Any) -> None:
    _, wanted, labels, existing, expected = case
    nodes = [node(f"n{i}", label) for i, label in enumerate(labels)]
    pods = [
        on(f"n{at}", labels=mine, **({"affinity": affinity} if affinity else {}))
        for at, mine, affinity in existing
    ]
    assert scored(InterPodScore(), wanted, nodes, pods) == expected


def test_a_required_affinity_of_bound_pods_counts_one() -> None:
    hard = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {
                        "matchExpressions": [
                            {"key": "security", "operator": "In", "values": ["S1", "S2"]}
                        ]
                    },
                    "topologyKey": "region",
                }
            ]
        }
    }
    nodes = [node("a", CHINA), node("b", INDIA), node("c", AZ1)]
    pods = [on("a", labels=S1, affinity=hard), on("b", labels=S2, affinity=hard)]
    assert scored(InterPodScore(), pod("p", labels=S1), nodes, pods) == [100, 100, 0]
    assert parse_objects("").nodes == ()
