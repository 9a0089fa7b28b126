"""Scores by a node's taints, labels and images.

Upstream: ``pkg/scheduler/framework/plugins``, ``tainttoleration/taint_toleration_test.go``,
``nodeaffinity/node_affinity_test.go`` and ``imagelocality/image_locality_test.go``, as of 1.23.
Every table is one Go test; the names of its cases are the names upstream, shortened.
"""

from __future__ import annotations

from typing import Any

import pytest

from hagane.tools.cluster.kube.nodes import (
    ImageScore,
    NodeAffinityScore,
    TaintScore,
    normalised_image,
)
from tests.cluster.kubernetes.scoring import NOTHING, expression, ids, scored
from tests.cluster.manifests import node, one, pod


def taint(key: str, value: str, effect: str = "PreferNoSchedule") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def tolerating(*pairs: tuple[str, str], effect: str = "PreferNoSchedule") -> dict[str, Any]:
    return pod(
        "p",
        tolerations=[
            {"key": k, "operator": "Equal", "value": v, "effect": effect} for k, v in pairs
        ],
    )


ARM, SSD = ("cpu-type", "arm64"), ("disk-type", "ssd")
# TestTaintTolerationScore
TAINTS = [
    (
        "node with taints tolerated by the pod, gets a higher score",
        tolerating(("foo", "bar")),
        [[taint("foo", "bar")], [taint("foo", "blah")]],
        [100, 0],
    ),
    (
        "the nodes that all of their taints are tolerated by the pod, get the same score",
        tolerating(ARM, SSD),
        [[], [taint(*ARM)], [taint(*ARM), taint(*SSD)]],
        [100, 100, 100],
    ),
    (
        "the more intolerable taints a node has, the lower score it gets.",
        tolerating(("foo", "bar")),
        [[], [taint(*ARM)], [taint(*ARM), taint(*SSD)]],
        [100, 50, 0],
    ),
    (
        "only taints and tolerations that have effect PreferNoSchedule are checked",
        tolerating(ARM, SSD, effect="NoSchedule"),
        [[], [taint(*ARM, "NoSchedule")], [taint(*ARM), taint(*SSD)]],
        [100, 100, 0],
    ),
    (
        "Default behaviour No taints and tolerations, lands on node with no taints",
        NOTHING,
        [[], [taint(*ARM)]],
        [100, 0],
    ),
]


@pytest.mark.parametrize("case", TAINTS, ids=ids(TAINTS))
def test_taint_toleration(case: Any) -> None:
    _, wanted, taints, expected = case
    nodes = [node(f"n{i}", taints=t) for i, t in enumerate(taints)]
    assert scored(TaintScore(), wanted, nodes) == expected


