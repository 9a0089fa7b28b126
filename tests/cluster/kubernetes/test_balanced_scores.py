"""Scores of NodeResourcesBalancedAllocation, in its three forms.

Upstream: ``pkg/scheduler/framework/plugins/noderesources/balanced_allocation_test.go``,
TestNodeResourcesBalancedAllocation, as of 1.20, as of 1.35 (the numbers of 1.23), and after pull
request 135573 (1.36). The names of the cases are the names upstream, ``machines`` as ``nodes``.
"""

from __future__ import annotations

from typing import Any

import pytest

from hagane.tools.cluster.kube.allocation import BalancedScore, Weighted
from tests.cluster.kubernetes.scoring import NOTHING, ids, on, scored, sized
from tests.cluster.manifests import pod

BOTH = ({"cpu": "1000m", "memory": "2000"}, {"cpu": "2000m", "memory": "3000"})
CPU = ({"cpu": "1000m", "memory": "0"}, {"cpu": "2000m", "memory": "0"})
GPU = "nvidia.com/gpu"
WITH_GPU = ({"cpu": "1000m", "memory": "2000"}, {"cpu": "2000m", "memory": "3000", GPU: "3"})
PLAIN = (Weighted("cpu"), Weighted("memory"))
THREE = (*PLAIN, Weighted(GPU))
GPU_NODE = {"cpu": "3500m", "memory": "40000", GPU: "8"}
LARGER = ("4", 10000), ("6", 10000)
TENS = ("10", 20000), ("10", 20000)
LOADED = [on("node1", *CPU), on("node2", *BOTH)]
SIZED = "resources requested, pods scheduled with resources, differently sized nodes"
LACKING = "node without the scalar resource should skip the scalar resource"
FULL = "requested resources at node capacity"
NAMES = (
    "nothing scheduled, resources requested, differently sized nodes",
    "resources requested, pods scheduled with resources",
)
UNREQUESTED = (
    "scalar resource is not included in the score computation if pod doesn't request the scalar"
    " resource"
)
# (name, pod, nodes, bound pods, resources, scores up to 1.35, scores from 1.36)
CASES = [
    (NAMES[0], pod("p", *BOTH), LARGER, [], PLAIN, [87, 100], [68, 75]),
    (NAMES[1], pod("p", *BOTH), TENS, LOADED, PLAIN, [82, 95], [73, 74]),
    (
        SIZED,
        pod("p", *BOTH),
        (("10", 20000), ("10", 50000)),
        LOADED,
        PLAIN,
        [82, 80],
        [73, 70],
    ),
    (FULL, pod("p", *CPU), (("6", 10000), ("6", 10000)), LOADED, PLAIN, [50, 75], [62, 62]),
    (
        "include scalar resource on a node for balanced resource allocation",
        pod("p", {"memory": "0", GPU: "1"}),
        (GPU_NODE, GPU_NODE),
        [on("node2", *BOTH), on("node1", *WITH_GPU)],
        THREE,
        [70, 65],
        [75, 76],
    ),
    (
        LACKING,
        pod("p", *BOTH),
        (GPU_NODE, {"cpu": "3500m", "memory": "40000"}),
        [],
        THREE,
        [63, 63],
        [56, 56],
    ),
]


@pytest.mark.parametrize("version", [(1, 22), (1, 23), (1, 35)])
@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_one_less_the_standard_deviation(case: Any, version: tuple[int, int]) -> None:
    _, wanted, sizes, pods, resources, expected, _ = case
    nodes = sized(*sizes)
    assert scored(BalancedScore(resources), wanted, nodes, pods, version=version) == expected


@pytest.mark.parametrize("case", CASES, ids=[*ids(CASES)[:-1], UNREQUESTED])
def test_the_change_that_the_pod_makes(case: Any) -> None:
    _, wanted, sizes, pods, resources, _, expected = case
    nodes = sized(*sizes)
    assert scored(BalancedScore(resources), wanted, nodes, pods, version=(1, 36)) == expected


def test_nodes_to_reach_min_max_score() -> None:
    """Upstream: ``resources requested, pods scheduled with resources, nodes to reach min/max``."""
    wanted = pod("p", {"memory": "2000"}, {"memory": "3000"})
    nodes = sized(("3", 5000), ("3", 5000))
    bound = [on("node1", *CPU)]
    assert scored(BalancedScore(), wanted, nodes, bound, version=(1, 36)) == [100, 50]


def test_nothing_scheduled_nothing_requested_skip_in_prescore() -> None:
    """The plugin skips such pods from 1.33 (pull request 130260)."""
    nodes = sized((4000, 10000), (4000, 10000))
    assert scored(BalancedScore(), NOTHING, nodes, version=(1, 33)) is None
    assert scored(BalancedScore(), NOTHING, nodes, version=(1, 32)) == [100, 100]


TWICE = [on("node1", *CPU), on("node1", *CPU), on("node2", *CPU), on("node2", *BOTH)]
OLD = [
    ("nothing scheduled, nothing requested", NOTHING, (("4", 10000), ("4", 10000)), [], [100, 100]),
    (NAMES[0], pod("p", *BOTH), LARGER, [], [75, 100]),
    (
        "no resources requested, pods scheduled",
        NOTHING,
        (("4", 10000), ("4", 10000)),
        [on("node1"), on("node1"), on("node2"), on("node2")],
        [100, 100],
    ),
    ("no resources requested, pods scheduled with resources", NOTHING, TENS, TWICE, [40, 65]),
    (NAMES[1], pod("p", *BOTH), TENS, LOADED, [65, 90]),
    (SIZED, pod("p", *BOTH), (("10", 20000), ("10", 50000)), LOADED, [65, 60]),
    (
        "requested resources exceed node capacity",
        pod("p", *CPU),
        (("4", 10000), ("4", 10000)),
        LOADED,
        [0, 0],
    ),
    (
        "zero node resources, pods scheduled with resources",
        NOTHING,
        (("0", 0), ("0", 0)),
        LOADED,
        [0, 0],
    ),
]


@pytest.mark.parametrize("version", [(1, 20), (1, 21)])
@pytest.mark.parametrize("case", OLD, ids=ids(OLD))
def test_one_less_the_difference(case: Any, version: tuple[int, int]) -> None:
    _, wanted, sizes, pods, expected = case
    assert scored(BalancedScore(), wanted, sized(*sizes), pods, version=version) == expected
