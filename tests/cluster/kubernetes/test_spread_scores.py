"""Scores of PodTopologySpread.

Upstream: ``pkg/scheduler/framework/plugins/podtopologyspread/scoring_test.go``,
TestPodTopologySpreadScore: the numbers of 1.23, which cuts scores, and those since pull request
107384 (1.24), which rounds them. The names of the cases are the names upstream.
"""

from __future__ import annotations

from typing import Any

import pytest

from hagane.tools.cluster.kube.spread import SpreadScore
from tests.cluster.kubernetes.scoring import expression, ids, on, scored
from tests.cluster.manifests import node, pod

HOST, ZONE = "kubernetes.io/hostname", "zone"
FOO = {"matchExpressions": [expression("foo", "Exists")]}
BAR = {"matchExpressions": [expression("bar", "Exists")]}
VERSIONS = ((1, 23), (1, 24), (1, 34))


def spreading(
    *constraints: tuple[int, str, dict[str, Any]], labels: tuple[str, ...] = ("foo",)
) -> dict[str, Any]:
    return pod(
        "p",
        labels=dict.fromkeys(labels, ""),
        topologySpreadConstraints=[
            {
                "maxSkew": skew,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": selector,
            }
            for skew, key, selector in constraints
        ],
    )


def hosts(*names: str) -> list[dict[str, Any]]:
    return [node(n, {HOST: n}) for n in names]


ZONES = {"a": "zone1", "b": "zone1", "x": "zone2", "y": "zone2"}
ZONED = [node(n, {HOST: n, ZONE: z}) for n, z in ZONES.items()]


def holding(**counts: int) -> list[tuple[str, str]]:
    return [(name, "foo") for name, count in counts.items() for _ in range(count)]


def bound(pods: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Bind a pod to a node for every (node, labels separated by spaces)."""
    return [on(name, labels=dict.fromkeys(labels.split(), "")) for name, labels in pods]


BY_HOST = spreading((1, HOST, FOO))
BY_BOTH = spreading((1, ZONE, FOO), (1, HOST, FOO))
MIXED = spreading((1, ZONE, FOO), (1, HOST, BAR), labels=("foo", "bar"))
FOUR = hosts("a", "b", "c", "d")
UNEVEN, STEPS = holding(a=2, b=1, d=3), holding(a=4, b=3, c=2, d=1)
SPLIT = holding(a=4, b=2, x=1, y=3)
BARS = [("a", "foo"), ("b", "foo bar"), ("y", "foo"), ("y", "bar")]
# (name, pod, nodes, bound pods, candidates or None for all, scores up to 1.23, scores from 1.24)
SPREAD = [
    (
        "one constraint on node, no existing pods",
        BY_HOST,
        hosts("a", "b"),
        [],
        None,
        [100, 100],
        [100, 100],
    ),
    (
        "one constraint on node, only one node is candidate",
        BY_HOST,
        hosts("a", "b"),
        holding(a=2, b=1),
        ["a"],
        [100],
        [100],
    ),
    (
        "one constraint on node, all nodes have the same number of matching pods",
        BY_HOST,
        hosts("a", "b"),
        holding(a=1, b=1),
        None,
        [100, 100],
        [100, 100],
    ),
    (
        "one constraint on node, all 4 nodes are candidates",
        BY_HOST,
        FOUR,
        UNEVEN,
        None,
        [40, 80, 100, 0],
        [20, 60, 100, 0],
    ),
    (
        "one constraint on node, all 4 nodes are candidates, maxSkew=2",
        spreading((2, HOST, FOO)),
        FOUR,
        UNEVEN,
        None,
        [50, 83, 100, 16],
        [33, 66, 100, 16],
    ),
    (
        "one constraint on node, all 4 nodes are candidates, maxSkew=3",
        spreading((3, HOST, FOO)),
        FOUR,
        STEPS,
        None,
        [33, 55, 77, 100],
        [44, 66, 77, 100],
    ),
    (
        "one constraint on node, 3 out of 4 nodes are candidates",
        BY_HOST,
        hosts("a", "b", "x", "y"),
        SPLIT,
        ["a", "b", "x"],
        [16, 66, 100],
        [33, 83, 100],
    ),
    (
        "one constraint on node, 3 out of 4 nodes are candidates, one node doesn't match",
        BY_HOST,
        [*hosts("a"), node("b", {"n": "b"}), *hosts("x", "y")],
        SPLIT,
        ["a", "b", "x"],
        [20, 0, 100],
        [16, 0, 100],
    ),
    (
        "one constraint on zone, 3 out of 4 nodes are candidates",
        spreading((1, ZONE, FOO)),
        ZONED,
        SPLIT,
        ["a", "b", "x"],
        [62, 62, 100],
        [75, 75, 100],
    ),
    (
        "two Constraints on zone and node, 2 out of 4 nodes are candidates",
        BY_BOTH,
        ZONED,
        holding(a=2, b=1, x=2, y=4),
        ["a", "x"],
        [100, 54],
        [100, 63],
    ),
    (
        "two Constraints on zone and node, with different labelSelectors",
        MIXED,
        ZONED,
        BARS,
        None,
        [75, 25, 100, 50],
        [60, 20, 100, 60],
    ),
    (
        "two Constraints on zone and node, with different labelSelectors, some nodes have 0 pods",
        MIXED,
        ZONED,
        [("b", "bar"), ("x", "foo"), ("y", "foo bar")],
        None,
        [100, 75, 50, 0],
        [100, 60, 40, 0],
    ),
    (
        "two Constraints on zone and node, with different labelSelectors, 3 out of 4 nodes",
        MIXED,
        ZONED,
        BARS,
        ["a", "b", "x"],
        [75, 25, 100],
        [50, 25, 100],
    ),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", SPREAD, ids=ids(SPREAD))
def test_pod_topology_spread(case: Any, version: tuple[int, int]) -> None:
    _, wanted, nodes, pods, candidates, cut, rounded = case
    expected = cut if version < (1, 24) else rounded
    found = scored(SpreadScore(), wanted, nodes, bound(pods), candidates, version)
    assert found == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_system_defaulting_nodes_dont_have_zone_pods_match_service(
    version: tuple[int, int],
) -> None:
    service = {"kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": {"foo": ""}}}
    wanted = pod("p", labels={"foo": ""})
    expected = [33, 55, 77, 100] if version < (1, 24) else [44, 66, 77, 100]
    pods = bound(STEPS)
    found = scored(SpreadScore(), wanted, FOUR, pods, version=version, others=(service,))
    assert found == expected
    assert scored(SpreadScore(), wanted, FOUR, pods, version=version) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_existing_pods_in_a_different_namespace_do_not_count(version: tuple[int, int]) -> None:
    pods = bound(holding(a=2, b=2))
    pods[0]["metadata"]["namespace"] = "ns1"
    expected = [100, 50] if version < (1, 24) else [100, 33]
    assert scored(SpreadScore(), BY_HOST, hosts("a", "b"), pods, version=version) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_terminating_pods_should_be_excluded(version: tuple[int, int]) -> None:
    pods = bound(holding(a=1, b=1))
    pods[0]["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    assert scored(SpreadScore(), BY_HOST, hosts("a", "b"), pods, version=version) == [100, 0]


def test_a_null_selector_matches_no_pod() -> None:
    """Not upstream: a constraint without a selector counts nothing."""
    wanted = spreading((1, HOST, FOO))
    del wanted["spec"]["topologySpreadConstraints"][0]["labelSelector"]
    assert scored(SpreadScore(), wanted, FOUR, bound(UNEVEN)) == [100, 100, 100, 100]