def preferring(*terms: tuple[int, list[dict[str, Any]]]) -> dict[str, Any]:
    preferred = [
        {"weight": w, "preference": {"matchExpressions": expressions}} for w, expressions in terms
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


BAR, VALUE, AZ = (
    expression("foo", "In", "bar"),
    expression("key", "In", "value"),
    expression("az", "In", "az1"),
)
ONE_TERM = preferring((2, [BAR]))
THREE_TERMS = preferring((2, [BAR]), (4, [VALUE]), (5, [BAR, VALUE, AZ]))
L1, L2, L3 = {"foo": "bar"}, {"key": "value"}, {"az": "az1"}
L4, L5 = {"abc": "az11", "def": "az22"}, {"foo": "bar", "key": "value", "az": "az1"}
# TestNodeAffinityPriority; a pod without terms scores 0 everywhere upstream, here it is skipped
AFFINITY = [
    ("all nodes are same priority as NodeAffinity is nil", None, [L1, L2, L3], None),
    (
        "no node matches preferred scheduling requirements in NodeAffinity of pod",
        ONE_TERM,
        [L4, L2, L3],
        [0, 0, 0],
    ),
    (
        "only node1 matches the preferred scheduling requirements of pod",
        ONE_TERM,
        [L1, L2, L3],
        [100, 0, 0],
    ),
    (
        "all nodes matches the preferred scheduling requirements of pod",
        THREE_TERMS,
        [L1, L5, L2],
        [18, 100, 36],
    ),
]


@pytest.mark.parametrize("case", AFFINITY, ids=ids(AFFINITY))
def test_node_affinity(case: Any) -> None:
    _, affinity, labels, expected = case
    nodes = [node(f"n{i}", label) for i, label in enumerate(labels)]
    wanted = pod("p", affinity=affinity) if affinity else NOTHING
    assert scored(NodeAffinityScore(), wanted, nodes) == expected


def added(weight: int, term: dict[str, Any]) -> Any:
    return one(pod("p", affinity=preferring((weight, [term])))).node_affinity


def test_added_affinity() -> None:
    nodes = [node("a", L1), node("b", L2)]
    assert scored(NodeAffinityScore(added(2, BAR)), NOTHING, nodes) == [100, 0]


def test_added_affinity_and_pod_has_default_affinity() -> None:
    nodes = [node("a", L1), node("b", L2), node("c", L5)]
    wanted = pod("p", affinity=ONE_TERM)
    assert scored(NodeAffinityScore(added(3, VALUE)), wanted, nodes) == [40, 60, 100]


def image(mib: int, *tags: str) -> dict[str, Any]:
    names = [f"gcr.io/{mib}:{tag}" for tag in ("latest", *tags)]
    return {"names": names, "sizeBytes": mib << 20}


HELD = {
    "40/300/2000": [image(40, "v1", "v1"), image(300, "v1"), image(2000)],
    "250/10": [image(250), image(10, "v1")],
    "600/40/900": [image(600), image(40), image(900)],
    "300/600/900": [image(300), image(600), image(900)],
    "4000/30": [image(4000), image(30)],
    "20/30/40": [image(20), image(30), image(40)],
    "none": [],
}
# TestImageLocalityPriority
IMAGES = [
    (
        "two images spread on two nodes, prefer the larger image one",
        [40, 250],
        ["40/300/2000", "250/10"],
        [0, 5],
    ),
    ("two images on one node, prefer this node", [40, 300], ["40/300/2000", "250/10"], [7, 0]),
    ("if exceed limit, use limit", [10, 4000], ["4000/30", "250/10"], [100, 0]),
    (
        "if exceed limit, use limit (with node which has no images present)",
        [10, 4000],
        ["4000/30", "250/10", "none"],
        [66, 0, 0],
    ),
    (
        "pod with multiple large images, node2 is preferred",
        [300, 600, 900],
        ["600/40/900", "300/600/900", "none"],
        [32, 36, 0],
    ),
    ("pod with multiple small images", [30, 40], ["20/30/40", "4000/30"], [1, 0]),
]


# image_locality_test.go of 1.20 has the same cases and numbers.
@pytest.mark.parametrize("version", [(1, 20), (1, 23), (1, 34)])
@pytest.mark.parametrize("case", IMAGES, ids=ids(IMAGES))
def test_image_locality(case: Any, version: tuple[int, int]) -> None:
    _, sizes, held, expected = case
    containers = [{"name": f"c{size}", "image": f"gcr.io/{size}"} for size in sizes]
    nodes = [node(f"n{i}", images=HELD[h]) for i, h in enumerate(held)]
    wanted = pod("p", containers=containers)
    assert scored(ImageScore(), wanted, nodes, version=version) == expected


DIGEST = "root@sha256:" + "0123456789abcdef" * 4


# TestNormalizedImageName
@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("root", "root:latest"),
        ("gcr.io:5000/root", "gcr.io:5000/root:latest"),
        ("root:tag", "root:tag"),
        (DIGEST, DIGEST),
    ],
    ids=["add :latest postfix 1", "add :latest postfix 2", "keep it as is 1", "keep it as is 2"],
)
def test_names_of_images(name: str, full: str) -> None:
    assert normalised_image(name) == full
