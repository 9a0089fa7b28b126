"""Scores of NodeResourcesFit.

Upstream: ``pkg/scheduler/framework/plugins/noderesources``, as of 1.23, with ``machines`` called
``nodes`` as later. Every table is one Go test; the names of its cases are the names upstream.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.kube.allocation import FitScore, Strategy, Weighted, broken_linear
from hagane.tools.cluster.kube.configuration import load_profile
from tests.cluster.kubernetes.scoring import NOTHING, ids, on, scored, sized
from tests.cluster.manifests import pod

TWO = ({"cpu": "1000", "memory": "2000"}, {"cpu": "2000", "memory": "3000"})
A, B = {"cpu": "3000", "memory": "0"}, {"cpu": "3000", "memory": "5000"}
EQUAL = (4000, 10000), (4000, 10000)
LARGER = (4000, 10000), (6000, 10000)
TENS = (10000, 20000), (10000, 20000)
LOADED = [on("node1", A), on("node1", A), on("node2", A), on("node2", B)]
HALF = [on("node1", A), on("node2", B)]
EMPTY = [on("node1"), on("node1"), on("node2"), on("node2")]
XYZ = "abc.com/xyz"
XYZ_ON_SECOND = {"cpu": "6000", "memory": "10000"}, {"cpu": "6000", "memory": "10000", XYZ: "4"}
XYZ_4_10 = (
    {"cpu": "6000", "memory": "10000", XYZ: "4"},
    {"cpu": "6000", "memory": "10000", XYZ: "10"},
)
PLAIN = (Weighted("cpu"), Weighted("memory"))
WITH_XYZ = (*PLAIN, Weighted(XYZ))
MEMORY_TWICE = (Weighted("memory", 2), Weighted("cpu", 1))
REQUESTS_XYZ = pod("p", {"cpu": "3000", "memory": "5000", XYZ: "2"})
Case = tuple[str, dict[str, Any], Any, list[dict[str, Any]], tuple[Weighted, ...], list[int]]

# least_allocated_test.go, TestLeastAllocatedScoringStrategy
LEAST: list[Case] = [
    ("nothing scheduled, nothing requested", NOTHING, EQUAL, [], PLAIN, [100, 100]),
    (
        "nothing scheduled, resources requested, differently sized nodes",
        pod("p", *TWO),
        LARGER,
        [],
        PLAIN,
        [37, 50],
    ),
    (
        "Resources not set, nothing scheduled, resources requested, differently sized nodes",
        pod("p", *TWO),
        LARGER,
        [],
        (),
        [0, 0],
    ),
    ("no resources requested, pods scheduled", NOTHING, EQUAL, EMPTY, PLAIN, [100, 100]),
    (
        "no resources requested, pods scheduled with resources",
        NOTHING,
        TENS,
        LOADED,
        PLAIN,
        [70, 57],
    ),
    (
        "resources requested, pods scheduled with resources",
        pod("p", *TWO),
        TENS,
        HALF,
        PLAIN,
        [57, 45],
    ),
    (
        "resources requested, pods scheduled with resources, differently sized nodes",
        pod("p", *TWO),
        ((10000, 20000), (10000, 50000)),
        HALF,
        PLAIN,
        [57, 60],
    ),
    ("requested resources exceed node capacity", pod("p", A), EQUAL, HALF, PLAIN, [50, 25]),
    (
        "zero node resources, pods scheduled with resources",
        NOTHING,
        ({}, {}),
        HALF,
        PLAIN,
        [0, 0],
    ),
    (
        "nothing scheduled, resources requested with different weight on CPU and memory",
        pod("p", *TWO),
        LARGER,
        [],
        MEMORY_TWICE,
        [41, 50],
    ),
    (
        "bypass extended resource if the pod does not request",
        pod("p", *TWO),
        XYZ_ON_SECOND,
        [],
        WITH_XYZ,
        [50, 50],
    ),
    (
        "honor extended resource if the pod requests",
        REQUESTS_XYZ,
        XYZ_4_10,
        [],
        WITH_XYZ,
        [50, 60],
    ),
]
# most_allocated_test.go, TestMostAllocatedScoringStrategy
MOST: list[Case] = [
    ("nothing scheduled, nothing requested", NOTHING, EQUAL, [], PLAIN, [0, 0]),
    (
        "nothing scheduled, resources requested, differently sized nodes",
        pod("p", *TWO),
        LARGER,
        [],
        PLAIN,
        [62, 50],
    ),
    (
        "Resources not set, nothing scheduled, resources requested, differently sized nodes",
        pod("p", *TWO),
        LARGER,
        [],
        (),
        [0, 0],
    ),
    (
        "no resources requested, pods scheduled with resources",
        NOTHING,
        TENS,
        LOADED,
        PLAIN,
        [30, 42],
    ),
    (
        "resources requested, pods scheduled with resources",
        pod("p", *TWO),
        TENS,
        HALF,
        PLAIN,
        [42, 55],
    ),
    (
        "resources requested equal node capacity",
        pod("p", {"cpu": "2000", "memory": "4000"}, {"cpu": "3000", "memory": "5000"}),
        ((5000, 10000), (10000, 9000)),
        [],
        PLAIN,
        [95, 75],
    ),
    (
        "nothing scheduled, resources requested, differently sized nodes",
        pod("p", *TWO),
        LARGER,
        [],
        MEMORY_TWICE,
        [58, 50],
    ),
    (
        "no resources requested, pods scheduled, nonzero request for resource",
        pod("p", {}),
        (("250m", "1000Mi"), ("250m", "1000Mi")),
        [on("node1", {}), on("node1", {})],
        PLAIN,
        [80, 30],
    ),
    (
        "bypass extended resource if the pod does not request",
        pod("p", *TWO),
        XYZ_ON_SECOND,
        [],
        WITH_XYZ,
        [50, 50],
    ),
    (
        "honor extended resource if the pod request",
        REQUESTS_XYZ,
        XYZ_4_10,
        [],
        WITH_XYZ,
        [50, 40],
    ),
]
# requested_to_capacity_ratio_test.go, TestRequestedToCapacityRatioScoringStrategy
RATIO: list[Case] = [
    (
        "nothing scheduled, nothing requested (default - least requested nodes have priority)",
        NOTHING,
        EQUAL,
        [on("node1"), on("node1")],
        PLAIN,
        [100, 100],
    ),
    (
        "nothing scheduled, resources requested, differently sized nodes",
        pod("p", *TWO),
        LARGER,
        [on("node1"), on("node1")],
        PLAIN,
        [38, 50],
    ),
    (
        "no resources requested, pods scheduled with resources",
        NOTHING,
        LARGER,
        [on("node1", B), on("node2", B)],
        PLAIN,
        [38, 50],
    ),
]


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


# requested_to_capacity_ratio_test.go of 1.20 has the same three cases and numbers.
@pytest.mark.parametrize("version", [(1, 20), (1, 23)])
@pytest.mark.parametrize("case", RATIO, ids=ids(RATIO))
def test_requested_to_capacity_ratio(case: Case, version: tuple[int, int]) -> None:
    _, wanted, sizes, pods, resources, expected = case
    strategy = Strategy("RequestedToCapacityRatio", resources, ((0, 10), (100, 0)))
    nodes = sized(*sizes)
    assert scored(FitScore(strategy), wanted, nodes, pods, version=version) == expected


# fit_test.go, TestFitScore
FIT = [
    (
        "test case for ScoringStrategy RequestedToCapacityRatio case1",
        Strategy("RequestedToCapacityRatio", PLAIN, ((0, 10), (100, 0))),
        B,
        [10, 32],
    ),
    (
        "test case for ScoringStrategy RequestedToCapacityRatio case2",
        Strategy("RequestedToCapacityRatio", PLAIN, ((0, 0), (100, 10))),
        B,
        [95, 68],
    ),
    (
        "test case for ScoringStrategy MostAllocated",
        Strategy("MostAllocated", PLAIN),
        TWO[0],
        [67, 36],
    ),
    (
        "test case for ScoringStrategy LeastAllocated",
        Strategy("LeastAllocated", PLAIN),
        TWO[0],
        [32, 63],
    ),
]


@pytest.mark.parametrize("case", FIT, ids=ids(FIT))
def test_fit_score(case: Any) -> None:
    _, strategy, requests, expected = case
    bound = [
        on("node1", {"cpu": "2000", "memory": "4000"}),
        on("node2", {"cpu": "1000", "memory": "2000"}),
    ]
    assert scored(FitScore(strategy), pod("p", requests), sized(*LARGER), bound) == expected


FOO, BAR = "intel.com/foo", "intel.com/bar"
RISE = ((0, 0), (100, 1))
# requested_to_capacity_ratio_test.go, TestResourceBinPackingSingleExtended
SINGLE = [
    ("nothing scheduled, nothing requested", {}, [], [0, 0]),
    ("resources requested, pods scheduled with less resources", {FOO: "2"}, [], [2, 5]),
    (
        "resources requested, pods scheduled with resources, on node with existing pod running",
        {FOO: "2"},
        [on("node2", {FOO: "2"})],
        [2, 10],
    ),
    ("resources requested, pods scheduled with more resources", {FOO: "4"}, [], [5, 10]),
]
# requested_to_capacity_ratio_test.go, TestResourceBinPackingMultipleExtended
MULTIPLE = [
    ("nothing scheduled, nothing requested", {}, [], [0, 0]),
    (
        "resources requested, pods scheduled with less resources",
        {FOO: "2", BAR: "2"},
        [],
        [4, 3],
    ),
    (
        "resources requested, pods scheduled with resources, on node with existing pod running",
        {FOO: "2", BAR: "2"},
        [on("node2", {FOO: "2", BAR: "2"})],
        [4, 7],
    ),
    (
        "resources requested, pods scheduled with more resources",
        {FOO: "4", BAR: "2"},
        [],
        [5, 5],
    ),
]


@pytest.mark.parametrize("case", SINGLE, ids=ids(SINGLE))
def test_bin_packing_of_one_extended_resource(case: Any) -> None:
    _, requested, bound, expected = case
    strategy = Strategy("RequestedToCapacityRatio", (Weighted(FOO),), RISE)
    nodes = sized({"cpu": "4", FOO: 8}, {"cpu": "4", FOO: 4})
    wanted = pod("p", requested) if requested else NOTHING
    assert scored(FitScore(strategy), wanted, nodes, bound) == expected


@pytest.mark.parametrize("case", MULTIPLE, ids=ids(MULTIPLE))
def test_bin_packing_of_two_extended_resources(case: Any) -> None:
    _, requested, bound, expected = case
    weights = (Weighted(FOO, 3), Weighted(BAR, 5))
    strategy = Strategy("RequestedToCapacityRatio", weights, RISE)
    nodes = sized({"cpu": "4", FOO: 8, BAR: 4}, {"cpu": "4", FOO: 4, BAR: 8})
    wanted = pod("p", requested) if requested else NOTHING
    assert scored(FitScore(strategy), wanted, nodes, bound) == expected


# requested_to_capacity_ratio_test.go, TestBrokenLinearFunction
LINES = {
    ((10, 1), (90, 9)): (
        *((-10, 1), (0, 1), (9, 1), (10, 1), (15, 1), (19, 1)),
        *((20, 2), (89, 8), (90, 9), (99, 9), (100, 9), (110, 9)),
    ),
    ((0, 2), (40, 10), (100, 0)): (
        *((-10, 2), (0, 2), (20, 6), (30, 8), (40, 10), (70, 5), (100, 0), (110, 0)),
    ),
    ((0, 2), (40, 2), (100, 2)): tuple((p, 2) for p in (-10, 0, 20, 30, 40, 70, 100, 110)),
}


@pytest.mark.parametrize(
    ("shape", "at", "expected"),
    [(shape, at, value) for shape, values in LINES.items() for at, value in values],
)
def test_the_line_through_points(
    shape: tuple[tuple[int, int], ...], at: int, expected: int
) -> None:
    assert broken_linear(shape, at) == expected


# least_allocated_test.go: resource with negative weight, with zero weight, weight larger than
# MaxNodeScore; the field is the one that upstream names.
@pytest.mark.parametrize(
    ("weights", "field"),
    [((-1, 1), "resources[0].weight"), ((1, 0), "resources[1].weight"), ((1, 101), "[1].weight")],
)
def test_weights_out_of_range_are_rejected(
    tmp_path: Path, weights: tuple[int, int], field: str
) -> None:
    resources = [
        {"name": name, "weight": weight}
        for name, weight in zip(("memory", "cpu"), weights, strict=True)
    ]
    args = {"scoringStrategy": {"type": "LeastAllocated", "resources": resources}}
    path = tmp_path / "profile.yaml"
    config = [{"name": "NodeResourcesFit", "args": args}]
    path.write_text(
        yaml.safe_dump(
            {"kind": "KubeSchedulerConfiguration", "profiles": [{"pluginConfig": config}]}
        )
    )
    with pytest.raises(InvalidManifest) as failure:
        load_profile(path)
    assert field in str(failure.value)
    assert "not in valid range [1-100]" in str(failure.value)
