"""InterPodAffinity as a filter.

Upstream: ``pkg/scheduler/framework/plugins/interpodaffinity/filtering_test.go``,
TestRequiredAffinitySingleNode and TestRequiredAffinityMultipleNodes, as of 1.23. The names of the
cases are the names upstream, shortened.
"""

from __future__ import annotations

from typing import Any

import pytest

from hagane.tools.cluster.kube.interpod import InterPodFilter
from tests.cluster.kubernetes.scoring import expression, ids, reasons
from tests.cluster.manifests import node, pod

NEAR = "node(s) didn't match pod affinity rules"
FAR = "node(s) didn't match pod anti-affinity rules"
OTHERS = "node(s) didn't satisfy existing pods anti-affinity rules"
NAMESPACES = tuple(
    {"kind": "Namespace", "metadata": {"name": name, "labels": {"team": name.split(".")[1]}}}
    for name in ("subteam1.team1", "subteam2.team1", "subteam1.team2", "subteam2.team2")
)


def term(key: str, *expressions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchExpressions": list(expressions)}, "topologyKey": key, **more}


def affine(
    labels: dict[str, str] | None = None, near: Any = (), far: Any = (), **rest: Any
) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {}
    if near:
        affinity["podAffinity"] = {required: list(near)}
    if far:
        affinity["podAntiAffinity"] = {required: list(far)}
    return pod(rest.pop("name", "p"), labels=labels or {}, affinity=affinity, **rest)


def has(key: str, topology: str) -> dict[str, Any]:
    return term(topology, expression(key, "Exists"))


SCAN, S1 = {"service": "securityscan"}, {"security": "S1"}
IS_SCAN = expression("service", "In", "securityscan", "value2")
NOT_SCAN = expression("service", "NotIn", "securityscan", "value2")
VIRUS = expression("service", "In", "antivirusscan", "value2")
SAFE = (expression("service", "Exists"), expression("wrongkey", "DoesNotExist"))
RIGHT = expression("service", "NotIn", "WrongValue")
SCANNER = [pod("o", labels=SCAN)]
ABC, DEF = {"abc": "", "xyz": ""}, {"def": "", "xyz": ""}
EITHER = [has("abc", "zone"), has("def", "zone")]
TEAM1 = {"namespaceSelector": {"matchExpressions": [expression("team", "In", "team1")]}}


def scanner(namespace: str) -> list[dict[str, Any]]:
    return [pod("o", labels=SCAN, namespace=namespace)]


# TestRequiredAffinitySingleNode: (name, pod, pods on the node of region r1 and zone z11, reason)
SINGLE: list[Any] = [
    ("A pod that has no required pod affinity scheduling rules", pod("p"), [], ""),
    (
        "satisfies with required… in PodAffinity using In operator that matches the existing pod",
        affine(S1, [term("region", IS_SCAN)]),
        SCANNER,
        "",
    ),
    (
        "satisfies the pod with required… in PodAffinity using not in operator in labelSelector",
        affine(S1, [term("region", expression("service", "NotIn", "securityscan3", "value3"))]),
        SCANNER,
        "",
    ),
    (
        "Does not satisfy the PodAffinity with labelSelector because of diff Namespace",
        affine(S1, [term("region", IS_SCAN, namespaces=["DiffNameSpace"])]),
        scanner("ns"),
        NEAR,
    ),
    (
        "Doesn't satisfy the PodAffinity because of unmatching labelSelector",
        affine(SCAN, [term("region", VIRUS)]),
        SCANNER,
        NEAR,
    ),
    (
        "satisfies the PodAffinity with different label Operators in multiple required…",
        affine(
            S1,
            [
                term("region", *SAFE),
                term("region", expression("service", "In", "securityscan"), RIGHT),
            ],
        ),
        SCANNER,
        "",
    ),
    (
        "The labelSelector requirements(items of matchExpressions) are ANDed",
        affine(
            S1,
            [
                term("region", *SAFE),
                term("region", expression("service", "In", "securityscan2"), RIGHT),
            ],
        ),
        SCANNER,
        NEAR,
    ),
    (
        "satisfies the PodAffinity and PodAntiAffinity with the existing pod",
        affine(S1, [term("region", IS_SCAN)], [term("node", VIRUS)]),
        SCANNER,
        "",
    ),
    (
        "satisfies the PodAffinity and PodAntiAffinity and PodAntiAffinity symmetry",
        affine(S1, [term("region", IS_SCAN)], [term("node", VIRUS)]),
        [affine(SCAN, far=[term("node", VIRUS)])],
        "",
    ),
    (
        "satisfies the PodAffinity but doesn't satisfy the PodAntiAffinity",
        affine(S1, [term("region", IS_SCAN)], [term("zone", IS_SCAN)]),
        SCANNER,
        FAR,
    ),
    (
        "satisfies the PodAffinity and PodAntiAffinity but doesn't satisfy … symmetry",
        affine(SCAN, [term("region", IS_SCAN)], [term("node", VIRUS)]),
        [affine(SCAN, far=[term("zone", IS_SCAN)])],
        OTHERS,
    ),
    (
        "verify that PodAntiAffinity from existing pod is respected. doesn't satisfy … symmetry",
        pod("p", labels=SCAN),
        [affine(SCAN, far=[term("zone", IS_SCAN)])],
        OTHERS,
    ),
    (
        "verify that PodAntiAffinity from existing pod is respected. satisfy … symmetry",
        pod("p", labels=SCAN),
        [affine(SCAN, far=[term("zone", NOT_SCAN)])],
        "",
    ),
    (
        "satisfies the PodAntiAffinity with existing pod but doesn't satisfy … incoming pod",
        affine(SCAN, far=[has("service", "region"), has("security", "region")]),
        [affine(S1, far=[has("security", "zone")])],
        FAR,
    ),
    (
        "PodAntiAffinity symmetry check a1",
        affine(SCAN, far=[has("service", "zone"), has("security", "zone")]),
        [affine(S1, far=[has("security", "zone")])],
        FAR,
    ),
    (
        "PodAntiAffinity symmetry check a2",
        affine(S1, far=[has("security", "zone")]),
        [affine(SCAN, far=[has("service", "zone"), has("security", "zone")])],
        OTHERS,
    ),
    ("PodAntiAffinity symmetry check b1", affine(ABC, far=EITHER), [affine(DEF, far=EITHER)], FAR),
    ("PodAntiAffinity symmetry check b2", affine(DEF, far=EITHER), [affine(ABC, far=EITHER)], FAR),
    (
        "affinity with NamespaceSelector",
        affine(S1, [term("region", IS_SCAN, **TEAM1)]),
        scanner("subteam1.team1"),
        "",
    ),
    (
        "affinity with non-matching NamespaceSelector",
        affine(S1, [term("region", IS_SCAN, **TEAM1)]),
        scanner("subteam1.team2"),
        NEAR,
    ),
    (
        "anti-affinity with matching NamespaceSelector",
        affine(S1, far=[term("zone", IS_SCAN, **TEAM1)], namespace="subteam1.team1"),
        scanner("subteam2.team1"),
        FAR,
    ),
    (
        "anti-affinity with matching all NamespaceSelector",
        affine(S1, far=[term("zone", IS_SCAN, namespaceSelector={})], namespace="subteam1.team1"),
        scanner("subteam2.team1"),
        FAR,
    ),
    (
        "anti-affinity with non-matching NamespaceSelector",
        affine(S1, far=[term("zone", IS_SCAN, **TEAM1)], namespace="subteam1.team1"),
        scanner("subteam1.team2"),
        "",
    ),
]


@pytest.mark.parametrize("case", SINGLE, ids=ids(SINGLE))
def test_required_affinity_single_node(case: Any) -> None:
    _, wanted, existing, why = case
    for other in existing:
        other["spec"]["nodeName"] = "node1"
        other["metadata"]["name"] = "old"
    machine = node("node1", {"region": "r1", "zone": "z11"})
    found = reasons(InterPodFilter(), wanted, machine, *existing, *NAMESPACES)
    assert found == ({"node1": why} if why else {})


def test_pod_matches_its_own_label_but_not_its_affinity() -> None:
    """Upstream: ``pod matches its own Label in PodAffinity and that matches the existing pod``."""
    wanted = affine(SCAN, [term("region", NOT_SCAN)])
    nodes = node("node1", {"region": "r1", "zone": "z11"}), node("node2")
    found = reasons(InterPodFilter(), wanted, *nodes, pod("o", labels=SCAN, nodeName="node2"))
    assert found["node1"] == NEAR


def at(name: str, labels: dict[str, str] | None = None, **rest: Any) -> dict[str, Any]:
    return affine(labels, nodeName=name, **rest)


CHINA, AZ1, INDIA = {"region": "China"}, {"region": "China", "az": "az1"}, {"region": "India"}
REGIONS = (CHINA, AZ1, INDIA)
SAME_ZONE = ({"region": "r1", "zone": "z1"}, {"region": "r1", "zone": "z1"})
ZONES = ({"region": "r1", "zone": "z1"}, {"region": "r1", "zone": "z2"})
AZS = ({"zone": "az1", "hostname": "h1"}, {"zone": "az2", "hostname": "h2"})
UNZONED = ({"zoneLabel": "az1"}, {"zoneLabel": "az2"})
GROUP = {"foo": "bar", "service": "securityscan"}
IS_BAR, IS_ABC = expression("foo", "In", "bar"), expression("foo", "In", "abc")
ONLY_SCAN = expression("service", "In", "securityscan")
FIRST = affine(GROUP, [term("zone", IS_BAR), term("zone", ONLY_SCAN)])
AWAY_ABC = affine(far=[term("region", IS_ABC)])
TAGGED = pod("p", labels={"foo": "", "bar": ""})
TERMS = [has("foo", "region"), has("bar", "zone")]
BROKEN = [has("foo", "invalid-node-label"), has("bar", "zone")]
BOTH = {"foo": "", "bar": ""}
# TestRequiredAffinityMultipleNodes: (name, pod, labels of a, b, c, bound pods, reason of each)
MULTIPLE: list[Any] = [
    (
        "A pod can be scheduled onto all the nodes that have the same topology key & label value",
        affine(near=[term("region", IS_BAR)]),
        REGIONS,
        [at("a", {"foo": "bar"})],
        ["", "", NEAR],
    ),
    (
        "The affinity rule is to schedule all of the pods of this collection to the same zone",
        FIRST,
        AZS,
        [at("a", {"foo": "bar"})],
        ["", ""],
    ),
    (
        "The first pod of the collection can only be scheduled on nodes labelled",
        FIRST,
        UNZONED,
        [at("a", {"foo": "bar"})],
        [NEAR, NEAR],
    ),
    (
        "NodeA and nodeB have same topologyKey and label value (region r1)",
        AWAY_ABC,
        ZONES,
        [at("a", {"foo": "abc"})],
        [FAR, FAR],
    ),
    (
        "This test ensures that anti-affinity matches a pod when any term matches a pod.",
        affine(far=[term("region", IS_ABC), term("zone", ONLY_SCAN)]),
        ZONES,
        [at("a", {"foo": "abc", "service": "securityscan"})],
        [FAR, FAR],
    ),
    (
        "NodeA and nodeB have same topologyKey … but can be scheduled onto nodeC",
        AWAY_ABC,
        REGIONS,
        [at("a", {"foo": "abc"})],
        [FAR, FAR, ""],
    ),
    (
        "NodeA and nodeB have same topologyKey … nodeC … in different namespace",
        affine({"foo": "123"}, far=[term("region", IS_BAR)], namespace="NS1"),
        REGIONS,
        [
            at("a", {"foo": "bar"}, namespace="NS1"),
            at("c", far=[term("region", expression("foo", "In", "123"))], namespace="NS2"),
        ],
        [FAR, FAR, ""],
    ),
    (
        "Test existing pod's anti-affinity: if an existing pod has a term with invalid topologyKey",
        pod("p", labels={"foo": ""}),
        SAME_ZONE,
        [at("a", far=[has("foo", "invalid-node-label")])],
        ["", ""],
    ),
    (
        "Test incoming pod's anti-affinity: even if labelSelector matches",
        affine(far=[has("foo", "invalid-node-label")]),
        SAME_ZONE,
        [at("a", {"foo": ""})],
        ["", ""],
    ),
    (
        "Test existing pod's anti-affinity: … violates each existingPod's terms on all nodes",
        TAGGED,
        ZONES,
        [at("a", far=[has("foo", "zone")]), at("a", far=[has("bar", "region")])],
        [OTHERS, OTHERS],
    ),
    (
        "Test incoming pod's anti-affinity: … violates one anti-affinity rule of existingPod",
        affine(far=[has("foo", "zone"), has("bar", "region")]),
        ZONES,
        [at("a", {"foo": ""}), at("b", {"bar": ""})],
        [FAR, FAR],
    ),
    (
        "Test existing pod's anti-affinity: … case when one term has invalid topologyKey",
        TAGGED,
        ZONES,
        [at("a", far=BROKEN)],
        [OTHERS, ""],
    ),
    (
        "Test incoming pod's anti-affinity: … case when one term has invalid topologyKey",
        affine(far=BROKEN),
        ZONES,
        [at("a", BOTH)],
        [FAR, ""],
    ),
    (
        "Test existing pod's anti-affinity: … case when all terms have valid topologyKey",
        TAGGED,
        ZONES,
        [at("a", far=TERMS)],
        [OTHERS, OTHERS],
    ),
    (
        "Test incoming pod's anti-affinity: … case when all terms have valid topologyKey",
        affine(far=TERMS),
        ZONES,
        [at("a", BOTH)],
        [FAR, FAR],
    ),
    (
        "Test existing pod's anti-affinity: existingPod on nodeA and nodeB … only nodeC",
        TAGGED,
        (*ZONES, {"region": "r1", "zone": "z3"}),
        [
            at("a", far=[has("foo", "zone"), has("labelA", "zone")]),
            at("b", far=[has("bar", "zone"), has("labelB", "zone")]),
        ],
        [OTHERS, OTHERS, ""],
    ),
    (
        "Test incoming pod's affinity: firstly check if all affinityTerms match",
        affine(near=TERMS),
        SAME_ZONE,
        [at("a", BOTH)],
        ["", ""],
    ),
    (
        "Test incoming pod's affinity: … should be satisfied on the same pod",
        affine(near=TERMS),
        ZONES,
        [at("a", {"foo": ""}), at("b", {"bar": ""})],
        [NEAR, NEAR],
    ),
]


@pytest.mark.parametrize("case", MULTIPLE, ids=ids(MULTIPLE))
def test_required_affinity_multiple_nodes(case: Any) -> None:
    _, wanted, labels, existing, expected = case
    for index, other in enumerate(existing):
        other["metadata"]["name"] = f"old{index}"
    nodes = [node(name, label) for name, label in zip("abc", labels, strict=False)]
    found = reasons(InterPodFilter(), wanted, *nodes, *existing)
    assert [found.get(name, "") for name in "abc"[: len(labels)]] == expected
